"""Memory of devices as the trace has it: what was given out and taken back, what unified memory moved, page faults.

Rows of a device are those of its processes' own numbers for it; their times are in ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays import spill
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import pid_of
from nsysdiag.events.rows import Rows
from nsysdiag.messages import UsageError
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.enums import MIGRATIONS
from nsysdiag.units import format_bytes, format_exact_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


USAGE, CPU_FAULTS, GPU_FAULTS = (
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
)


class Usage(Rows, frozen=True):
    """Allocations and frees (`operation`: 0 and 1). `kind` is CUPTI's memory kind, `pool` the address of a pool of
    cudaMallocAsync, -1 for none, with its `reserved` and `used` bytes at that time."""

    time: IntArray
    process: IntArray
    device: IntArray
    address: IntArray
    correlation: IntArray
    operation: IntArray
    kind: IntArray
    size: IntArray
    pool: IntArray
    reserved: IntArray
    used: IntArray


class Migrations(Rows, frozen=True):
    """Migrations of unified memory; `address` is where the block begins, -1 if the export does not say."""

    start: IntArray
    end: IntArray
    process: IntArray
    device: IntArray
    kind: IntArray
    cause: IntArray
    address: IntArray
    size: IntArray


class CpuFaults(Rows, frozen=True):
    """Page faults of CPUs."""

    time: IntArray
    process: IntArray


class GpuFaults(Rows, frozen=True):
    """Groups of page faults of GPUs, open over [start, end)."""

    start: IntArray
    end: IntArray
    process: IntArray
    device: IntArray
    faults: IntArray
    access: IntArray


class MemoryLimits(Struct, frozen=True):
    """What a GPU has: bytes of memory, and bytes a second to and from it; None if the trace does not say."""

    total: int | None = None
    bandwidth: int | None = None


class Memory(Struct, frozen=True):
    """All devices' rows; None if the trace has no such table, or no row in it."""

    usage: Usage | None
    migrations: Migrations | None
    cpu_faults: CpuFaults | None
    gpu_faults: GpuFaults | None
    limits: dict[str, MemoryLimits]


def read_memory(trace: Trace, activity: DeviceActivity) -> Memory:
    """Reads what there is. Migrations are read again, and only if there are any: nothing else needs their
    causes and addresses."""
    cpu = ("start", "globalPid")
    gpu = ("start", "end", "globalPid", "deviceId", "numberOfPageFaults", "faultAccessType")
    return Memory(
        usage=_usage(trace, activity.latest_ns) if trace.has(USAGE) else None,
        migrations=_migrations(trace) if activity.operations.migration.any() else None,
        cpu_faults=CpuFaults(*_columns(trace, CPU_FAULTS, cpu)) if trace.has(CPU_FAULTS) else None,
        gpu_faults=GpuFaults(*_columns(trace, GPU_FAULTS, gpu)) if trace.has(GPU_FAULTS) else None,
        limits={each.key: memory_limits(trace, each.gpu_id, each.ids) for each in activity.devices},
    )


def belongs(process: IntArray, device: IntArray, ids: list[tuple[int, int]]) -> BoolArray:
    """True for the rows of the device with these (process id, number): those without a known process by number, if only
    one process uses the device."""
    pid = pid_of(process)
    found = np.zeros(len(process), dtype=np.bool_)
    for owner, number in ids:
        mine = pid == owner
        if len(ids) == 1:
            mine |= process <= 0
        found |= mine & (device == number)
    return found


def of_processes(process: IntArray, ids: list[tuple[int, int]]) -> BoolArray:
    """True for the rows of the processes that use a device."""
    return np.isin(pid_of(process), np.array([owner for owner, _ in ids], dtype=np.int64))


def _usage(trace: Trace, latest: int) -> Usage:
    names = ("start", "globalPid", "deviceId", "address", "correlationId", "memoryOperationType", "memKind", "bytes")
    pools = ("localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize")
    rows = Usage(*_columns(trace, USAGE, (*names, *pools)))
    # A pool without an address is one pool; its events are those that say how much it holds.
    rows = replace(rows, pool=np.where(rows.reserved > 0, np.maximum(rows.pool, 0), -1))
    return rows.take((rows.time >= 0) & (rows.time <= latest))


