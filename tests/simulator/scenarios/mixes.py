"""Mixes: several causes at once, other threads and processes that must not be blamed, traces with little in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.capture import CUDA_ONLY, EVERYTHING
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.calls import repeated
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.builder import TraceBuilder
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


@register("")
def overlapping_streams(sim: Simulation) -> None:
    """Three streams keep the device busy together; a sum over streams would not be the device."""

    def body(t: Thread) -> Body:
        streams = [t.process.stream() for _ in range(3)]
        for step in range(150):
            yield from t.launch("gemm", 90 * US, streams[step % 3])
        yield from t.synchronize()

    sim.thread(sim.process(), body)


@register("cuda_api", gpus=2)
def two_gpus_in_turn(sim: Simulation) -> None:
    """One thread feeds two GPUs: while it launches to one, the other waits for it.

    T      [l0][l0][l0][l1][l1][l1][l0]
    gpu 0    [k][k][k]............[k]
    """

    def body(t: Thread) -> Body:
        streams = [t.process.stream(0), t.process.stream(1)]
        for _ in range(12):
            for stream in streams:
                for _ in range(10):
                    yield from t.launch("tiny", 4 * US, stream, call=8 * US)

    sim.thread(sim.process(), body)


@register("host_compute")
def two_processes(sim: Simulation) -> None:
    """Two processes on one GPU with equal correlation ids: each gap belongs to the process whose kernel ends it."""

    def slow(t: Thread) -> Body:
        for _ in range(20):
            yield from t.launch("slow", 200 * US)
            yield from t.compute(1500 * US)

    def waiting(t: Thread) -> Body:
        for _ in range(14):
            yield from t.launch("waiting", 150 * US)
            yield from t.read_file(2300 * US)

    sim.thread(sim.process(), slow)
    sim.thread(sim.process(), waiting)


@register("host_compute", gpus=2)
def renumbered_devices(sim: Simulation) -> None:
    """Each process sees one GPU and calls it device 0: two GPUs, not one."""

    def rank(pause: int) -> object:
        def body(t: Thread) -> Body:
            for _ in range(20):
                yield from t.launch("gemm", 300 * US)
                yield from t.compute(pause)

        return body

    sim.thread(sim.process(gpus=[0]), rank(500 * US))  # type: ignore[arg-type]
    sim.thread(sim.process(gpus=[1]), rank(800 * US))  # type: ignore[arg-type]


@register("launch_call")
def twin_rows(sim: Simulation) -> None:
    """Runtime and driver rows with one correlation id for each launch: the outer one is the launch."""

    def body(t: Thread) -> Body:
        for _ in range(60):
            yield from t.launch("tiny", 5 * US, call=25 * US, twin=True)

    sim.thread(sim.process(), body)


@register("cuda_api")
def nested_libraries(sim: Simulation) -> None:
    """cuBLAS ranges around the launches: they hide nothing, and take what is left of them.

    T    [cublasGemmEx: heuristics ...[launch]..]
    gpu  [k].............................[k]
    """

    def body(t: Thread) -> Body:
        for _ in range(30):
            yield from t.library("cublasGemmEx", 90 * US, [t.launch("gemm", 50 * US)], 5 * US)
            yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("host_compute")
def drained_by_sync(sim: Simulation) -> None:
    """A burst is queued, a synchronization drains it, and only then the host prepares the next one.

    T    [l][l][l][l][sync ......][computes][l][l]
    gpu    [ k ][ k ][ k ][ k ]............[ k ]
    """

    def body(t: Thread) -> Body:
        for _ in range(10):
            for _ in range(20):
                yield from t.launch("gemm", 50 * US)
            yield from t.synchronize(t.process.null)
            yield from t.compute(600 * US)

    sim.thread(sim.process(), body)


@register("cuda_api")
def early_starts(sim: Simulation) -> None:
    """Kernels start, and even end, before their launch calls return.

    T    [launch ..............][launch ..............]
    gpu        [k]                    [k]
    """

    def body(t: Thread) -> Body:
        for _ in range(50):
            yield from t.launch("gemm", 10 * US, call=60 * US, enqueue=0.2)

    sim.thread(sim.process(), body)


@register("host_compute")
def threads_in_turn(sim: Simulation) -> None:
    """Forward by one thread, backward by another; each waits for the other's signal."""
    process = sim.process()
    forward_done, backward_done = sim.channel(), sim.channel()

    def main(t: Thread) -> Body:
        for _ in range(12):
            yield from t.compute(700 * US)
            for _ in range(4):
                yield from t.launch("forward", 80 * US)
            yield from t.compute(900 * US, "build_loss")
            yield from t.put(forward_done, "pthread_cond_signal")
            yield from t.get(backward_done, "pthread_cond_wait")

    def backward(t: Thread) -> Body:
        for _ in range(12):
            yield from t.get(forward_done, "pthread_cond_wait")
            yield from t.compute(900 * US)
            for _ in range(4):
                yield from t.launch("backward", 80 * US)
            yield from t.put(backward_done, "pthread_cond_signal")

    sim.thread(process, backward, name="pt_autograd_0")
    sim.thread(process, main)


