"""Kernels by name as plain data: the ones that take most time, what kinds of work all of them do, and communication.

None is what the trace does not tell.
"""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import (
    Bytes,
    BytesPerSecond,
    CallName,
    Count,
    KernelName,
    MeanCount,
    Ns,
    OwnText,
    Sentence,
    Share,
    TotalCount,
    TotalNs,
    WhyNone,
)
from nsysdiag.record import Record


class TopKernel(Record, frozen=True):
    """One of the kernel names with most time in a set of time, or all graphs that were recorded as a whole.

    `name` is the demangled name without parts that differ between builds, `short_name` that of the function. `family`
    is one of KernelFamilies, `kind` what it is in words, empty if only its name says it. `share` (0..1) is the part
    of that time in which it ran, on any stream: see kernels.kernel_share. `total_ns` is a sum over streams. `blocks`
    is the median grid. `threads` per block, `registers` per thread, `shared_bytes` per block, `blocks_per_sm` and
    `limit` are those of the launch shape with most time. Means by time are `waves`, `sm_share` (SMs with a block) and
    `resident_share` (of the blocks that all SMs could hold). GPU metrics measured `sm_active`, `tensor_active` and
    `dram_active` (reads and writes) while it ran; `measured_whole`: in samples without other work. `ncu` is the command
    that profiles one launch, from the middle of the chosen ones, after `ncu_skip` others; empty for graphs.
    """

    name: KernelName
    short_name: KernelName
    family: OwnText
    share: Share
    count: TotalCount
    total_ns: TotalNs
    mean_ns: Ns
    ncu: Sentence
    ncu_skip: Count = 0
    shapes: Count = 0
    blocks: Count | None = None
    threads: Count | None = None
    registers: Count | None = None
    shared_bytes: Bytes | None = None
    blocks_per_sm: Count | None = None
    waves: MeanCount | None = None
    sm_share: Share | None = None
    resident_share: Share | None = None
    limit: OwnText | None = None
    sm_active: Share | None = None
    tensor_active: Share | None = None
    dram_active: Share | None = None
    measured_whole: bool = False
    kind: OwnText = ""


class KernelFamilies(Record, frozen=True):
    """How the kernels' time, `total_ns`, divides by kind of work, judged by their names. Shares are 0..1 of that sum
    over streams. Each kernel is of one family: `communication`, `attention`, `products` (matrix products),
    `elementwise`, `reductions` (normalizations and softmax too) or `other`; `graphs` are those that were recorded as a
    whole. The shares add up to 1, or are 0 without kernels. `products_fp32` is the part of the matrix
    products in single precision without tensor cores."""

    total_ns: TotalNs = 0
    products: Share = 0.0
    products_fp32: Share = 0.0
    attention: Share = 0.0
    elementwise: Share = 0.0
    communication: Share = 0.0
    other: Share = 0.0
    reductions: Share = 0.0
    graphs: Share = 0.0


class FamilyKernel(Record, frozen=True):
    """A kernel of a family: its name as in `TopKernel`, how often it ran, and its time over all streams."""

    name: KernelName
    count: Count
    total_ns: Ns


class FamilyTime(Record, frozen=True):
    """The kernels of one family in the judged time: matrix products by precision and by what computes them, attention,
    norms, elementwise and others, by their names; graphs that were recorded as a whole are one.

    `total_ns` is a sum over streams, `share` (0..1) the part of the judged time in which any of them ran. In a step
    that is wholly judged `step_count` of them begin on average, with `step_ns` of time; None without steps. `kernels`
    are those with most time, at most three of `names`.

    GPU metrics measured `sm_active`, `sm_issue` (issue slots), `tensor_active` and `dram_active` (reads and writes).
    They did so over `measured_ns`, in which nothing else ran on the device. `limit` is which of them is near its peak,
    or that none is; empty if that was not measured."""

    family: OwnText
    count: Count
    total_ns: Ns
    share: Share
    names: Count
    step_count: MeanCount | None
    step_ns: Ns | None
    kernels: list[FamilyKernel]
    measured_ns: Ns | None = None
    sm_active: Share | None = None
    sm_issue: Share | None = None
    tensor_active: Share | None = None
    dram_active: Share | None = None
    limit: OwnText = ""


class KernelRow(Record, frozen=True):
    """All instances of one kernel name inside the window; `total_ns` is a sum over streams."""

    name: KernelName
    short_name: KernelName
    count: TotalCount
    total_ns: TotalNs
    mean_ns: Ns
    median_ns: Ns
    min_ns: Ns
    max_ns: Ns
    communication: bool


# Communication as plain data: its kernels, their kinds, and calls of MPI.


class CollectiveKind(Record, frozen=True):
    """The communication kernels of one kind: AllReduce, AllGather, SendRecv, ...; Other if neither the kernel's name
    nor an NCCL call shows it. `total_ns` is a sum over streams. Exposed and overlapped times of all kinds add up to
    those of the device: if several kinds run at once, the time is charged to the kind with most total time.

    Rates are those of nccl-tests, over the `sized` kernels whose message and ranks NCCL's calls say: bytes by the time
    of the kernels, with what they wait for others. `algorithm_bytes_per_second` counts the size of the operation,
    `bus_bytes_per_second` what each rank has to send; `best_bus_bytes_per_second` is the 95th percentile of large ones.
    None without such kernels, or if NVLink of the GPU carries less: then `refused` says so.
    `best_link_bytes_per_second` is the best of what each rank sends at least, which is less if switches of NVLink
    add up. They do for `in_switch` of the sized ones, by their names or because nothing else is as fast."""

    kind: OwnText
    count: TotalCount
    total_ns: TotalNs
    exposed_ns: TotalNs
    overlapped_ns: TotalNs
    sized: TotalCount = 0
    algorithm_bytes_per_second: BytesPerSecond | None = None
    bus_bytes_per_second: BytesPerSecond | None = None
    best_bus_bytes_per_second: BytesPerSecond | None = None
    refused: OwnText = ""
    best_link_bytes_per_second: BytesPerSecond | None = None
    in_switch: TotalCount = 0


class MpiCall(Record, frozen=True):
    """The outermost calls of one MPI function by the threads that launch work on the device, while it was in use.
    `idle_ns` is the idle time of the device in which the thread that launched next was inside such a call."""

    name: CallName
    count: TotalCount
    total_ns: TotalNs
    idle_ns: TotalNs


class Communication(Record, frozen=True):
    """Communication kernels: `total_ns` is a sum over streams, `exposed_ns` the time in which no compute ran at the
    same time, `overlapped_ns` the rest. `kinds` divides them, `mpi` are calls of the host.
    `link_bytes_per_second` is what NVLink of such a GPU carries each way, as published; None if it is not known."""

    kernels: list[KernelRow]
    total_ns: TotalNs
    exposed_ns: TotalNs
    overlapped_ns: TotalNs
    kinds: list[CollectiveKind] = []
    mpi: list[MpiCall] = []
    link_bytes_per_second: Annotated[BytesPerSecond | None, WhyNone("no peak of NVLink is published for this GPU")] = (
        None
    )
