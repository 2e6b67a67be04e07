"""Idle time that CUDA calls of the launching thread explain: launches, synchronization, copies, set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.capture import EVERYTHING
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation


def repeated(sim: Simulation, count: int, middle: Body | object, kernel: int = 200 * US) -> None:
    """One thread: `middle(t)`, a kernel and a wait for it, `count` times."""

    def body(t: Thread) -> Body:
        yield from t.api("cudaSetDevice", 2 * US)
        yield from t.compute(1 * MS)
        for _ in range(count):
            yield from middle(t)  # type: ignore[operator]
            yield from t.launch("gemm", kernel)
            yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("launch_call")
def launch_call(sim: Simulation) -> None:
    """Tiny kernels, each launch takes longer than its kernel.

    T    [launch      ][launch      ][launch      ]
    gpu             [k]            [k]            [k]
    """

    def body(t: Thread) -> Body:
        for _ in range(60):
            yield from t.launch("tiny", 10 * US, call=40 * US)

    sim.thread(sim.process(), body)


@register("launch_latency")
def launch_latency(sim: Simulation) -> None:
    """A device that takes 15 µs from the enqueue to the start.

    T    [launch][sync ......][launch][sync
    gpu         ......[k]            ......[k]
    """
    sim.gpus[0].latency = 15 * US

    def body(t: Thread) -> Body:
        for _ in range(60):
            yield from t.launch("tiny", 30 * US, call=2 * US)
            yield from t.synchronize(t.process.null, cost=1 * US)

    sim.thread(sim.process(), body)


@register("sync")
def sync_tail(sim: Simulation) -> None:
    """A blocking synchronization returns late: the thread slept in poll, was woken, and the call has more to do.

    gpu  [k]..............[k]
    T    ync        ][launch]
    """

    def body(t: Thread) -> Body:
        for _ in range(40):
            yield from t.launch("gemm", 300 * US)
            yield from t.synchronize(t.process.null, blocking=True, cost=120 * US)

    sim.thread(sim.process(), body)


@register("sync", gpus=2)
def sync_other_device(sim: Simulation) -> None:
    """The thread waits for GPU 1 while GPU 0 has nothing to do.

    gpu 1 [======== long kernel ========]
    T     [cudaStreamSynchronize(gpu 1)  ][launch on gpu 0]
    gpu 0 [k]............................................[k]
    """

    def body(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        for _ in range(8):
            yield from t.launch("short", 50 * US, first)
            yield from t.launch("long", 3 * MS, second)
            yield from t.synchronize(second)

    sim.thread(sim.process(), body)


@register("sync", gpus=2)
def query_spin(sim: Simulation) -> None:
    """The same wait by hand: cudaEventQuery until it says ready.

    gpu 1 [======== kernel ========]
    T     [q][q][q][q][q][q][q][q][q][launch on gpu 0]
    """

    def body(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        event = t.event()
        for _ in range(4):
            yield from t.launch("short", 20 * US, first)
            yield from t.launch("long", 500 * US, second)
            yield from t.record(event, second)
            yield from t.spin_on(event)

    sim.thread(sim.process(), body)


@register("blocking_copy")
def pageable_copy(sim: Simulation) -> None:
    """A copy from pageable memory is staged by the calling thread before the device sees anything of it.

    T    [cudaMemcpy: staging......|.....]
    gpu                            [copy].[k]
    """

    def middle(t: Thread) -> Body:
        yield from t.blocking_copy("HtoD", 4 << 20, 300 * US, staging=700 * US)

    repeated(sim, 12, middle)


@register("blocking_copy")
def readback(sim: Simulation) -> None:
    """`.item()`: four bytes back to pageable memory by cudaMemcpyAsync, which blocks all the same.

    gpu  [k].......[c].......[k]
    T    [memcpyAsync ][launch]
    """

    def body(t: Thread) -> Body:
        for _ in range(60):
            yield from t.launch("loss", 60 * US)
            yield from t.synchronize(t.process.null)
            yield from t.blocking_copy("DtoH", 4, 1_500, staging=60 * US, asynchronous=True)

    sim.thread(sim.process(), body)


@register("memory_allocation")
def memory_allocation(sim: Simulation) -> None:
    """cudaMalloc with the driver's ioctl inside it, and cudaFree.

    gpu  [k]....................................[k]
    T      [cudaMalloc  (ioctl) ][cudaFree][launch]
    """

    def middle(t: Thread) -> Body:
        yield from t.api("cudaMalloc", 400 * US, "memory_allocation", ioctl=250 * US)
        yield from t.api("cudaFree", 150 * US, "memory_allocation")

    repeated(sim, 12, middle)


@register("context_init")
def context_init(sim: Simulation) -> None:
    """A second process makes its context on a GPU that the first one has used.

    process A  [k][k][k]
    process B     [cudaFree(0) ....................][k][k]
    """

    def first(t: Thread) -> Body:
        for _ in range(10):
            yield from t.launch("gemm", 200 * US)

    def second(t: Thread) -> Body:
        yield from t.compute(1 * MS)
        yield from t.api("cudaFree", 60 * MS, "context_init", ioctl=40 * MS)
        for _ in range(10):
            yield from t.launch("gemm", 200 * US)
        yield from t.synchronize()

    sim.thread(sim.process(), first)
    sim.thread(sim.process(), second)


@register("context_init", gpus=2)
def second_context(sim: Simulation) -> None:
    """The thread makes a context on the second GPU while the first one waits for its next kernel."""

    def middle(t: Thread) -> Body:
        yield from t.api("cuDevicePrimaryCtxRetain", 20 * MS, "context_init", ioctl=15 * MS)

    repeated(sim, 3, middle)


@register("queue_full", gpus=2)
def queue_full(sim: Simulation) -> None:
    """The host is ahead on GPU 0: its command buffer is full, the launch waits for room, and GPU 1 gets nothing.

    gpu 0 [k][k][k][k][k][k][k][k][k][k][k][k]
    T     [l][l][l][launch: full ][launch: full ][l on gpu 1]
    gpu 1 [k].................................................[k]
    """

    def body(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        first.limit = 16
        for _ in range(3):
            yield from t.launch("gemm", 100 * US, second)
            for _ in range(60):
                yield from t.launch("gemm", 200 * US, first, call=4 * US)

        yield from t.launch("gemm", 100 * US, second)

    sim.thread(sim.process(), body)


@register("module_load")
def library_load(sim: Simulation) -> None:
    """Explicit loading of code between kernels: cuLibraryLoadData."""

    def middle(t: Thread) -> Body:
        yield from t.api("cuLibraryLoadData", 3 * MS, "module_load")

    repeated(sim, 5, middle)


def _first_launches(sim: Simulation) -> None:
    def body(t: Thread) -> Body:
        yield from t.launch("first", 100 * US)
        for kernel in range(6):
            for instance in range(12):
                load = [("module_load", 4 * MS), ("lazy_load", 1 * MS)] if instance == 0 else []
                yield from t.launch(f"kernel_{kernel}", 30 * US, overhead=load)
            yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("module_load")
def lazy_loading(sim: Simulation) -> None:
    """The first launch of a kernel loads its code; overhead rows 6 and 7 say so.

    T    [launch: module loading .......]
    gpu  [k].............................[k]
    """
    _first_launches(sim)


@register("module_load", capture=EVERYTHING.but(overhead=False))
def first_launch(sim: Simulation) -> None:
    """The same with no overhead rows: the first launch of a name is far longer than the others."""
    _first_launches(sim)


@register("module_load", capture=EVERYTHING.but(schema="3.13.2"))
def loading_named_unknown(sim: Simulation) -> None:
    """The same in an older export: PROFILER_OVERHEAD rows named Unknown."""
    _first_launches(sim)


@register("graph_build")
def graph_build(sim: Simulation) -> None:
    """Capturing a stream: launches that make no operation, and the time between them, are one interval.

    T    [begin][l]..[l]..[l]..[end][instantiate][launch]
    gpu  [k]...........................................[k]
    """

    def middle(t: Thread) -> Body:
        yield from t.build_graph(20)

    repeated(sim, 10, middle)


@register("cuda_api")
def cuda_api(sim: Simulation) -> None:
    """Calls that neither launch nor wait: device properties asked for in the inner loop."""

    def middle(t: Thread) -> Body:
        yield from t.api("cudaGetDeviceProperties", 900 * US)
        yield from t.api("cudaFuncGetAttributes", 100 * US)

    repeated(sim, 12, middle)


@register("profiler_overhead")
def buffer_flush(sim: Simulation) -> None:
    """The profiler flushes its buffer inside a launch.

    T    [launch [flush .......]  ]
    gpu  [k]......................[k]
    """

    def body(t: Thread) -> Body:
        for step in range(80):
            flush = [("flush", 3 * MS)] if step % 20 == 10 else []
            yield from t.launch("gemm", 100 * US, overhead=flush)
            if step % 20 == 9:
                yield from t.synchronize(t.process.null)

    sim.thread(sim.process(), body)


@register("profiler_overhead")
def buffer_flush_by_worker(sim: Simulation) -> None:
    """The profiler's worker thread flushes while a launch waits for it; its other work is nobody's fault.

    worker [TLS allocation]        [flush ......]
    T      ... computes ... [launch .............]
    """
    process = sim.process()

    def worker(t: Thread) -> Body:
        for _ in range(200):
            with t.inside("overhead", "resource", ""):
                yield from t.compute(120 * US)
            yield from t.compute(5 * US)

    busy = sim.thread(process, worker, name="CUPTI worker thread")
    flusher = sim.thread(process, lambda t: t.compute(1 * US), name="CUPTI flusher")

    def body(t: Thread) -> Body:
        yield from t.compute(1 * MS)
        for _ in range(10):
            yield from t.launch("gemm", 100 * US, overhead=[("flush", 1 * MS)], flusher=flusher)
            yield from t.synchronize(t.process.null)
            yield from t.compute(100 * US)

    sim.thread(process, body)
    assert busy is not flusher
