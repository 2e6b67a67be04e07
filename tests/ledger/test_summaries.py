"""What stands around the ledger: launches, copies, communication, edge time, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from tests.builder import TraceBuilder
from tests.causes.example import AWAY_FROM_THE_LAUNCH, issued, late
from tests.ledger.traces import only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path


def test_launches(tmp_path: Path) -> None:
    """
    device  [A: 10_000 .. 110_000)[B: 150_000 .. 250_000)[m)[X)         m: migration, X: no launch row
    thread [A: 1_000 .. 5_000][B: 6_000 .. 9_000]
    """
    trace = issued().memcpy(250_000, 251_000, kind="UM HtoD").kernel(251_000, 252_000, correlation=9_999)
    launch = only_device(trace, tmp_path).launch
    assert (launch.launched_ops, launch.unlaunched_ops, launch.found_device_idle) == (2, 1, 0)
    assert launch.median_queue_delay_ns == (5_000 + 141_000) // 2
    assert launch.median_interval_ns == 5_000
    assert launch.median_kernel_ns == 100_000


def test_launches_that_found_the_device_idle(tmp_path: Path) -> None:
    assert only_device(late(), tmp_path).launch.found_device_idle == 1


def test_a_kernel_that_starts_before_its_call_returns_waited_in_no_queue(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 15_000))
    assert only_device(trace, tmp_path).launch.median_queue_delay_ns == 0


def test_calls_by_name_with_the_cause_that_they_had(tmp_path: Path) -> None:
    trace = late().api("cudaMalloc", 150_000, 180_000).api("cudaMalloc", 20_000, 30_000)
    rows = {row.name: row for row in only_device(trace, tmp_path).launch.api}
    assert rows["cudaMalloc"].cause == "memory_allocation"
    assert (rows["cudaMalloc"].count, rows["cudaMalloc"].total_ns, rows["cudaMalloc"].max_ns) == (2, 40_000, 30_000)
    assert rows["cudaLaunchKernel"].cause == "launch_call"


def test_copies_by_kind_and_memory(tmp_path: Path) -> None:
    """
    device  [copy 1_000)[copy 3_000)[K)[set 500)
    """
    trace = TraceBuilder().memcpy(10_000, 11_000, size=4_000, launch=(1, 2))
    trace.memcpy(11_000, 14_000, size=2_000, host="pageable", launch=(3, 4)).kernel(14_000, 15_000, launch=(5, 6))
    trace.memset(15_000, 15_500, size=500, launch=(7, 8))
    copies = only_device(trace, tmp_path).copies
    found = [(row.operation, row.src, row.count, row.total_ns, row.bytes, row.bytes_per_second) for row in copies.rows]
    assert found == [
        ("memcpy HtoD", "pageable", 1, 3_000, 2_000, pytest.approx(2e9 / 3)),
        ("memcpy HtoD", "pinned", 1, 1_000, 4_000, pytest.approx(4e9)),
        ("memset", None, 1, 500, 500, pytest.approx(1e9)),
    ]
    assert (copies.total_ns, copies.bytes, copies.exposed_ns) == (4_500, 6_500, 4_500)


def test_communication_by_name(tmp_path: Path) -> None:
    """
    compute  [10_000 ........... 20_000)
    nccl               [15_000 .......... 30_000)
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2))
    trace.kernel(15_000, 30_000, name="ncclDevKernel_AllReduce", stream=8, launch=(3, 4))
    communication = only_device(trace, tmp_path).communication
    assert [(row.short_name, row.total_ns) for row in communication.kernels] == [("ncclDevKernel_AllReduce", 15_000)]
    assert (communication.total_ns, communication.exposed_ns, communication.overlapped_ns) == (15_000, 10_000, 5_000)


def test_the_edge_is_told(tmp_path: Path) -> None:
    """
    capture |0 ...... 10_000|[==A==)....[==B==)|250_000 ...... 1_000_000|
    """
    trace = issued()
    trace.duration = 1_000_000
    device = only_device(trace, tmp_path)
    assert device.window.edge_ns == 1_000_000 - 240_000
    assert device.idle_ns == 40_000


def test_of_a_narrowed_window_only_what_began_in_it(tmp_path: Path) -> None:
    device = only_device(late(), tmp_path, Settings(start_ns=200_000))
    assert (device.ops.kernel, device.launch.launched_ops) == (1, 1)
    assert [row.count for row in device.kernels] == [1]


@pytest.mark.slow
def test_malformed_rows_of_the_host_are_counted_and_told(tmp_path: Path) -> None:
    trace = late().api("cudaMalloc", 200_000, 150_000).osrt("read", 250_000, 240_000).osrt("read", -500, 100)
    warnings = report_of(trace, tmp_path).trace.warnings
    assert any("1 malformed API call row" in warning for warning in warnings)
    assert any("2 malformed OS call rows" in warning for warning in warnings)


def test_drained_gaps_are_a_finding_even_without_idle_time_in_the_sync_itself(tmp_path: Path) -> None:
    """
    device  [==A==)|    170_000 of host code        [launch B][==B==)
    thread     [sync]                                                  it returns 1 ns after the gap opened
    """
    trace = late().sched(500, True).api("cudaStreamSynchronize", 50_000, 110_001)
    (sync,) = [each for each in report_of(trace, tmp_path).findings if each.cause == "sync"]
    assert (sync.lost_ns, sync.ceiling_ns, sync.severity) == (1, 60_001, "medium")


def test_time_in_mpi_calls_is_told_apart(tmp_path: Path) -> None:
    """
    thread  |on a CPU ........................|
    NVTX          [MPI_Wait: 50_000]               in the domain MPI
    """
    trace = late().sched(500, True).nvtx("MPI", 10, None, domain=4, event_type=75)
    trace.nvtx("MPI_Wait", 150_000, 200_000, domain=4)
    device = only_device(trace, tmp_path)
    assert device.ledger["host_compute"] == AWAY_FROM_THE_LAUNCH - 50_000
    assert device.ledger["exposed_mpi"] == 50_000
