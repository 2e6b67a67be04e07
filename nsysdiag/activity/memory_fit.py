"""Which part of a trace fits into a limit of memory, from what its tables say without being read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.errors import UsageError
from nsysdiag.timeline.intervals import FloatArray
from nsysdiag.units import format_bytes, format_exact_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

MIB = 1 << 20
BASE_BYTES = 130 * MIB
"""What the program holds whatever the trace: 107 MiB were measured for an almost empty one."""
ROW_BYTES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": 230,
    "CUPTI_ACTIVITY_KIND_MEMCPY": 280,
    "CUPTI_ACTIVITY_KIND_MEMSET": 280,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": 280,
    "CUPTI_ACTIVITY_KIND_RUNTIME": 120,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": 100,
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": 100,
    "OSRT_API": 80,
    "NVTX_EVENTS": 90,
    "SCHED_EVENTS": 75,
    "COMPOSITE_EVENTS": 60,
    "GPU_METRICS": 30,
}
"""Bytes that a row needs at the peak, rather too many than too few. Measured were all of them together, with
scripts/bench: 550 a kernel with two calls, a context switch, and half an OS call, range, sample and metric; 370 where
the arrays are so large that they lie in files, which the estimate does not count on."""
SAMPLE_ROWS = 2_000
MARGIN_NS = 1_000_000_000
"""How long before the analysed part rows are read: what was launched in it may have been called before."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of the time [`read_from`, `end`) in ns are read, and `start` to `end` is analysed; `reason` says why."""

    read_from: int
    start: int
    end: int
    reason: str


def needed_bytes(trace: Trace) -> int:
    """About how much memory the analysis of the whole trace takes."""
    return BASE_BYTES + sum(trace.about_rows(table) * size for table, size in ROW_BYTES.items())


def part_that_fits(trace: Trace, limit: int, low: int | None, high: int | None) -> Part | None:
    """The middle of the trace, or of the time from `low` to `high`, as much of it as `limit` bytes are expected to
    hold; None where the whole trace fits. Raises UsageError where next to nothing does."""
    needed = needed_bytes(trace)
    if needed <= limit:
        return None
    time, weight = _samples(trace)
    chosen = np.ones(len(time), dtype=np.bool_)
    if low is not None:
        chosen &= time >= low
    if high is not None:
        chosen &= time < high
    held = np.cumsum(np.where(chosen, weight, 0.0))
    # What has no times is read whole whatever the part.
    whole, total = needed - BASE_BYTES - float(weight.sum()), float(held[-1]) if len(held) else 0.0
    room = limit - BASE_BYTES - whole
    if room < 0.01 * (needed - BASE_BYTES) or total == 0:
        raise UsageError(
            f"a memory limit of {format_bytes(limit)} is too little: the trace needs about {format_bytes(needed)}",
            hint=f"the program alone needs {format_bytes(BASE_BYTES)}; raise --memory-limit",
        )
    before = max((total - room) / 2, 0.0)
    first = int(np.searchsorted(held, before, side="right"))
    last = min(int(np.searchsorted(held, before + min(room, total), side="left")), len(time) - 1)
    read_from, end = int(time[first]), int(time[last])
    start = read_from + min(MARGIN_NS, (end - read_from) // 4)
    return Part(read_from, start, end, _reason(limit, needed, start, end, int(time[-1] - time[0])))


def _reason(limit: int, needed: int, start: int, end: int, whole: int) -> str:
    return (
        f"the memory limit of {format_bytes(limit)} holds a part of the trace, which needs about"
        f" {format_bytes(needed)}: only the time from {format_exact_ns(start)} to {format_exact_ns(end)} is analysed,"
        f" {format_share(end - start, whole)} of it"
    )


def _samples(trace: Trace) -> tuple[IntArray, FloatArray]:
    """The times of rows picked evenly from each table, sorted, and the bytes that each of them stands for."""
    times, weights = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for table, size in ROW_BYTES.items():
        found = trace.sampled_times(table, SAMPLE_ROWS)
        if len(found):
            times.append(found)
            weights.append(np.full(len(found), trace.about_rows(table) * size / len(found)))
    time, weight = np.concatenate(times), np.concatenate(weights)
    order = np.argsort(time, kind="stable")
    return time[order], weight[order]
