"""Copies, unified memory and device memory as plain data: rates against limits, what moves by itself.

Times are integer nanoseconds, sizes bytes, rates bytes a second. A field that holds `None` was not measurable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from nsysdiag.fields import (
    ZERO_IF_NONE,
    Base64,
    Buckets,
    Bytes,
    BytesPerSecond,
    Count,
    MeanCount,
    Moment,
    Number,
    OwnText,
    Share,
    TotalBytes,
    TotalCount,
    TotalNs,
)
from nsysdiag.record import Packed, PackedColumn, Record


class CopyRate(Record, frozen=True):
    """The copies of one direction (HtoD, DtoH, DtoD, PtoP) compared with the possible rate.

    A trace does not show the link of a GPU. `best_bytes_per_second` is the rate the link has shown: the 95th percentile
    over the `large_count` copies of the device in the whole trace that are large enough to be limited by it.
    `large_pageable` of them were of pageable memory, which is slower than the link. `limit_bytes_per_second` is half of
    the chip's memory bandwidth for DtoD, as every byte is read and written once; copies that fit into the L2 cache may
    exceed it. `slow_ns` is the time in copies below half of the limit, or of the best rate without one; None without
    both. `exceeds_pcie` is the newest generation of PCIe with 16 lanes that cannot carry the best rate one way, 0 for
    none.

    `peak_bytes_per_second` is what `peak` carries one way at most: the interface of the GPU to the host, or NVLink, as
    published for GPUs of this name, and half of the memory's bandwidth for DtoD. The slot, or the link between two
    GPUs, may carry less. None and empty if it is not known. `refused` says why the best rate is not a share of it.
    """

    direction: OwnText
    count: TotalCount
    total_ns: TotalNs
    bytes: TotalBytes
    large_count: TotalCount
    large_pageable: TotalCount
    best_bytes_per_second: BytesPerSecond | None
    limit_bytes_per_second: BytesPerSecond | None
    slow_ns: TotalNs | None
    exceeds_pcie: Number = 0
    peak_bytes_per_second: BytesPerSecond | None = None
    peak: OwnText = ""
    refused: OwnText = ""


class PinningClass(Record, frozen=True):
    """Copies between host and device of one direction, of pageable and of pinned host memory, with sizes from
    `from_bytes` to sixteen times that. `saving_ns` is the most that pinning saves: the pageable time times one minus
    the ratio of the rates; None if one of the two does not occur."""

    direction: OwnText
    from_bytes: Bytes
    pageable_count: TotalCount
    pageable_ns: TotalNs
    pageable_bytes: TotalBytes
    pinned_count: TotalCount
    pinned_ns: TotalNs
    pinned_bytes: TotalBytes
    saving_ns: TotalNs | None


class Pinning(Record, frozen=True):
    """Copies of pageable host memory compared with those of pinned memory. `compared_ns` is the pageable time with
    pinned copies of the same direction and size, `saving_ns` the most that pinning saves of it; None if nothing can be
    compared. Savings by overlap, which pageable copies do not allow, are not included."""

    pageable_count: TotalCount
    pageable_ns: TotalNs
    pageable_bytes: TotalBytes
    pinned_count: TotalCount
    pinned_ns: TotalNs
    pinned_bytes: TotalBytes
    compared_ns: TotalNs
    saving_ns: TotalNs | None
    rows: list[PinningClass]


class ExposedCopies(Record, frozen=True):
    """Copies or sets that ran while nothing else did.

    The exposed times of all rows add up to that of the device: if several kinds run at once, the time is charged to the
    kind with most total time. `ordered` is true if the streams order the copy and its neighbouring kernel, so that they
    could not overlap: on the same stream, or one in the legacy default stream. False means that the copy had a separate
    stream, None that there is no neighbouring kernel. No trace shows whether a kernel needs the copied data. `call` is
    `async`, `blocking` or `graph`, None without a launch row."""

    operation: OwnText
    host_memory: OwnText | None
    ordered: bool | None
    call: OwnText | None
    count: TotalCount
    total_ns: TotalNs
    exposed_ns: TotalNs


class TinyCopies(Record, frozen=True):
    """Copies of fewer than `below_bytes` outside of graphs. `called` of them have a call that returns at once, which
    takes the host `call_ns`. `blocking` have a call that waits for them and for earlier work (a synchronous call, or
    pageable memory): `blocking_ns`. `launches` counts the launched operations of all kinds; `per_iteration` is over
    steady iterations, None if there are none."""

    below_bytes: Bytes
    count: TotalCount
    bytes: TotalBytes
    total_ns: TotalNs
    called: TotalCount
    call_ns: TotalNs
    blocking: TotalCount
    blocking_ns: TotalNs
    launches: TotalCount
    per_iteration: MeanCount | None


class MigrationRow(Record, frozen=True):
    """Migrations of unified memory of one direction and cause (page fault, user prefetch, ...)."""

    direction: OwnText
    cause: OwnText
    count: TotalCount
    bytes: TotalBytes
    total_ns: TotalNs
    bytes_per_second: BytesPerSecond | None


class Thrashing(Record, frozen=True):
    """Blocks of unified memory that thrash: at least `moves` moves, each in the opposite direction of the one before.
    Blocks are identified by their start address."""

    moves: TotalCount
    blocks: Count
    migrations: TotalCount
    bytes: TotalBytes


class UnifiedMemory(Record, frozen=True):
    """What unified memory moved by itself, and the faults behind it. `thrashing` is None if the export names no
    addresses; faults are None if they were not captured.

    A fault of the CPU belongs to a process, not to a device: those of the processes that use the device are counted.
    The GPU reports faults in groups; `gpu_fault_ns` is the time in which at least one group was open."""

    count: TotalCount
    bytes: TotalBytes
    total_ns: TotalNs
    rows: list[MigrationRow]
    thrashing: Thrashing | None
    cpu_faults: TotalCount | None
    gpu_fault_groups: TotalCount | None
    gpu_faults: TotalCount | None
    gpu_fault_ns: TotalNs | None
    gpu_fault_access: dict[OwnText, Count]


class MemoryChurn(Record, frozen=True):
    """Device memory allocated and freed inside the window. `calls` are the outermost API calls that allocate or
    free any memory, of all threads of the device's processes, `call_ns` their time; `idle_ns` is the idle time of the
    device that the ledger gives to memory allocation. `per_iteration` counts allocations and frees, None without
    steady iterations."""

    allocations: TotalCount
    frees: TotalCount
    allocated_bytes: TotalBytes
    freed_bytes: TotalBytes
    per_iteration: MeanCount | None
    calls: TotalCount
    call_ns: TotalNs
    idle_ns: TotalNs


class MemoryPool(Record, frozen=True):
    """A pool of cudaMallocAsync: what it held of the device at most, and what of that was in use at most."""

    pid: Number
    reserved_bytes: Bytes
    used_bytes: Bytes
    events: Count


class DeviceMemory(Packed, frozen=True):
    """The allocated memory of the device over time, of the kinds device, array and static.

    Managed and pinned host memory are counted separately; pinned memory counts for all processes of the device,
    whatever its device number. A trace does not show how much of it a framework's caching allocator uses, nor the
    memory of the driver itself. `at_least` is true if there were allocations before the capture: by `unknown_frees`
    frees (of `unknown_freed_bytes`), or because the trace lacks the beginning of the process. Levels are then lower
    bounds, and there is no `headroom_bytes`: the limit minus the peak (and the most that pools held unused).
    `near_limit`: the peak is near the limit, lower bound or not.

    The series covers [start_ns, end_ns) in `buckets` equal buckets: `lowest` and `highest` level of each."""

    limit_bytes: Bytes | None
    peak_bytes: Bytes
    peak_at_ns: Moment
    begin_bytes: Bytes
    end_bytes: Bytes
    managed_peak_bytes: Bytes
    pinned_peak_bytes: Bytes
    at_least: bool
    unknown_frees: Count
    unknown_freed_bytes: Bytes
    headroom_bytes: Bytes | None
    near_limit: bool
    churn: MemoryChurn
    pools: list[MemoryPool]
    start_ns: Moment
    end_ns: Moment
    buckets: Buckets
    lowest: Base64
    highest: Base64
    encoding: OwnText = "base64(zlib(little-endian int64))"

    def columns(self) -> Iterable[PackedColumn]:
        """Lowest and highest level."""
        return [PackedColumn(self.lowest, self.buckets, 8), PackedColumn(self.highest, self.buckets, 8)]


# Copies by kind as plain data.


class TopCopy(Record, frozen=True):
    """Copies or sets of one kind: the operation and the memory on both sides, None if there is none or the trace
    does not say. `share` is of the time of all copies and sets that were looked at, summed over streams;
    `bytes_per_second` is None if they took no time."""

    operation: OwnText
    src: OwnText | None
    dst: OwnText | None
    share: Share
    count: TotalCount
    total_ns: TotalNs
    bytes: TotalBytes
    mean_bytes: Bytes
    bytes_per_second: BytesPerSecond | None


class CopyRow(Record, frozen=True):
    """All copies or sets of one kind. `src` and `dst` are memory kinds (pageable, pinned, device, ...) or None. `count`
    is of rows: if calls copy in batches, one stands for several of the `copies`; 0 in older reports."""

    operation: OwnText
    src: OwnText | None
    dst: OwnText | None
    count: TotalCount
    total_ns: TotalNs
    bytes: TotalBytes
    bytes_per_second: BytesPerSecond | None
    copies: TotalCount = 0


class Copies(Record, frozen=True):
    """Copies and sets: `total_ns` is a sum over streams, `exposed_ns` the time in which nothing else ran, divided by
    `exposed`. `rates` and `pinning` are of copies alone, `tiny` too; None if there are none of the kind."""

    rows: list[CopyRow]
    total_ns: TotalNs
    bytes: TotalBytes
    exposed_ns: TotalNs
    rates: list[CopyRate] = []
    pinning: Annotated[Pinning | None, ZERO_IF_NONE] = None
    exposed: list[ExposedCopies] = []
    tiny: Annotated[TinyCopies | None, ZERO_IF_NONE] = None
