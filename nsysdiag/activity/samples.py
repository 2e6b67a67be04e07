"""CPU samples as proof that a thread was on a CPU (COMPOSITE_EVENTS)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.streams import distinct
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.trace import Trace

SHORTEST_PERIOD_NS = 100_000
LONGEST_PERIOD_NS = 10_000_000
LONE_PERIOD_NS = 1_000_000
STEADY_STEPS = 20


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of the axis's threads, sorted by position: where, and the id that their call chains go by. `time` is what
    they vouch for, a set: each sample stands for half its thread's sampling period to either side."""

    position: IntArray
    id: IntArray
    time: Intervals


def read_samples(axis: ThreadAxis, trace: Trace) -> Samples:
    """The CPU samples of the axis's threads."""
    columns = trace.read("COMPOSITE_EVENTS", "start", "globalTid", "id")
    threads, thread = distinct(columns["globalTid"])
    order = np.lexsort((columns["start"], thread))
    time, thread = columns["start"][order], thread[order]
    half = sampling_periods(time, thread, len(threads)) // 2
    lane = axis.rank(threads)[thread] if len(thread) else thread
    mine = lane >= 0
    time, lane, half = time[mine], lane[mine], half[thread[mine]]
    spans = axis.place(lane, Intervals(time - half, time + half))
    position = axis.position(lane, time)
    by_position = np.argsort(position, kind="stable")
    return Samples(position[by_position], columns["id"][order][mine][by_position], union(spans))


def leaf_symbols(trace: Trace, ids: IntArray) -> tuple[IntArray, list[str]]:
    """The code of each sample's innermost function, -1 where its call chain is not in the trace, and the functions;
    one without a name goes by its module."""
    columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", ids, "id", "symbol", "module", "stackDepth")
    leaves = columns.where(columns["stackDepth"] == 0)
    if len(leaves) == 0:
        return np.full(len(ids), -1, dtype=np.int64), []
    order = np.argsort(leaves["id"], kind="stable")
    known = leaves["id"][order]
    symbols, modules = (trace.strings.texts(leaves[column][order]) for column in ("symbol", "module"))
    words: dict[str, int] = {}
    code = [
        words.setdefault(symbol if _is_name(symbol) else PurePath(module).name or symbol, len(words))
        for symbol, module in zip(symbols, modules, strict=True)
    ]
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, np.array(code, dtype=np.int64)[at], -1), list(words)


def _is_name(symbol: str) -> bool:
    """False for an address or a placeholder in brackets."""
    return not symbol.startswith(("0x", "[", "<string "))


def sampling_periods(time: IntArray, thread: IntArray, threads: int) -> IntArray:
    """The sampling period of each thread in ns; rows sorted by thread, then time.

    It is the median step between its samples within 0.1-10 ms, and 1 ms for a thread with a single one. One profiler
    samples all threads alike, so no thread's period is longer than that of the steadiest: the steps of a thread that
    mostly waits are as long as its waits, and would turn them into computing.

    ```
    busy thread     . . . . . . . . . . . .      period 1 ms
    waiting thread  ..          ..          .    steps of 10 ms, period 1 ms all the same
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
    median = np.clip(median, SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS)
    steady = median[count >= STEADY_STEPS]
    periods[present] = np.minimum(median, steady.min()) if len(steady) else median
    return periods
