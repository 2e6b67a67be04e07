"""Memory of devices as the trace has it: what was given out and taken back, what unified memory moved, page faults.

Rows of a device are those of its processes' own numbers for it; their times are in ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import pid_of
from nsysdiag.events.rows import Rows
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.enums import MIGRATIONS

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
    """Migrations of unified memory; `address` is where the block begins, -1 where the export does not say."""

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
    """What a GPU has: bytes of memory, and bytes a second to and from it; None where the trace does not say."""

    total: int | None = None
    bandwidth: int | None = None


class Memory(Struct, frozen=True):
    """All devices' rows; None where the trace has no such table, or no row in it."""

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
    old = trace.read("TARGET_INFO_CUDA_GPU", "deviceId", "pid", "globalMemorySize")
    known = zip(*(old[name].tolist() for name in ("pid", "deviceId", "globalMemorySize")), strict=True)
    total = next((size for pid, number, size in known if (pid, number) in ids and size > 0), None)
    table = trace.read("TARGET_INFO_GPU", "id", "cuDevice", "totalMemory", "memoryBandwidth")
    return MemoryLimits(
        total or _agreed(table, "totalMemory", gpu_id, ids), _agreed(table, "memoryBandwidth", gpu_id, ids)
    )


def _agreed(table: Columns, column: str, gpu_id: int | None, ids: list[tuple[int, int]]) -> int | None:
    """The one value above 0 that the rows of a GPU agree on, None where there is none."""
    value = table[column]
    known: BoolArray = value > 0
    if gpu_id is not None:
        known &= table["id"] == gpu_id
    elif len(set(value[known].tolist())) > 1:
        known &= np.isin(table["cuDevice"], [number for _, number in ids])
    found = set(value[known].tolist())
    return int(found.pop()) if len(found) == 1 else None
