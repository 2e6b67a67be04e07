"""Idle time that the host explains outside CUDA calls: locks, files, memory, sleep, scheduling, computing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.capture import CUDA_ONLY, EVERYTHING
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.calls import repeated
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


@register("lock_wait")
def lock_wait(sim: Simulation) -> None:
    """A mutex that another thread holds while it computes.

    other  [lock][=== computes ===][unlock]
    T         [pthread_mutex_lock .....][launch]
    gpu    [k]...............................[k]
    """
    process = sim.process()
    mutex = sim.mutex()

    def other(t: Thread) -> Body:
        for _ in range(30):
            yield from t.lock(mutex)
            yield from t.compute(2 * MS, "serialize")
            yield from t.unlock(mutex)
            yield from t.compute(600 * US)

    def main(t: Thread) -> Body:
        yield from t.compute(1 * MS)
        for _ in range(15):
            yield from t.lock(mutex)
            yield from t.launch("gemm", 100 * US)
            yield from t.unlock(mutex)
            yield from t.synchronize(process.null)

    sim.thread(process, other, name="logger")
    sim.thread(process, main)


@register("lock_wait")
def condition_wait(sim: Simulation) -> None:
    """A producer thread signals a condition variable for each batch.

    producer  [== computes ==][signal]
    T         [pthread_cond_wait     ][launch]
    """
    process = sim.process()
    batches = sim.channel()

    def producer(t: Thread) -> Body:
        for _ in range(12):
            yield from t.compute(1500 * US, "decode")
            yield from t.put(batches, "pthread_cond_signal")

    def main(t: Thread) -> Body:
        for _ in range(12):
            yield from t.get(batches, "pthread_cond_wait")
            yield from t.launch("gemm", 200 * US)

    sim.thread(process, producer, name="producer")
    sim.thread(process, main)


@register("io_wait")
def file_read(sim: Simulation) -> None:
    """The thread reads its batch from a file itself."""

    def middle(t: Thread) -> Body:
        yield from t.os_call("open64", 30 * US, "io_wait")
        yield from t.read_file(2 * MS)

    repeated(sim, 12, middle)


@register("io_wait")
def pipe_read(sim: Simulation) -> None:
    """The thread waits for another process at the end of a pipe."""
    trainer, loader = sim.process(), sim.process(gpus=[])
    pipe = sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(12):
            yield from t.compute(2 * MS, "decode_jpeg")
            yield from t.put(pipe)

    def train(t: Thread) -> Body:
        for _ in range(12):
            yield from t.get(pipe)
            yield from t.launch("gemm", 200 * US)

    sim.thread(loader, load, name="pt_data_worker", loads="name")
    sim.thread(trainer, train)


@register("os_memory")
def os_memory(sim: Simulation) -> None:
    """Mapping and unmapping memory between kernels: on the CPU, inside the kernel of the OS."""

    def middle(t: Thread) -> Body:
        yield from t.os_call("mmap64", 300 * US, "os_memory")
        yield from t.os_call("munmap", 700 * US, "os_memory")

    repeated(sim, 12, middle)


@register("sleep")
def sleep(sim: Simulation) -> None:
    """The thread sleeps; once it joins another thread instead."""
    process = sim.process()
    other = sim.thread(process, lambda t: t.compute(40 * MS), name="saver")

    def main(t: Thread) -> Body:
        for _ in range(10):
            yield from t.launch("gemm", 200 * US)
            yield from t.sleep(2 * MS)
        yield from t.join(other)
        yield from t.launch("gemm", 200 * US)

    sim.thread(process, main)


def _shared_core(sim: Simulation) -> None:
    process = sim.process()

    def main(t: Thread) -> Body:
        for _ in range(6):
            yield from t.launch("gemm", 200 * US)
            yield from t.compute(8 * MS)

    first = sim.thread(process, main)
    sim.thread(process, lambda t: t.compute(60 * MS, "spin"), name="greedy", share=first)


@register("off_cpu")
def preempted(sim: Simulation) -> None:
    """Two threads on one core: the launching thread waits for its turn.

    core   [ T ][ greedy ][ T ][ greedy ][ T ]
    """
    _shared_core(sim)


@register("off_cpu", capture=EVERYTHING.but(osrt=False))
def preempted_without_os_calls(sim: Simulation) -> None:
    """The same with no OS calls traced: the other thread held the core all the time."""
    _shared_core(sim)


@register("blocked", capture=EVERYTHING.but(osrt=False, idle_loop=True))
def blocked(sim: Simulation) -> None:
    """Off the CPU in something untraced; the core stood idle, so nobody took it away.

    core   [ T ]..... idle loop .....[ T ]
    """

    def middle(t: Thread) -> Body:
        yield from t.stuck(1 * MS)
        yield from t.read_file(1 * MS)

    repeated(sim, 12, middle)


@register("host_compute")
def host_compute(sim: Simulation) -> None:
    """Python between the kernels."""

    def middle(t: Thread) -> Body:
        yield from t.compute(1 * MS)
        yield from t.compute(300 * US, "gc_collect_main")

    repeated(sim, 15, middle)


@register("host_compute", capture=EVERYTHING.but(sched=False, osrt=False))
def host_compute_by_samples(sim: Simulation) -> None:
    """The same, known by CPU samples alone."""
    host_compute(sim)


@register("uncovered", capture=CUDA_ONLY)
def uncovered(sim: Simulation) -> None:
    """NVTX ranges cover the thread all the time and prove nothing.

    nvtx  [step 0            ][step 1            ]
    gpu   [k]...............[k]................[k]
    """

    def middle(t: Thread) -> Body:
        t.push("step")
        yield from t.compute(1 * MS)
        yield from t.read_file(1 * MS)
        t.pop()

    repeated(sim, 12, middle)
