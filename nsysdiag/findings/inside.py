"""How much of a finding's time is inside the NVTX ranges of its place.

A gap is at the place that is open in the middle of its host's part; parts of it may be outside of that range.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals, intersect, union
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.time.table import TimeTable


class RangeSets(Struct, frozen=True):
    """The ranges of a trace by their names without counters: `row` are those with a thread on the axis, by `code`, an
    index into `names`."""

    ranges: NvtxRanges
    axis: ThreadAxis
    row: IntArray
    code: IntArray
    names: dict[str, int]

    @classmethod
    def of(cls, ranges: NvtxRanges, axis: ThreadAxis) -> RangeSets:
        """Each name is read once."""
        names: dict[str, int] = {}
        known = [names.setdefault(normal_range(name), len(names)) for name in ranges.names]
        row = np.flatnonzero(axis.lane(ranges.rows.thread) >= 0).astype(np.int32)
        return cls(ranges, axis, row, np.array(known, dtype=np.int32)[ranges.rows.name[row]], names)

    def inside(self, path: list[str]) -> Intervals:
        """The time inside ranges of all names of `path`, a set on the axis. Names that were cut are left out."""
        found: Intervals | None = None
        for name in path:
            if name in self.names:
                spans = self._of(self.names[name])
                found = spans if found is None else intersect(found, spans)
        return Intervals.empty() if found is None else found

    def _of(self, code: int) -> Intervals:
        rows = self.row[self.code == code]
        lane = self.axis.lane(self.ranges.rows.thread[rows])
        return union(self.axis.place(lane, Intervals(self.ranges.rows.start[rows], self.ranges.rows.end[rows])))


def host_time(gaps: GapContext, time: TimeTable, judged: JudgedTime, slices: IntArray, bottleneck: str) -> Intervals:
    """The judged time of these slices that is charged to `bottleneck`, a set on the axis: each on the thread that
    launched next."""
    mine = np.zeros(len(gaps.slices.rows) + 1, dtype=np.bool_)
    mine[slices] = True
    at = np.flatnonzero(mine[time.slice] & (time.slice >= 0) & (time.bottleneck == BOTTLENECK_NUMBER[bottleneck]))
    lane = gaps.lane[gaps.slices.rows.gap[time.slice[at]]]
    at, lane = at[lane >= 0], lane[lane >= 0]
    pieces = Owned.of(time.spans[at], lane)
    del mine, at, lane  # the most memory of an analysis is held here
    inside = claim(pieces, judged.parts)[0]
    return union(gaps.axis.place(inside.owner, inside.spans))
