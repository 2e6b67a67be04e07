"""Graphs in place of many launches."""

from __future__ import annotations

from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import Pair, loop, pair, ranged, varied
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body


def in_a_range(
    sim: Simulation,
    marks: Marks,
    *,
    kernels: int,
    each: int,
    call: int = 8 * US,
    host: int = 0,
    after: int = 0,
    graph: bool = False,
) -> None:
    """A range with many launches, with a little host code between them, or with one launch of a graph.

    T     <layers [l][l][l][l][l][l]>       <layers [graph]>
    gpu            [k] [k] [k] [k]                   [k][k][k]
    """
    process = solver(sim)
    stream = process.stream()

    def launches(t: Thread, number: int) -> Body:
        nodes = [Node("relax", varied(each, "relax", number, kernel)) for kernel in range(kernels)]
        if graph:
            yield from t.launch_graph(nodes, stream)
            return
        for node in nodes:
            yield from t.compute(host, "dispatch")
            yield from t.launch(node.name, node.duration, stream, call=call)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "layers", launches(t, number))
        yield from t.compute(varied(after, "after", number), "update")

    loop(sim, marks, step, process=process)


GRAPH, LAYERS = {"graph": True}, Transform("graphs", "layers")
PAIRS: tuple[Pair, ...] = (
    pair(
        "graph in place of tiny launches",
        partial(in_a_range, kernels=40, each=4 * US),
        GRAPH,
        LAYERS,
        (0.30, 0.42),
        quick=True,
    ),
    pair(
        "graph in place of slow launches",
        partial(in_a_range, kernels=30, each=10 * US, call=40 * US),
        GRAPH,
        LAYERS,
        (0.66, 0.76),
    ),
    pair(
        "graph in place of launches that kernels hide",
        partial(in_a_range, kernels=20, each=60 * US),
        GRAPH,
        LAYERS,
        (-0.01, 0.01),
    ),
    pair(
        "graph in place of launches, and host code is left",
        partial(in_a_range, kernels=40, each=5 * US, call=12 * US, after=300 * US),
        GRAPH,
        LAYERS,
        (0.52, 0.64),
    ),
    pair(
        "graph in place of launches with host code between",
        partial(in_a_range, kernels=40, each=6 * US, host=10 * US),
        GRAPH,
        LAYERS,
        (0.54, 0.66),
        tolerated=0.6,
    ),
    pair(
        "graph of four kernels, whose launch takes longer than that of one",
        partial(in_a_range, kernels=4, each=15 * US, call=4 * US, after=200 * US),
        GRAPH,
        LAYERS,
        (-0.01, 0.06),
    ),
)
