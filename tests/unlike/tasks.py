"""Programs whose steps are apart from threads: tasks of a pool, coroutines of one thread, and callbacks of streams."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import CudaEvent
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _pool_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        threads=chance.choice((2, 3, 4)),
        turns=chance.random() < 0.5,
        prepare=some(chance, 80),
        kernel=some(chance, 100),
        launches=chance.choice((2, 5)),
        waits=chance.random() < 0.6,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _pool_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "solve", "kernel", "kernel"), halved(made, "prepare", "prepare"), gone("prepare", "prepare")]
    return [*found, *no_read_back(made)]


@programs(_pool_fixes, _pool_sizes)
def tasks_of_a_pool(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each step is a task, which a pool of threads runs: in turn, or whichever thread is free. It starts the next."""
    process, chance = solver(sim), random.Random(f"pool {made.order}")
    asked = [sim.channel() for _ in range(made.threads)]
    of = [number % made.threads if made.turns else chance.randrange(made.threads) for number in range(STEPS)]
    own = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.prepare, "prepare", number), "prepare"))
        yield from t.copy("HtoD", SIZE, 30 * US, own)
        for part in range(made.launches):
            yield from t.launch("solve", varied(made.kernel, number, part), own)
        yield from read_back(t, made, 8, own)

    def run(t: Thread, index: int) -> Body:
        for number in (each for each in range(STEPS) if of[each] == index):
            if number:
                yield from t.get(asked[index], "pthread_cond_wait")
            else:
                loops.begin(t)
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
            if number < STEPS - 1:
                yield from t.put(asked[of[number + 1]], "pthread_cond_signal")
            else:
                loops.end(t)
                yield from t.synchronize()

    for index in range(made.threads):
        thread = sim.thread(process, partial(run, index=index), name=f"pool {index}")
        if made.slow:
            waking(thread)


def _coroutines_sizes(chance: random.Random) -> Made:
    return Made(
        width=chance.choice((2, 3, 4)),
        before=some(chance, 60),
        after=some(chance, 60),
        kernel=some(chance, 100),
        spread=chance.choice((0.1, 0.6)),
        idle=chance.choice(("sleep", "spin", "oldest")),
        names="none",
    )


def _coroutines_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "infer", "kernel", "kernel"), halved(made, "decode", "before"), gone("decode", "before")]
    return [*found, halved(made, "respond", "after"), gone("respond", "after")]


@programs(_coroutines_fixes, _coroutines_sizes, levels=("step", "round"), leads=("host", "sync", "launch"))
def coroutines_of_one_thread(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread runs some coroutines with a stream each: it asks each event whether the request is done, and answers."""
    process = solver(sim)
    streams = [process.stream() for _ in range(made.width)]

    def begin(t: Thread, number: int, slot: int) -> Body:
        ns = varied(made.before, "before", number, spread=made.spread)
        yield from ranged(t, "decode", t.compute(ns, "decode"))
        loops.step(t)
        if not slot:
            loops.step(t, "round")
        yield from t.copy("HtoD", SIZE, 20 * US, streams[slot])
        for part in range(3):
            yield from t.launch("infer", varied(made.kernel, number, part, spread=made.spread), streams[slot])
        yield from t.copy("DtoH", 4096, 3 * US, streams[slot])

    def main(t: Thread) -> Body:
        running: dict[int, CudaEvent] = {}
        begun = over = 0
        loops.begin(t)
        while over < STEPS:
            moved = False
            for slot in range(made.width):
                if slot in running:
                    yield from t.query(running[slot])
                    if not running[slot].complete:
                        continue
                    del running[slot]
                    yield from ranged(t, "respond", t.compute(varied(made.after, "after", over), "respond"))
                    over, moved = over + 1, True
                if begun < STEPS:
                    yield from begin(t, begun, slot)
                    running[slot] = t.event()
                    yield from t.record(running[slot], streams[slot])
                    begun, moved = begun + 1, True
            if not moved and running:
                yield from idle(t, running)
        loops.end(t)

    def idle(t: Thread, running: dict[int, CudaEvent]) -> Body:
        if made.idle == "sleep":
            yield from t.sleep(50 * US)
        elif made.idle == "oldest":
            yield from t.synchronize(next(iter(running.values())))
        else:
            yield from t.compute(2 * US, "run_once")

    sim.thread(process, main, name="event loop")


def _callbacks_sizes(chance: random.Random) -> Made:
    return Made(
        streams=chance.choice((2, 3)),
        preprocess=some(chance, 60),
        kernel=some(chance, 100),
        function=some(chance, 20),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _callbacks_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "infer", "kernel", "kernel"), halved(made, "preprocess", "preprocess")]
    return [*found, gone("preprocess", "preprocess")]


@programs(_callbacks_fixes, _callbacks_sizes, levels=("step", "round"), leads=("host", "sync", "unknown"))
def callbacks_of_streams(sim: Simulation, loops: Loops, made: Made) -> None:
    """Requests go to some streams in turn; behind each a host function answers, and frees the stream for one more."""
    process, free = solver(sim), sim.channel()
    streams = [process.stream() for _ in range(made.streams)]
    free.items = made.streams

    def freed() -> None:
        free.items += 1
        if free.waiting:
            free.waiting.popleft().fire()

    def step(t: Thread, number: int) -> Body:
        stream = streams[number % made.streams]
        if number % made.streams == 0:
            loops.step(t, "round")
        yield from ranged(t, "preprocess", t.compute(varied(made.preprocess, "preprocess", number), "preprocess"))
        yield from t.get(free, "sem_wait")
        yield from t.copy("HtoD", SIZE, 20 * US, stream)
        for part in range(3):
            yield from t.launch("infer", varied(made.kernel, number, part), stream)
        yield from t.copy("DtoH", 4096, 3 * US, stream)
        yield from t.host_function(varied(made.function, "function", number), stream)
        stream.tail[-1].done.then(freed)

    in_steps(sim, process, loops, made, step)
    if made.slow:
        waking(process.threads[-1])  # type: ignore[arg-type]
