"""Programs whose host is ahead of the GPU as far as it may be, or is behind it for reasons that no call names."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import faster, ranged
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.unlike.made import Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import gone, halved


def _full_sizes(chance: random.Random) -> Made:
    return Made(
        room=chance.choice((64, 256)),
        kernel=some(chance, 60),
        small=some(chance, 15),
        call=chance.choice((4, 8)) * US,
        host=some(chance, 100),
        layers=chance.choice((10, 30)),
        names=chance.choice(("steps", "none")),
    )


def _full_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "gemm", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]
    far: tuple[Transform, ...] = (faster("kernel", "gemm", 0.125), faster("kernel", "activation", 0.125))
    return [*found, Fix("far faster", {"kernel": made.kernel // 8, "small": made.small // 8}, far)]


@programs(_full_fixes, _full_sizes)
def a_queue_that_is_full(sim: Simulation, loops: Loops, made: Made) -> None:
    """Nothing is read back: the host launches until the queue of the stream is full, and then as fast as it empties."""
    process = solver(sim)
    stream = process.stream()
    stream.limit = made.room

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for layer in range(made.layers):
            yield from t.launch("gemm", varied(made.kernel, number, layer), stream, call=made.call)
            yield from t.launch("activation", varied(made.small, "small", number, layer), stream, call=made.call)

    in_steps(sim, process, loops, made, step)


def _profiler_sizes(chance: random.Random) -> Made:
    return Made(
        each=chance.choice((10, 30)) * US,
        flush=chance.choice((0, 2_000)) * US,
        layers=chance.choice((6, 20)),
        kernel=some(chance, 10),
        host=some(chance, 40),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _profiler_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "layer", "kernel", "kernel"), halved(made, "prepare", "host"), gone("prepare", "host")]


@programs(_profiler_fixes, _profiler_sizes, leads=("host", "kernels", "launch"))
def a_profiler_that_slows(sim: Simulation, loops: Loops, made: Made) -> None:
    """The profiler does more in each launch than the program, and empties its buffers every few steps."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        for layer in range(made.layers):
            flushes = made.flush and number % 5 == 4 and layer == 0
            overhead = [("flush", made.flush) if flushes else ("instrumentation", made.each)]
            yield from t.launch("layer", varied(made.kernel, number, layer), overhead=overhead)
        if made.waits:
            yield from t.synchronize()

    in_steps(sim, process, loops, made, step)
