"""What the page's timeline draws of a device: the gaps that are exact at every level, and for pages without scripts the
whole time in few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.document.drawings import Area, DrawnLane, safe_color
from nsysdiag.formats.html.assets import unpacked
from nsysdiag.messages import InputError
from nsysdiag.saved import unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport
    from nsysdiag.timeline.facts import TimelineLevel, TimelineLevels

MOST_GAPS, FEWEST_GAPS = 20_000, 500


class DrawnGaps(Struct, frozen=True):
    """Start and length in ns and place of the cause in `cause_ids` of `count` gaps in order of time, out of `total`.
    All that last `threshold` ns or longer are among them, `longest` of them, and all that touch exact windows."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    cause: npt.NDArray[np.int64]
    cause_ids: list[str]
    total: int
    threshold: int
    longest: int

    @property
    def count(self) -> int:
        """How many are drawn."""
        return len(self.start)

    @property
    def all(self) -> bool:
        """Are these all gaps of the device?"""
        return self.count == self.total


def drawn_gaps(device: DeviceReport, exact: list[tuple[int, int]], devices: int) -> DrawnGaps:
    """The gaps to draw of one of so many devices; `exact` are the windows that hold all operations, in order. Gaps of
    equal length are among the longest together or not at all. Raises InputError where the report is damaged."""
    start, length, cause = unpack(device.gaps_packed)
    order = np.argsort(start, kind="stable")
    start, length, cause = start[order], length[order], cause[order]
    most = max(MOST_GAPS // max(devices, 1), FEWEST_GAPS)
    threshold, longest = 0, len(start)
    if len(start) > most:
        threshold = int(np.sort(length)[-most - 1]) + 1
        long = length >= threshold
        kept = long | _touches(start, start + length, exact)
        longest = int(np.count_nonzero(long))
        start, length, cause = start[kept], length[kept], cause[kept]
    packed = device.gaps_packed
    return DrawnGaps(start, length, cause, packed.cause_ids, packed.count, threshold, longest)


def _touches(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], parts: list[tuple[int, int]]
) -> npt.NDArray[np.bool_]:
    """True where a gap shares time with any of the parts, which are disjoint and in order."""
    if not parts:
        return np.zeros(len(start), dtype=np.bool_)
    begins, ends = np.array(parts, dtype=np.int64).T
    at = np.minimum(np.searchsorted(ends, start, side="right"), len(parts) - 1)
    touches: npt.NDArray[np.bool_] = (begins[at] < end) & (ends[at] > start)
    return touches


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
