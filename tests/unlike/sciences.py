"""Programs that compute on both sides, or whose work grows: frontiers, meshes, subspaces, forces, partitions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import faster, ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back

LEVELS = (0.02, 0.1, 0.5, 1.5, 1.0, 0.3, 0.05)
"""How large the frontier of a search is, level by level."""


def _frontiers_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        kernel=some(chance, 150),
        source=some(chance, 60),
        switch=chance.choice((0.2, 0.8, 9.0)),
        waits=True,
        names=chance.choice(("steps", "none", "parts")),
    )


def _frontiers_fixes(made: Made) -> Sequence[Fix]:
    found = [
        Fix(
            "kernel halved",
            {"kernel": made.kernel // 2},
            tuple(faster("kernel", each, 0.5) for each in ("expand", *["from_below"] * (made.switch < 1))),
        ),
        halved(made, "next_source", "source"),
    ]
    return [*found, gone("next_source", "source"), *no_read_back(made)]


@programs(_frontiers_fixes, _frontiers_sizes, levels=("step", "level"))
def frontiers_of_a_graph(sim: Simulation, loops: Loops, made: Made) -> None:
    """Searches through a graph, level by level; the host reads how many nodes are next, and chooses a kernel."""
    process = solver(sim)

    def level(t: Thread, number: int, at: int) -> Body:
        size = LEVELS[at] * random.Random(f"{made.order} {number} {at}").uniform(0.5, 1.6)
        yield from t.fill(4, 2 * US)
        if size < made.switch:
            yield from t.launch("expand", round(made.kernel * size))
            yield from t.launch("compact", 4 * US)
        else:
            yield from t.launch("from_below", round(made.kernel * size * 0.7))
        yield from read_back(t, made)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "next_source", t.compute(varied(made.source, "source", number), "next_source"))
        yield from t.copy("HtoD", 4096, 3 * US)
        for at in range(random.Random(f"{made.order} {number}").randint(5, len(LEVELS))):
            loops.step(t, "level")
            yield from ranged(t, "level" if made.names == "parts" else "", level(t, number, at))

    in_steps(sim, process, loops, made, step)


def _mesh_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((4, 8)),
        levels=chance.choice((2, 3)),
        growth=chance.choice((1.0, 1.01, 1.02)),
        kernel=some(chance, 60),
        regrid=some(chance, 600),
        norm=chance.random() < 0.5,
        pinned=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _mesh_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "advance", "kernel", "kernel"), halved(made, "regrid", "regrid")]
    return [*found, gone("regrid", "regrid")]


@programs(_mesh_fixes, _mesh_sizes, levels=("step", "regrid"))
def a_mesh_that_is_refined(sim: Simulation, loops: Loops, made: Made) -> None:
    """Finer levels take two steps for each of a coarser one; every few steps the host makes new grids of flags that it
    reads back, and there are more of them each time."""
    process = solver(sim)

    def advance(t: Thread, number: int, size: float, level: int, part: int) -> Body:
        for kernel in ("advance_x", "advance_y"):
            yield from t.launch(kernel, round(varied(made.kernel, number, level, part, kernel) * size))
        if level + 1 < made.levels:
            for half in range(2):
                yield from advance(t, number, size, level + 1, 2 * part + half)
            yield from t.launch("average_down", 8 * US)

    def step(t: Thread, number: int) -> Body:
        size = made.growth**number
        if number % made.every == 0:
            loops.step(t, "regrid")
            yield from t.launch("flag_cells", 20 * US)
            yield from t.blocking_copy("DtoH", SIZE, 60 * US, host="pinned" if made.pinned else "pageable")
            ns = round(varied(made.regrid, "regrid", number) * size) if made.regrid else 0
            yield from ranged(t, "regrid", t.compute(ns, "cluster_boxes"))
            yield from t.copy("HtoD", SIZE, 60 * US)
        yield from advance(t, number, size, 0, 0)
        if made.norm:
            yield from t.launch("largest_speed", 8 * US)
            yield from t.blocking_copy("DtoH", 8, 2 * US)

    in_steps(sim, process, loops, made, step)


def _subspace_sizes(chance: random.Random) -> Made:
    return Made(
        most=chance.choice((5, 8, 10)),
        kernel=some(chance, 120),
        dense=some(chance, 40),
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _subspace_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "apply_operator", "kernel", "kernel"), halved(made, "small_eigenproblem", "dense")]
    return [*found, gone("small_eigenproblem", "dense")]


@programs(_subspace_fixes, _subspace_sizes, levels=("step", "restart"))
def a_subspace_that_grows(sim: Simulation, loops: Loops, made: Made) -> None:
    """Davidson: the host solves a dense problem of the subspace, which grows until it is collapsed and starts again."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        size = 1 + number % made.most
        if size == 1:
            loops.step(t, "restart")
            yield from t.launch("collapse", 60 * US)
        yield from t.launch("apply_operator", varied(made.kernel, number))
        for _ in range(size):
            yield from t.launch("orthogonalize", 6 * US)
        yield from t.launch("project", 10 * US)
        yield from t.blocking_copy("DtoH", 8 * size * size, 2 * US)
        ns = round(varied(made.dense, "dense", number) * size**2 / 8)
        yield from ranged(t, "small_eigenproblem", t.compute(ns, "dsyevd"))
        yield from t.copy("HtoD", 64 * size, 2 * US)
        yield from t.launch("ritz_vectors", 15 * US)

    in_steps(sim, process, loops, made, step)


