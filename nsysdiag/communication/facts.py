"""Communication as plain data: its kernels, their kinds, and calls of MPI."""

from __future__ import annotations

from nsysdiag.fields import CallName, OwnText, TotalCount, TotalNs
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.record import Record


class CollectiveKind(Record, frozen=True):
    """The communication kernels of one kind: AllReduce, AllGather, SendRecv, ...; Other if neither the kernel's name
    nor an NCCL call shows it. `total_ns` is a sum over streams. Exposed and overlapped times of all kinds add up to
    those of the device: if several kinds run at once, the time is charged to the kind with most total time."""

    kind: OwnText
    count: TotalCount
    total_ns: TotalNs
    exposed_ns: TotalNs
    overlapped_ns: TotalNs


class MpiCall(Record, frozen=True):
    """The outermost calls of one MPI function by the threads that launch work on the device, while it was in use.
    `idle_ns` is the idle time of the device in which the thread that launched next was inside such a call."""

    name: CallName
    count: TotalCount
    total_ns: TotalNs
    idle_ns: TotalNs


class Communication(Record, frozen=True):
    """Communication kernels: `total_ns` is a sum over streams, `exposed_ns` the time in which no compute ran at the
    same time, `overlapped_ns` the rest. `kinds` divides them, `mpi` are calls of the host."""

    kernels: list[KernelRow]
    total_ns: TotalNs
    exposed_ns: TotalNs
    overlapped_ns: TotalNs
    kinds: list[CollectiveKind] = []
    mpi: list[MpiCall] = []