@register("host_compute")
def watchdog(sim: Simulation) -> None:
    """A watchdog polls cudaEventQuery all the time; the launching thread computes."""
    process = sim.process()
    side = process.stream()

    def poll(t: Thread) -> Body:
        event = t.event()
        yield from t.record(event, side)
        for _ in range(250):
            yield from t.query(event)
            yield from t.query(event)
            yield from t.sleep(90 * US, "usleep")

    def main(t: Thread) -> Body:
        for _ in range(12):
            yield from t.launch("gemm", 300 * US)
            yield from t.synchronize(process.null)
            yield from t.compute(1200 * US)

    sim.thread(process, poll, name="pt_nccl_watchdg")
    sim.thread(process, main)


@register("host_compute")
def busy_workers(sim: Simulation) -> None:
    """Worker threads read files and take locks while the launching thread computes."""
    process = sim.process()
    mutex = sim.mutex()

    def worker(t: Thread) -> Body:
        for _ in range(12):
            yield from t.read_file(900 * US)
            yield from t.lock(mutex)
            yield from t.os_call("mmap64", 200 * US, "os_memory")
            yield from t.unlock(mutex)

    for number in range(3):
        sim.thread(process, worker, name=f"worker {number}")

    def main(t: Thread) -> Body:
        for _ in range(12):
            yield from t.launch("gemm", 200 * US)
            yield from t.compute(1 * MS)

    sim.thread(process, main)


@register("host_compute", gpus=2)
def busy_neighbour(sim: Simulation) -> None:
    """Another process allocates and synchronizes on its own GPU meanwhile."""

    def neighbour(t: Thread) -> Body:
        for _ in range(12):
            yield from t.api("cudaMalloc", 500 * US, "memory_allocation")
            yield from t.launch("other", 400 * US)
            yield from t.synchronize()

    def main(t: Thread) -> Body:
        for _ in range(12):
            yield from t.launch("gemm", 200 * US)
            yield from t.compute(1 * MS)

    sim.thread(sim.process(gpus=[0]), main)
    sim.thread(sim.process(gpus=[1]), neighbour)


@register("io_wait")
def starved_training(sim: Simulation) -> None:
    """A worker process reads and decodes batches; training waits for each at the end of a pipe.

    worker  [read][decode][put] [read][decode][put]
    T       [get .............][copy][l][l][l][sync][get ...
    gpu     ...................[copy][k][k][k].............
    """
    trainer, loader = sim.process(), sim.process(gpus=[])
    batches = sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(12):
            yield from t.read_file(4 * MS)
            yield from t.compute(2 * MS, "decode_jpeg")
            yield from t.put(batches)

    def train(t: Thread) -> Body:
        for step in range(12):
            t.push(f"step {step}")
            yield from t.get(batches)
            yield from t.copy("HtoD", 8 << 20, 700 * US)
            for _ in range(10):
                yield from t.compute(15 * US)
                yield from t.launch("ampere_sgemm_128x64_tn", 120 * US)
            yield from t.synchronize(t.process.null)
            t.pop()

    sim.thread(loader, load, name="pt_data_worker", loads="name")
    sim.thread(trainer, train)


