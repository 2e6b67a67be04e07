"""Copies, unified memory and device memory for the samples of reports."""

from __future__ import annotations

import base64
import zlib

import msgspec
import numpy as np

from nsysdiag.memory.facts import (
    Copies,
    CopyRate,
    DeviceMemory,
    ExposedCopies,
    MemoryChurn,
    MemoryPool,
    MigrationRow,
    Pinning,
    PinningClass,
    Thrashing,
    TinyCopies,
    UnifiedMemory,
)

US, MS = 1_000, 1_000_000
MIB, GIB = 1 << 20, 1 << 30

UP = CopyRate(
    direction="HtoD",
    count=200,
    total_ns=8 * MS,
    bytes=128 * MIB,
    large_count=40,
    large_pageable=30,
    best_bytes_per_second=float(24 * GIB),
    limit_bytes_per_second=None,
    slow_ns=5 * MS,
    exceeds_pcie=3,
)
ON_DEVICE = CopyRate(
    direction="DtoD",
    count=10,
    total_ns=2 * MS,
    bytes=GIB,
    large_count=10,
    large_pageable=0,
    best_bytes_per_second=float(500 * GIB),
    limit_bytes_per_second=float(1000 * GIB),
    slow_ns=MS,
)
CLASS = PinningClass(
    direction="HtoD",
    from_bytes=MIB,
    pageable_count=30,
    pageable_ns=6 * MS,
    pageable_bytes=48 * MIB,
    pinned_count=10,
    pinned_ns=2 * MS,
    pinned_bytes=48 * MIB,
    saving_ns=4 * MS,
)
LONE_CLASS = msgspec.structs.replace(
    CLASS, direction="DtoH", pinned_count=0, pinned_ns=0, pinned_bytes=0, saving_ns=None
)
PINNING = Pinning(
    pageable_count=60,
    pageable_ns=12 * MS,
    pageable_bytes=96 * MIB,
    pinned_count=10,
    pinned_ns=2 * MS,
    pinned_bytes=48 * MIB,
    compared_ns=6 * MS,
    saving_ns=4 * MS,
    rows=[CLASS, LONE_CLASS],
)
EXPOSED = [
    ExposedCopies(
        operation="memcpy HtoD",
        host_memory="pageable",
        ordered=True,
        call="blocking",
        count=60,
        total_ns=6 * MS,
        exposed_ns=3 * MS,
    ),
    ExposedCopies(
        operation="memcpy HtoD",
        host_memory="pinned",
        ordered=False,
        call="async",
        count=140,
        total_ns=2 * MS,
        exposed_ns=2 * MS,
    ),
]
TINY = TinyCopies(
    below_bytes=4096,
    count=90,
    bytes=720,
    total_ns=90 * US,
    called=80,
    call_ns=800 * US,
    blocking=0,
    blocking_ns=0,
    launches=400,
    per_iteration=4.5,
)


def in_full(copies: Copies) -> Copies:
    """The copies with all that there may be to say of them; 5 ms are exposed."""
    return msgspec.structs.replace(
        copies, exposed_ns=5 * MS, rates=[UP, ON_DEVICE], pinning=PINNING, exposed=EXPOSED, tiny=TINY
    )


UNIFIED = UnifiedMemory(
    count=300,
    bytes=60 * MIB,
    total_ns=9 * MS,
    rows=[
        MigrationRow(
            direction="HtoD", cause="page fault", count=200, bytes=40 * MIB, total_ns=6 * MS, bytes_per_second=7e9
        ),
        MigrationRow(direction="DtoH", cause="eviction", count=100, bytes=20 * MIB, total_ns=0, bytes_per_second=None),
    ],
    thrashing=Thrashing(moves=3, blocks=2, migrations=8, bytes=16 * MIB),
    cpu_faults=12,
    gpu_fault_groups=40,
    gpu_faults=900,
    gpu_fault_ns=2 * MS,
    gpu_fault_access={"read": 30, "write": 10},
)


def level(values: list[int]) -> str:
    return base64.b64encode(zlib.compress(np.array(values, dtype="<i8").tobytes(), 9)).decode()


CHURN = MemoryChurn(
    allocations=60,
    frees=40,
    allocated_bytes=300 * MIB,
    freed_bytes=200 * MIB,
    per_iteration=5.0,
    calls=110,
    call_ns=3 * MS,
    idle_ns=2 * MS,
)
MEMORY = DeviceMemory(
    limit_bytes=80 * GIB,
    peak_bytes=60 * GIB,
    peak_at_ns=150 * MS,
    begin_bytes=20 * GIB,
    end_bytes=40 * GIB,
    managed_peak_bytes=0,
    pinned_peak_bytes=GIB,
    at_least=False,
    unknown_frees=0,
    unknown_freed_bytes=0,
    headroom_bytes=20 * GIB,
    near_limit=False,
    churn=CHURN,
    pools=[MemoryPool(pid=4200, reserved_bytes=2 * GIB, used_bytes=GIB, events=9)],
    start_ns=90 * MS,
    end_ns=190 * MS,
    buckets=4,
    lowest=level([20 * GIB, 30 * GIB, 30 * GIB, 40 * GIB]),
    highest=level([30 * GIB, 30 * GIB, 60 * GIB, 60 * GIB]),
)


def hostile_copies(copies: Copies, names: list[str]) -> Copies:
    """Every text is each of the names."""
    change = msgspec.structs.replace
    rates = [change(each, direction=name) for name in names for each in (UP, ON_DEVICE)]
    exposed = [change(EXPOSED[0], operation=name, host_memory=name, call=name) for name in names]
    pinning = change(PINNING, rows=[change(CLASS, direction=name) for name in names])
    return change(in_full(copies), rates=rates, exposed=exposed, pinning=pinning)


def hostile_unified(names: list[str]) -> UnifiedMemory:
    rows = [msgspec.structs.replace(UNIFIED.rows[0], direction=name, cause=name) for name in names]
    return msgspec.structs.replace(UNIFIED, rows=rows, gpu_fault_access=dict.fromkeys(names, 1))
