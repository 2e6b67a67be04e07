"""Who did not end the wait: neighbours that signal, write or compute at the same moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import WAKING_UP, register
from tests.simulator.scenarios.waits import NEVER_HERE, STEPS, step, steps_after

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


@register(
    "lock_wait", root="io_wait", findings=("io_wait",), forbidden=(*NEVER_HERE, "host_compute"), latency=WAKING_UP
)
def misleading_watchdog(sim: Simulation) -> None:
    """A watchdog polls all the time and signals a logger just when the reader signals the main thread.

    reader    [pread64 ............][flag][signal T]
    watchdog  [== polls =================][signal logger][== polls
    logger    [pthread_cond_wait                        ]
    T         [pthread_cond_wait                   ][step]
    """
    process, batches, alive = sim.process(), sim.channel(), sim.channel()
    beats = [0]

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            beats[0] += 1
            yield from t.compute(25 * US)
            yield from t.put(batches, "pthread_cond_signal")
        beats[0] = -1

    def watch(t: Thread) -> Body:
        seen = 0
        while beats[0] >= 0:
            yield from t.compute(20 * US, "poll_progress")
            if beats[0] > seen:
                seen = beats[0]
                yield from t.put(alive, "pthread_cond_signal")

    def log(t: Thread) -> Body:
        for _ in range(STEPS - 1):
            yield from t.get(alive, "pthread_cond_wait")
            yield from t.compute(100 * US, "format")

    sim.thread(process, read, name="reader")
    sim.thread(process, watch, name="watchdog")
    sim.thread(process, log, name="logger")
    sim.thread(process, steps_after(batches, "pthread_cond_wait"))


@register(
    "lock_wait", root="io_wait", findings=("io_wait",), forbidden=(*NEVER_HERE, "host_compute"), latency=WAKING_UP
)
def one_of_two_workers(sim: Simulation) -> None:
    """Two workers with the same rhythm: one reads and wakes the main thread, one computes and wakes another thread.

    reader    [pread64 ............] (sem_post: T)
    computer  [== computes =======]  (sem_post: writer)
    writer    [sem_wait                ][computes]
    T         [sem_wait                 ][step]
    """
    process, batches, results = sim.process(), sim.channel(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.put(batches, "sem_post")

    def evaluate(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.compute(4 * MS, "evaluate")
            yield from t.put(results, "sem_post")

    def write(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(results, "sem_wait")
            yield from t.compute(150 * US, "format")

    sim.thread(process, read, name="reader")
    sim.thread(process, evaluate, name="computer")
    sim.thread(process, write, name="writer")
    sim.thread(process, steps_after(batches, "sem_wait"))


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def broadcast(sim: Simulation) -> None:
    """One broadcast wakes the main thread and three others, which compute from then on.

    reader  [pread64 .......][broadcast]
    others  [cond_wait                ][== computes ==]
    T       [cond_wait                  ][step]
    """
    process, batches = sim.process(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.broadcast(batches)

    def other(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(batches, "pthread_cond_wait")
            yield from t.compute(1500 * US, "statistics")

    sim.thread(process, read, name="reader")
    for number in range(3):
        sim.thread(process, other, name=f"other {number}")
    sim.thread(process, steps_after(batches, "pthread_cond_wait"))


@register(
    "lock_wait", root="io_wait", findings=("io_wait",), forbidden=(*NEVER_HERE, "host_compute"), latency=WAKING_UP
)
def chatty_neighbour(sim: Simulation) -> None:
    """A neighbour signals a condition variable all the time; what ends a semaphore's wait is a post, which has no row.

    chatty    [compute][signal][compute][signal][compute][signal]
    listener  [cond_wait      ][cond_wait      ][cond_wait
    reader    [pread64 ..................]  (sem_post)
    T         [sem_wait                         ][step]
    """
    process, batches, news = sim.process(), sim.channel(), sim.channel()
    done = [False]

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.put(batches, "sem_post")
        done[0] = True

    def chatter(t: Thread) -> Body:
        while not done[0]:
            yield from t.compute(70 * US, "progress_bar")
            yield from t.put(news, "pthread_cond_signal")
        yield from t.put(news, "pthread_cond_signal")

    def listen(t: Thread) -> Body:
        while not done[0]:
            yield from t.get(news, "pthread_cond_wait")

    sim.thread(process, read, name="reader")
    sim.thread(process, chatter, name="chatty")
    sim.thread(process, listen, name="listener")
    sim.thread(process, steps_after(batches, "sem_wait"))


@register("io_wait", root="io_wait", findings=("io_wait",), forbidden=(*NEVER_HERE, "host_compute"), latency=WAKING_UP)
def own_read(sim: Simulation) -> None:
    """The main thread reads a file itself; a worker beside it computes and writes to another process all the time.

    worker  [computes][write][computes][write][computes][write]
    other   [read           ][read           ][read           ]
    T       [pread64 ..............][step][pread64 ............
    """
    process, collector, results = sim.process(), sim.process(gpus=[]), sim.channel()
    done = [False]

    def evaluate(t: Thread) -> Body:
        while not done[0]:
            yield from t.compute(180 * US, "evaluate")
            yield from t.put(results)
        yield from t.put(results)

    def collect(t: Thread) -> Body:
        while not done[0]:
            yield from t.get(results)

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from step(t)
        done[0] = True

    sim.thread(process, evaluate, name="worker")
    sim.thread(collector, collect, name="collector")
    sim.thread(process, main)


@register(
    "lock_wait", root="lock_wait", findings=("lock_wait",), forbidden=(*NEVER_HERE, "host_compute"), latency=WAKING_UP
)
def limit_reached(sim: Simulation) -> None:
    """The main thread waits with a limit, and nobody signals: each wait ends by itself after 3 ms.

    other  [== computes =======================================
    T      [pthread_cond_timedwait 3 ms][step][pthread_cond_timedwait 3 ms][step]
    """
    process = sim.process()

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.os_call("pthread_cond_timedwait", 3 * MS, "lock_wait", blocked=True)
            yield from step(t)

    sim.thread(process, lambda t: t.compute(60 * MS, "simulate"), name="other")
    sim.thread(process, main)


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=NEVER_HERE, latency=WAKING_UP)
def long_wake_call(sim: Simulation) -> None:
    """The waker's call goes on for long after the wait that it ended: when it began is what counts.

    reader  [pread64 .......][signal ..................][pread64
    T       [pthread_cond_wait    ][step]
    """
    process, batches = sim.process(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.put(batches, "pthread_cond_signal", lasting=400 * US)

    sim.thread(process, read, name="reader")
    sim.thread(process, steps_after(batches, "pthread_cond_wait"))


@register("lock_wait", root="sleep", findings=("sleep",), forbidden=NEVER_HERE, latency=WAKING_UP)
def rate_limited_worker(sim: Simulation) -> None:
    """The worker sleeps between its pieces of work, as a rate limit has it.

    worker  [clock_nanosleep .....][computes]  (sem_post)
    T       [sem_wait                             ][step]
    """
    process, batches = sim.process(), sim.channel()

    def work(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.sleep(3 * MS)
            yield from t.compute(400 * US, "request")
            yield from t.put(batches, "sem_post")

    sim.thread(process, work, name="client")
    sim.thread(process, steps_after(batches, "sem_wait"))


MANY = 119
"""Waits of one kind: enough for a rate."""


@register("lock_wait", root="lock_wait", findings=("lock_wait",), forbidden=("io_wait", "host_compute", "sleep"))
def passer_by(sim: Simulation) -> None:
    """What ends the waits leaves no row; a neighbour that writes a log now and then runs at the end of every tenth.

    logger  [clock_nanosleep .......][log][clock_nanosleep .......][log]
    T       [sem_wait    ][step][sem_wait    ][step][sem_wait   ][step]
    """
    process = sim.process()

    def log(t: Thread) -> Body:
        for _ in range(80):
            yield from t.sleep(5_100 * US)
            yield from t.compute(430 * US, "format")

    def main(t: Thread) -> Body:
        for _ in range(MANY):
            yield from t.os_call("sem_wait", 3 * MS, "lock_wait", blocked=True)
            yield from step(t)

    sim.thread(process, log, name="logger")
    sim.thread(process, main)


@register("lock_wait", root="io_wait", findings=("io_wait",), forbidden=("host_compute",), latency=WAKING_UP)
def nearly_always_the_same(sim: Simulation) -> None:
    """The reader ends 110 of 119 waits, by posts that have no row; what ends the others leaves none either.

    reader  [pread64 ......]  (sem_post)         [pread64 ......]  (sem_post)
    logger     [log]                [log]                [log]
    T       [sem_wait        ][step][sem_wait][step][sem_wait    ][step]
    """
    process, batches = sim.process(), sim.channel()

    def read(t: Thread) -> Body:
        for _ in range(110):
            yield from t.read_file(4 * MS, "pread64")
            yield from t.put(batches, "sem_post")

    def log(t: Thread) -> Body:
        for _ in range(90):
            yield from t.sleep(5_100 * US)
            yield from t.compute(430 * US, "format")

    def main(t: Thread) -> Body:
        for number in range(MANY):
            if number % 13 == 12:
                yield from t.os_call("sem_wait", 3 * MS, "lock_wait", blocked=True)
            else:
                yield from t.get(batches, "sem_wait")
            yield from step(t)

    sim.thread(process, read, name="reader")
    sim.thread(process, log, name="logger")
    sim.thread(process, main)
