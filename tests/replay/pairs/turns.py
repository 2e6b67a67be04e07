"""Launching threads that take turns at a lock, helpers that copy, and two threads that launch in one stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body, Process
from tests.simulator.interpreter import Gil


def behind_a_lock(
    sim: Simulation,
    marks: Marks,
    *,
    prepare: int,
    others: int = 1,
    factor: float = 1.0,
    synchronized: bool = True,
    semaphore: bool = False,
) -> None:
    """Threads that prepare, and launch and wait while they hold a lock, which may be a semaphore.

    T       [prepare][lock ...][l][sync ..][prepare][lock ......][l][sync ..]
    other   [l][sync ........][prepare][lock ......][l][sync ...][prepare]
    """
    process, mutex, free = solver(sim), sim.mutex(), sim.channel()
    free.items = 1

    def one(t: Thread, number: int, stream: Stream) -> Body:
        yield from ranged(t, "prepare", t.compute(round(factor * varied(prepare, t.name, number)), "prepare"))
        yield from t.get(free, "sem_wait") if semaphore else t.lock(mutex)
        yield from t.compute(varied(200 * US, "submit", t.name, number), "submit")
        yield from t.launch("solve", varied(600 * US, "solve", t.name, number), stream)
        if synchronized:
            yield from t.synchronize(stream)
        yield from t.put(free, "sem_post") if semaphore else t.unlock(mutex)

    _all_do(sim, marks, process, one, others)


def interpreted(
    sim: Simulation, marks: Marks, *, prepare: int, others: int = 1, factor: float = 1.0, work: int = 600 * US
) -> None:
    """Python threads, which let go of the lock of the interpreter while they wait for the device.

    T       [prepare][l][sync ......][lock .][prepare][l][sync
    other   [sync ][lock ..][prepare ..][l][sync ...][lock ...
    """
    process, gil = sim.process(), Gil()

    def one(t: Thread, number: int, stream: Stream) -> Body:
        yield from gil.acquire(t)
        ns = round(factor * varied(prepare, t.name, number))
        yield from ranged(t, "prepare", gil.compute(t, ns, "prepare"))
        yield from t.launch("solve", varied(work, "solve", t.name, number), stream)
        yield from gil.release(t)
        yield from t.synchronize(stream)

    _all_do(sim, marks, process, one, others)


def _all_do(
    sim: Simulation, marks: Marks, process: Process, one: Callable[[Thread, int, Stream], Body], others: int
) -> None:
    """A thread that does this in each step, and so many others that do it as often as they can meanwhile, each in a
    stream of its own."""
    own, over = process.stream(), [False]

    def other(t: Thread, stream: Stream) -> Body:
        number = 0
        while not over[0]:
            yield from one(t, number, stream)
            number += 1

    def step(t: Thread, number: int) -> Body:
        yield from one(t, number, own)
        over[0] = number == STEPS - 1

    for _ in range(others):
        waking(sim.thread(process, partial(other, stream=process.stream()), name=BACKGROUND))
    waking(loop(sim, marks, step, process=process))


def copied_by_a_helper(
    sim: Simulation, marks: Marks, *, ahead: int = 0, synchronized: bool = True, blocking: bool = True
) -> None:
    """Another thread copies what the step needs, on demand or so many steps ahead.

    helper  [cudaMemcpy ........](post)
    T       [wait                      ][host][l][sync]
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    asked.items = ahead
    own, copies = process.stream(), process.stream()

    def helper(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            ns = varied(1 * MS, "copy", number)
            if blocking:
                yield from t.blocking_copy("HtoD", 1 << 22, ns, copies, staging=20 * US)
            else:
                yield from t.copy("HtoD", 1 << 22, ns, copies, call=2 * US)
            yield from t.put(done, "sem_post")

    def step(t: Thread, number: int) -> Body:
        if not ahead:
            yield from t.put(asked, "sem_post")
        yield from t.get(done, "sem_wait")
        if ahead:
            yield from t.put(asked, "sem_post")
        yield from t.compute(varied(300 * US, "host", number), "update")
        yield from t.launch("solve", varied(800 * US, "solve", number), own)
        if synchronized:
            yield from t.synchronize(own)

    waking(sim.thread(process, helper, name="copier"))
    waking(loop(sim, marks, step, process=process))


def in_the_same_stream(sim: Simulation, marks: Marks, *, synchronized: bool = True) -> None:
    """Another thread launches in the stream of the steps at a pace of its own: those that are ahead are before it.

    T       [l][sync ........][l][sync ...........]
    stream     [solve]           [monitor][solve]
    """
    process, over = solver(sim), []
    stream = process.stream()

    def other(t: Thread) -> Body:
        number = 0
        while not over:
            yield from t.compute(varied(1300 * US, "collect", number, spread=0.4), "collect")
            yield from t.launch("monitor", varied(500 * US, "monitor", number), stream)
            number += 1

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(150 * US, "update", number), "update")
        yield from t.launch("solve", varied(450 * US, "solve", number), stream)
        if synchronized:
            yield from t.synchronize(stream)
        over.extend([True] if number == STEPS - 1 else [])

    sim.thread(process, other, name=BACKGROUND)
    loop(sim, marks, step, process=process)


HALF, NO_SYNC, NOT_BLOCKING = {"factor": 0.5}, {"synchronized": False}, {"blocking": False}
FASTER, SYNC, ASYNCHRONOUS = faster("host", "prepare", 0.5), without("sync"), Transform("async-copies")
PAIRS: tuple[Pair, ...] = (
    pair(
        "host code before a lock that is held all the time",
        partial(behind_a_lock, prepare=300 * US),
        HALF,
        FASTER,
        (-0.02, 0.02),
    ),
    pair(
        "host code before a lock that is held most of the time",
        partial(behind_a_lock, prepare=900 * US),
        HALF,
        FASTER,
        (0.0, 0.04),
        tolerated=0.3,
        quick=True,
    ),
    pair(
        "host code before a lock of three launching threads",
        partial(behind_a_lock, prepare=900 * US, others=2),
        HALF,
        FASTER,
        (-0.03, 0.03),
        tolerated=0.25,
    ),
    pair(
        "sync within a lock of three launching threads",
        partial(behind_a_lock, prepare=900 * US, others=2),
        NO_SYNC,
        SYNC,
        (0.5, 0.6),
        tolerated=0.7,
    ),
    pair(
        "kernel halved of two Python threads, which then meet at its lock",
        partial(interpreted, prepare=300 * US),
        {"work": 300 * US},
        faster("kernel", "solve", 0.5),
        (0.1, 0.4),
        tolerated=0.2,
        quick=True,
    ),
    pair(
        "kernel halved of two Python threads that hold its lock all the time",
        partial(interpreted, prepare=1500 * US),
        {"work": 300 * US},
        faster("kernel", "solve", 0.5),
        (-0.02, 0.02),
    ),
    pair(
        "host code of three Python threads",
        partial(interpreted, prepare=1500 * US, others=2),
        HALF,
        FASTER,
        (0.4, 0.5),
        tolerated=0.3,
    ),
    pair(
        "host code before a semaphore that is held all the time",
        partial(behind_a_lock, prepare=300 * US, semaphore=True),
        HALF,
        FASTER,
        (-0.02, 0.02),
    ),
    pair(
        "host code before a semaphore that is held most of the time",
        partial(behind_a_lock, prepare=900 * US, semaphore=True),
        HALF,
        FASTER,
        (0.0, 0.05),
        tolerated=0.3,
    ),
    pair(
        "host code before a semaphore of three launching threads",
        partial(behind_a_lock, prepare=900 * US, others=2, semaphore=True),
        HALF,
        FASTER,
        (-0.06, 0.0),
        tolerated=0.3,
    ),
    pair(
        "sync within a semaphore of three launching threads",
        partial(behind_a_lock, prepare=900 * US, others=2, semaphore=True),
        NO_SYNC,
        SYNC,
        (0.5, 0.6),
        tolerated=0.7,
    ),
    pair("copy of a helper on demand", copied_by_a_helper, NOT_BLOCKING, ASYNCHRONOUS, (0.4, 0.5), quick=True),
    pair(
        "copy of a helper a step ahead, steps do not wait",
        partial(copied_by_a_helper, ahead=1, synchronized=False),
        NOT_BLOCKING,
        ASYNCHRONOUS,
        (0.08, 0.2),
        tolerated=0.2,
    ),
    pair(
        "sync of steps that share a stream with another thread",
        in_the_same_stream,
        NO_SYNC,
        SYNC,
        (0.1, 0.6),
        tolerated=0.4,
        quick=True,
    ),
)
