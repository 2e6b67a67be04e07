"""The nodes of launched graphs, which the profiler of PyTorch does not number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    Node = tuple[int, int, Hashable, Any]


def numbered(nodes: Iterable[Node]) -> Iterator[tuple[Any, int]]:
    """A number from 1 for each of the `nodes`: (correlation id of the launch, start, what it is, whose number).

    Launches of the same nodes are of one graph; others are of other graphs, whose nodes are others, too. Nothing says
    of which graph a launch is: one that lacks a node would be another graph.
    """
    launches: dict[int, list[Node]] = {}
    for node in nodes:
        launches.setdefault(node[0], []).append(node)
    first: dict[tuple[Hashable, ...], int] = {}
    free = 1
    for launch in launches.values():
        # Nodes of several streams overlap as it happens, so their order does not tell graphs apart.
        launch.sort(key=lambda node: (repr(node[2]), node[1]))
        graph = tuple(what for _, _, what, _ in launch)
        if graph not in first:
            first[graph] = free
            free += len(graph)
        for number, (_, _, _, owner) in enumerate(launch, first[graph]):
            yield owner, number
