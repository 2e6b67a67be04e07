"""Programs whose threads meet without a call that says so, or out of order: a ring that is polled, a pool of decoders
with frames in order, and two GPUs whose threads meet at a barrier of the host."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.unlike.ahead import batches_in_memory
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _ring_sizes(chance: random.Random) -> Made:
    return Made(
        decode=some(chance, 300),
        room=chance.choice((1, 3)),
        host=some(chance, 60),
        kernel=some(chance, 100),
        waits=chance.random() < 0.7,
        marked=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _ring_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "to_device", "host")]
    found += [halved(made, "decode", "decode")] if made.marked else []
    return [*found, gone("to_device", "host"), *no_read_back(made)]


@programs(_ring_fixes, _ring_sizes, leads=("host", "input", "unknown"))
def a_ring_that_is_polled(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread makes batches and puts them into a ring in memory; who takes them asks the ring again and again, as who
    fills it does for room: no call says what either waits for."""
    batches_in_memory(sim, loops, made, _asks, _asks)


def _asks(t: Thread) -> Body:
    yield from t.compute(1 * US, "poll_ring")


def _frames_sizes(chance: random.Random) -> Made:
    return Made(
        workers=chance.choice((2, 3, 4)),
        room=chance.choice((4, 8)),
        decode=some(chance, 400),
        spread=chance.choice((0.2, 0.8)),
        host=some(chance, 40),
        kernel=some(chance, 100),
        waits=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _frames_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "upscale", "kernel", "kernel"), halved(made, "decode", "decode"), gone("decode", "decode")]
    return [*found, halved(made, "overlay", "host"), gone("overlay", "host"), *no_read_back(made)]


@programs(_frames_fixes, _frames_sizes, leads=("host", "input"))
def frames_in_order(sim: Simulation, loops: Loops, made: Made) -> None:
    """A pool of threads decodes frames of a video, some ahead at most; they are done in any order, and taken in that of
    the video."""
    process, room, taken = solver(sim), sim.channel(), iter(range(STEPS))
    room.items = made.room
    done = [sim.channel() for _ in range(STEPS)]

    def decoder(t: Thread) -> Body:
        while True:
            yield from t.get(room, "sem_wait")
            number = next(taken, None)
            if number is None:
                return
            ns = varied(made.decode, "decode", number, spread=made.spread)
            yield from ranged(t, "decode", t.compute(ns, "h264_decode_slice"))
            yield from t.put(done[number], "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(done[number], "pthread_cond_wait")
        yield from t.copy("HtoD", SIZE, 40 * US)
        yield from t.put(room, "sem_post")
        yield from ranged(t, "overlay", t.compute(varied(made.host, "host", number), "draw_overlay"))
        for part in range(3):
            yield from t.launch("upscale", varied(made.kernel, number, part))
        yield from read_back(t, made, SIZE)

    in_steps(sim, process, loops, made, step)
    for index in range(made.workers):
        thread = sim.thread(process, decoder, name=f"decoder {index}")
        if made.slow:
            waking(thread)


def _barrier_sizes(chance: random.Random) -> Made:
    return Made(
        kernel=some(chance, 150),
        late=chance.choice((1.0, 1.6)),
        prepare=some(chance, 80),
        other=some(chance, 80),
        merge=some(chance, 60),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _barrier_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "prepare", "prepare")]
    found += [gone("prepare", "prepare"), halved(made, "pack", "other"), gone("pack", "other")]
    return [*found, halved(made, "merge", "merge"), gone("merge", "merge")]


@programs(_barrier_fixes, _barrier_sizes, gpus=2, leads=("host", "sync", "kernels"))
def two_gpus_at_a_barrier(sim: Simulation, loops: Loops, made: Made) -> None:
    """Two threads with a GPU each wait for their results, and for each other; one of them merges both, and both go
    on. The other GPU may have more work."""
    process = solver(sim, [0, 1])
    arrived, merged = sim.channel(), sim.channel()

    def part(t: Thread, number: int, gpu: int) -> Body:
        stream = process.contexts[gpu].null
        yield from t.copy("HtoD", SIZE, 30 * US, stream)
        for at in range(2):
            ns = round(varied(made.kernel, gpu, number, at) * (made.late if gpu else 1))
            yield from t.launch("solve", ns, stream)
        yield from t.blocking_copy("DtoH", SIZE, 30 * US, stream)

    def other(t: Thread) -> Body:
        for number in range(STEPS):
            yield from ranged(t, "pack", t.compute(varied(made.other, "other", number), "pack"))
            yield from part(t, number, 1)
            yield from t.put(arrived, "pthread_cond_signal")
            yield from t.get(merged, "pthread_cond_wait")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.prepare, "prepare", number), "prepare"))
        yield from part(t, number, 0)
        yield from t.get(arrived, "pthread_cond_wait")
        yield from ranged(t, "merge", t.compute(varied(made.merge, "merge", number), "merge_halves"))
        yield from t.put(merged, "pthread_cond_signal")

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, other, name="second")
    if made.slow:
        waking(thread)
