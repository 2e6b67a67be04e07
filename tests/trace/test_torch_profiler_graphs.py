"""Graphs in traces of the PyTorch profiler, whose nodes have no numbers: equal launches are of one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsysdiag import analyze
from nsysdiag.trace.kineto.tables import numbered
from tests.trace.kineto_traces import write

if TYPE_CHECKING:
    from pathlib import Path

FIRST = ["embedding", "norm", "gemm"]
MIDDLE = ["gemm", "norm", "gemm", "rotate", "gemm"]
LAST = ["gemm", "norm"]


def launched(at: int, nodes: list[str], call: str = "hipGraphLaunch") -> list[dict[str, Any]]:
    """One launch of these nodes, 100 µs after the one before."""
    own = {"correlation": at + 1}
    launch = {"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 5, "tid": 5, "ts": 100 * at, "dur": 4, "args": own}
    return [launch] + [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 0, "ts": 100 * at + 10 + 15 * each, "dur": 12}
        | {"args": {"device": 0, "stream": 0, **own}}
        for each, name in enumerate(nodes)
    ]


def test_pieces_of_a_graph_are_graphs_of_their_own(tmp_path: Path) -> None:
    pieces = [FIRST, *[MIDDLE] * 20, LAST]
    events = [event for at, nodes in enumerate(pieces) for event in launched(at, nodes)]
    report = analyze(write({"schemaVersion": 1, "traceEvents": events}, tmp_path / "a.json"))
    graphs = report.devices[0].launch.graphs
    assert graphs is not None
    assert (graphs.count, graphs.launches, graphs.partial) == (3, 22, 0)
    assert [(row.launches, row.nodes) for row in graphs.rows] == [(20, 5), (1, 3), (1, 2)]
    assert report.diagnosis is not None
    assert "incomplete" not in report.diagnosis.headline


def test_nodes_that_overlap_may_change_places() -> None:
    one = [(1, 10, "copy", "a"), (1, 11, "gemm", "b"), (1, 30, "gemm", "c")]
    two = [(2, 51, "copy", "d"), (2, 50, "gemm", "e"), (2, 80, "gemm", "f")]
    other = [(3, 90, "gemm", "g")]
    assert dict(numbered([*one, *two, *other])) == {"a": 1, "b": 2, "c": 3, "d": 1, "e": 2, "f": 3, "g": 4}
