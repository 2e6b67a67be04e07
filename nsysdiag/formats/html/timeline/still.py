"""The whole timeline of a device as a drawing for the page: what ran and the idle time by cause, in few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.document.drawings import Area, DrawnLane, safe_color
from nsysdiag.formats.html.assets import unpacked
from nsysdiag.messages import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.document.view import Causes
    from nsysdiag.timeline.facts import TimelineLevel, TimelineLevels

MANY_DEVICES = 8
LABELS = {"compute": "Compute", "communication": "Communication", "copies": "Copies", "idle": "Idle"}


def still_lanes(levels: TimelineLevels, causes: Causes, devices: int) -> list[DrawnLane]:
    """The lanes of a device that hold anything. Raises InputError where the report is damaged."""
    level = levels.levels[-1]
    step = 2 if devices > MANY_DEVICES and level.buckets % 2 == 0 else 1
    return level_lanes(level, levels.cause_ids, causes, step)


def level_lanes(level: TimelineLevel, cause_ids: list[str], causes: Causes, step: int = 1) -> list[DrawnLane]:
    """The lanes of one level that hold anything, of each `step` buckets the fullest. Raises InputError where the level
    is damaged."""
    columns = {name: _bytes(getattr(level, name), level.buckets) for name in LABELS}
    leading = _bytes(level.cause, level.buckets)
    lanes = []
    for name, label in LABELS.items():
        heights = columns[name].reshape(-1, step).max(axis=1)
        if not heights.any():
            continue
        if name == "idle":
            first = leading.reshape(-1, step)[:, 0]
            present = [number for number in np.unique(first[heights > 0]).tolist() if number < len(cause_ids)]
            areas = [
                Area(causes.title(cause), "", safe_color(causes[cause].color), np.where(first == number, heights, 0))
                for number, cause in ((number, cause_ids[number]) for number in present)
            ]
        else:
            areas = [Area(label, name, "", heights)]
        lanes.append(DrawnLane(label, len(heights), areas))
    return lanes


def _bytes(packed: str, count: int) -> npt.NDArray[np.int64]:
    values = np.frombuffer(unpacked(packed, count), dtype=np.uint8).astype(np.int64)
    if len(values) != count or not count:
        raise InputError("the timeline of this report contradicts itself: the file is damaged")
    return values
