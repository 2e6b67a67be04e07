"""Communication as plain data: its kernels, their kinds, and calls of MPI."""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import BytesPerSecond, CallName, OwnText, TotalCount, TotalNs, WhyNone
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.record import Record


class CollectiveKind(Record, frozen=True):
    """The communication kernels of one kind: AllReduce, AllGather, SendRecv, ...; Other if neither the kernel's name
    nor an NCCL call shows it. `total_ns` is a sum over streams. Exposed and overlapped times of all kinds add up to
    those of the device: if several kinds run at once, the time is charged to the kind with most total time.

    Rates are those of nccl-tests, over the `sized` kernels whose message and ranks NCCL's calls say: bytes by the time
    of the kernels, with what they wait for others. `algorithm_bytes_per_second` counts the size of the operation,
    `bus_bytes_per_second` what each rank has to send; `best_bus_bytes_per_second` is the 95th percentile of large ones.
    None without such kernels, or where NVLink of the GPU carries less: then `refused` says so.
    `best_link_bytes_per_second` is the best of what each rank sends at least, which is less where switches of NVLink
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
    `link_bytes_per_second` is what NVLink of such a GPU carries each way, as published; None where it is not known."""

    kernels: list[KernelRow]
    total_ns: TotalNs
    exposed_ns: TotalNs
    overlapped_ns: TotalNs
    kinds: list[CollectiveKind] = []
    mpi: list[MpiCall] = []
    link_bytes_per_second: Annotated[BytesPerSecond | None, WhyNone("no peak of NVLink is published for this GPU")] = (
        None
    )
