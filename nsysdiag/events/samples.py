"""CPU samples as proof that a thread was on a CPU (COMPOSITE_EVENTS)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before, rows_from, union
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.callchains import file_name, name_of
from nsysdiag.events.rows import Rows, distinct, picked

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

SAMPLES = "COMPOSITE_EVENTS"
SAMPLE_COLUMNS = ("start", "globalTid", "id")
SHORTEST_PERIOD_NS = 100_000
LONGEST_PERIOD_NS = 10_000_000
LONE_PERIOD_NS = 1_000_000
STEADY_STEPS = 20
UNEVEN_PART = 10
"""A step is even if it is within this part of the median."""


class SampleRows(Rows, frozen=True):
    """CPU samples in the order of the export: time in ns, globalTid, and the id of the call chain."""

    time: IntArray
    thread: IntArray
    id: IntArray


def read_samples(trace: Trace) -> SampleRows:
    """All samples of the trace."""
    columns = trace.read(SAMPLES, *SAMPLE_COLUMNS)
    return SampleRows(columns["start"], columns["globalTid"], columns["id"])


class Samples(Struct, frozen=True):
    """Samples of the axis's threads, sorted by position, with the ids of their call chains. `time` is the set of time
    that they count as computing, `period_ns` the median of their sampling periods: no sample stands for more."""

    position: IntArray
    id: IntArray
    time: Intervals
    period_ns: int = LONE_PERIOD_NS

    def inside(self, spans: Intervals) -> IntArray:
        """The ids of the samples at the positions of intervals, in the order of these."""
        first, behind = (np.searchsorted(self.position, side) for side in (spans.start, spans.end))
        return self.id[rows_from(first, np.maximum(behind - first, 0))]

    def standing_for(self, count: int, ns: int) -> int:
        """How much of a stretch of `ns` as many samples in it stand for."""
        return min(count * self.period_ns, ns)


def samples_of(axis: ThreadAxis, rows: SampleRows, calls: Sequence[Intervals]) -> Samples:
    """The CPU samples of the axis's threads.

    Each counts for half its thread's sampling period on either side. `calls` are the calls of the threads, by kind:
    positions, sorted, not nested. A sample inside a call shows the thread in that call. It counts for the time before
    and after the call only if the next sample is about a period away.

    ```
    call               [--------------)
    samples                  .     .                    vouch for nothing outside: the thread may wait on
    samples              .   .   .   .   .   .   .      vouch for all of it
    ```
    """
    lane = axis.lane(rows.thread)
    threads, thread = distinct(rows.thread)
    order = np.lexsort((rows.time, thread))
    time, thread, lane = rows.time[order], thread[order], lane[order]
    period = sampling_periods(time, thread, len(threads))[thread]
    # Whether the thread may have run from each sample to the next: they are about a period apart. True at both ends of
    # its samples, where nothing is known.
    runs = np.ones(len(time) + 1, dtype=np.bool_)
    runs[1:-1] = (thread[1:] != thread[:-1]) | (2 * np.diff(time) <= 3 * period[1:])
    mine = picked(lane >= 0)
    time, lane, half = time[mine], lane[mine], period[mine] // 2
    position = axis.position(lane, time)
    spans = axis.place(lane, Intervals(time - half, time + half))
    for kind in calls:
        spans = _within_calls(position, spans, kind, runs[:-1][mine], runs[1:][mine])
    by_position = np.argsort(position, kind="stable")
    usual = int(np.median(2 * half)) if len(half) else LONE_PERIOD_NS
    return Samples(position[by_position], rows.id[order][mine][by_position], union(spans), usual)


def _within_calls(
    position: IntArray, spans: Intervals, calls: Intervals, ran_before: BoolArray, ran_on: BoolArray
) -> Intervals:
    """Spans of samples inside calls cut to the call, but for the sides to which the thread ran."""
    if len(calls) == 0:
        return spans
    at = nearest_before(calls.start, position)
    inside = (at >= 0) & (calls.end[at] > position)
    start = np.where(inside & ~ran_before, np.maximum(spans.start, calls.start[at]), spans.start)
    end = np.where(inside & ~ran_on, np.minimum(spans.end, calls.end[at]), spans.end)
    return Intervals(start, end)


def leaf_symbols(trace: Trace, ids: IntArray) -> tuple[IntArray, list[str]]:
    """The code of each sample's innermost function, -1 without a call chain in the trace, and the functions; one
    without a name has the name of its module."""
    columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", ids, "id", "symbol", "module", "stackDepth")
    leaves = columns.where(columns["stackDepth"] == 0)
    if len(leaves) == 0:
        return np.full(len(ids), -1, dtype=np.int64), []
    order = np.argsort(leaves["id"], kind="stable")
    known = leaves["id"][order]
    symbols, modules = (trace.strings.texts(leaves[column][order]) for column in ("symbol", "module"))
    words: dict[str, int] = {}
    code = [
        words.setdefault(name_of(symbol) or file_name(module) or symbol, len(words))
        for symbol, module in zip(symbols, modules, strict=True)
    ]
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, np.array(code, dtype=np.int64)[at], -1), list(words)


def chain_symbols(trace: Trace, ids: IntArray) -> list[str]:
    """The functions in the call chains of the samples `ids`, and the modules that they are in, each once."""
    columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", ids, "symbol", "module")
    return sorted({text for column in ("symbol", "module") for text in trace.strings.texts(np.unique(columns[column]))})


def sampling_periods(time: IntArray, thread: IntArray, threads: int) -> IntArray:
    """The sampling period of each thread in ns; rows sorted by thread, then time.

    It is the median step between its samples within 0.1-10 ms, and 1 ms for a thread with a single one. A profiler
    samples a computing thread evenly, and all threads alike. A mostly waiting thread has steps as long as its waits,
    which would count as computing. So uneven steps (at most half of them within a tenth of their median) never make a
    period over 1 ms. No thread's period is longer than that of the steadiest thread.

    ```
    busy thread     . . . . . . . . . . . .      period 1 ms
    waiting thread  .  .     .       .    .      steps of 3 to 9 ms, period 1 ms all the same
    ```
    """
    periods = np.full(threads, LONE_PERIOD_NS, dtype=np.int64)
    within = thread[1:] == thread[:-1]
    step, owner = np.diff(time)[within], thread[1:][within]
    if len(step) == 0:
        return periods
    order = np.lexsort((step, owner))
    step, owner = step[order], owner[order]
    present, first, count = np.unique(owner, return_index=True, return_counts=True)
    median = (step[first + (count - 1) // 2] + step[first + count // 2]) // 2
    middle = np.repeat(median, count)
    even = np.add.reduceat(np.abs(step - middle) * UNEVEN_PART <= middle, first, dtype=np.int64)
    own = np.clip(median, SHORTEST_PERIOD_NS, np.where(2 * even > count, LONGEST_PERIOD_NS, LONE_PERIOD_NS))
    steady = own[count >= STEADY_STEPS]
    periods[present] = np.minimum(own, steady.min()) if len(steady) else own
    return periods
