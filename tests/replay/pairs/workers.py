"""Fixes of what other threads and processes do while the launching thread waits for them."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.diagnosis.programs.synchronizations import worker_behind
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, varied, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

FRAMES = ("_worker_loop", "_MapDatasetFetcher.fetch", "DataLoader")


def loading(
    sim: Simulation,
    marks: Marks,
    *,
    read: int,
    decode: int,
    work: int,
    by: str = "sem_wait",
    depth: int = 0,
    synchronized: bool = True,
    ready: bool = False,
    frames: bool = False,
    fed: bool = False,
    read_last: bool = False,
) -> None:
    """A worker reads and decodes each batch; with a `depth` it is ahead by no more than so many. Where batches are
    `ready` it takes no time. It may read last (`read_last`). A second thread of the worker may feed the queue (`fed`).

    worker  [read ....][decode ....](post)[read ....][decode ....](post)
    T       [wait                      ][copy][l][sync][wait
    """
    trainer, batches, free, decoded = sim.process(), sim.channel(), sim.channel(), sim.channel()
    free.items = depth

    def load(t: Thread) -> Body:
        for number in range(STEPS):
            if depth:
                yield from t.get(free, "sem_wait")
            for what in [] if ready else ["decode", "read"] if read_last else ["read", "decode"]:
                if what == "read":
                    yield from t.read_file(varied(read, "read", number))
                else:
                    yield from t.compute(varied(decode, "decode", number), "jpeg_idct_islow")
            yield from t.put(decoded, "sem_post") if fed else t.put(batches, signal)

    def feed(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(decoded, "sem_wait")
            yield from t.compute(varied(60 * US, "feed", number), "pickle_dump")
            yield from t.put(batches, signal)

    def step(t: Thread, number: int) -> Body:
        yield from t.get(batches, by)
        if depth:
            yield from t.put(free, "sem_post")
        yield from t.copy("HtoD", 1 << 20, 80 * US)
        for kernel in range(4):
            yield from t.launch("ampere_sgemm_128x64_tn", varied(work // 4, "gemm", number, kernel))
        if synchronized:
            yield from t.synchronize(t.process.null)

    signal = "write" if by == "read" else "sem_post"
    worker = sim.process(gpus=[]) if by == "read" else trainer
    named: dict = (
        {"name": "Thread-1", "loads": "frames", "frames": FRAMES}
        if frames
        else {"name": "pt_data_worker", "loads": "name"}
    )  # type: ignore[type-arg]
    if fed:  # nothing but its process says what it does
        named = {"name": "python"}
    waking(sim.thread(worker, load, **named))
    if fed:
        waking(sim.thread(worker, feed, name="QueueFeederThread"))
    waking(loop(sim, marks, step, process=trainer))


def staged(
    sim: Simulation, marks: Marks, *, read: int, compute: int, work: int, stages: int = 0, ahead: bool = False
) -> None:
    """A thread reads, others pass on what it read, and the last signals the launching thread. The next item is asked
    for when the step begins, or read ahead.

    reader   [pread64 .......][compute](post)
    stage    [wait                          ][compute](post)
    T        [wait                                          ][l][sync]
    """
    process = solver(sim)
    pipes = [sim.channel() for _ in range(stages + 1)]
    asked = sim.channel()

    def reader(t: Thread) -> Body:
        for number in range(STEPS):
            if not ahead:
                yield from t.get(asked, "sem_wait")
            if read:
                yield from t.read_file(varied(read, "read", number), "pread64")
            yield from t.compute(varied(compute, "unpack", number), "unpack")
            yield from t.put(pipes[0], _posting(0, stages))

    def stage(t: Thread, place: int) -> Body:
        for number in range(STEPS):
            yield from t.get(pipes[place], "sem_wait")
            yield from t.compute(varied(250 * US, "transform", place, number), "transform")
            yield from t.put(pipes[place + 1], _posting(place + 1, stages))

    def step(t: Thread, number: int) -> Body:
        if not ahead:
            yield from t.put(asked, "sem_post")
        yield from t.get(pipes[-1], "pthread_cond_wait")
        yield from t.launch("assemble", varied(work, "assemble", number))
        yield from t.synchronize()

    waking(sim.thread(process, reader, name="reader"))
    for place in range(stages):
        waking(sim.thread(process, partial(stage, place=place), name=f"stage {place}"))
    waking(loop(sim, marks, step, process=process))


def _posting(place: int, last: int) -> str:
    return "pthread_cond_signal" if place == last else "sem_post"


def lock_while_reading(sim: Simulation, marks: Marks, *, read: int) -> None:
    """A thread keeps a lock, which the launching thread needs, while it reads a file; or while it does not.

    other  [lock][read ............][unlock]
    T         [pthread_mutex_lock .........][l][sync]
    """
    process, mutex = solver(sim), sim.mutex()

    def other(t: Thread) -> Body:
        for number in range(STEPS + 10):
            yield from t.lock(mutex)
            if read:
                yield from t.read_file(varied(read, "read", number))
            yield from t.unlock(mutex)
            yield from t.compute(300 * US, "index")

    def step(t: Thread, number: int) -> Body:
        yield from t.lock(mutex)
        yield from t.compute(20 * US, "look_up")
        yield from t.unlock(mutex)
        yield from t.launch("solve", varied(800 * US, "solve", number))
        yield from t.synchronize()

    waking(sim.thread(process, other, name="checkpoint"))
    waking(loop(sim, marks, step, process=process))


def joined(sim: Simulation, marks: Marks, *, helping: int) -> None:
    """Each step starts a thread that reads a file, and waits for its end."""
    process = solver(sim)

    def helper(t: Thread, number: int) -> Body:
        if helping:
            yield from t.read_file(varied(helping, "helper", number))
        yield from t.compute(400 * US, "compress")

    def step(t: Thread, number: int) -> Body:
        yield from t.join(sim.thread(process, partial(helper, number=number), name="helper", start=sim.clock.now))
        yield from t.launch("solve", varied(1 * MS, "solve", number))
        yield from t.synchronize()

    waking(loop(sim, marks, step, process=process))


def waiting_for_the_device(sim: Simulation, marks: Marks, *, host: int, each: int = 600 * US) -> None:
    """A thread that launches nothing waits for the device, and the launching thread for it.

    waiter  [sem_wait][sync .....](post)[sem_wait
    T       [l](post)[sem_wait        ][host ...][l]
    gpu        [== solve ==]                        [== solve
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()

    def waiter(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from t.synchronize(process.null)
            yield from t.put(done, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("solve", varied(each, "solve", number))
        yield from t.put(asked, "sem_post")
        yield from t.get(done, "sem_wait")
        yield from t.compute(varied(host, "host", number), "update")

    sim.thread(process, waiter, name="waiter")
    loop(sim, marks, step, process=process)


READY, NOT_READ, NO_SYNC = {"ready": True}, {"read": 0}, {"synchronized": False}
LOADING, FILES, SYNC = without("data_loading"), without("io_wait"), without("sync")
PAIRS: tuple[Pair, ...] = (
    pair(
        "worker that decodes",
        partial(loading, read=50 * US, decode=5 * MS, work=1 * MS, frames=True),
        READY,
        LOADING,
        (0.75, 0.84),
    ),
    pair(
        "worker process that reads",
        partial(loading, read=4 * MS, decode=300 * US, work=1600 * US, by="read"),
        READY,
        LOADING,
        (0.55, 0.66),
        quick=True,
    ),
    pair(
        "worker a little slower than the steps",
        partial(loading, read=1 * MS, decode=2 * MS, work=2500 * US),
        READY,
        LOADING,
        (0.12, 0.22),
    ),
    pair(
        "worker faster than the steps",
        partial(loading, read=500 * US, decode=1 * MS, work=3 * MS),
        READY,
        LOADING,
        (-0.01, 0.03),
    ),
    pair(
        "worker two batches ahead at most",
        partial(loading, read=2 * MS, decode=2 * MS, work=2 * MS, depth=2),
        READY,
        LOADING,
        (0.45, 0.54),
    ),
    pair(
        "worker behind steps that do not wait",
        partial(loading, read=1 * MS, decode=1500 * US, work=1 * MS, synchronized=False),
        READY,
        LOADING,
        (0.54, 0.64),
    ),
    pair(
        "worker that mostly decodes, as its finding says",
        partial(loading, read=500 * US, decode=4 * MS, work=1 * MS, frames=True),
        {"decode": 0},
        (),
        (0.70, 0.80),
        finding="input",
    ),
    pair(
        "worker that mostly reads, as its finding says",
        partial(loading, read=4 * MS, decode=500 * US, work=1600 * US, by="read"),
        {"read": 0},
        (),
        (0.50, 0.66),
        finding="input",
    ),
    pair(
        "worker that reads behind a thread that feeds its queue",
        partial(loading, read=4 * MS, decode=300 * US, work=1600 * US, by="read", fed=True),
        {"read": 0},
        (),
        (0.50, 0.66),
        finding="input",
    ),
    pair(
        "worker that decodes more than it reads, as its finding says",
        partial(loading, read=3 * MS, decode=6 * MS, work=1500 * US, read_last=True),
        {"decode": 0},
        (),
        (0.60, 0.70),
        finding="input",
    ),
    pair(
        "worker that reads more than it decodes, as its finding says",
        partial(loading, read=6 * MS, decode=3 * MS, work=1500 * US, by="read"),
        {"read": 0},
        (),
        (0.60, 0.70),
        finding="input",
    ),
    pair("sync before a slow worker", worker_behind, NO_SYNC, SYNC, (0.0, 0.07), steps=150),
    pair(
        "sync before a slow data loader",
        partial(loading, read=2 * MS, decode=1 * MS, work=2 * MS),
        NO_SYNC,
        SYNC,
        (-0.01, 0.03),
    ),
    pair(
        "worker behind, scheduling not recorded",
        partial(loading, read=3 * MS, decode=300 * US, work=1 * MS, by="read"),
        READY,
        LOADING,
        (0.60, 0.72),
        capture=EVERYTHING.but(sched=False, samples=False),
    ),
    pair(
        "file read by another thread on demand",
        partial(staged, read=2 * MS, compute=500 * US, work=800 * US),
        NOT_READ,
        FILES,
        (0.52, 0.64),
    ),
    pair(
        "file read by another thread ahead",
        partial(staged, read=2 * MS, compute=500 * US, work=1500 * US, ahead=True),
        NOT_READ,
        FILES,
        (0.33, 0.45),
    ),
    pair(
        "file read by another thread ahead, as its finding says",
        partial(staged, read=2 * MS, compute=500 * US, work=1500 * US, ahead=True),
        NOT_READ,
        (),
        (0.33, 0.45),
        finding="input",
        tolerated=0.03,
    ),
    pair(
        "file read ahead of longer steps",
        partial(staged, read=1 * MS, compute=300 * US, work=2 * MS, ahead=True),
        NOT_READ,
        FILES,
        (-0.01, 0.01),
    ),
    pair(
        "file read behind two threads",
        partial(staged, read=2 * MS, compute=200 * US, work=700 * US, stages=1),
        NOT_READ,
        FILES,
        (0.52, 0.64),
    ),
    pair(
        "file read behind a pipeline, ahead",
        partial(staged, read=3 * MS, compute=200 * US, work=1 * MS, stages=2, ahead=True),
        NOT_READ,
        FILES,
        (0.58, 0.70),
    ),
    pair("file read while a lock is held", partial(lock_while_reading, read=3 * MS), {"read": 0}, FILES, (0.60, 0.78)),
    pair(
        "file read by a thread that is joined",
        partial(joined, helping=2 * MS),
        {"helping": 0},
        FILES,
        (0.50, 0.60),
        refusable=True,  # no call of the thread that ends wakes the one that joins it
    ),
    pair(
        "kernel halved that another thread waits for",
        partial(waiting_for_the_device, host=300 * US),
        {"each": 300 * US},
        faster("kernel", "solve", 0.5),
        (0.28, 0.36),
        quick=True,
    ),
)
