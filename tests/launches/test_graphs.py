"""What graph launches cost beside plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from tests.builder import TraceBuilder
from tests.launches.launch_checks import check_launches
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.launches.facts import GraphLaunches


def graphs_of(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> GraphLaunches:
    device = only_device(trace, folder, settings)
    check_launches(device)
    assert device.launch.graphs is not None
    return device.launch.graphs


def replay(
    trace: TraceBuilder, at: int, correlation: int, *, nodes: int = 3, first: int = 1, name: str = "gemm"
) -> None:
    """
    thread  [cudaGraphLaunch: 12_000]
    device                           8_000 [10_000)1_000[10_000)1_000[10_000)
    """
    trace.api("cudaGraphLaunch", at, at + 12_000, correlation=correlation)
    for node in range(nodes):
        begin = at + 20_000 + 11_000 * node
        trace.kernel(begin, begin + 10_000, correlation=correlation, graph_node=first + node, name=name)


def test_one_graph_beside_a_kernel(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(70_000, 80_000, launch=(60_000, 65_000))
    replay(trace, 1_000, 500)
    graphs = graphs_of(trace, tmp_path)
    assert (graphs.count, graphs.launches, graphs.nodes, graphs.untraced) == (1, 1, 3, 0)
    assert (graphs.api_ns, graphs.node_api_ns, graphs.work_ns, graphs.between_ns) == (12_000, 12_000, 30_000, 2_000)
    (row,) = graphs.rows
    assert (row.name, row.executable, row.launches, row.nodes) == ("gemm", None, 1, 3)
    assert (row.api_ns, row.median_api_ns, row.work_ns) == (12_000, 12_000, 30_000)
    assert (row.between_ns, row.between_gaps) == (2_000, 2)
    launch = only_device(trace, tmp_path).launch
    assert launch.call is not None
    assert (launch.calls, launch.call.count, launch.call.p50_ns) == (2, 1, 5_000)


def test_kernels_outside_of_graphs(tmp_path: Path) -> None:
    trace = TraceBuilder()
    replay(trace, 1_000, 500)
    for at, name in enumerate(("norm", "head", "head", "copy", "sample")):
        begin = 100_000 + at * 20_000
        trace.kernel(begin, begin + 2_000 + at, name=name, launch=(begin - 9_000, begin - 5_000))
    graphs = graphs_of(trace, tmp_path)
    assert (graphs.outside, graphs.outside_ns) == (5, 10_010)
    assert graphs.outside_kernels == ["head", "sample", "copy"]


def test_launches_of_the_same_nodes_are_one_graph(tmp_path: Path) -> None:
    trace = TraceBuilder()
    replay(trace, 1_000, 500)
    replay(trace, 101_000, 501, nodes=2, first=7, name="softmax")
    replay(trace, 201_000, 502)
    graphs = graphs_of(trace, tmp_path)
    assert (graphs.count, graphs.launches, graphs.nodes) == (2, 3, 8)
    found = [(row.name, row.launches, row.nodes, row.work_ns, row.between_gaps) for row in graphs.rows]
    assert found == [("gemm", 2, 3, 60_000, 4), ("softmax", 1, 2, 20_000, 1)]


def test_whole_graphs_by_the_number_of_their_executable(tmp_path: Path) -> None:
    """
    thread  [launch: 4_000][launch: 4_000][launch: 4_000]
    device                 [graph 1 ......)[graph 1 ......)[graph 2 ..)
    """
    trace = TraceBuilder()
    for at, (graph, length) in enumerate(((1, 50_000), (1, 50_000), (2, 20_000))):
        begin = 100_000 + 60_000 * at
        trace.graph_trace(begin, begin + length, graph=graph, launch=(5_000 * at + 1, 5_000 * at + 4_001))
    graphs = graphs_of(trace, tmp_path)
    assert (graphs.count, graphs.launches, graphs.nodes, graphs.node_api_ns) == (2, 3, 0, 0)
    assert (graphs.api_ns, graphs.work_ns, graphs.between_ns) == (12_000, 120_000, 0)
    found = [(row.executable, row.launches, row.nodes, row.work_ns, row.api_ns) for row in graphs.rows]
    assert found == [(2, 2, None, 100_000, 8_000), (3, 1, None, 20_000, 4_000)]


@pytest.mark.slow
def test_graphs_that_left_only_their_call(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 5_000))
    trace.api("cudaGraphLaunch", 30_000, 34_000).api("cudaGraphLaunch", 40_000, 44_000)
    trace.api("cudaGraphLaunch", 50_000, 54_000, returned=1)  # it failed: nothing ran
    trace.kernel(200_000, 210_000, launch=(190_000, 195_000))
    graphs = graphs_of(trace, tmp_path)
    assert (graphs.count, graphs.launches, graphs.untraced, graphs.rows) == (0, 0, 2, [])
    assert graphs_of(trace, tmp_path, Settings(start_ns=35_000, end_ns=205_000)).untraced == 1


def test_no_graphs(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 5_000))
    assert only_device(trace, tmp_path).launch.graphs is None


def test_nodes_without_a_launch_row_are_nobody_s(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 20_000, graph_node=1).kernel(30_000, 40_000, launch=(25_000, 28_000))
    assert only_device(trace, tmp_path).launch.graphs is None


def test_two_processes_with_the_same_node_ids_are_two_graphs(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for pid, at in ((4242, 1_000), (5000, 101_000)):
        thread = (pid, pid)
        trace.api("cudaGraphLaunch", at, at + 4_000, correlation=500, thread=thread)
        trace.kernel(at + 9_000, at + 19_000, correlation=500, graph_node=1, thread=thread)
    graphs = graphs_of(trace, tmp_path, Settings(same_gpu=True))
    assert (graphs.count, graphs.launches) == (2, 2)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("calls_ns", "verdict"), [(5_000, "gpu-bound"), (90_000, "launch-bound")])
def test_time_within_a_graph_is_no_launching(calls_ns: int, verdict: str, tmp_path: Path) -> None:
    """
    thread  [launch][launch][launch]                    of 5 µs: far ahead; of 90 µs: the graphs of 76 µs wait for them
    device     [2)2[2)2[2) ...  [2)2[2) ...             20 kernels, as far apart as they are long
    """
    trace = TraceBuilder()
    free = 0
    for number in range(10):
        at = number * calls_ns
        trace.api("cudaGraphLaunch", at + 1, at + calls_ns, correlation=number + 1)
        begin = max(at + calls_ns + 1_000, free + 2_000)
        for node in range(20):
            start = begin + 4_000 * node
            trace.kernel(start, start + 2_000, correlation=number + 1, graph_node=node + 1)
        free = begin + 78_000
    assert only_device(trace, tmp_path).verdict.id == verdict


def test_slow_launches_of_short_whole_graphs_are_launching(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for at in range(0, 1_000_000, 100_000):
        trace.graph_trace(at + 91_000, at + 99_000, launch=(at + 1, at + 90_000))
    assert only_device(trace, tmp_path).verdict.id == "launch-bound"
