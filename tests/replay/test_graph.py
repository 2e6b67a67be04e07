"""The graph and its replay, against a replay in plain Python that takes the latest of all edges into each moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.replay.moments import NEVER_NS, ORIGIN, EdgeKind, Edges, Graph, replay


def _edges(rows: list[tuple[int, int, int]]) -> Edges:
    source, target, ns = (
        (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0, np.int64),) * 3
    )
    return Edges.of(source, target, ns, EdgeKind.PROGRAM)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    steps = draw(st.lists(st.integers(0, 50), min_size=1, max_size=30))
    time = np.cumsum(np.array([100, *steps], dtype=np.int64))
    pairs = st.tuples(st.integers(0, len(time) - 1), st.integers(0, len(time) - 1), st.integers(0, 60))
    rows = [row for row in draw(st.lists(pairs, max_size=80)) if row[0] < row[1]]
    return Graph.of(time, _edges(rows))


def _slowly(graph: Graph, ns: list[int], residual: list[int]) -> list[int]:
    times = [int(graph.time[ORIGIN])]
    for moment in range(1, len(graph.time)):
        into = [at for at, target in enumerate(graph.edges.target.tolist()) if target == moment]
        times.append(max(times[graph.edges.source[at]] + ns[at] for at in into) + residual[moment])
    return times


@given(graphs())
def test_with_nothing_changed_every_moment_is_when_it_was(graph: Graph) -> None:
    assert replay(graph).tolist() == graph.time.tolist()
    assert (graph.residual >= 0).all()


@given(graphs(), st.data())
def test_other_lengths_give_what_a_slow_replay_gives(graph: Graph, data: st.DataObject) -> None:
    count = len(graph.edges)
    ns = data.draw(st.lists(st.integers(-5, 80), min_size=count, max_size=count))
    residual = data.draw(st.lists(st.integers(0, 9), min_size=len(graph.time), max_size=len(graph.time)))
    residual[ORIGIN] = 0
    found = replay(graph, np.array(ns, dtype=np.int64), np.array(residual, dtype=np.int64))
    assert found.tolist() == _slowly(graph, ns, residual)


def test_the_latest_of_four_edges_decides() -> None:
    """Four moments 10 ns apart; the last waits for all of them, and longest for the second: 10 + 50."""
    time = np.array([0, 10, 20, 30, 60], dtype=np.int64)
    graph = Graph.of(time, _edges([(0, 4, 5), (1, 4, 50), (2, 4, 1), (3, 4, 2)]))
    assert graph.residual.tolist() == [0, 0, 0, 0, 0]
    gone = (graph.edges.source == 1) & (graph.edges.target == 4)
    dropped = np.where(gone, NEVER_NS, graph.edges.ns)
    assert replay(graph, dropped).tolist() == [0, 10, 20, 30, 32]


def test_an_edge_that_asks_for_more_than_was_is_shortened() -> None:
    graph = Graph.of(np.array([0, 10, 15], dtype=np.int64), _edges([(1, 2, 40)]))
    assert graph.edges.ns[graph.edges.target == 2].tolist() == [5]


def test_a_moment_all_of_whose_edges_are_dropped_is_at_no_time() -> None:
    """Whoever drops the last edge into a moment has forgotten the program's order."""
    graph = Graph.of(np.array([0, 10], dtype=np.int64), _edges([(0, 1, 10)]))
    assert replay(graph, np.where(graph.edges.target == 1, NEVER_NS, graph.edges.ns))[1] == NEVER_NS
