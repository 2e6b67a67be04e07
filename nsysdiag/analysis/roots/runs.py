"""When each thread of a trace ran, for asking who was on a CPU at a moment or had just left it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import BoolArray, IntArray, pid_of, process_of, tid_of
from nsysdiag.activity.rows import Rows
from nsysdiag.activity.scheduling import SwitchRows
from nsysdiag.activity.streams import distinct
from nsysdiag.timeline.intervals import nearest_before

PAIRS_AT_ONCE = 2_000_000
AROUND_NS = 1_000_000_000
FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Seen(Rows):
    """Threads at moments: `query` is the moment's index, `lane` the thread's, `distance` how far in ns from it the
    thread stopped running, before or after."""

    query: IntArray
    lane: IntArray
    distance: IntArray


@dataclass(frozen=True, slots=True)
class Runs:
    """Context switches by thread, then time: positions on `axis`, and True where the thread comes in. `share` is for
    each thread how likely it is seen at any moment at all: on a CPU, or off it for less than `just`."""

    axis: ThreadAxis
    position: IntArray
    comes_in: BoolArray
    share: FloatArray
    just: int

    @classmethod
    def of(cls, switches: SwitchRows, ignored: IntArray, low: int, high: int, just: int) -> Runs:
        """The runs of all threads but those `ignored` and the idle loop, over [low, high) and a little around it."""
        low, high = low - AROUND_NS, high + AROUND_NS
        # Not clipped, which would lose their order: before its first event a thread was in the opposite state anyway.
        kept = ~np.isin(switches.thread, ignored) & (tid_of(switches.thread) != 0)
        kept &= (switches.time >= low) & (switches.time < high)
        switches = switches.take(kept)
        axis = ThreadAxis.over(switches.thread, low, high)
        position = axis.position(axis.rank(switches.thread), switches.time)
        order = np.lexsort((switches.comes_in, position))
        position, comes_in = position[order], switches.comes_in[order]
        lane = position // axis.stride
        until = np.append(position[1:], 0)
        # What comes after a thread's last event is unknown.
        until = np.where(np.append(lane[1:] != lane[:-1], True), position, until)
        seen = np.where(comes_in, until - position, np.minimum(until - position, just))
        whole = max(int(np.ptp(switches.time)), 1) if len(switches) else 1
        share = np.minimum(np.bincount(lane, weights=seen, minlength=len(axis.threads)) / whole, 1)
        return cls(axis, position, comes_in, share, just)

    def switched_in(self, thread: IntArray, start: IntArray, end: IntArray) -> IntArray:
        """When each thread last came in within (start, end]; -1 where it did not."""
        lane = self.axis.rank(thread)
        at = self._last(lane, end)
        # The last event may be the thread going out again; the one before is then when it came in.
        at = np.where((at >= 0) & ~self._comes_in_at(at), at - 1, at)
        time = self.axis.time(self.position[np.maximum(at, 0)]) if len(self.position) else start
        same = (at >= 0) & (lane >= 0) & (self._lane_at(at) == lane) & self._comes_in_at(at)
        return np.where(same & (time > start), time, -1)

    def process_ends(self) -> tuple[IntArray, IntArray]:
        """When each process was last seen, sorted, and its main thread: the one with its number, else the one that was
        on a CPU most."""
        if len(self.position) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        threads, lane = self.axis.threads, self.position // self.axis.stride
        _, owner = distinct(process_of(threads))
        end = np.zeros(int(owner.max()) + 1, dtype=np.int64)
        np.maximum.at(end, owner[lane], self.axis.time(self.position))
        order = np.lexsort((self.share, tid_of(threads) == pid_of(threads), owner))
        main = threads[order][np.append(owner[order][1:] != owner[order][:-1], True)]
        by_end = np.argsort(end, kind="stable")
        return end[by_end], main[by_end]

    def seen(self, moment: IntArray, low_lane: IntArray, high_lane: IntArray) -> Seen:
        """Who of the threads on lanes [low_lane, high_lane) was on a CPU at each moment, or had just left it."""
        count = high_lane - low_lane
        parts = [Seen(*(np.zeros(0, dtype=np.int64) for _ in range(3)))]
        border = np.flatnonzero(np.diff(np.cumsum(count) // PAIRS_AT_ONCE)) + 1
        for chosen in np.split(np.arange(len(moment)), border):
            query = np.repeat(chosen, count[chosen])
            first = np.repeat(np.cumsum(count[chosen]) - count[chosen], count[chosen])
            lane = np.arange(len(query)) - first + low_lane[query]
            parts.append(self._seen(query, lane, moment[query]))
        return Seen.concatenate(parts)

    def lanes_of(self, process: IntArray) -> tuple[IntArray, IntArray]:
        """The lanes [low, high) of each process's threads: they lie side by side."""
        owners = process_of(self.axis.threads)
        return np.searchsorted(owners, process), np.searchsorted(owners, process, side="right")

    def _seen(self, query: IntArray, lane: IntArray, moment: IntArray) -> Seen:
        at = self._last(lane, moment)
        inside = (at >= 0) & (self._lane_at(at) == lane)
        here = self.axis.position(lane, moment)
        following = np.minimum(at + 1, len(self.position) - 1)
        running = inside & self._comes_in_at(at)
        # A thread is also seen on a CPU before its first event, if that takes it off.
        early = ~inside & (at + 1 < len(self.position)) & (self._lane_at(following) == lane)
        running |= early & ~self._comes_in_at(following)
        ends = np.where(self._lane_at(following) == lane, self.position[following], here + self.axis.span)
        left = here - self.position[np.maximum(at, 0)]
        distance = np.where(running, ends - here, left)
        kept = running | (inside & (left <= self.just))
        return Seen(query[kept], lane[kept], distance[kept])

    def _last(self, lane: IntArray, time: IntArray) -> IntArray:
        return nearest_before(self.position, self.axis.position(np.maximum(lane, 0), time))

    def _comes_in_at(self, at: IntArray) -> BoolArray:
        return self.comes_in[np.maximum(at, 0)] if len(self.comes_in) else np.zeros(len(at), dtype=np.bool_)

    def _lane_at(self, at: IntArray) -> IntArray:
        if len(self.position) == 0:
            return np.full(len(at), -1, dtype=np.int64)
        return np.where(at >= 0, self.position[np.maximum(at, 0)] // self.axis.stride, -1)
