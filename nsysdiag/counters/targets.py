"""What metrics are averaged over: NVTX ranges and kernels by name, each as the set of its time on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.counters.masks import Within, Work
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import Grid
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.projection import project
from nsysdiag.events.rows import distinct
from nsysdiag.gap_groups.keys import normal_range
from nsysdiag.ledger.busy import WindowSplit

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

MOST_ROWS = 20
CANDIDATES = 100


class Target(Struct, frozen=True, eq=False):
    """The time of one name, a set, and how many instances it is of. `whole`: only samples wholly inside it count, where
    there are any; `long_count` instances last at least one sampling period. `short_name` is empty for ranges."""

    name: str
    short_name: str
    spans: Intervals
    count: int
    long_count: int
    whole: bool


def range_targets(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, parts: Intervals) -> list[Target]:
    """The names of ranges with most time on the device inside the set `parts`, the longest first."""
    index, spans = project(device, calls, ranges.rows)
    words: dict[str, int] = {}
    used, code = distinct(ranges.rows.name[index])
    word_of = [words.setdefault(normal_range(ranges.names[name]), len(words)) for name in used.tolist()]
    word = np.array(word_of, dtype=np.int64)[code]
    names, found = list(words), []
    for chosen in _longest(word, spans, len(names)):
        mine = spans[word == chosen]
        inside = intersect(parts, union(mine))
        found.append(Target(names[chosen], "", inside, int(_touching(mine, parts).sum()), 0, whole=False))
    return _most_time(found)


def kernel_targets(device: DeviceTimeline, parts: Intervals, strings: Strings, period_ns: int) -> list[Target]:
    """The kernel names with most time inside the set `parts`.

    ```
    period 100 µs     [-----)[-----)[-----)[-----)
    long kernel          [==============)             one whole sample: nothing else is in it
    short kernels     [=) [=) [=)  [=)                in samples with others: all of them together, by their time
    ```
    """
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & device.running)
    names, name = distinct(operations.name[rows])
    spans = Intervals(operations.start[rows], operations.end[rows])
    touching = _touching(spans, parts)
    rows, name, spans = rows[touching], name[touching], spans[touching]
    found = []
    for chosen in _longest(name, spans, len(names)):
        mine = np.flatnonzero(name == chosen)
        length = (spans.end - spans.start)[mine]
        long = length >= period_ns
        short = strings.text(int(operations.short_name[rows[mine[0]]]))
        its = intersect(parts, union(spans[mine]))
        whole = 2 * int(length[long].sum()) >= int(length.sum())
        full = strings.text(int(names[chosen]))
        found.append(Target(full, short, its, len(mine), int(long.sum()), whole))
    return _most_time(found)


def _most_time(found: list[Target]) -> list[Target]:
    there = [target for target in found if target.spans.total()]
    return sorted(there, key=lambda target: (-target.spans.total(), target.name))[:MOST_ROWS]


def _touching(spans: Intervals, parts: Intervals) -> BoolArray:
    """True for each of the intervals that has any time in the set."""
    before_end = np.searchsorted(parts.start, spans.end, side="left")
    touching: BoolArray = before_end > np.searchsorted(parts.end, spans.start, side="right")
    return touching


def _longest(code: IntArray, spans: Intervals, count: int) -> list[int]:
    """The codes with most time by the sum of their intervals: more than are shown, since these may overlap."""
    total = np.bincount(code, weights=spans.end - spans.start, minlength=count)
    order = np.argsort(-total, kind="stable")[:CANDIDATES]
    longest: list[int] = order[total[order] > 0].tolist()
    return longest


class Lens(Struct, frozen=True, eq=False):
    """Sets of time on a device over the samples of one grid: its window, that of any kernel and of compute inside it,
    its gaps, and the ranges and kernels of the report."""

    grid: Grid
    work: Work
    window: Within
    kernels: Within
    compute: Within
    gaps: Within
    targets: list[Within]

    @classmethod
    def of(
        cls, grid: Grid, window: Intervals, split: WindowSplit, gaps: Intervals, busy: Intervals, targets: list[Target]
    ) -> Lens:
        """The sets on a grid; `busy` is that of all operations of the device, those outside the window too."""
        return cls(
            grid=grid,
            work=Work(grid, busy),
            window=Within.of(grid, window),
            kernels=Within.of(grid, split.kernels),
            compute=Within.of(grid, split.parts[0]),
            gaps=Within.of(grid, gaps),
            targets=[Within.of(grid, target.spans, busy) for target in targets],
        )
