"""The launching thread waits for another thread or process: who that is, and what it does meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.interpreter import Gil
from tests.simulator.scenarios.registry import WAKING_UP, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.actions import Channel, Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation

STEPS = 16
DATA_LOADER = ("_worker_loop", "_MapDatasetFetcher.fetch", "DataLoader")
NEVER_HERE = ("off_cpu", "blocked", "uncovered")


def step(t: Thread) -> Body:
    """A copy, three kernels, and a wait for them."""
    yield from t.copy("HtoD", 1 << 20, 80 * US)
    for _ in range(3):
        yield from t.launch("ampere_sgemm_128x64_tn", 120 * US)
    yield from t.synchronize(t.process.null)


def steps_after(channel: Channel, call: str) -> Callable[[Thread], Body]:
    """A thread that trains one step for each thing that it gets."""

    def main(t: Thread) -> Body:
        for number in range(STEPS):
            t.push(f"step {number}")
            t.push("next batch")
            yield from t.get(channel, call)
            t.pop()
            yield from step(t)
            t.pop()

    return main


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def slow_read_and_condition(sim: Simulation) -> None:
    """A thread of C++ reads from a slow disk and signals a condition variable.

    reader  [pread64 ............][signal]
    T       [pthread_cond_wait           ][step]
    """
    process, batches = sim.process(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.compute(200 * US, "memcpy")
            yield from t.put(batches, "pthread_cond_signal")

    sim.thread(process, read, name="reader")
    sim.thread(process, steps_after(batches, "pthread_cond_wait"))


@register("io_wait", root="data_loading", findings=("data_loading",), forbidden=NEVER_HERE, latency=WAKING_UP)
def slow_read_and_pipe(sim: Simulation) -> None:
    """A worker process reads; the batch comes through a pipe.

    worker  [read ............][write]
    T       [read                    ][step]
    """
    trainer, worker, batches = sim.process(), sim.process(gpus=[]), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS)
            yield from t.compute(300 * US, "unpickle")
            yield from t.put(batches)

    sim.thread(worker, load, name="pt_data_worker", loads="name")
    sim.thread(trainer, steps_after(batches, "read"))


@register("lock_wait", root="data_loading", findings=("data_loading",), forbidden=NEVER_HERE, latency=WAKING_UP)
def slow_read_and_queue(sim: Simulation) -> None:
    """A Python thread fills a queue: sem_post is not recorded, only the thread's own NVTX ranges say what it is.

    worker  [pread64 .........]  (sem_post)
    T       [sem_wait               ][step]
    """
    process, batches = sim.process(), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            t.push("DataLoader worker: fetch")
            yield from t.read_file(4 * MS, "pread64")
            yield from t.compute(200 * US)
            t.pop()
            yield from t.put(batches, "sem_post")

    sim.thread(process, load, name="Thread-1", loads="nvtx")
    sim.thread(process, steps_after(batches, "sem_wait"))


@register(
    "lock_wait",
    root="data_loading",
    findings=("data_loading",),
    forbidden=(*NEVER_HERE, "io_wait"),
    latency=WAKING_UP,
)
def decoding_worker(sim: Simulation) -> None:
    """The worker computes: its files are cached, decoding is slow. Its frames in CPU samples say what it is.

    worker  [decodes =========]  (sem_post)
    T       [sem_wait               ][step]
    """
    process, batches = sim.process(), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.os_call("read", 30 * US, "io_wait")
            yield from t.compute(5 * MS, "jpeg_idct_islow")
            yield from t.put(batches, "sem_post")

    sim.thread(process, load, name="Thread-1", loads="frames", frames=DATA_LOADER)
    sim.thread(process, steps_after(batches, "sem_wait"))


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def lock_held_while_reading(sim: Simulation) -> None:
    """A thread keeps a lock while it reads a file.

    other  [lock][read ............][unlock]
    T         [pthread_mutex_lock .........][step]
    """
    process, mutex = sim.process(), sim.mutex()

    def other(t: Thread) -> Body:
        for _ in range(STEPS + 4):
            yield from t.lock(mutex)
            yield from t.read_file(4 * MS)
            yield from t.unlock(mutex)
            yield from t.compute(300 * US)

    def main(t: Thread) -> Body:
        yield from t.compute(1 * MS)
        for _ in range(STEPS):
            yield from t.lock(mutex)
            yield from t.compute(20 * US)
            yield from t.unlock(mutex)
            yield from step(t)

    sim.thread(process, other, name="checkpoint")
    sim.thread(process, main)


@register("lock_wait", root="lock_wait", findings=("lock_wait",), forbidden=(*NEVER_HERE, "io_wait"), latency=WAKING_UP)
def interpreter_lock(sim: Simulation) -> None:
    """A busy Python thread holds the interpreter's lock; main lets go of it to synchronize, and gets it back late.

    busy  [== computes ===========|signal][cond_wait][timedwait .....][== computes
    T     [sync][timedwait][timedwait ...][step: launches, lets go, sync]
    """
    process, gil = sim.process(), Gil()

    def busy(t: Thread) -> Body:
        yield from gil.acquire(t)
        yield from gil.compute(t, STEPS * 7 * MS, "tokenize")
        yield from gil.release(t)

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from gil.acquire(t)
            yield from t.compute(50 * US)
            for _ in range(3):
                yield from t.launch("ampere_sgemm_128x64_tn", 120 * US)
            yield from gil.release(t)
            yield from t.synchronize(process.null)

    sim.thread(process, busy, name="metrics")
    sim.thread(process, main, start=1 * MS)


@register(
    "lock_wait",
    root="data_loading",
    findings=("data_loading",),
    forbidden=("off_cpu", "blocked", "uncovered"),
    latency=WAKING_UP,
)
def preempted_worker(sim: Simulation) -> None:
    """The worker shares its core with a greedy process: it is out of turn, the main thread has a core of its own.

    core 1  [worker][ greedy ][worker][ greedy ][worker] (sem_post)
    T       [sem_wait                                       ][step]
    """
    process, neighbour, batches = sim.process(), sim.process(gpus=[]), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.compute(6 * MS, "jpeg_idct_islow")
            yield from t.put(batches, "sem_post")

    worker = sim.thread(process, load, name="pt_data_worker", loads="name")
    sim.thread(neighbour, lambda t: t.compute(STEPS * 6 * MS, "spin"), name="greedy", share=worker)
    sim.thread(process, steps_after(batches, "sem_wait"))


@register(
    "sleep", root="host_compute", findings=("host_compute",), forbidden=(*NEVER_HERE, "io_wait"), latency=WAKING_UP
)
def joins(sim: Simulation) -> None:
    """Each step ends with threads and processes that compute: pthread_join, Thread.join, and the exit of a process.

    thread   [== computes ==]
    T        [pthread_join     ][step][Thread.join: sem_wait ][step][waitpid ........][step]
    process                                                         [== computes ==]
    """
    process, children = sim.process(), [sim.process(gpus=[], name="/usr/bin/gzip") for _ in range(3)]

    def helper(t: Thread) -> Body:
        yield from t.compute(6 * MS, "compress")

    def main(t: Thread) -> Body:
        yield from step(t)
        for child in children:
            yield from t.join(sim.thread(process, helper, name="helper", start=sim.clock.now))
            yield from step(t)
            yield from t.join(sim.thread(process, helper, name="Thread-2", start=sim.clock.now), "sem_wait")
            yield from step(t)
            yield from t.wait_for_exit(sim.thread(child, helper, name="gzip", start=sim.clock.now))
            yield from step(t)

    sim.thread(process, main)


@register("sleep", root="host_compute", findings=("host_compute",), forbidden=NEVER_HERE, latency=WAKING_UP)
def joins_threads(sim: Simulation) -> None:
    """Each step starts threads of different lengths and joins them: no thread ends more than one wait.

    threads  [== computes ==][ends]
             [== computes ========][ends]
    T        [pthread_join        ][pthread_join][step]
    """
    process = sim.process()

    def helper(ns: int) -> Callable[[Thread], Body]:
        return lambda t: t.compute(ns, "compress")

    def main(t: Thread) -> Body:
        yield from step(t)
        for number in range(STEPS):
            lengths = [(3 + (number + each) % 3) * MS for each in range(3)]
            helpers = [sim.thread(process, helper(ns), name="helper", start=sim.clock.now) for ns in lengths]
            for one in helpers:
                yield from t.join(one)
            yield from step(t)

    sim.thread(process, main)


@register("lock_wait", root="host_compute", findings=("host_compute",), forbidden=NEVER_HERE, latency=WAKING_UP)
def joins_python_threads(sim: Simulation) -> None:
    """The same with Python's Thread.join, which waits for a lock, while a thread of another kind runs all the time.

    spinning  [== computes ===========================
    thread    [== computes ==][ends]
    T         [sem_wait            ][step]
    """
    process = sim.process()

    def main(t: Thread) -> Body:
        yield from step(t)
        for number in range(STEPS):
            ns = (3 + number % 3) * MS
            one = sim.thread(process, lambda each, ns=ns: each.compute(ns, "compress"), start=sim.clock.now)
            yield from t.join(one, "sem_wait")
            yield from step(t)

    sim.thread(process, main)
    sim.thread(process, lambda t: t.compute(STEPS * 6 * MS, "poll_progress"), name="progress")


@register("lock_wait", root="host_compute", findings=("host_compute",), forbidden=NEVER_HERE, latency=WAKING_UP)
def posts_without_rows(sim: Simulation) -> None:
    """Three helpers never leave their cores and post semaphores, which leaves no row: each may have ended a wait, and
    each computed until then.

    helper  [== computes ==](sem_post)[== computes ==](sem_post)
    helper  [== computes ======](sem_post)[== computes ======](sem_post)
    T       [sem_wait          ][step]
    """
    process, pieces = sim.process(), sim.channel()

    def helper(ns: int) -> Callable[[Thread], Body]:
        def work(t: Thread) -> Body:
            for _ in range(STEPS):
                yield from t.compute(ns, "decode")
                yield from t.put(pieces, "sem_post")

        return work

    def main(t: Thread) -> Body:
        for _ in range(3 * STEPS):
            yield from t.get(pieces, "sem_wait")
            yield from step(t)

    for number in range(3):
        sim.thread(process, helper((9 + number) * MS), name=f"helper {number}")
    sim.thread(process, main)


@register(
    "blocked",
    root="blocked",
    forbidden=("off_cpu",),
    latency=WAKING_UP,
    not_yet="off an idle core is called preempted where OS calls are traced",
)
def get_with_timeout(sim: Simulation) -> None:
    """Python's waits with a time limit leave no row: the thread is off its core, and the core stands idle.

    worker  [pread64 .........]  (sem_post)
    T       (sem_clockwait         )[step]
    """
    process, batches = sim.process(), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.put(batches, "sem_post")

    sim.thread(process, load, name="pt_data_worker", loads="name")
    sim.thread(process, steps_after(batches, "sem_clockwait"))
