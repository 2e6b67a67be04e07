"""Programs that hand work over: a thread for each result, loaders with one lock, and a log behind a pipe."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Channel, Thread
from tests.simulator.engine import Signal
from tests.simulator.host import Block, Body, HostThread, Run
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _results_sizes(chance: random.Random) -> Made:
    return Made(
        behind=chance.choice((0, 1, 3)),
        prepare=some(chance, 60),
        encode=some(chance, 150),
        kernel=some(chance, 100),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _results_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "render", "kernel", "kernel"), halved(made, "prepare", "prepare")]
    return [*found, gone("prepare", "prepare"), halved(made, "encode", "encode"), gone("encode", "encode")]


@programs(_results_fixes, _results_sizes)
def a_thread_for_each_result(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each result is encoded by a thread of its own; the thread of some steps before is joined."""
    process = solver(sim)
    started: list[HostThread] = []

    def encode(t: Thread, number: int) -> Body:
        yield from ranged(t, "encode", t.compute(varied(made.encode, "encode", number), "deflate"))

    def start(number: int) -> HostThread:
        thread = sim.thread(process, partial(encode, number=number), name="encoder", start=sim.clock.now)
        started.append(waking(thread) if made.slow else thread)
        return thread

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.prepare, "prepare", number), "prepare"))
        for part in range(3):
            yield from t.launch("render", varied(made.kernel, number, part))
        yield from t.blocking_copy("DtoH", SIZE, 40 * US)
        yield from t.spawn(partial(start, number))
        if number >= made.behind:
            yield from t.join(started[number - made.behind])

    in_steps(sim, process, loops, made, step)


def _locked_sizes(chance: random.Random) -> Made:
    return Made(
        workers=chance.choice((2, 4)),
        every=chance.choice((8, 13)),
        depth=chance.choice((2, 4)),
        read=some(chance, 80),
        decode=some(chance, 200),
        kernel=some(chance, 120),
        waits=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _locked_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "decode", "decode"), gone("decode", "decode")]
    return [*found, halved(made, "read", "read"), *no_read_back(made)]


@programs(_locked_fixes, _locked_sizes, leads=("input",))
def loaders_with_one_lock(sim: Simulation, loops: Loops, made: Made) -> None:
    """Threads read a file under one lock and decode; batches ahead end with each epoch, as the next one is unknown."""
    process, lock, full, asked = solver(sim), sim.mutex(), sim.channel(), sim.channel()
    taken = iter(range(STEPS))

    def load(t: Thread) -> Body:
        for number in taken:
            yield from t.get(asked, "pthread_cond_wait")
            yield from t.lock(lock)
            yield from ranged(t, "read", t.compute(varied(made.read, "read", number), "H5Dread"))
            yield from t.unlock(lock)
            yield from ranged(t, "decode", t.compute(varied(made.decode, "decode", number), "decode"))
            yield from t.put(full, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        at = number % made.every
        left = min(made.every, STEPS - number + at)
        loops.stopped += [number] if not at else []
        for _ in range(min(made.depth, left) if not at else int(at + made.depth <= left)):
            yield from t.put(asked, "pthread_cond_signal")
        yield from t.get(full, "pthread_cond_wait")
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(3):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
    for index in range(made.workers):
        thread = sim.thread(process, load, name=f"loader {index}")
        if made.slow:
            waking(thread)


def _pipe_sizes(chance: random.Random) -> Made:
    made = Made(
        room=chance.choice((2, 6)),
        every=chance.choice((1, 5, 9)),
        flush=some(chance, 400),
        prepare=some(chance, 60),
        kernel=some(chance, 120),
        waits=chance.random() < 0.6,
        traced=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )
    # A pipe of an unknown process that is full now and then may be a disk; one that never is holds nothing yet, however
    # slow that process is. It is full in most steps if it is by a quarter of them.
    more = 1 - (made.prepare + 3 * made.kernel + 60 * US) / made.flush
    always_full = made.every == 1 and more * STEPS / 4 > made.room
    return made.but(traced=made.traced or not always_full)


def _pipe_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train", "kernel", "kernel"), halved(made, "prepare", "prepare"), gone("prepare", "prepare")]
    return [*found, *no_read_back(made)]


def _moved(t: Thread, call: str, entry: int, out: Channel, into: Channel) -> Body:
    """One end of a pipe: a line is read, which makes room for one more, or room is used to write a line. The call waits
    until there is one."""
    with t.inside("os", call, "io_wait"):
        yield Run(entry)
        while not out.items:
            arrived = Signal()
            out.waiting.append(arrived)
            yield Block(arrived)
        out.items -= 1
        into.items += 1
        if into.waiting:
            into.waiting.popleft().fire(t)
        yield Run(500)


@programs(_pipe_fixes, _pipe_sizes, leads=("host", "input"))
def a_log_through_a_pipe(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each step writes a line to a pipe; a process reads them, and flushes every few: the pipe may be full by then."""
    process, lines, room = solver(sim), sim.channel(), sim.channel()
    room.items = made.room

    def logger(t: Thread) -> Body:
        for number in range(STEPS):
            yield from _moved(t, "read", 1_200, lines, room)
            if number % made.every == made.every - 1:
                yield from t.read_file(varied(made.flush * made.every, "flush", number), "fsync")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.prepare, "prepare", number), "prepare"))
        for part in range(3):
            yield from t.launch("train", varied(made.kernel, number, part))
        yield from read_back(t, made)
        yield from _moved(t, "write", 1_500, room, lines)

    in_steps(sim, process, loops, made, step)
    other = sim.process(gpus=[])
    other.os_calls = made.traced
    sim.thread(other, logger, name="logger")
