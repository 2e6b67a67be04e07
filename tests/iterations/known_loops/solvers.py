"""Loops of simulations: time steps, iterations until convergence, output now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.known_loops.known import Loops, family
from tests.iterations.programs import graph, kernels
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


@family("step")
def until_convergence(t: Thread, loops: Loops) -> Body:
    """Each time step solves a system: iterations until the residual, which is read each n-th time, is small."""
    each, low = loops.size(1, 3), loops.size(4, 10)
    for step in range(loops.size(15, 35)):
        loops.push(f"time step {step}")
        loops.begin("step")
        yield from kernels(t, ("assemble", 150), ("precondition", 60))
        for iteration in range(loops.size(low, low + 15)):
            loops.begin("iteration")
            yield from kernels(t, ("spmv", 60), ("axpy", 15), ("dot", 10))
            if iteration % each == 0:
                yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from kernels(t, ("project", 80), ("advance", 60))
        loops.pop()


@family("step")
def fixed_sweeps(t: Thread, loops: Loops) -> Body:
    """k sweeps in each step."""
    sweeps = loops.size(2, 12)
    for _ in range(loops.size(12, 40)):
        loops.begin("step")
        yield from kernels(t, ("source", 40), ("boundary", 15))
        for _ in range(sweeps):
            loops.begin("sweep")
            yield from kernels(t, ("sweep_red", 60), ("sweep_black", 60))
        yield from kernels(t, ("velocity", 70))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 8, 2 * US)


@family("step")
def output_each_nth(t: Thread, loops: Loops) -> Body:
    """Time steps of a few kernels; a residual or an output each n-th."""
    each, names = loops.chance.choice([5, 10, 12, 25]), loops.size(1, 5)
    for step in range(loops.size(60, 160)):
        loops.begin("step")
        yield from kernels(t, *((f"flux_{number}", 80 + 10 * number) for number in range(names)))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        if step % each == each - 1:
            yield from kernels(t, ("reduce_energy", 20))
            yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)
            yield from t.os_call("write", loops.size(0, 3) * MS + 1000, "io_wait")


@family("step")
def neighbour_lists(t: Thread, loops: Loops) -> Body:
    """Molecular dynamics: the list of neighbours is made again each n-th step."""
    each = loops.chance.choice([7, 10, 20])
    for step in range(loops.size(80, 160)):
        loops.begin("step")
        if step % each == 0:
            yield from kernels(t, ("sort_cells", 60), ("build_list", 150))
        yield from kernels(t, ("force_pair", 120), ("force_bond", 30), ("integrate", 20))
        if loops.waits:
            yield from t.synchronize()


@family("step")
def runge_kutta(t: Thread, loops: Loops) -> Body:
    """Stages of the same kernels with other factors; the time step is read back, or not."""
    stages = loops.size(2, 5)
    for step in range(loops.size(20, 60)):
        loops.push(f"step {step}")
        loops.begin("step")
        yield from kernels(t, ("time_step", 25))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        for _ in range(stages):
            loops.begin("stage")
            yield from kernels(t, ("rhs_x", 90), ("rhs_y", 90), ("accumulate", 30))
        loops.pop()


@family("step")
def steps_by_graph(t: Thread, loops: Loops) -> Body:
    """A graph for each step; each n-th another one with output."""
    usual, each = graph("collide", "stream", "boundary", each=loops.size(30, 90)), loops.chance.choice([8, 10, 16])
    for step in range(loops.size(60, 120)):
        loops.begin("step")
        yield from t.launch_graph(usual, number=1)
        if step % each == each - 1:
            yield from t.launch_graph(graph("statistics", "compress"), number=2)
            yield from t.blocking_copy("DtoH", 1 << 16, 9 * US)
        if loops.waits:
            yield from t.synchronize()


@family("step")
def nested_three_times(t: Thread, loops: Loops) -> Body:
    """Time steps of Newton steps of linear iterations, all of fixed numbers."""
    newton, linear = loops.size(2, 4), loops.size(3, 8)
    for _ in range(loops.size(8, 20)):
        loops.begin("step")
        yield from kernels(t, ("predict", 60))
        for _ in range(newton):
            loops.begin("newton")
            yield from kernels(t, ("jacobian", 150), ("residual", 50))
            for _ in range(linear):
                loops.begin("linear")
                yield from kernels(t, ("spmv", 50), ("dot", 10), ("axpy", 12))
            yield from kernels(t, ("correct", 30))
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from kernels(t, ("accept_step", 40))
        yield from t.blocking_copy("DtoH", 1 << 18, 30 * US)


@family("step")
def adaptive_particles(t: Thread, loops: Loops) -> Body:
    """Steps whose work grows and shrinks; kernels of several substeps for some of the steps."""
    for _ in range(loops.size(40, 90)):
        loops.begin("step")
        yield from t.fill(1 << 16, 5 * US)
        for _ in range(loops.chance.choice([1, 1, 2, 4])):
            loops.begin("substep")
            yield from kernels(t, ("push", loops.size(50, 120)), ("deposit", 60))
        yield from kernels(t, ("field_solve", 100))
        if loops.waits:
            yield from t.synchronize()
            yield from t.compute(loops.size(20, 200) * US)
