"""When each thread of a trace ran, for asking who was on a CPU at a moment or had just left it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, nearest_before, rows_from, sorted_times
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import Rows, RowsOf, ThreadAxis
from nsysdiag.events.scheduling import SwitchRows, sorted_order
from nsysdiag.limits import MOST_SEEN

AROUND_NS = 1_000_000_000
"""Context switches are kept up to this long before and after the time in which wake-ups are looked for. A thread
without a switch in all that time is not seen. A longer time keeps more switches in memory."""


class Seen(Rows, frozen=True):
    """Threads at moments: `query` is the moment's index, `lane` the thread's, `distance` in ns from it to the time the
    thread stopped running, before or after; `ago` is the same before it, and 0 if the thread still ran."""

    query: IntArray
    lane: IntArray
    distance: IntArray
    ago: IntArray


class _Stretches(Rows, frozen=True):
    """Times [start, end) in which a thread, by its lane, was on a CPU, or (`left`) had just left it, sorted by lane.

    ```
    switches     in             out                in
    stretches    [--------------)[-- just --)      [-------------
    ```
    """

    lane: IntArray
    start: IntArray
    end: IntArray
    left: BoolArray


class Runs(Struct, frozen=True):
    """Context switches by thread, then time: positions on `axis`, True if the thread is scheduled in, the CPU. `share`
    is each thread's probability of being seen at any moment: on a CPU, or off it for at most the time `just` of the
    runs."""

    axis: ThreadAxis
    position: IntArray
    comes_in: BoolArray
    cpu: IntArray
    share: FloatArray
    stretches: _Stretches

    def came_in(self, lane: IntArray) -> IntArray:
        """How often each thread came in: every second switch."""
        begin, end = (np.searchsorted(self.position, each * self.axis.stride) for each in (lane, lane + 1))
        return (end - begin + 1) // 2

    @classmethod
    def of(cls, switches: SwitchRows, ignored: IntArray, low: int, high: int, just: int) -> Runs:
        """The runs of all threads but those `ignored` and the idle loop, over [low, high) and a little around it."""
        low, high = low - AROUND_NS, high + AROUND_NS
        # Not clipped, which would lose their order: before its first event a thread was in the opposite state anyway.
        kept = ~np.isin(switches.thread, ignored) & (tid_of(switches.thread) != 0)
        kept &= (switches.time >= low) & (switches.time < high)
        switches = switches.take(kept)
        axis = ThreadAxis.over(switches.thread, low, high)
        lane, comes_in, cpu = axis.lane(switches.thread), switches.comes_in, switches.cpu
        position = axis.position(lane, switches.time)
        if not np.all(position[1:] > position[:-1]):
            order = sorted_order(lane, switches.time, comes_in)
            position, comes_in, cpu = position[order], comes_in[order], cpu[order]
            _in_turn(position, comes_in, cpu)
        stretches = _stretches(axis, position, comes_in, just)
        return cls(axis, position, comes_in, cpu, _share(stretches, switches.time, len(axis.threads)), stretches)

    def switched_in(self, thread: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """When each thread last came in within (start, end], and on which CPU; -1 if it did not."""
        lane = self.axis.lane(thread)
        at = self._last(lane, end)
        # The last event may be the thread going out again; the one before is then when it came in.
        at = np.where((at >= 0) & ~self._comes_in_at(at), at - 1, at)
        time = self.axis.time(self.position[np.maximum(at, 0)]) if len(self.position) else start
        same = (at >= 0) & (lane >= 0) & (self._lane_at(at) == lane) & self._comes_in_at(at)
        came = same & (time > start)
        cpu = self.cpu[np.maximum(at, 0)].astype(np.int64) if len(self.cpu) else lane
        return np.where(came, time, -1), np.where(came, cpu, -1)

    def switches(self, thread: IntArray, low: IntArray, high: IntArray) -> IntArray:
        """How often each thread came in or went out within (low, high]."""
        lane = self.axis.lane(thread)
        first, last = self._last(lane, low), self._last(lane, high)
        return np.where(lane >= 0, last - first, 0)

    def switches_of_process(self, thread: IntArray, low: IntArray, high: IntArray) -> IntArray:
        """The same of all threads of each thread's process."""
        owners = process_of(self.axis.threads)
        names = distinct_values(process_of(thread))
        lanes = np.flatnonzero(np.isin(owners, names))
        if len(lanes) == 0:
            return np.zeros(len(thread), dtype=np.int64)
        begin, end = (np.searchsorted(self.position, each * self.axis.stride) for each in (lanes, lanes + 1))
        rows = np.repeat(begin - np.append(0, np.cumsum(end - begin)[:-1]), end - begin)
        rows += np.arange(len(rows))
        group = np.repeat(np.searchsorted(names, owners[lanes]), end - begin)
        # As on the axis, but a lane for each process.
        line = sorted_times(self.axis.position(group, self.axis.time(self.position[rows])))
        asked = np.searchsorted(names, process_of(thread))
        begun, over = (np.searchsorted(line, self.axis.position(asked, each), side="right") for each in (low, high))
        return over - begun

    def ran(self, thread: IntArray, moment: IntArray) -> IntArray:
        """How long before each moment the thread stopped running, in ns: 0 if it still ran, -1 if it never
        had."""
        lane = self.axis.lane(thread)
        at = self._last(lane, moment)
        known = (lane >= 0) & (at >= 0) & (self._lane_at(at) == lane)
        since = moment - self.axis.time(self.position[np.maximum(at, 0)]) if len(self.position) else moment
        return np.where(known, np.where(self._comes_in_at(at), 0, since), -1)

    def thread_ends(self) -> tuple[IntArray, IntArray]:
        """When each thread went off its CPU for good, sorted, and the threads; those that run on are left out."""
        lane = self.position // self.axis.stride
        last = np.append(lane[1:] != lane[:-1], True)[: len(lane)] & ~self.comes_in
        end, thread = self.axis.time(self.position[last]), self.axis.threads[lane[last]]
        by_end = np.argsort(end, kind="stable")
        return end[by_end], thread[by_end]

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
        time = np.clip(moment, self.axis.origin, self.axis.origin + self.axis.span)
        # A pair of lanes is a process, or all threads.
        asked = RowsOf(low_lane * (len(self.axis.threads) + 1) + high_lane)
        met: list[tuple[IntArray, slice, IntArray, IntArray]] = []
        crowd = np.zeros(len(moment), dtype=np.int64)
        for rows in map(asked.__getitem__, asked.values()):
            # As numbers of another width all lanes would be converted to be compared.
            lanes = np.array((low_lane[rows[0]], high_lane[rows[0]]), dtype=self.stretches.lane.dtype)
            within = slice(*np.searchsorted(self.stretches.lane, lanes).tolist())
            query = rows[np.argsort(time[rows], kind="stable")]
            first, behind = self._met(time[query], within)
            met.append((query, within, first, behind))
            begun, over = (np.bincount(each, minlength=len(query) + 1) for each in (first, behind))
            crowd[query] = np.cumsum(begun - over)[:-1]
        # Answered are the moments with the smallest crowds, as many as add up to MOST_SEEN at most.
        order = np.argsort(crowd, kind="stable")
        answered = np.zeros(len(crowd), dtype=np.bool_)
        answered[order] = np.cumsum(crowd[order]) <= MOST_SEEN
        parts = [Seen(*(np.zeros(0, dtype=np.int64) for _ in range(4)))]
        for query, within, first, behind in met:
            few = query[answered[query]]
            borders = (first, behind) if len(few) == len(query) else self._met(time[few], within)
            parts.append(self._seen(few, time[few], within, *borders))
        return Seen.concatenate(parts)

    def _met(self, times: IntArray, rows: slice) -> tuple[IntArray, IntArray]:
        """The places of the first of these times, in order, in each of the stretches at `rows`, and behind the last."""
        return np.searchsorted(times, self.stretches.start[rows]), np.searchsorted(times, self.stretches.end[rows])

    def _seen(self, query: IntArray, time: IntArray, rows: slice, first: IntArray, behind: IntArray) -> Seen:
        """Who was seen in the stretches at `rows`, which hold the queries from `first` to `behind`."""
        lane, start, end, left = (getattr(self.stretches, each)[rows] for each in ("lane", "start", "end", "left"))
        count = behind - first
        chosen = np.repeat(np.arange(len(start)), count)
        at = rows_from(first, count)
        ago = np.where(left[chosen], time[at] - start[chosen], 0)
        return Seen(query[at], lane[chosen], np.where(left[chosen], ago, end[chosen] - time[at]), ago)

    def lanes_of(self, process: IntArray) -> tuple[IntArray, IntArray]:
        """The lanes [low, high) of each process's threads: they are side by side."""
        owners = process_of(self.axis.threads)
        return np.searchsorted(owners, process), np.searchsorted(owners, process, side="right")

    def _last(self, lane: IntArray, time: IntArray) -> IntArray:
        return nearest_before(self.position, self.axis.position(np.maximum(lane, 0), time))

    def _comes_in_at(self, at: IntArray) -> BoolArray:
        return self.comes_in[np.maximum(at, 0)] if len(self.comes_in) else np.zeros(len(at), dtype=np.bool_)

    def _lane_at(self, at: IntArray) -> IntArray:
        if len(self.position) == 0:
            return np.full(len(at), -1, dtype=np.int64)
        return np.where(at >= 0, self.position[np.maximum(at, 0)] // self.axis.stride, -1)


def _in_turn(position: IntArray, comes_in: BoolArray, cpu: IntArray) -> None:
    """Of two switches of a thread at one time, out and in, put the one first that follows from the switch before: a run
    may be too short for the clock."""
    twice = np.flatnonzero((position[1:] == position[:-1]) & ~comes_in[:-1] & comes_in[1:])
    twice = twice[(twice > 0) & ~comes_in[twice - 1]]
    comes_in[twice], comes_in[twice + 1] = True, False
    cpu[twice], cpu[twice + 1] = cpu[twice + 1], cpu[twice].copy()


def _stretches(axis: ThreadAxis, position: IntArray, comes_in: BoolArray, just: int) -> _Stretches:
    """Those of context switches sorted by lane, then time. A thread that its first switch takes off ran before it; one
    that its last brings in runs on."""
    lane, time = position // axis.stride, axis.time(position)
    another = lane[1:] != lane[:-1]
    first, last = np.append(True, another)[: len(lane)], np.append(another, True)[: len(lane)]
    end = np.where(last, axis.origin + axis.stride, np.append(time[1:], 0)[: len(lane)])
    end = np.where(comes_in, end, np.minimum(end, time + just + 1))
    early = first & ~comes_in
    stretches = _Stretches(
        lane=np.append(lane, lane[early]).astype(np.int32),
        start=np.append(time, np.full(int(early.sum()), axis.origin)),
        end=np.append(end, time[early]),
        left=np.append(~comes_in, np.zeros(int(early.sum()), dtype=np.bool_)),
    )
    return stretches.take(np.argsort(stretches.lane, kind="stable"))


def _share(stretches: _Stretches, time: IntArray, threads: int) -> FloatArray:
    """The share of the time with any switches that each thread's stretches cover."""
    if len(time) == 0:
        return np.zeros(threads)
    low, high = int(time.min()), int(time.max())
    length = np.minimum(stretches.end, high) - np.maximum(stretches.start, low)
    share = np.bincount(stretches.lane, weights=np.maximum(length, 0), minlength=threads) / max(high - low, 1)
    return np.minimum(share, 1)
