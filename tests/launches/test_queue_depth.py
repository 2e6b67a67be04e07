"""How far the host runs ahead, and what it was in when the queue ran dry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings, Thresholds
from nsysdiag.document.packed import unpack_series
from tests.builder import MAIN, TraceBuilder
from tests.causes.example import NEIGHBOUR, late
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.launches.facts import QueueDepth
    from nsysdiag.report import DeviceReport


def ahead_of(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> QueueDepth:
    found = only_device(trace, folder, settings).launch.queue_depth
    assert found is not None
    return found


def test_three_in_the_queue(tmp_path: Path) -> None:
    """
    thread  [A][B][C]
    device            [A: 100 .. 200)[B .. 300)[C .. 400)
    depth             3              2         1
    """
    trace = TraceBuilder()
    for at in range(3):
        trace.kernel(100 + 100 * at, 200 + 100 * at, launch=(1 + 10 * at, 10 + 10 * at))
    ahead = ahead_of(trace, tmp_path)
    assert (ahead.observed_ns, ahead.empty_ns, ahead.mean, ahead.max) == (300, 0, 2.0, 3)
    assert (ahead.p5, ahead.p25, ahead.p50, ahead.p75, ahead.p95) == (1, 1, 2, 3, 3)
    series = unpack_series(ahead)
    assert (ahead.start_ns, ahead.end_ns, ahead.buckets) == (100, 400, 250)
    assert series.lowest.tolist() == series.highest.tolist() == [3] * 84 + [2] * 83 + [1] * 83


def test_nothing_outstanding_until_the_call_returns(tmp_path: Path) -> None:
    """
    thread [A]                 [launch B: 280_000 .. 290_000]
    device     [10_000 A 110_000)                             [300_000 B 400_000)
    depth      1                0                           1
    """
    ahead = ahead_of(late(), tmp_path)
    assert (ahead.observed_ns, ahead.empty_ns) == (390_000, 180_000)
    assert (ahead.p25, ahead.p50, ahead.max) == (0, 1, 1)
    assert ahead.mean == round(210_000 / 390_000, 3)


def test_what_starts_before_its_call_returns_was_there_from_its_beginning(tmp_path: Path) -> None:
    """
    thread  [A][cudaMemcpyAsync: 8_000 ................. 130_000]     it blocks
    device     [10_000 A 110_000)[copy 110_000 .. 120_000)
    depth      2                 1
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000))
    trace.memcpy(110_000, 120_000, kind="DtoH", host="pageable", launch=(8_000, 130_000))
    ahead = ahead_of(trace, tmp_path)
    assert (ahead.observed_ns, ahead.mean, ahead.p5, ahead.p50) == (110_000, round(210 / 110, 3), 1, 2)


