"""Communication by kind, and MPI calls beside the idle time that they overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from tests.builder import TraceBuilder, global_tid
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.kernels.facts import Communication

REDUCE, GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllGather_RING_LL"


def rows(found: Communication) -> list[tuple[str, int, int, int, int]]:
    """Kind, count, total, exposed, overlapped."""
    return [(row.kind, row.count, row.total_ns, row.exposed_ns, row.overlapped_ns) for row in found.kinds]


def test_each_kind_has_its_own_exposed_time(tmp_path: Path) -> None:
    """
    compute     [10 ........ 20)
    AllReduce          [15 ........ 30)
    AllGather                                [40 .. 45)
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2))
    trace.kernel(15_000, 30_000, name=REDUCE, stream=8, launch=(3, 4))
    trace.kernel(40_000, 45_000, name=GATHER, stream=8, launch=(5, 6))
    found = only_device(trace, tmp_path).communication
    assert rows(found) == [("AllReduce", 1, 15_000, 10_000, 5_000), ("AllGather", 1, 5_000, 5_000, 0)]


def test_time_that_two_kinds_share_goes_to_the_one_with_most(tmp_path: Path) -> None:
    """
    compute     [10 ..... 20)
    AllReduce         [15 ........ 35)             20 in all
    AllGather       [13 .. 18)  [30 ..... 42)      17 in all: overlaps 13 to 15, is exposed from 35 to 42
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2))
    trace.kernel(15_000, 35_000, name=REDUCE, stream=8, launch=(3, 4))
    trace.kernel(13_000, 18_000, name=GATHER, stream=9, launch=(5, 6))
    trace.kernel(30_000, 42_000, name=GATHER, stream=9, launch=(7, 8))
    found = only_device(trace, tmp_path).communication
    assert rows(found) == [("AllReduce", 1, 20_000, 15_000, 5_000), ("AllGather", 2, 17_000, 7_000, 2_000)]
    assert (found.total_ns, found.exposed_ns, found.overlapped_ns) == (37_000, 22_000, 7_000)


def test_a_kind_that_reaches_into_a_narrowed_window_has_time_there_and_no_count(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 30_000, name=REDUCE, launch=(1, 2)).kernel(40_000, 50_000, launch=(3, 4))
    found = only_device(trace, tmp_path, Settings(start_ns=20_000)).communication
    assert rows(found) == [("AllReduce", 0, 0, 10_000, 0)]


def test_no_communication_has_no_kinds(tmp_path: Path) -> None:
    found = only_device(TraceBuilder().kernel(10_000, 20_000, launch=(1, 2)), tmp_path).communication
    assert (found.kinds, found.mpi) == ([], [])


@pytest.fixture
def waiting() -> TraceBuilder:
    """
    device   [A: 10 .. 20)................................[B: 100 .. 110)
    thread             [MPI_Allreduce: 15 .. 60][Send][launch 95 .. 96]
    """
    trace = (
        TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 2_000)).kernel(100_000, 110_000, launch=(95_000, 96_000))
    )
    return trace.sched(1, True)


def mpi_row(trace: TraceBuilder, name: str, start: int, end: int, tid: int = 4242) -> TraceBuilder:
    values = {"start": start, "end": end, "globalTid": global_tid((4242, tid)), "textId": trace.string(name)}
    return trace.row("MPI_OTHER_EVENTS", dict(values))


def test_mpi_calls_and_the_idle_time_that_they_overlap(waiting: TraceBuilder, tmp_path: Path) -> None:
    mpi_row(waiting, "MPI_Allreduce", 15_000, 60_000)
    mpi_row(waiting, "MPI_Send", 60_000, 70_000)
    mpi_row(waiting, "MPI_Send", 102_000, 104_000)
    device = only_device(waiting, tmp_path)
    found = [(row.name, row.count, row.total_ns, row.idle_ns) for row in device.communication.mpi]
    assert found == [("MPI_Allreduce", 1, 45_000, 40_000), ("MPI_Send", 2, 12_000, 10_000)]
    assert device.ledger["exposed_mpi"] == 50_000


def test_mpi_calls_inside_others_and_of_other_threads_do_not_count(waiting: TraceBuilder, tmp_path: Path) -> None:
    mpi_row(waiting, "MPI_Allreduce", 30_000, 60_000)
    mpi_row(waiting, "MPI_Wait", 40_000, 50_000)
    mpi_row(waiting, "MPI_Recv", 30_000, 60_000, tid=9)
    found = only_device(waiting, tmp_path).communication.mpi
    assert [(row.name, row.idle_ns) for row in found] == [("MPI_Allreduce", 30_000)]
