"""The names of a timeline: one packed list for all of its lanes, which tell what each is a name of."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from nsysdiag.arrays.codes import WIDEST, from_planes, from_text, names_from, to_text
from nsysdiag.errors import InputError
from nsysdiag.fields import Text
from nsysdiag.limits import MOST_NAMES_BYTES
from nsysdiag.timeline.facts import OFF_CPU, TimelineLevels

_OF_LANE = {"stream": Text.KERNEL, "nvtx": Text.RANGE, "api": Text.API, "os": Text.API}
_OF_LANE |= dict.fromkeys(("causes", OFF_CPU), Text.SENTENCE)
# A name that lanes of several kinds share is of the first of these.
_ORDER = (Text.KERNEL, Text.RANGE, Text.API, Text.SENTENCE)
_EFFORT = 6
_OURS = 1
"""The first name stands for those that were left out."""


def packed_names(timeline: TimelineLevels) -> list[tuple[Text, str]]:
    """Every name with what it is a name of; what no lane shows, as an NVTX range. Raises InputError where the report is
    damaged."""
    try:
        names = names_from(timeline.names, MOST_NAMES_BYTES)
        used = {text: _used(timeline, text) for text in _ORDER}
    except ValueError as error:
        raise InputError("the names in the timeline of this report cannot be read: the file is damaged") from error
    kind = [Text.RANGE] * len(names)
    for text in reversed(_ORDER):
        for number in used[text]:
            if number < len(kind):
                kind[number] = text
    return [(Text.OWN, name) if at < _OURS else (kind[at], name) for at, name in enumerate(names)]


def repacked(timeline: TimelineLevels, rename: Callable[[Text, str], str]) -> str:
    """The packed list with every name as `rename` makes it."""
    names = [name if text is Text.OWN else rename(text, name) for text, name in packed_names(timeline)]
    data = json.dumps(names, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return to_text(data, _EFFORT) if names else ""


def _used(timeline: TimelineLevels, text: Text) -> list[int]:
    lanes = [lane for lane in timeline.lanes if _OF_LANE.get(lane.kind) is text and lane.names]
    columns = [from_planes(from_text(lane.names, WIDEST * lane.count), lane.count) for lane in lanes]
    return [number for column in columns for number in np.unique(column).tolist()]
