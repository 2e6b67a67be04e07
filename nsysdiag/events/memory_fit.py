"""Which part of a trace fits into a limit of memory, from what its tables say without being read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays import spill
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.errors import UsageError
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
"""Upper estimates of the bytes per row at the peak. Measured together with scripts/bench: 550 bytes for a kernel with
two calls, a context switch, and half an OS call, range, sample and metric."""
ROWS_IN_FILES = spill.LEAST_BYTES // 4
"""Tables of so many rows have columns so large, the narrow ones too, that they are laid into files (see
`nsysdiag/arrays/spill.py`)..."""
SHARE_IN_FILES = 0.6
"""... and each row needs about so much of the above: 400 bytes a kernel and what comes with it were measured."""
SAMPLE_ROWS = 2_000
MARGIN_NS = 1_000_000_000
"""How long before the analysed part rows are read: what was launched in it may have been called before."""


class FittingSpan(Struct, frozen=True):
    """Rows of the time [`read_from`, `end`) in ns are read, and `start` to `end` is analysed; `reason` says why."""

    read_from: int
    start: int
    end: int
    reason: str


def needed_bytes(trace: Trace) -> int:
    """About how much memory the analysis of the whole trace takes."""
    return BASE_BYTES + int(sum(_held(trace, 1.0).values()))


def _held(trace: Trace, share: float) -> dict[str, float]:
    """The bytes that all rows of each table take where a share of them is read."""
    rows = {table: trace.about_rows(table) for table in ROW_BYTES}
    large = {table for table, count in rows.items() if share * count >= ROWS_IN_FILES}
    if large and spill.room() < share * sum(rows[table] * ROW_BYTES[table] for table in large):
        large = set()
    return {table: rows[table] * size * (SHARE_IN_FILES if table in large else 1) for table, size in ROW_BYTES.items()}


def part_that_fits(trace: Trace, limit: int, low: int | None, high: int | None) -> FittingSpan | None:
    """The middle of the trace, or of the time from `low` to `high`: as much as `limit` bytes are expected to hold; None
    if the whole trace fits. Raises UsageError if hardly anything fits."""
    needed = needed_bytes(trace)
    if needed <= limit:
        return None
    samples, share = _Samples.of(trace), 1.0
    chosen = _in_window(samples.time, low, high)
    while True:
        held = _held(trace, share)
        weight = samples.weights(held)
        counted = np.where(chosen, weight, 0.0)
        # What has no times is read whole whatever the part.
        room = limit - BASE_BYTES - (sum(held.values()) - float(weight.sum()))
        total = float(counted.sum())
        if room < 0.01 * (needed - BASE_BYTES) or total == 0:
            raise UsageError(
                f"a memory limit of {format_bytes(limit)} is too little: the trace needs about {format_bytes(needed)}",
                hint=f"the program alone needs {format_bytes(BASE_BYTES)}; raise --memory-limit",
            )
        # Of a small part less is in files: a row of it takes more than one of the whole.
        smaller = min(room, total) / float(weight.sum())
        if smaller >= share or _held(trace, smaller) == held:
            return _middle(samples.time, np.cumsum(counted), room, limit, needed)
        share = smaller


def _in_window(time: IntArray, low: int | None, high: int | None) -> BoolArray:
    chosen = np.ones(len(time), dtype=np.bool_)
    if low is not None:
        chosen &= time >= low
    if high is not None:
        chosen &= time < high
    return chosen


def _middle(time: IntArray, held: FloatArray, room: float, limit: int, needed: int) -> FittingSpan:
    """As much around the middle of what is `held` up to each time as there is room for."""
    total = float(held[-1])
    before = max((total - room) / 2, 0.0)
    first = int(np.searchsorted(held, before, side="right"))
    last = min(int(np.searchsorted(held, before + min(room, total), side="left")), len(time) - 1)
    read_from, end = int(time[first]), int(time[last])
    start = read_from + min(MARGIN_NS, (end - read_from) // 4)
    reason = (
        f"the trace needs about {format_bytes(needed)}, more than the memory limit of {format_bytes(limit)}: "
        f"only the time from {format_exact_ns(start)} to {format_exact_ns(end)} is analysed, "
        f"{format_share(end - start, int(time[-1] - time[0]))} of it"
    )
    return FittingSpan(read_from, start, end, reason)


class _Samples(Struct, frozen=True):
    """The `time` of rows picked evenly from each table, sorted, and of each the `table`, a number into `tables`."""

    time: IntArray
    table: IntArray
    tables: list[str]

    @classmethod
    def of(cls, trace: Trace) -> _Samples:
        tables = list(ROW_BYTES)
        times = [trace.sampled_times(table, SAMPLE_ROWS) for table in tables]
        time = np.concatenate(times)
        order = np.argsort(time, kind="stable")
        return cls(time[order], np.repeat(np.arange(len(tables)), [len(each) for each in times])[order], tables)

    def weights(self, held: dict[str, float]) -> FloatArray:
        """The bytes that each row stands for, where the tables take `held`."""
        count = np.bincount(self.table, minlength=len(self.tables))
        each = np.array([held[table] for table in self.tables]) / np.maximum(count, 1)
        found: FloatArray = each[self.table]
        return found
