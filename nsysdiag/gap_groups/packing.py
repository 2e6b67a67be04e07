"""Packs the place of every gap into a few bytes: the operations on both sides and the NVTX path."""

from __future__ import annotations

from itertools import chain

import numpy as np

from nsysdiag.arrays.codes import to_planes, to_text
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.gap_groups.facts import GapPlaces
from nsysdiag.gap_groups.keys import GapKeys
from nsysdiag.limits import PLACES_CHARACTERS

ROOM, FOR_EACH_GAP = 32_768, 0.5
"""Most characters of the names of operations in a report, and of those of ranges: a constant, plus this many for each
gap. The names of real traces take under 6,000; a report has 10 and more bytes for each gap."""
_LEVEL = 3  # of a million gaps a twentieth of a second more than level 1, and a tenth less; level 6 twice that


def pack_places(keys: GapKeys, known: BoolArray) -> GapPlaces:
    """The places of all gaps; `known` tells of which the launching thread is known."""
    room = ROOM + int(FOR_EACH_GAP * len(known))
    operations = list(dict.fromkeys([*keys.previous_names, *keys.next_names]))
    if sum(map(len, operations)) > room:
        operations = []
    ranges, lengths, elements = _flat(keys.paths, room)
    return GapPlaces(
        count=len(known),
        operations=operations,
        previous_op=_packed(_places(keys.previous_names, operations)[keys.previous]) if operations else "",
        next_op=_packed(_places(keys.next_names, operations)[keys.following]) if operations else "",
        ranges=ranges,
        paths=len(lengths),
        elements=len(elements),
        path_lengths=_packed(lengths),
        path_ranges=_packed(elements),
        nvtx=_packed(np.where(known, keys.path + 1, 0)) if len(lengths) else "",
    )


def _flat(paths: list[list[str]], room: int) -> tuple[list[str], IntArray, IntArray]:
    """The distinct names in the paths, the number of names of each path, and the indices of all of them, path after
    path; empty if they take too much space."""
    elements = list(chain.from_iterable(paths))
    ranges = list(dict.fromkeys(elements))
    characters = sum(map(len, elements))
    if len(paths) + len(elements) + sum(map(len, ranges)) > room or characters > PLACES_CHARACTERS:
        return [], np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return ranges, np.array([len(path) for path in paths], dtype=np.int64), _places(elements, ranges)


def _places(names: list[str], known: list[str]) -> IntArray:
    """The place of each name among the known ones."""
    place = {name: at for at, name in enumerate(known)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _packed(values: IntArray) -> str:
    """The numbers as text; of none, none."""
    return to_text(to_planes(values), _LEVEL) if len(values) else ""
