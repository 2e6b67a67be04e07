"""Replays of a graph that lack nodes: what the GPU did between the nodes in the trace is not known."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nsysdiag import typed
from nsysdiag.report import DeviceReport, Report
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

US = 1_000
NODE, STEP = 50 * US, 1_000 * US
"""The length of a node, which the next one follows 1 µs later, and of a step."""
LOST = "lack nodes that others have"


def replays(
    lost: dict[int, set[int]],
    *,
    steps: int = 20,
    nodes: int = 10,
    device: int = 0,
    trace: TraceBuilder | None = None,
    first: int = 1,
    apart: int = 1 * US,
) -> TraceBuilder:
    """
    thread  [cudaGraphLaunch]                    [sync    ]   every 1 ms; `lost` nodes by step
    device      [n0)[n1)[n2) ... [n9)                         from 30 µs on
    """
    trace = TraceBuilder().process().gpu(device) if trace is None else trace
    for step in range(steps):
        at, correlation = (step + 1) * STEP, 1_000 * (device + 1) + step
        trace.api("cudaGraphLaunch", at, at + 20 * US, correlation=correlation)
        for node in range(nodes):
            begin = at + 30 * US + node * (NODE + apart)
            if node not in lost.get(step, ()):
                trace.kernel(
                    begin,
                    begin + NODE,
                    correlation=correlation,
                    graph_node=first + node,
                    device=device,
                    name=f"n{node}",
                )
        end = at + 30 * US + nodes * (NODE + apart)
        trace.api("cudaStreamSynchronize", at + 40 * US, end + 10 * US)
    return trace


def analyzed(trace: TraceBuilder, folder: Path) -> tuple[Report, DeviceReport]:
    report = report_of(trace, folder)
    (device,) = report.devices
    assert sum(device.ledger.values()) == device.idle_ns
    return report, device


def lost_ns(lost: dict[int, set[int]]) -> int:
    return NODE * sum(len(nodes) for nodes in lost.values())


DROPPED: dict[str, dict[int, set[int]]] = {
    "in the middle": {step: {3, 4, 5} for step in range(2, 12)},
    "one node": {step: {4} for step in range(1, 19)},
    "the first": {step: {0, 1} for step in range(3, 9)},
    "the last": {step: {8, 9} for step in range(3, 9)},
    "all but two": {step: {1, 2, 3, 4, 5, 6, 7, 8} for step in range(0, 18, 2)},
    "other nodes in each": {step: {step % 10, (step + 3) % 10} for step in range(20)},
}


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("name", list(DROPPED))
def test_the_time_of_missing_nodes_has_no_other_cause(name: str, tmp_path: Path) -> None:
    """The GPU was busy then: none of it is idle for a reason."""
    lost = DROPPED[name]
    report, device = analyzed(replays(lost), tmp_path)
    assert device.ledger["graph_untraced"] >= lost_ns(lost)
    whole = lost_ns(lost) + 12 * US * sum(map(len, lost.values()))
    assert device.ledger["graph_untraced"] <= whole + 20 * 51 * US
    assert report.diagnosis is not None
    assert LOST in typed.plain(report.diagnosis.headline)
    assert device.launch.graphs is not None
    assert device.launch.graphs.partial == len(lost)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("seed", range(4))
def test_nodes_dropped_at_random(seed: int, tmp_path: Path) -> None:
    """A quarter of all node rows of most replays: what looks idle was busy."""
    chance = random.Random(seed)
    lost = {step: {node for node in range(10) if chance.random() < 0.25} for step in range(1, 20)}
    report, device = analyzed(replays(lost), tmp_path)
    assert device.ledger["graph_untraced"] >= lost_ns(lost) - NODE * len(lost[19])
    found = {each.cause: each for each in report.findings}
    assert found["graph_untraced"].confidence == 0
    assert "shorter time" in found["graph_untraced"].advice[0]
    assert found["graph_untraced"].saves is None


class TestNothingIsMissing:
    def test_where_all_replays_have_all_nodes(self, tmp_path: Path) -> None:
        report, device = analyzed(replays({}, apart=20 * US), tmp_path)
        assert "graph_untraced" not in device.ledger
        assert device.ledger["intra_graph"] == 20 * 9 * 20 * US
        assert report.diagnosis is not None
        assert LOST not in report.diagnosis.headline

    def test_between_nodes_that_follow_each_other(self, tmp_path: Path) -> None:
        """n0, n1 and n2 are 20 µs apart, and n5 is missing: only from n4 to n6 the trace does not tell."""
        lost = {step: {5} for step in range(0, 20, 2)}
        _, device = analyzed(replays(lost, apart=20 * US), tmp_path)
        assert device.ledger["graph_untraced"] == 10 * (NODE + 2 * 20 * US)
        assert device.ledger["intra_graph"] == 20 * US * (10 * 9 + 10 * 7)

    @pytest.mark.slow
    def test_where_the_trace_ends_in_a_replay(self, tmp_path: Path) -> None:
        _, device = analyzed(replays({19: {6, 7, 8, 9}}), tmp_path)
        assert "graph_untraced" not in device.ledger
        assert device.launch.graphs is not None
        assert device.launch.graphs.partial == 0

    def test_in_another_graph_with_fewer_nodes(self, tmp_path: Path) -> None:
        trace = replays({}, steps=10)
        for step in range(12, 20):
            at = step * STEP
            trace.api("cudaGraphLaunch", at, at + 20 * US, correlation=5_000 + step)
            for node in range(3):
                begin = at + 30 * US + node * (NODE + US)
                trace.kernel(begin, begin + NODE, correlation=5_000 + step, graph_node=500 + node, name=f"m{node}")
        _, device = analyzed(trace, tmp_path)
        assert "graph_untraced" not in device.ledger

    def test_on_a_device_that_the_graph_does_not_use(self, tmp_path: Path) -> None:
        trace = replays({step: {3, 4} for step in range(2, 12)}).gpu(1)
        for step in range(1, 21):
            at = step * STEP
            trace.kernel(
                at + 25 * US, at + 325 * US, device=1, context=2, name="other", launch=(at - 9 * US, at - 5 * US)
            )
        report = report_of(trace, tmp_path)
        first, second = report.devices
        assert first.ledger["graph_untraced"] >= 10 * 2 * NODE
        assert "graph_untraced" not in second.ledger

    def test_after_the_last_node(self, tmp_path: Path) -> None:
        """The host computes for 400 µs after each replay: that is its own time, though n4 is missing."""
        lost = {step: {4} for step in range(1, 19)}
        _, device = analyzed(replays(lost), tmp_path)
        assert device.ledger["graph_untraced"] == 18 * (NODE + 2 * US)
