"""The drawings of the page: the way from the length before to the length after, and both timelines on one scale.

The waterfall is bars: where each begins and how wide it is.

```
before   [==============================]
sync               [--------------------|
kernel             |-----]
after    [===============]
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.rows import Level, entry, levels
from nsysdiag.document.axis import MOST_LEVELS, round_step, time_label, time_ticks
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import percent
from nsysdiag.formats.html.timeline.still import StillLane, level_lanes
from nsysdiag.units import format_ns, format_signed_share

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import DeviceComparison, Strip
    from nsysdiag.document.view import Causes

MOST_STEPS = 14
# An axis begins at 0, but where all lengths lie far from it; so much of the longest is always in view.
FAR, LEAST_VIEW, ROOM = 0.6, 0.1, 3


class Axis(Struct, frozen=True):
    """The lengths from `low` to `high` in ns, which fill the width, and the ticks on it."""

    low: int
    high: int
    ticks: list[tuple[str, str]]

    def at(self, ns: int) -> str:
        """The position of a length, in per cent of the width."""
        return percent(max(ns - self.low, 0), self.high - self.low)


class Bar(Struct, frozen=True):
    """A bar of the waterfall: a length from the left, or a step from one length to the next. `begin` and `end` are
    where lines lead to the bars above and below; `entry` is None for a length, and for small steps as one."""

    label: str
    entry: LegendEntry | None
    is_length: bool
    ns: int
    share: str
    x: str
    width: str
    begin: str
    end: str


class Waterfall(Struct, frozen=True):
    """The bars from before to after. `cut` says where the axis begins, empty where at 0."""

    bars: list[Bar]
    axis: Axis
    cut: str


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


def _length(label: str, ns: int, axis: Axis) -> Bar:
    at = axis.at(ns)
    return Bar(label, None, True, ns, "", "0%", at, at, at)


def _step(step: Level, before: int, axis: Axis, causes: Causes) -> Bar:
    left, right = sorted((step.from_ns, step.to_ns))
    key = entry(step.id, causes) if step.id else None
    return Bar(
        label=key.label if key is not None else words.smaller(step.count),
        entry=key,
        is_length=False,
        ns=step.change_ns,
        share=format_signed_share(step.change_ns, before) if before else words.NOTHING,
        x=axis.at(left),
        width=percent(right - left, axis.high - axis.low),
        begin=axis.at(step.from_ns),
        end=axis.at(step.to_ns),
    )


WORK = (("compute", "Compute"), ("communication", "Communication"), ("copies", "Copies"))


class Side(Struct, frozen=True):
    """One side's lanes; `width` is its length in per cent of the longer side's."""

    label: str
    length: str
    width: str
    lanes: list[StillLane]


class Strips(Struct, frozen=True):
    """Both sides, the ticks of their common axis, and what the colours mean."""

    sides: list[Side]
    ticks: list[tuple[str, str]]
    legend: list[LegendEntry]


def strips(device: DeviceComparison, causes: Causes) -> Strips | None:
    """Both timelines, None where a side has none. Raises InputError where a saved one is damaged."""
    before, after = device.strip_before, device.strip_after
    if before is None or after is None:
        return None
    lengths = [max(strip.end_ns - strip.start_ns, 1) for strip in (before, after)]
    longest = max(lengths)
    sides = [
        Side(label, format_ns(length), percent(length, longest), level_lanes(strip.level, strip.cause_ids, causes))
        for label, strip, length in zip(("Before", "After"), (before, after), lengths, strict=True)
    ]
    return Strips(sides, time_ticks(longest), _legend(device, sides, (before, after), causes))


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
