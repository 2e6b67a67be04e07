"""Both timelines on one scale: the same time is as wide on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.comparison.show.rows import entry
from nsysdiag.document.axis import time_ticks
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import percent
from nsysdiag.formats.html.timeline.still import StillLane, level_lanes
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import DeviceComparison, Strip
    from nsysdiag.document.view import Causes

WORK = (("compute", "Compute"), ("communication", "Communication"), ("copies", "Copies"))


@dataclass(frozen=True, slots=True)
class Side:
    """One side's lanes; `width` is its length in per cent of the longer side's."""

    label: str
    length: str
    width: str
    lanes: list[StillLane]


@dataclass(frozen=True, slots=True)
class Strips:
    """Both sides, the ticks of their common axis, and what the colours mean."""

    sides: list[Side]
    ticks: list[tuple[str, str]]
    legend: list[LegendEntry]


def strips(device: DeviceComparison, causes: Causes) -> Strips | None:
    """Both timelines, None where a side has none. Raises InputError where a saved one is damaged."""
    before, after = device.strip_before, device.strip_after
    if before is None or after is None:
        return None
    longest = max(_length(before), _length(after))
    sides = [_side("Before", before, longest, causes), _side("After", after, longest, causes)]
    return Strips(sides, time_ticks(longest), _legend(device, sides, (before, after), causes))


def _length(strip: Strip) -> int:
    return max(strip.end_ns - strip.start_ns, 1)


def _side(label: str, strip: Strip, longest: int, causes: Causes) -> Side:
    length = _length(strip)
    return Side(label, format_ns(length), percent(length, longest), level_lanes(strip.level, strip.cause_ids, causes))


def _legend(
    device: DeviceComparison, sides: list[Side], strips: tuple[Strip, Strip], causes: Causes
) -> list[LegendEntry]:
    """What ran, then the causes by their time; last those that only begin or end a run."""
    present = {lane.label for side in sides for lane in side.lanes}
    drawn = {path.color for side in sides for lane in side.lanes for path in lane.paths}
    ids = [row.id for row in device.ledger if row.change.before_ns or row.change.after_ns]
    found: dict[str, LegendEntry] = {}
    for id in (*ids, *(id for strip in strips for id in strip.cause_ids)):
        key = entry(id, causes)
        if key.color in drawn:
            found.setdefault(key.color, key)
    return [*(LegendEntry(label, part, "") for part, label in WORK if label in present), *found.values()]
