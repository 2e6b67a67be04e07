"""Programs whose host is ahead of the GPU as far as it may be, or is behind it for reasons that no call names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import faster, ranged, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


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


def _naps_sizes(chance: random.Random) -> Made:
    return Made(
        decode=some(chance, 500),
        nap=chance.choice((100, 300)) * US,
        room=chance.choice((1, 4)),
        host=some(chance, 60),
        kernel=some(chance, 100),
        waits=chance.random() < 0.7,
        marked=chance.random() < 0.7,
        names=chance.choice(("steps", "none")),
    )


def _naps_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "to_device", "host")]
    found += [gone("to_device", "host"), *no_read_back(made)]
    return [*found, Fix("short naps", {"nap": 5 * US}, without("sleep"), "sleep")]


def batches_in_memory(
    sim: Simulation, loops: Loops, made: Made, no_room: Callable[[Thread], Body], none_yet: Callable[[Thread], Body]
) -> None:
    """A thread makes batches ahead, as far as there is room, and the steps take them. What each does until it may go on
    is given: nothing says what it waits for."""
    process, ready, taken = solver(sim), [0], [0]

    def produce(t: Thread) -> Body:
        for number in range(STEPS):
            while ready[0] - taken[0] >= made.room:
                yield from no_room(t)
            decode = t.compute(varied(made.decode, "decode", number), "jpeg_idct_islow")
            yield from ranged(t, "decode" if made.marked else "", decode)
            ready[0] += 1

    def step(t: Thread, number: int) -> Body:
        while ready[0] <= number:
            yield from none_yet(t)
        taken[0] = number + 1
        yield from ranged(t, "to_device", t.compute(varied(made.host, "host", number), "to_device"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(2):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
    sim.thread(process, produce, name="producer", loads="nvtx" if made.marked else "")


@programs(_naps_fixes, _naps_sizes, leads=("host", "input"))
def naps_until_there_is_a_batch(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread sleeps, and looks again whether another one has made a batch; no call says what it waits for."""
    batches_in_memory(sim, loops, made, lambda t: t.sleep(100 * US), lambda t: t.sleep(made.nap))


def _flag_sizes(chance: random.Random) -> Made:
    return Made(
        before=some(chance, 80, 0.5),
        kernel=some(chance, 300, 0.4),
        after=some(chance, 60, 0.5),
        marked=chance.random() < 0.6,
        names=chance.choice(("steps", "none")),
    )


def _flag_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "before", "before"), gone("before", "before")]
    return [*found, halved(made, "after", "after"), gone("after", "after")]


@programs(_flag_fixes, _flag_sizes, leads=("host", "sync"))
def a_flag_in_memory(sim: Simulation, loops: Loops, made: Made) -> None:
    """The host reads a word of memory again and again until a kernel has set it: no call waits for the GPU."""
    process = solver(sim)

    def asks(t: Thread) -> Body:
        (last,) = process.null.tail
        while not last.done.fired:
            yield from t.compute(200, "poll_flag")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "before", t.compute(varied(made.before, "before", number), "before"))
        for part in range(2):
            yield from t.launch("solve", varied(made.kernel, number, part))
        yield from ranged(t, "ask" if made.marked else "", asks(t))
        yield from ranged(t, "after", t.compute(varied(made.after, "after", number), "after"))

    in_steps(sim, process, loops, made, step)
