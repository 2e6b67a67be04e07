"""Waits that are another thread's work, and threads that are born in the trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def behind_a_helper(
    sim: Simulation,
    marks: Marks,
    *,
    by: str = "sem_wait",
    decode: int = 2 * MS,
    read: int = 0,
    work: int = 600 * US,
    prompt: bool = False,
) -> None:
    """Another thread does a part of each step, and the launching thread waits for it. Without delay it
    goes on at once.

    helper  [reads ..][decodes ....](post)[waits
    T       [wait                     ][l][sync][asks]
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    signal = {"read": "write", "sem_wait": "sem_post", "pthread_cond_wait": "pthread_cond_signal"}[by]
    delay: Callable[[Thread], Thread] = _prompt if prompt else waking

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, by)
            if read:
                yield from t.read_file(varied(read, "read", number), "pread64")
            yield from t.compute(varied(decode, "decode", number), "inflate")
            yield from t.put(done, signal)

    def step(t: Thread, number: int) -> Body:
        yield from t.put(asked, signal)
        yield from t.get(done, by)
        yield from t.launch("solve", varied(work, "solve", number))
        yield from t.synchronize()

    delay(sim.thread(process, helper, name="helper"))
    delay(loop(sim, marks, step, process=process))


def _prompt(t: Thread) -> Thread:
    t.latency = t.returning = lambda: 0
    return t


def one_each_step(
    sim: Simulation,
    marks: Marks,
    *,
    by: str = "signal",
    read: int = 0,
    decode: int = 400 * US,
    before: int = 0,
    factor: float = 1.0,
    work: int = 600 * US,
    exiting: int = 300 * US,
) -> None:
    """Each step starts a thread or process that does a part of it, and waits until it has signalled or is gone.

    T       [prepares][create][wait                       ][l][sync]
    helper              [reads ..][decodes ....](signal)
    """
    process, done = solver(sim), sim.channel()
    begun: list[Thread] = []

    def helper(t: Thread, number: int) -> Body:
        if read:
            yield from t.read_file(varied(read, "read", number), "pread64")
        yield from t.compute(varied(decode, "decode", number), "inflate")
        if by == "signal":
            yield from t.put(done, "pthread_cond_signal")

    def begin(number: int) -> Thread:
        own = sim.process(gpus=[], name="/usr/bin/helper") if by == "process" else process
        started = sim.thread(own, partial(helper, number=number), name="helper", start=sim.clock.now + 30 * US)
        begun.append(waking(started))
        return started

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(round(varied(before, "before", number) * factor) + 1, "collect"))
        yield from t.spawn(partial(begin, number), "fork" if by == "process" else "pthread_create")
        if by == "signal":
            yield from t.get(done, "pthread_cond_wait")
        elif by == "process":
            yield from t.wait_for_exit(begun[-1], exiting=exiting)
        else:
            yield from t.join(begun[-1])
        yield from t.launch("solve", varied(work, "solve", number))
        yield from t.synchronize()

    waking(loop(sim, marks, step, process=process))


def launching_threads(
    sim: Simulation, marks: Marks, *, before: int = 1500 * US, factor: float = 1.0, work: int = 600 * US, deep: int = 0
) -> None:
    """Each step starts a thread that launches; `deep` threads, each started by the one before, are between them.

    T       [prepares ......][create][sem_wait          ]
    helper                     [l][sync ....](post)
    """
    process, done = solver(sim), sim.channel()

    def helper(t: Thread, number: int, depth: int) -> Body:
        if depth:
            yield from t.compute(varied(40 * US, "pass", number, depth), "pass_on")
            yield from t.spawn(partial(begin, number, depth - 1))
            return
        yield from t.launch("solve", varied(work, "solve", number))
        yield from t.synchronize()
        yield from t.put(done, "sem_post")

    def begin(number: int, depth: int) -> Thread:
        body = partial(helper, number=number, depth=depth)
        return waking(sim.thread(process, body, name="launcher", start=sim.clock.now + 30 * US))

    def main(t: Thread) -> Body:
        marks.begin(t)
        for number in range(STEPS):
            yield from ranged(t, f"step {number}", step(t, number))
        marks.end(t)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(round(varied(before, "before", number) * factor), "collect"))
        yield from t.spawn(partial(begin, number, deep))
        yield from t.get(done, "sem_wait")

    waking(sim.thread(process, main, name="main"))


PROMPT, NOT_READ, HALF = {"prompt": True}, {"read": 0}, {"factor": 0.5}
FASTER = faster("host", "prepare", 0.5)
PAIRS: tuple[Pair, ...] = (
    pair("semaphore of a thread that computes", behind_a_helper, PROMPT, without("lock_wait"), (0.0, 0.1), quick=True),
    pair(
        "condition variable of a thread that reads",
        partial(behind_a_helper, by="pthread_cond_wait", read=2 * MS, decode=200 * US),
        PROMPT,
        without("lock_wait"),
        (0.0, 0.1),
    ),
    pair(
        "pipe of a thread that computes",
        partial(behind_a_helper, by="read"),
        PROMPT,
        without("io_wait"),
        (0.0, 0.1),
        refusable=True,
    ),
    pair(
        "process that is waited for",
        partial(one_each_step, by="process", decode=1 * MS, exiting=700 * US),
        {"exiting": 0},
        without("sleep"),
        (0.15, 0.35),
    ),
    pair(
        "file read by a thread of each step",
        partial(one_each_step, read=2 * MS),
        NOT_READ,
        without("io_wait"),
        (0.5, 0.7),
        quick=True,
    ),
    pair(
        "host code before a thread of each step",
        partial(one_each_step, before=2 * MS),
        HALF,
        FASTER,
        (0.2, 0.35),
    ),
    pair(
        "file read by a thread of each step that is joined",
        partial(one_each_step, by="join", read=2 * MS),
        NOT_READ,
        without("io_wait"),
        (0.5, 0.7),
        tolerated=0.7,
        refusable=True,
    ),
    pair(
        "host code before a thread of each step that is joined",
        partial(one_each_step, by="join", before=2 * MS),
        HALF,
        FASTER,
        (0.2, 0.35),
    ),
    pair(
        "file read by a process of each step",
        partial(one_each_step, by="process", read=2 * MS),
        NOT_READ,
        without("io_wait"),
        (0.4, 0.7),
        refusable=True,
    ),
    pair("host code before a launching thread", launching_threads, HALF, FASTER, (0.2, 0.4), quick=True),
    pair(
        "host code before a launching thread behind two others",
        partial(launching_threads, deep=2),
        HALF,
        FASTER,
        (0.2, 0.4),
    ),
)