def _migrations(trace: Trace) -> Migrations:
    names = ("start", "end", "globalPid", "deviceId", "copyKind", "migrationCause", "virtualAddress", "bytes")
    columns = trace.read_chosen("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind", sorted(MIGRATIONS), *names)
    return Migrations(*(columns[name] for name in names))


def _columns(trace: Trace, table: str, names: tuple[str, ...]) -> list[IntArray]:
    columns = trace.read(table, *names)
    return [columns[name] for name in names]


def memory_limits(trace: Trace, gpu_id: int | None, ids: list[tuple[int, int]]) -> MemoryLimits:
    """What the export says of a GPU: by its id, else what all GPUs of the machine have in common, else by number."""
    known, sizes = set(ids), trace.read("TARGET_INFO_CUDA_GPU", "pid", "deviceId", "globalMemorySize").tuples()
    total = next((size for pid, number, size in sizes if (pid, number) in known and size > 0), None)
    table = trace.read("TARGET_INFO_GPU", "id", "cuDevice", "totalMemory", "memoryBandwidth")
    return MemoryLimits(
        total or _agreed(table, "totalMemory", gpu_id, ids), _agreed(table, "memoryBandwidth", gpu_id, ids)
    )


def _agreed(table: Columns, column: str, gpu_id: int | None, ids: list[tuple[int, int]]) -> int | None:
    """The one value above 0 that the rows of a GPU agree on, None if there is none."""
    value = table[column]
    known: BoolArray = value > 0
    if gpu_id is not None:
        known &= table["id"] == gpu_id
    elif len(set(value[known].tolist())) > 1:
        known &= np.isin(table["cuDevice"], [number for _, number in ids])
    found = set(value[known].tolist())
    return int(found.pop()) if len(found) == 1 else None


# Which part of a trace fits into a limit of memory, from what its tables say without being read.

MIB = 1 << 20
"""Bytes of a mebibyte."""
BASE_BYTES = 130 * MIB
"""What the program holds whatever the trace: 107 MiB were measured for an almost empty one."""
GPU_BYTES, TEXT_BYTES = 5 * MIB // 4, 1_200
"""... and for each GPU of the machine and each text, whatever part is read: measured with 100,000 kernels on 64 GPUs,
and with 100,000 names."""
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
ROWS_IN_FILES = 1 << 20
"""Of a table with so many rows the columns are laid into files, and those of the part of a device, too (see
`nsysdiag/arrays/spill.py`)..."""
SHARE_IN_FILES = 0.6
"""... and each row needs about so much of the above: 400 bytes a kernel and what comes with it were measured."""
SAMPLE_ROWS = 2_000
"""Rows of each table, evenly picked, whose times show which part of the trace fits. Its borders are exact to a 2,000th
of the rows of a table. A round number: more take longer to read."""
MARGIN_NS = 1_000_000_000
"""How long before the analyzed part rows are read: what was launched in it may have been called before."""


class FittingSpan(Struct, frozen=True):
    """Rows of the time [`read_from`, `end`) in ns are read, and `start` to `end` is analyzed; `reason` says why."""

    read_from: int
    start: int
    end: int
    reason: str


def needed_bytes(trace: Trace) -> int:
    """About how much memory the analysis of the whole trace takes."""
    return _base(trace) + int(sum(_held(trace, 1.0).values()))


def _base(trace: Trace) -> int:
    """The bytes that all parts of the trace take."""
    return BASE_BYTES + GPU_BYTES * trace.about_rows("TARGET_INFO_GPU") + TEXT_BYTES * trace.about_rows("StringIds")


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
    samples, share, base = _Samples.of(trace), 1.0, _base(trace)
    chosen = _in_window(samples.time, low, high)
    while True:
        held = _held(trace, share)
        weight = samples.weights(held)
        counted = np.where(chosen, weight, 0.0)
        # What has no times is read whole whatever the part.
        room = limit - base - (sum(held.values()) - float(weight.sum()))
        total = float(counted.sum())
        if room < 0.01 * (needed - base) or total == 0:
            raise UsageError(
                f"a memory limit of {format_bytes(limit)} is too little: the trace needs about {format_bytes(needed)}",
                hint=f"the program alone needs {format_bytes(base)}; raise --memory-limit",
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
        f"only the time from {format_exact_ns(start)} to {format_exact_ns(end)} is analyzed, "
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
        return each[self.table]
