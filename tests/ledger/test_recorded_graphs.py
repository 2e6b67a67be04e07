"""CUDA graphs whose rows got lost in many ways: time in which the GPU ran them has no cause of idle time."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nsysdiag
from nsysdiag.arrays.intervals import Intervals, coverage, union
from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

Mutation = Callable[[sqlite3.Connection, random.Random], None]
KERNELS, CALLS, GRAPHS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "RUNTIME", "GRAPH_TRACE"))
LAUNCHES = f"SELECT rowid FROM {CALLS} WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE '%GraphLaunch%')"
STEPS, NODES = 24, 12
MOST = 0.04
"""Share of the window: nothing shows a launch without its call and its operations, and two launches that lost the same
nodes look whole."""


def decodes(t: Thread) -> Body:
    """Steps of one graph, in one of three sizes, and a kernel; the host reads back, and works."""
    for step in range(STEPS):
        yield from t.copy("HtoD", 4_096, 2 * US)
        yield from t.launch_graph([Node(f"layer{at}", 40 * US) for at in range(NODES)], number=1 + step // 3 % 3)
        yield from t.launch("argmax", 8 * US)
        yield from t.synchronize(t.process.null)
        yield from t.compute(150 * US)


def lost(table: str, share: float, among: str | None = None) -> Mutation:
    """This share of the rows of a table is missing."""

    def mutate(trace: sqlite3.Connection, chance: random.Random) -> None:
        rows = [row for (row,) in trace.execute(among or f"SELECT rowid FROM {table}")]
        gone = chance.sample(rows, max(int(share * len(rows)), 1))
        trace.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in gone])

    return mutate


def whole_launches(share: float) -> Mutation:
    """This share of the launches has no nodes."""

    def mutate(trace: sqlite3.Connection, chance: random.Random) -> None:
        found = trace.execute(f"SELECT DISTINCT correlationId FROM {KERNELS} WHERE graphNodeId IS NOT NULL").fetchall()
        gone = chance.sample(found, max(int(share * len(found)), 1))
        trace.executemany(f"DELETE FROM {KERNELS} WHERE correlationId = ?", gone)

    return mutate


def the_tail(trace: sqlite3.Connection, chance: random.Random) -> None:
    """No node is recorded from some time on."""
    first, last = trace.execute(f"SELECT min(start), max(end) FROM {KERNELS}").fetchone()
    begin = first + (last - first) * chance.uniform(0.4, 0.9)
    trace.execute(f"DELETE FROM {KERNELS} WHERE graphNodeId IS NOT NULL AND start > ?", (begin,))


def made_anew(trace: sqlite3.Connection, chance: random.Random) -> None:
    """The second half of the launches are each of a graph of their own."""
    half = f"(SELECT correlationId FROM {KERNELS} ORDER BY start LIMIT 1 OFFSET {STEPS * NODES // 2})"
    trace.execute(f"UPDATE {KERNELS} SET graphNodeId = graphNodeId + 9999 * correlationId WHERE correlationId > {half}")


def unmarked(share: float) -> Mutation:
    """This share of the nodes looks like kernels that were launched alone."""

    def mutate(trace: sqlite3.Connection, chance: random.Random) -> None:
        rows = trace.execute(f"SELECT rowid FROM {KERNELS} WHERE graphNodeId IS NOT NULL").fetchall()
        some = chance.sample(rows, int(share * len(rows)))
        trace.executemany(f"UPDATE {KERNELS} SET graphNodeId = NULL WHERE rowid = ?", some)

    return mutate


SOME = f"SELECT rowid FROM {KERNELS} WHERE graphNodeId IS NOT NULL"
BY_NODE: dict[str, list[Mutation]] = {
    "1% of the nodes": [lost(KERNELS, 0.01, SOME)],
    "10% of the nodes": [lost(KERNELS, 0.1, SOME)],
    "half of the nodes": [lost(KERNELS, 0.5, SOME)],
    "90% of the nodes": [lost(KERNELS, 0.9, SOME)],
    "all nodes of one launch": [whole_launches(0.01)],
    "all nodes of half of the launches": [whole_launches(0.5)],
    "all nodes": [whole_launches(1)],
    "the tail": [the_tail],
    "some launch calls": [lost(CALLS, 0.2, LAUNCHES)],
    "all launch calls": [lost(CALLS, 1, LAUNCHES)],
    "launch calls and nodes": [lost(CALLS, 0.5, LAUNCHES), lost(KERNELS, 0.1, SOME)],
    "graphs made anew": [made_anew],
    "nodes of graphs made anew": [made_anew, lost(KERNELS, 0.1, SOME)],
    "some marks": [unmarked(0.2)],
    "all marks": [unmarked(1)],
    "marks and nodes": [unmarked(0.5), lost(KERNELS, 0.2, SOME)],
}
WHOLE: dict[str, list[Mutation]] = {
    "some graphs": [lost(GRAPHS, 0.1)],
    "most graphs": [lost(GRAPHS, 0.9)],
    "all graphs": [lost(GRAPHS, 1)],
    "some launch calls": [lost(CALLS, 0.2, LAUNCHES)],
    "all launch calls": [lost(CALLS, 1, LAUNCHES)],
    "graphs and launch calls": [lost(GRAPHS, 0.3), lost(CALLS, 0.3, LAUNCHES)],
}
CASES = [("node", name) for name in BY_NODE] + [("graph", name) for name in WHOLE]


@pytest.mark.sampled(quick=11, normal=3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("graphs", "name"), CASES)
def test_time_in_a_graph_is_never_idle_for_a_reason(graphs: str, name: str, seed: int, tmp_path: Path) -> None:
    simulation = Simulation()
    simulation.thread(simulation.process(), decodes)
    path = simulation.run().write(tmp_path / "trace.sqlite", CUDA_ONLY.but(graphs=graphs))
    ops = [each for gpu in simulation.gpus for each in (*gpu.ops, *(op for graph in gpu.graphs for op in graph.ops))]
    busy = union(Intervals.of([(each.start, each.end) for each in ops]))
    with closing(sqlite3.connect(path)) as trace, trace:
        for mutate in (BY_NODE if graphs == "node" else WHOLE)[name]:
            mutate(trace, random.Random(seed))
    report = nsysdiag.analyze(path)
    time = report.time
    idle = time[(time.state == "idle") & (time.bottleneck != "unknown")]
    false = coverage(busy, Intervals(*(idle[side].to_numpy(np.int64) for side in ("start_ns", "end_ns"))))
    wrong = idle.assign(false=false).groupby("cause", observed=True).false.sum()
    assert false.sum() <= MOST * report.devices[0].window_ns, wrong.to_dict()
