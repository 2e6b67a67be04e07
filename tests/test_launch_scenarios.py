"""Launches of simulated programs, with the numbers that follow from what the programs do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.launches.launch_checks import check_launches
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from tests.shared import Shared

US = 1_000


def devices_of(name: str, shared: Shared) -> list[DeviceReport]:
    found = shared.report(shared.trace(name)).devices
    for device in found:
        check_launches(device)
    return found


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("name", SCENARIOS)
def test_sums_are_consistent(name: str, shared: Shared) -> None:
    assert devices_of(name, shared)


@pytest.mark.slow
def test_an_eager_loop_is_launch_bound(shared: Shared) -> None:
    """20 steps of 40 kernels of 3 µs: 9 µs of Python, 6 µs of launch call and 1.8 µs of latency before each.

    A kernel is outstanding for 4.8 µs, from the end of its call; the first one for 3 µs of the window, which begins
    with it. A step ends with a synchronization: behind its last kernel no time is lost before the next Python.
    """
    (device,) = devices_of("launch_bound", shared)
    launch = device.launch
    assert (launch.calls, launch.launched_ops) == (800, 800)
    assert launch.kernel is not None
    assert launch.call is not None
    assert launch.interval is not None
    assert (launch.kernel.p5_ns, launch.kernel.max_ns, launch.kernel.bins) == (3 * US, 3 * US, [(2 * US, 800)])
    assert (launch.call.p50_ns, launch.call.total_ns) == (6 * US, 800 * 6 * US)
    assert (launch.interval.count, launch.interval.p50_ns) == (799, 15 * US)
    assert launch.queue_depth is not None
    assert launch.queue_depth.observed_ns - launch.queue_depth.empty_ns == 800 * 4_800 - 1_800
    assert (launch.queue_depth.max, launch.queue_depth.drains) == (1, [])
    assert launch.launch_bound is not None
    (row,) = launch.launch_bound.rows
    assert (row.launches, row.busy_ns, row.nvtx) == (799, 798 * 3 * US, ["step #"])
    assert (row.median_interval_ns, row.median_work_ns) == (15 * US, 3 * US)
    assert launch.launch_bound.idle_ns == device.idle_ns
    assert device.verdict.id == "launch-bound"


def test_a_healthy_program_has_none(shared: Shared) -> None:
    (device,) = devices_of("healthy", shared)
    assert device.launch.launch_bound is None
    assert device.launch.queue_depth is not None
    assert device.launch.queue_depth.p50 >= 2


def test_graphs_node_by_node(shared: Shared) -> None:
    """10 launches of 9 nodes of 60 µs with 30 µs between them, and two kernels of their own."""
    (device,) = devices_of("intra_graph", shared)
    graphs = device.launch.graphs
    assert graphs is not None
    assert (graphs.count, graphs.launches, graphs.nodes, graphs.untraced) == (1, 10, 90, 0)
    assert graphs.work_ns == 90 * 60 * US
    assert graphs.between_ns == 80 * 30 * US == device.ledger["intra_graph"]
    assert (graphs.rows[0].nodes, graphs.rows[0].between_gaps) == (9, 80)
    assert device.launch.call is not None
    assert device.launch.call.count == 2


def test_graphs_as_a_whole(shared: Shared) -> None:
    """The same program, a row a graph launch: 9 x 60 µs and 8 x 30 µs each."""
    (device,) = devices_of("whole_graphs", shared)
    graphs = device.launch.graphs
    assert graphs is not None
    assert (graphs.launches, graphs.nodes, graphs.work_ns, graphs.between_ns) == (10, 0, 10 * 780 * US, 0)
    assert graphs.rows[0].nodes is None


def test_graphs_that_left_no_row(shared: Shared) -> None:
    (device,) = devices_of("graph_untraced", shared)
    assert device.launch.graphs is not None
    assert (device.launch.graphs.launches, device.launch.graphs.untraced) == (0, 8)


@pytest.mark.slow
def test_a_full_command_buffer_is_the_host_being_ahead(shared: Shared) -> None:
    """The time in rows of type 8: they lie inside the window of GPU 1, which waits for its launches meanwhile."""
    found = {device.ids[0].device_id: device for device in devices_of("queue_full", shared)}
    with closing(sqlite3.connect(shared.trace("queue_full"))) as trace:
        query = 'SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_OVERHEAD WHERE overheadType = 8'
        rows = trace.execute(query).fetchall()
    low, high = found[1].window.start_ns, found[1].window.end_ns
    inside = sum(max(0, min(end, high) - max(start, low)) for start, end in rows)
    assert found[1].launch.queue_full_ns == inside > 0
    ahead = found[0].launch.queue_depth
    assert ahead is not None
    assert ahead.p50 >= 10


@pytest.mark.slow
def test_a_starved_training_step_loses_its_lead_to_the_read_back(shared: Shared) -> None:
    """The loss is read back at the end of each of 30 steps; the optimizer's small kernels follow, launch-bound."""
    (device,) = devices_of("starved_data_parallel", shared)[:1]
    launch = device.launch
    assert launch.queue_depth is not None
    assert [(row.cause, row.call, row.count) for row in launch.queue_depth.drains] == [
        ("blocking_copy", "cudaMemcpyAsync", 30)
    ]
    assert launch.launch_bound is not None
    assert launch.launch_bound.count == 30
    assert launch.launch_bound.rows[0].nvtx == ["step 0", "optimizer"]
