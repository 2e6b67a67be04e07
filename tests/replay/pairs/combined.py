"""Several causes in one program: each fixed alone, and together. One may uncover another."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def read_and_sleep(sim: Simulation, marks: Marks, *, read: int = 1500 * US, sleep: int = 1 * MS) -> None:
    """A file read and a sleep, one after the other, in each step."""

    def step(t: Thread, number: int) -> Body:
        if read:
            yield from t.read_file(varied(read, "read", number))
        yield from t.launch("advance", varied(1 * MS, "advance", number))
        yield from t.synchronize()
        if sleep:
            yield from t.sleep(varied(sleep, "sleep", number))

    waking(loop(sim, marks, step))


def sync_and_host(
    sim: Simulation, marks: Marks, *, kernel: int, host: int, synchronized: bool = True, factor: float = 1.0
) -> None:
    """Host code and a synchronization: without the wait the longer of both counts, without the code the kernels."""

    def step(t: Thread, number: int) -> Body:
        for part in range(4):
            yield from t.compute(varied(host, "host", number, part) // 4, "update")
            yield from t.launch("solve", round(varied(kernel, "solve", number, part) * factor) // 4)
            if synchronized:
                yield from t.synchronize()

    loop(sim, marks, step)


def sleep_and_worker(
    sim: Simulation,
    marks: Marks,
    *,
    sleep: int,
    worker: int,
    work: int = 600 * US,
    left: bool = True,
    ready: bool = False,
) -> None:
    """The launching thread sleeps in each step, and a worker takes about as long for its next item.

    worker  [parse .........][put][parse .........][put]
    T       [wait][l][sync][sleep ....][wait][l][sync]
    """
    process, parsed = solver(sim), sim.channel()

    def work_ahead(t: Thread) -> Body:
        for number in range(STEPS):
            if not ready:
                yield from t.compute(varied(worker, "parse", number), "parse")
            yield from t.put(parsed, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(parsed, "sem_wait")
        yield from t.launch("advance", varied(work, "advance", number))
        yield from t.synchronize()
        if left:
            yield from t.sleep(varied(sleep, "sleep", number))

    sim.thread(process, work_ahead, name="pt_data_worker", loads="name")
    loop(sim, marks, step, process=process)


def slow_launches_and_sync(
    sim: Simulation, marks: Marks, *, call: int, each: int, host: int, synchronized: bool = True
) -> None:
    """Without the synchronizations the launch calls are the limit."""

    def step(t: Thread, number: int) -> Body:
        for kernel in range(16):
            yield from t.compute(host, "update")
            yield from t.launch("solve", varied(each, "solve", number, kernel), call=call)
            if synchronized:
                yield from t.synchronize()

    loop(sim, marks, step)


def full_of_waits(
    sim: Simulation, marks: Marks, *, asleep: bool = True, stored: bool = True, back: bool = True
) -> None:
    """A read-back, a write and a sleep, with enough kernels to hide a part of both once nothing waits.

    T    [l][l][memcpy ..........][write ...][sleep ...][l][l]
    gpu     [k      ][k        ]                           [k
    """

    def step(t: Thread, number: int) -> Body:
        for part in range(4):
            yield from t.launch("gradient", varied(500 * US, "gradient", number, part))
        if back:
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=4 * US)
        else:
            yield from t.copy("DtoH", 4, 2 * US, call=2 * US)
        if stored:
            yield from t.os_call("write", varied(1200 * US, "write", number), "io_wait", blocked=True)
        if asleep:
            yield from t.sleep(varied(1300 * US, "sleep", number))

    loop(sim, marks, step)


NO_SYNC, GONE = {"synchronized": False}, {"left": False}
SYNC, SLEEP = without("sync"), without("sleep")
BOTH = partial(sync_and_host, kernel=1 * MS, host=1300 * US)
AHEAD = partial(sleep_and_worker, sleep=2500 * US, worker=2600 * US)
BEHIND = partial(sleep_and_worker, sleep=2500 * US, worker=3300 * US)
UNSEEN = 0.7
"""What may be off where the launching thread never waits for the worker that would hold it back next: no row tells."""
PAIRS: tuple[Pair, ...] = (
    pair("file read of two causes", read_and_sleep, {"read": 0}, without("io_wait"), (0.37, 0.45)),
    pair("sleep of two causes", read_and_sleep, {"sleep": 0}, SLEEP, (0.25, 0.32)),
    pair(
        "file read and sleep",
        read_and_sleep,
        {"read": 0, "sleep": 0},
        without("io_wait", "sleep"),
        (0.67, 0.75),
    ),
    pair("sync of sync and host code", BOTH, NO_SYNC, SYNC, (0.38, 0.47)),
    pair("host code of sync and host code", BOTH, {"host": 0}, without("host_compute"), (0.50, 0.60)),
    pair("sync and host code", BOTH, {"host": 0, **NO_SYNC}, without("sync", "host_compute"), (0.52, 0.62)),
    pair(
        "kernels halved and no sync",
        partial(sync_and_host, kernel=2 * MS, host=700 * US),
        {"factor": 0.5, **NO_SYNC},
        (*SYNC, faster("kernel", "solve", 0.5)),
        (0.58, 0.68),
    ),
    pair("sleep beside a slower worker", BEHIND, GONE, SLEEP, (-0.01, 0.02), quick=True),
    pair("worker slower than a sleep", BEHIND, {"ready": True}, without("data_loading"), (0.03, 0.1)),
    pair("sleep and a slower worker", BEHIND, {"ready": True, **GONE}, without("sleep", "data_loading"), (0.78, 0.85)),
    pair("sleep that hides a worker", AHEAD, GONE, SLEEP, (0.12, 0.24), tolerated=UNSEEN),
    pair("worker that a sleep hides", AHEAD, {"ready": True}, without("data_loading"), (-0.01, 0.03)),
    pair(
        "sync that uncovers slow launch calls",
        partial(slow_launches_and_sync, call=40 * US, each=50 * US, host=20 * US),
        NO_SYNC,
        SYNC,
        (0.38, 0.50),
    ),
    pair(
        "read-back before a write and a sleep", full_of_waits, {"back": False}, without("blocking_copy"), (0.40, 0.47)
    ),
    pair("sleep behind a read-back", full_of_waits, {"asleep": False}, SLEEP, (0.26, 0.32)),
    pair(
        "read-back, write and sleep",
        full_of_waits,
        {"back": False, "asleep": False, "stored": False},
        without("blocking_copy", "io_wait", "sleep"),
        (0.52, 0.59),
    ),
)
