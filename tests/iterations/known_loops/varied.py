"""Loops in which no operation comes once in each step, or in which steps differ from one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.iterations.known_loops.known import Loops, family
from tests.iterations.programs import graph, kernels, layers
from tests.simulator.engine import US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


def any_work(t: Thread, loops: Loops, most: int) -> Body:
    """Kernels of six names in any order, two at least."""
    for _ in range(loops.size(2, most)):
        yield from kernels(t, (f"operator_{loops.size(0, 5)}", loops.size(20, 150)))


@family("step")
def any_operators(t: Thread, loops: Loops) -> Body:
    """Only a wait ends a step: a synchronization, or a read-back."""
    for _ in range(loops.size(40, 60)):
        loops.begin("step")
        yield from any_work(t, loops, 20)
        yield from t.synchronize() if loops.waits else t.blocking_copy("DtoH", 4096, 4 * US)
        yield from t.compute(loops.size(20, 1500) * US)


@family("step")
def a_flag_and_a_result(t: Thread, loops: Loops) -> Body:
    """Two read-backs in each step, of two sizes."""
    for _ in range(loops.size(30, 50)):
        loops.begin("step")
        for size in (4, 1 << 20):
            loops.begin("half")
            yield from any_work(t, loops, 8)
            yield from t.blocking_copy("DtoH", size, 2 * US)
        yield from t.compute(loops.size(20, 900) * US)


@family("query")
def queries(t: Thread, loops: Loops) -> Body:
    """A database: input, any operators, the result."""
    for _ in range(loops.size(40, 60)):
        yield from t.os_call("recv", loops.size(10, 1500) * US, "io_wait")
        loops.begin("query")
        for _ in range(loops.size(1, 3)):
            yield from t.copy("HtoD", 1 << loops.size(16, 22), loops.size(10, 90) * US)
        yield from any_work(t, loops, 8)
        yield from t.blocking_copy("DtoH", 1 << loops.size(8, 16), 8 * US)


@family("step")
def accumulation_of_any_number(t: Thread, loops: Loops) -> Body:
    """Micro batches of any number, then an update by kernels of one name, which may say so."""
    name = loops.chance.choice(["multi_tensor_adam", "elementwise_kernel"])
    for _ in range(loops.size(25, 40)):
        loops.begin("step")
        for _ in range(loops.size(1, 8)):
            loops.begin("micro")
            yield from t.copy("HtoD", 1 << 18, 20 * US)
            yield from layers(t, 3, (("forward_gemm", 50), ("forward_act", 10)))
            yield from layers(t, 3, (("backward_gemm", 90), ("backward_act", 20)))
        yield from layers(t, 4, ((name, 20),))
        if loops.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)


@family("step")
def buffers_in_turn(t: Thread, loops: Loops) -> Body:
    """Even and odd steps have graphs of their own."""
    for step in range(loops.size(30, 60)):
        loops.begin("step")
        turn = step % 2
        yield from t.launch_graph(graph(f"collide_{turn}", f"stream_{turn}", each=80), number=1 + turn)
        if loops.waits:
            yield from t.synchronize()


@family("step")
def kinds_of_ranges(t: Thread, loops: Loops) -> Body:
    """An engine that prefills or decodes in each step, with a range for each of both; numbers in their names vary."""
    for _ in range(loops.size(50, 80)):
        prefill = loops.size(0, 4) == 0
        kind = (
            f"EXTEND bs={loops.size(1, 4)} toks={loops.size(30, 900)}" if prefill else f"DECODE bs={loops.size(1, 64)}"
        )
        t.push(f"step[{kind}]")
        loops.begin("step")
        yield from t.copy("HtoD", 1 << 12, 4 * US)
        names = ("norm_x", 20), ("gemm_x", 150), ("fmha_x", 80)
        yield from layers(t, 4, names) if prefill else t.launch_graph(graph("norm_y", "gemv_y", "attn_y", each=40))
        yield from t.blocking_copy("DtoH", 256, 2 * US)
        t.pop()


@family("step")
def larger_launches_now_and_then(t: Thread, loops: Loops) -> Body:
    """Iterations until convergence, whose last kernel is a larger launch: the device alone shows where a step ends."""
    low, names = loops.size(8, 40), [(f"sweep_{name}", loops.size(10, 90)) for name in range(loops.size(1, 6))]
    for _ in range(loops.size(5, 12)):
        loops.begin("step")
        for _ in range(loops.size(low, low + 20)):
            loops.begin("iteration")
            yield from kernels(t, *names)
        yield from t.launch(names[0][0], 250 * US, shape={"gridX": 4096, "blockX": 256})
    yield from t.blocking_copy("DtoH", 1 << 20, 90 * US)


@family("step")
def residuals_and_a_swap(t: Thread, loops: Loops) -> Body:
    """Each iteration reads its residual; the fields are copied on the device once a step."""
    iterations = loops.size(10, 60)
    for _ in range(loops.size(5, 15)):
        loops.begin("step")
        for _ in range(iterations):
            loops.begin("iteration")
            yield from kernels(t, ("stencil", 60), ("residual", 12))
            yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from t.copy("DtoD", 1 << 22, 15 * US)
