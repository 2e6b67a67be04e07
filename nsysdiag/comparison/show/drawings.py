"""The drawings of the page: the way from the length before to the length after, and both timelines on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.rows import Level, entry, levels
from nsysdiag.document.axis import MOST_LEVELS, round_step, time_label, time_ticks
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import percent
from nsysdiag.document.lanes import LaneGroup, Lanes
from nsysdiag.document.waterfall import Axis, Step, Waterfall
from nsysdiag.formats.html.timeline.still import level_lanes
from nsysdiag.units import format_ns, format_signed_share

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import DeviceComparison, Strip
    from nsysdiag.document.view import Causes

MOST_STEPS = 14
# An axis begins at 0, but where all lengths lie far from it; so much of the longest is always in view.
FAR, LEAST_VIEW, ROOM = 0.6, 0.1, 3


def waterfall(device: DeviceComparison, causes: Causes) -> Waterfall:
    """The drawing; its steps add up to the change of the length."""
    before, after = device.length.before_ns, device.length.after_ns
    steps = levels(device, MOST_STEPS)
    axis = length_axis([before, after, *(step.to_ns for step in steps)])
    bars = [
        _length("Before", before, axis),
        *(_step(step, before, axis, causes) for step in steps),
        _length("After", after, axis),
    ]
    return Waterfall(bars, axis, f"The axis begins at {time_label(axis.low, axis.high)}." if axis.low else "")


def length_axis(lengths: list[int]) -> Axis:
    """The axis of some lengths in ns, from 0 unless all lie far from it."""
    high, lowest = max(*lengths, 1), min(lengths)
    low = 0
    if lowest > FAR * high:
        low = max(0, round(high - max(ROOM * (high - lowest), LEAST_VIEW * high)))
    step = round_step(high - low, MOST_LEVELS)
    bare = Axis(low // step * step, high, [])
    return Axis(bare.low, high, [(bare.at(ns), time_label(ns, high)) for ns in range(bare.low, high + 1, step)])


def _length(label: str, ns: int, axis: Axis) -> Step:
    at = axis.at(ns)
    return Step(label, None, True, 0, ns, "", "0%", at, at, at)


def _step(step: Level, before: int, axis: Axis, causes: Causes) -> Step:
    left, right = sorted((step.from_ns, step.to_ns))
    key = entry(step.id, causes) if step.id else None
    return Step(
        label=key.label if key is not None else words.smaller(step.count),
        entry=key,
        is_length=False,
        from_ns=step.from_ns,
        to_ns=step.to_ns,
        share=format_signed_share(step.change_ns, before) if before else words.NOTHING,
        x=axis.at(left),
        width=percent(right - left, axis.high - axis.low),
        begin=axis.at(step.from_ns),
        end=axis.at(step.to_ns),
    )


WORK = (("compute", "Compute"), ("communication", "Communication"), ("copies", "Copies"))


class Strips(Struct, frozen=True):
    """Both sides, the ticks of their common axis, and what the colours mean."""

    lanes: Lanes
    ticks: list[tuple[str, str]]
    legend: list[LegendEntry]


def strips(device: DeviceComparison, causes: Causes) -> Strips | None:
    """Both timelines, each as wide as it is long compared with the longer one, None where a side has none. Raises
    InputError where a saved one is damaged."""
    before, after = device.strip_before, device.strip_after
    if before is None or after is None:
        return None
    lengths = [max(strip.end_ns - strip.start_ns, 1) for strip in (before, after)]
    longest = max(lengths)
    sides = [
        LaneGroup(
            label,
            strip.start_ns,
            strip.end_ns,
            level_lanes(strip.level, strip.cause_ids, causes),
            note=format_ns(length),
            width=percent(length, longest),
        )
        for label, strip, length in zip(("Before", "After"), (before, after), lengths, strict=True)
    ]
    legend = _legend(device, sides, (before, after), causes)
    return Strips(Lanes(sides, aligned=True), time_ticks(longest), legend)


def _legend(
    device: DeviceComparison, sides: list[LaneGroup], strips: tuple[Strip, Strip], causes: Causes
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