@register("host_compute", gpus=2)
def exposed_communication(sim: Simulation) -> None:
    """Two ranks, one slower: the faster one's collective kernel waits for it, exposed.

    gpu 0  [compute][nccl ............]
    gpu 1  [compute ........][nccl    ]
    """
    together = [sim.collective(2) for _ in range(12)]

    def rank(work: int) -> object:
        def body(t: Thread) -> Body:
            compute, comm = t.process.null, t.process.stream()
            for collective in together:
                event = t.event()
                yield from t.launch("gemm", work, compute)
                yield from t.record(event, compute)
                yield from t.wait_event(comm, event)
                yield from t.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 200 * US, comm, collective=collective)
                yield from t.synchronize(comm)
                yield from t.compute(300 * US)

        return body

    sim.thread(sim.process(gpus=[0]), rank(400 * US))  # type: ignore[arg-type]
    sim.thread(sim.process(gpus=[1]), rank(900 * US))  # type: ignore[arg-type]


def _malformed(trace: TraceBuilder) -> None:
    trace.kernel(5 * MS, 5 * MS, name="zero_length", correlation=90_001)
    trace.kernel(0, 0, name="never_ran", correlation=90_002)
    trace.kernel(6 * MS, 4 * MS, name="backwards", correlation=90_003)
    trace.kernel(4 * MS, 1 << 60, name="endless", correlation=90_004)
    trace.memcpy(-50, 7 * MS, correlation=90_005)


@register("host_compute")
def malformed_rows(sim: Simulation) -> None:
    """Zero-length, backward, endless and negative rows among good ones."""

    def middle(t: Thread) -> Body:
        yield from t.compute(800 * US)

    repeated(sim, 12, middle)
    sim.noise.append(_malformed)


@register("launch_unknown", capture=EVERYTHING.but(api=False))
def device_rows_only(sim: Simulation) -> None:
    """No API rows at all: who launched what is unknown, only the device's own turn-around is plain."""

    def body(t: Thread) -> Body:
        for _ in range(10):
            for _ in range(10):
                yield from t.launch("gemm", 60 * US)
            yield from t.synchronize(t.process.null)
            yield from t.compute(900 * US)

    sim.thread(sim.process(), body)


@register("uncovered", capture=CUDA_ONLY.but(nvtx=False))
def cuda_only(sim: Simulation) -> None:
    """A training step seen by CUDA rows alone."""
    starved_training(sim)


@register("blocked", capture=EVERYTHING.but(osrt=False))
def starved_without_os_calls(sim: Simulation) -> None:
    """The starved training step without OS calls: the thread is off the CPU, nobody knows why."""
    starved_training(sim)


@register("host_compute")
def many_causes(sim: Simulation) -> None:
    """One thread, a bit of everything in turn."""
    process = sim.process()
    mutex = sim.mutex()

    def other(t: Thread) -> Body:
        for _ in range(40):
            yield from t.lock(mutex)
            yield from t.compute(500 * US)
            yield from t.unlock(mutex)
            yield from t.compute(1100 * US)

    def main(t: Thread) -> Body:
        for step in range(12):
            yield from t.compute(700 * US)
            yield from t.launch("gemm", 100 * US)
            yield from t.lock(mutex)
            yield from t.launch("gemm", 100 * US)
            yield from t.unlock(mutex)
            yield from t.blocking_copy("DtoH", 4, 2 * US, staging=40 * US)
            yield from t.read_file(400 * US)
            yield from t.launch("late", 100 * US, overhead=[("module_load", 2 * MS)] if step == 0 else [])
            yield from t.api("cudaMalloc", 250 * US, "memory_allocation")
            yield from t.fill(1 << 20, 20 * US)
            yield from t.sleep(300 * US, "usleep")
            for _ in range(5):
                yield from t.launch("gemm", 100 * US)
            yield from t.synchronize(process.null)

    sim.thread(process, other, name="logger")
    sim.thread(process, main)
