"""Which waits are waits for a worker that loads input data. Evidence is needed: a name, a range, a frame, a process."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, union
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import distinct
from nsysdiag.wakeups.host_trace import HostTrace
from nsysdiag.wakeups.waits import Ends, Waits

NAMES = re.compile(
    r"data[ _]?load|pin[ _]?memory|pt_data|_worker_loop|\bloader\b|_loader\b|input[ _]?(pipeline|worker|queue)"
    r"|prefetch(er)?\b|queue\W{0,2}get\b|(next|get|load|fetch|read)_?batch|fetch_?data|batch_?(loader|reader|producer)|\bcollate|\bdataset"
    r"|\btf_?data|\bdali\b|\bdecode_(image|jpeg|sample)",
    re.IGNORECASE,
)
"""What threads, NVTX ranges and functions of input pipelines are called."""
MOST_SAMPLES = 64


class Loaders:
    """Finds them in one trace. What is known of a thread is looked up once."""

    def __init__(self, host_trace: HostTrace) -> None:
        self._host_trace = host_trace
        rows = host_trace.ranges.rows
        named = np.array([NAMES.search(name) is not None for name in host_trace.ranges.names], dtype=np.bool_)
        chosen = rows.take(named[rows.name]) if len(rows) else rows
        self._axis = ThreadAxis.over(chosen.thread, host_trace.low, host_trace.high)
        spans = self._axis.place(self._axis.rank(chosen.thread), Intervals(chosen.start, chosen.end))
        self._ranges = union(spans)
        self._is_loader = cache(self._by_name_or_frames)

    def by_waker(self, waits: Waits, waker: IntArray, until: IntArray) -> BoolArray:
        """True for waits that a loading worker ended: `waker` (0: none), at `until`."""
        threads, code = distinct(waker)
        known = np.array([thread > 0 and self._is_loader(thread) for thread in threads.tolist()], dtype=np.bool_)
        result = known[code] if len(waker) else np.zeros(0, dtype=np.bool_)
        result = result | self.in_range(waker, Intervals(waits.start, until))
        return (result | self._is_worker_process(waits, waker)) & (waker > 0)

    def in_range(self, thread: IntArray, time: Intervals) -> BoolArray:
        """True where a range that the thread named after loading data holds at least half of the time. That says what
        the time was for; that a thread waited for another one at all is for the wake-up to show."""
        lane = self._axis.rank(thread)
        covered = coverage(self._ranges, self._axis.place(np.maximum(lane, 0), time))
        return (lane >= 0) & (covered > 0) & (2 * covered >= time.end - time.start)

    def _is_worker_process(self, waits: Waits, waker: IntArray) -> BoolArray:
        """True for a waker in another process of the same program, or forked from it, that works on no GPU."""
        own, other = process_of(waits.thread), process_of(waker)
        result: BoolArray = (own != other) & np.isin(waits.ends, (Ends.WRITE, Ends.RELEASE))
        chosen = np.flatnonzero(result & ~np.isin(other, self._host_trace.gpu_processes))
        pairs, place = np.unique(np.stack((own[chosen], other[chosen])), axis=1, return_inverse=True)
        names = self._host_trace.process_names
        # A process that only forked has no name of its own.
        alike = [here in names and names.get(there, names[here]) == names[here] for here, there in pairs.T.tolist()]
        result[:] = False
        result[chosen] = np.array(alike, dtype=np.bool_)[place.reshape(-1)]
        return result

    def _by_name_or_frames(self, thread: int) -> bool:
        name = self._host_trace.thread_names.get(thread, "")
        if NAMES.search(name):
            return True
        samples = self._host_trace.tables.samples
        mine = np.flatnonzero(samples.thread == thread)
        mine = mine[np.lexsort((samples.id[mine], samples.time[mine]))]
        step = max(len(mine) // MOST_SAMPLES, 1)
        frames = self._host_trace.frames(samples.id[mine[::step]]) if len(mine) else []
        return any(NAMES.search(frame) for frame in frames)
