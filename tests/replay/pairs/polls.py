"""Loops that ask again and again, or take what a timer posts: they go on later than what they ask for is there."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def polling(
    sim: Simulation,
    marks: Marks,
    *,
    nap: int,
    host: int = 150 * US,
    kernel: int,
    factor: float = 1.0,
    synchronized: bool = False,
) -> None:
    """Each step asks whether its kernel is done, and sleeps between; or it waits for the event.

    T    [prepares ..][l][query][sleep ....][query][sleep ....][query][prepares
    gpu                  [== k ==)
    """
    process = solver(sim)
    stream = process.stream()

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(host, "host", number), "convert"))
        yield from t.launch("solve", round(varied(kernel, "kernel", number) * factor), stream)
        event = t.event()
        yield from t.record(event, stream)
        if synchronized:
            yield from t.synchronize(event)
            return
        while not event.complete:
            yield from t.query(event)
            yield from t.sleep(nap, "usleep")
        yield from t.query(event)

    waking(loop(sim, marks, step, process=process))


def ticking(
    sim: Simulation,
    marks: Marks,
    *,
    period: int,
    host: int = 600 * US,
    kernel: int = 500 * US,
    factor: float = 1.0,
) -> None:
    """A timer posts a semaphore that the steps take: they are so slow that none ever waits for it.

    timer  [sleep ...](post)[sleep ...](post)[sleep ...](post)
    T      [takes][prepares ....][l][sync ..][takes][prepares ....][l][sync ..]
    """
    process, ticks = solver(sim), sim.channel()

    def timer(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.until(number * period)
            yield from t.put(ticks, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(ticks, "sem_wait")
        yield from ranged(t, "prepare", t.compute(round(varied(host, "host", number) * factor), "convert"))
        yield from t.launch("detect", varied(kernel, "kernel", number))
        yield from t.synchronize()

    sim.thread(process, timer, name=BACKGROUND)
    loop(sim, marks, step, process=process)


HALVED, CANNOT_TELL = {"factor": 0.5}, {"tolerated": 1.0}
PAIRS: tuple[Pair, ...] = (
    pair(
        "kernel halved, and the thread sleeps as long between queries",
        partial(polling, nap=500 * US, kernel=450 * US),
        HALVED,
        faster("kernel", "solve", 0.5),
        (-0.01, 0.02),
        **CANNOT_TELL,
        quick=True,
    ),
    pair(
        "kernel halved, and the thread sleeps half as often between queries",
        partial(polling, nap=60 * US, kernel=450 * US),
        HALVED,
        faster("kernel", "solve", 0.5),
        (0.25, 0.4),
        **CANNOT_TELL,
    ),
    pair(
        "host code before a thread that sleeps between queries",
        partial(polling, nap=150 * US, kernel=400 * US),
        {"host": 75 * US},
        faster("host", "prepare", 0.5),
        (0.08, 0.14),
    ),
    pair(
        "sleeps of 400 µs between queries",
        partial(polling, nap=400 * US, kernel=450 * US),
        {"synchronized": True},
        without("sleep"),
        (0.2, 0.35),
    ),
    pair(
        "host code of steps that a timer never kept waiting",
        partial(ticking, period=1 * MS),
        HALVED,
        faster("host", "prepare", 0.5),
        (0.05, 0.15),
        **CANNOT_TELL,
        quick=True,
    ),
    pair(
        "kernel halved in steps that a timer never kept waiting",
        partial(ticking, period=1 * MS),
        {"kernel": 250 * US},
        faster("kernel", "detect", 0.5),
        (0.05, 0.15),
        **CANNOT_TELL,
    ),
)
