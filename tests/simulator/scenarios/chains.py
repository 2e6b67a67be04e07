"""Who ended the wait is not the first that comes to mind: chains of threads and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.interpreter import Gil
from tests.simulator.scenarios.registry import WAKING_UP, register
from tests.simulator.scenarios.waits import NEVER_HERE, STEPS, step, steps_after

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def two_hops(sim: Simulation) -> None:
    """The main thread waits for A, which waits for B, which reads.

    B  [pread64 ............]  (sem_post)
    A  [sem_wait                 ][computes]  (sem_post)
    T  [sem_wait                                 ][step]
    """
    process, pieces, batches = sim.process(), sim.channel(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(5 * MS, "pread64")
            yield from t.put(pieces, "sem_post")

    def assemble(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(pieces, "sem_wait")
            yield from t.compute(400 * US)
            yield from t.put(batches, "sem_post")

    sim.thread(process, read, name="B")
    sim.thread(process, assemble, name="A")
    sim.thread(process, steps_after(batches, "sem_wait"))


@register("lock_wait", root="data_loading", findings=("data_loading",), forbidden=NEVER_HERE, latency=WAKING_UP)
def worker_and_pin_thread(sim: Simulation) -> None:
    """A loader with pinned memory: a worker process reads and decodes, a thread of the trainer copies and hands over.

    worker  [read ......][decodes][write]
    pin     [read                      ][computes]  (sem_post)
    T       [sem_wait                                 ][step]
    """
    trainer, worker = sim.process(), sim.process(gpus=[])
    pieces, batches = sim.channel(), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(3 * MS)
            yield from t.compute(2 * MS, "jpeg_idct_islow")
            yield from t.put(pieces)

    def pin(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(pieces)
            yield from t.compute(250 * US, "memcpy")
            yield from t.put(batches, "sem_post")

    sim.thread(worker, load, name="pt_data_worker", loads="name")
    sim.thread(trainer, pin, name="pt_data_pin", loads="name")
    sim.thread(trainer, steps_after(batches, "sem_wait"))


@register("io_wait", root="data_loading", findings=("data_loading",), forbidden=NEVER_HERE, latency=WAKING_UP)
def queue_between_processes(sim: Simulation) -> None:
    """A queue of multiprocessing: the worker's main thread posts, its feeder thread, of the same name, writes.

    worker  [read ......][decodes]  (sem_post)
    feeder  [sem_wait                 ][pickles][write]
    T       [read                                    ][step]
    """
    trainer, worker = sim.process(), sim.process(gpus=[])
    pieces, batches = sim.channel(), sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(3 * MS)
            yield from t.compute(1500 * US, "jpeg_idct_islow")
            yield from t.put(pieces, "sem_post")

    def feed(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(pieces, "sem_wait")
            yield from t.compute(120 * US, "pickle")
            yield from t.put(batches)

    sim.thread(worker, load, name="pt_data_worker", loads="name")
    sim.thread(worker, feed, name="pt_data_worker", loads="name")
    sim.thread(trainer, steps_after(batches, "read"))


@register("io_wait", root="data_loading", findings=("data_loading",), forbidden=("off_cpu",), latency=WAKING_UP)
def untraced_worker(sim: Simulation) -> None:
    """The worker was forked without the profiler's library: no OS calls of it, only scheduling and samples.

    worker  (off the CPU .......)[decodes ==]  (write)
    T       [read                               ][step]
    """
    trainer, worker, batches = sim.process(), sim.process(gpus=[]), sim.channel()
    worker.os_calls = False

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(2 * MS)
            yield from t.compute(3 * MS, "jpeg_idct_islow")
            yield from t.put(batches)

    sim.thread(worker, load, name="pt_data_worker", loads="name")
    sim.thread(trainer, steps_after(batches, "read"))


@register(
    "lock_wait", root="host_compute", findings=("host_compute",), forbidden=(*NEVER_HERE, "io_wait"), latency=WAKING_UP
)
def last_of_a_pool(sim: Simulation) -> None:
    """Four threads compute a part each, one of them longer; the last to be done signals the main thread.

    0..2   [== computes ==]
    3      [== computes ==========][signal]
    T      [pthread_cond_wait             ][step]
    """
    process, done = sim.process(), sim.channel()
    starts = [sim.channel() for _ in range(4)]
    left = [0]

    def part(number: int) -> Body:
        def body(t: Thread) -> Body:
            for _ in range(STEPS):
                yield from t.get(starts[number], "sem_wait")
                yield from t.compute((2 if number < 3 else 5) * MS, "resize")
                left[0] -= 1
                if left[0] == 0:
                    yield from t.put(done, "pthread_cond_signal")

        return body  # type: ignore[return-value]

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            left[0] = 4
            for start in starts:
                yield from t.put(start, "sem_post")
            yield from t.get(done, "pthread_cond_wait")
            yield from step(t)

    for number in range(4):
        sim.thread(process, part(number), name=f"pool-{number}")  # type: ignore[arg-type]
    sim.thread(process, main)


@register(
    "lock_wait", root="host_compute", findings=("host_compute",), forbidden=(*NEVER_HERE, "io_wait"), latency=WAKING_UP
)
def lock_convoy(sim: Simulation) -> None:
    """Three threads take turns with a lock and compute under it; main comes last each time.

    A  [computes under it][wait .............................
    B  [wait             ][computes under it][wait ..........
    T  [wait                                ][launch][step]
    """
    process, mutex = sim.process(), sim.mutex()

    def other(t: Thread) -> Body:
        for _ in range(STEPS + 6):
            yield from t.lock(mutex)
            yield from t.compute(1800 * US, "update")
            yield from t.unlock(mutex)
            yield from t.compute(30 * US)

    def main(t: Thread) -> Body:
        yield from t.compute(300 * US)
        for _ in range(STEPS):
            yield from t.lock(mutex)
            yield from t.compute(20 * US)
            yield from t.unlock(mutex)
            yield from step(t)

    sim.thread(process, other, name="A")
    sim.thread(process, other, name="B")
    sim.thread(process, main)


@register("lock_wait", root="data_loading", findings=("data_loading",), forbidden=NEVER_HERE, latency=WAKING_UP)
def loader_without_the_interpreter(sim: Simulation) -> None:
    """The loading thread is late because a busy thread holds the interpreter's lock.

    busy    [== computes ===========|signal]....[== computes ==
    loader  [timedwait][timedwait ...][decodes]  (sem_post)
    T       [sem_wait                               ][step]
    """
    process, batches, gil = sim.process(), sim.channel(), Gil()

    def busy(t: Thread) -> Body:
        yield from gil.acquire(t)
        yield from gil.compute(t, STEPS * 8 * MS, "tokenize")
        yield from gil.release(t)

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(400 * US, "pread64")
            yield from gil.acquire(t)
            yield from t.compute(300 * US)
            yield from gil.release(t)
            yield from t.put(batches, "sem_post")

    sim.thread(process, busy, name="metrics")
    sim.thread(process, load, name="pt_data_worker", loads="name", start=200 * US)
    sim.thread(process, steps_after(batches, "sem_wait"))


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def four_hops(sim: Simulation) -> None:
    """A pipeline of three stages behind the reader: as far as anybody follows.

    reader   [pread64 .......]  (sem_post)
    stage 0  [sem_wait            ][computes]  (sem_post)
    stage 1  [sem_wait                         ][computes]  (sem_post)
    stage 2  [sem_wait                                      ][computes]  (sem_post)
    T        [sem_wait                                                      ][step]
    """
    process = sim.process()
    pipes = [sim.channel() for _ in range(4)]

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(8 * MS, "pread64")
            yield from t.put(pipes[0], "sem_post")

    def stage(number: int) -> object:
        def body(t: Thread) -> Body:
            for _ in range(STEPS):
                yield from t.get(pipes[number], "sem_wait")
                yield from t.compute(250 * US, "transform")
                yield from t.put(pipes[number + 1], "sem_post")

        return body

    sim.thread(process, read, name="reader")
    for number in range(3):
        sim.thread(process, stage(number), name=f"stage {number}")  # type: ignore[arg-type]
    sim.thread(process, steps_after(pipes[3], "sem_wait"))