def test_work_without_a_launch_row_counts_while_it_runs_and_migrations_never(tmp_path: Path) -> None:
    """
    device  [A: 10_000 .. 110_000)[migration .. 115_000)   [X: 120_000 .. 130_000)
    depth   1                     0                        1
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000))
    trace.memcpy(110_000, 115_000, kind="UM HtoD").kernel(120_000, 130_000, correlation=9_999)
    ahead = ahead_of(trace, tmp_path)
    assert (ahead.observed_ns, ahead.empty_ns, ahead.max) == (120_000, 10_000, 1)


def test_nothing_was_launched_at_all(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(100, 200).kernel(300, 400)
    launch = only_device(trace, tmp_path).launch
    assert (launch.calls, launch.call, launch.interval, launch.queue_delay) == (0, None, None, None)
    assert (launch.launch_bound, launch.graphs) == (None, None)
    assert launch.queue_depth is not None
    assert (launch.queue_depth.empty_ns, launch.queue_depth.max, launch.queue_depth.drain_count) == (100, 1, 0)


def test_of_a_narrowed_window_only_its_time(tmp_path: Path) -> None:
    """
    depth   1 until 110_000, 0 until 290_000        window [50_000, 150_000)
    """
    ahead = ahead_of(late(), tmp_path, Settings(start_ns=50_000, end_ns=150_000))
    assert (ahead.observed_ns, ahead.empty_ns, ahead.start_ns, ahead.end_ns) == (100_000, 40_000, 50_000, 150_000)


def test_nodes_of_a_graph_count_each(tmp_path: Path) -> None:
    trace = TraceBuilder().api("cudaGraphLaunch", 1_000, 5_000, correlation=50)
    for at in range(3):
        trace.kernel(10_000 * at + 10_000, 10_000 * at + 20_000, correlation=50, graph_node=1 + at)
    assert ahead_of(trace, tmp_path).max == 3


# ---- drains -------------------------------------------------------------------------------------------------


def queued(count: int = 4, launch: tuple[int, int] = (500_000, 510_000)) -> TraceBuilder:
    """
    thread  [l][l][l][l] ...................................... [launch]
    device     [10_000 .. 110_000)[.. 210_000)[.. 310_000)[.. 410_000)   110_000   [520_000 .. 530_000)
    depth      4                                                     0
    """
    trace = TraceBuilder()
    for at in range(count):
        end = 410_000 - 100_000 * (count - 1 - at)
        trace.kernel(end - 100_000, end, launch=(1_000 + 1_000 * at, 2_000 + 1_000 * at))
    return trace.kernel(520_000, 530_000, launch=launch)


def drains(device: DeviceReport) -> list[tuple[str, str, int, int, int]]:
    assert device.launch.queue_depth is not None
    rows = device.launch.queue_depth.drains
    return [(row.cause, row.call, row.count, row.idle_ns, row.median_depth) for row in rows]


def test_a_synchronization_empties_the_queue(tmp_path: Path) -> None:
    """
    thread  [l][l][l][l][cudaStreamSynchronize: 6_000 ...... 420_000]   [launch]
    """
    device = only_device(queued().api("cudaStreamSynchronize", 6_000, 420_000), tmp_path)
    assert drains(device) == [("sync", "cudaStreamSynchronize", 1, 110_000, 4)]


@pytest.mark.slow
def test_one_operation_fewer_is_no_lead_to_lose(tmp_path: Path) -> None:
    trace = queued(3).api("cudaStreamSynchronize", 6_000, 420_000)
    assert drains(only_device(trace, tmp_path)) == []
    settings = Settings(thresholds=Thresholds(drain_depth=3))
    assert drains(only_device(trace, tmp_path, settings)) == [("sync", "cudaStreamSynchronize", 1, 110_000, 3)]


@pytest.mark.slow
def test_other_things_that_the_thread_may_be_in(tmp_path: Path) -> None:
    found = {}
    for name, trace in {
        "malloc": queued().api("cudaMalloc", 400_000, 450_000),
        "read": queued().osrt("read", 400_000, 450_000),
        "cpu": queued().sched(500, True),
        "nothing": queued(),
        "over": queued().api("cudaStreamSynchronize", 6_000, 410_000),  # it returned as the queue ran dry
        "other": queued().api("cudaStreamSynchronize", 6_000, 420_000, thread=NEIGHBOUR),
        "call": queued(launch=(405_000, 510_000)),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        found[name] = [row[:2] for row in drains(only_device(trace, folder))]
    assert found == {
        "malloc": [("memory_allocation", "cudaMalloc")],
        "read": [("io_wait", "read")],
        "cpu": [("host_compute", "on a CPU by scheduling events")],
        "nothing": [("uncovered", "no evidence")],
        "over": [("uncovered", "no evidence")],
        "other": [("uncovered", "no evidence")],
        "call": [("launch_call", "cudaLaunchKernel")],
    }


def test_a_blocking_copy_empties_the_queue_and_what_follows_is_its_price(tmp_path: Path) -> None:
    """
    thread  [l][l][l][cudaMemcpyAsync: 5_000 ............... 425_000]    [launch]
    device     [kernels ................. 310_000)[copy .. 410_000)     ........ [520_000
    """
    trace = TraceBuilder().memcpy(310_000, 410_000, kind="DtoH", host="pageable", launch=(5_000, 425_000))
    for at in range(3):
        trace.kernel(10_000 + 100_000 * at, 110_000 + 100_000 * at, launch=(1_000 + 1_000 * at, 2_000 + 1_000 * at))
    trace.kernel(520_000, 530_000, launch=(500_000, 510_000))
    assert drains(only_device(trace, tmp_path)) == [("blocking_copy", "cudaMemcpyAsync", 1, 110_000, 4)]


def test_a_stream_that_still_works_keeps_the_queue_alive(tmp_path: Path) -> None:
    """
    stream 7   [ four kernels ........ 410_000)               [520_000 ..
    stream 9   [ one that was launched with them: .... 515_000)
    """
    trace = queued().kernel(10_000, 515_000, stream=9, launch=(5_000, 6_000))
    assert drains(only_device(trace, tmp_path)) == []


def test_a_queue_that_is_not_empty_did_not_collapse(tmp_path: Path) -> None:
    """
    stream 7   [ four kernels ........ 410_000)   gap    [520_000 ..
    stream 9                                                    [540_000: launched long ago, it waits
    """
    trace = queued().kernel(540_000, 550_000, stream=9, launch=(5_000, 6_000))
    assert drains(only_device(trace, tmp_path)) == []


def test_one_thread_feeds_two_devices(tmp_path: Path) -> None:
    """
    thread    [4 launches to 0]        [launch to 1: 400_000 .. 450_000]   [launch to 0]
    device 0     [ four kernels ........ 410_000)                               [520_000 ..
    device 1                                                   [460_000 .. 470_000)
    """
    trace = queued().kernel(460_000, 470_000, device=1, context=2, launch=(400_000, 450_000))
    found = devices(trace, tmp_path)
    by_ordinal = {device.ids[0].device_id: device for device in found.values()}
    assert drains(by_ordinal[0]) == [("cuda_api", "cudaLaunchKernel", 1, 110_000, 4)]
    assert drains(by_ordinal[1]) == []


def test_the_same_call_adds_up(tmp_path: Path) -> None:
    """Twice the picture of `queued`, 600_000 ns apart, the second with a sync that holds until 430_000."""
    trace = TraceBuilder()
    for offset in (0, 600_000):
        for at in range(4):
            begin = offset + 10_000 + 100_000 * at
            trace.kernel(begin, begin + 100_000, launch=(offset + 1_000 * (1 + at), offset + 1_000 * (2 + at)))
        trace.api("cudaDeviceSynchronize", offset + 6_000, offset + 420_000, thread=MAIN)
    trace.kernel(1_150_000, 1_160_000, launch=(1_100_000, 1_140_000))
    # The second gap is 1_010_000 to 1_150_000; the first one 410_000 to 610_000.
    assert drains(only_device(trace, tmp_path)) == [("sync", "cudaDeviceSynchronize", 2, 340_000, 4)]


@pytest.mark.parametrize("start", [450_000, 410_001])
def test_a_gap_that_opens_outside_of_the_window_is_no_collapse_of_it(start: int, tmp_path: Path) -> None:
    trace = queued().api("cudaStreamSynchronize", 6_000, 420_000)
    assert drains(only_device(trace, tmp_path, Settings(start_ns=start))) == []


@pytest.mark.slow
def test_times_that_cannot_be_have_no_depth(tmp_path: Path) -> None:
    """Without a session's duration nothing says that the end of the second kernel lies decades after the capture."""
    trace = TraceBuilder().kernel(10, 20).kernel(30, 1 << 60).drop_table("ANALYSIS_DETAILS")
    assert only_device(trace, tmp_path).launch.queue_depth is None