def _forces_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((5, 10)),
        pairs=some(chance, 200),
        mesh=some(chance, 60),
        bonded=some(chance, 120),
        update=some(chance, 60),
        search=some(chance, 400),
        team=chance.choice((0, 2)),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _forces_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "nonbonded", "pairs", "kernel"), halved(made, "bonded", "bonded")]
    found += [halved(made, "update", "update"), gone("update", "update"), gone("bonded", "bonded")]
    return [*found, halved(made, "pair_search", "search"), gone("pair_search", "search")]


@programs(_forces_fixes, _forces_sizes, levels=("step", "search"), leads=("host", "sync"))
def forces_on_both_sides(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host computes some forces while the GPU computes the others in two streams; it waits for these, moves the
    atoms, and makes a list of pairs now and then. A team of threads may help it."""
    process, over = solver(sim), sim.channel()
    local, far = process.stream(), process.stream()
    asked = [sim.channel() for _ in range(made.team)]

    def member(t: Thread, index: int) -> Body:
        for number in range(STEPS):
            yield from t.get(asked[index], "futex")
            yield from ranged(t, "bonded", t.compute(varied(made.bonded, "bonded", number, index), "do_bonds"))
            yield from t.put(over, "futex")

    def step(t: Thread, number: int) -> Body:
        if number % made.every == 0:
            loops.step(t, "search")
            yield from ranged(t, "pair_search", t.compute(varied(made.search, "search", number), "put_on_grid"))
            yield from t.copy("HtoD", SIZE, 80 * US, local)
        yield from t.copy("HtoD", 65536, 8 * US, local)
        positions = t.event()
        yield from t.record(positions, local)
        yield from t.launch("nonbonded", varied(made.pairs, number), local)
        yield from t.copy("DtoH", 65536, 8 * US, local)
        yield from t.wait_event(far, positions)
        for kernel in ("spread", "fft", "solve", "fft", "gather"):
            yield from t.launch(f"pme_{kernel}", varied(made.mesh, number, kernel) // 2, far)
        yield from t.copy("DtoH", 65536, 8 * US, far)
        for each in asked:
            yield from t.put(each, "futex")
        yield from ranged(t, "bonded", t.compute(varied(made.bonded, "bonded", number), "do_bonds"))
        for _ in asked:
            yield from t.get(over, "futex")
        yield from t.synchronize(far)
        yield from t.synchronize(local)
        yield from ranged(t, "update", t.compute(varied(made.update, "update", number), "do_leapfrog"))

    for index in range(made.team):
        thread = sim.thread(process, partial(member, index=index), name=f"omp_{index}")
        if made.slow:
            waking(thread)
    in_steps(sim, process, loops, made, step)


def _partitions_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        room=chance.choice((4, 7)),
        operators=chance.choice((3, 6)),
        kernel=some(chance, 60),
        spill=some(chance, 80),
        plan=some(chance, 60),
        free=some(chance, 40),
        pinned=False,
        waits=True,
        names=chance.choice(("steps", "none")),
    )


def _partitions_fixes(made: Made) -> Sequence[Fix]:
    found = [
        Fix(
            "kernel halved",
            {"kernel": made.kernel // 2},
            tuple(faster("kernel", each, 0.5) for each in ("hash_join", "gather", "filter")),
        ),
        halved(made, "plan", "plan"),
    ]
    found += [gone("plan", "plan")]
    return [*found, Fix("no frees", {"free": 0}, without("memory_allocation"), "memory_allocation")]


@programs(_partitions_fixes, _partitions_sizes, levels=("step",), leads=("copies", "sync", "memory", "host"))
def partitions_that_spill(sim: Simulation, loops: Loops, made: Made) -> None:
    """A data frame, partition by partition: each operator reads a size back. If memory is full, some columns are copied
    to the host and freed."""
    process, held, chance = solver(sim), [0.0], random.Random(f"spill {made.order}")
    sizes = [chance.uniform(0.4, 1.6) for _ in range(STEPS)]

    def spill(t: Thread, number: int) -> Body:
        while held[0] > made.room / 2:
            ns = varied(made.spill, "spill", number)
            yield from t.copy("DtoH", SIZE, ns) if made.pinned else t.blocking_copy("DtoH", SIZE, ns, staging=40 * US)
            if made.free:
                yield from t.free(made.free)
            held[0] -= 1

    def step(t: Thread, number: int) -> Body:
        held[0] += sizes[number]
        if held[0] > made.room:
            yield from spill(t, number)
        yield from ranged(t, "plan", t.compute(varied(made.plan, "plan", number), "plan"))
        yield from t.copy("HtoD", SIZE, 50 * US)
        for at in range(made.operators):
            kernel = ("filter", "hash_join", "gather")[at % 3]
            yield from t.launch(kernel, round(varied(made.kernel, number, at) * sizes[number]))
            yield from read_back(t, made, 8)

    in_steps(sim, process, loops, made, step)
