"""What a scripted thread can do with CUDA. Each call is a generator to be used with `yield from`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulator.device import TURNAROUND, Collective, Context, CudaEvent, GraphLaunch, Op, Stream, Wait
from tests.simulator.engine import US, Signal
from tests.simulator.host import Block, Body, Call, HostThread, Run, Spin
from tests.simulator.os_calls import Channel, Mutex, OsThread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOT_READY = 600


@dataclass(frozen=True, slots=True)
class Node:
    """A kernel of a graph; `gap` is what the device lets pass before it."""

    name: str
    duration: int
    gap: int = TURNAROUND


class Thread(OsThread):
    """A host thread with its vocabulary. Streams default to the legacy default stream of the first device."""

    def api(self, name: str, ns: int, cause: str = "cuda_api", *, ioctl: int = 0) -> Body:
        """A CUDA call that keeps the CPU busy for `ns`, the middle `ioctl` ns of it in the driver's system call."""
        with self.inside("api", name, cause):
            yield Run((ns - ioctl) // 2)
            if ioctl:
                yield from self.os_call("ioctl", ioctl, "io_wait")
            yield Run(ns - ioctl - (ns - ioctl) // 2)

    def free(self, ns: int) -> Body:
        """cudaFree: it waits until the first device has done all that was launched, and takes `ns` more."""
        with self.inside("api", "cudaFree", "memory_allocation"):
            yield Spin(_all_done(_operations(self.process.contexts[0])))
            yield Run(ns)

    def launch(
        self,
        name: str,
        duration: int,
        stream: Stream | None = None,
        *,
        call: int = 5 * US,
        enqueue: float = 0.8,
        stall: int = 0,
        twin: bool = False,
        overhead: Sequence[tuple[str, int]] = (),
        flusher: HostThread | None = None,
        collective: Collective | None = None,
        recorded: bool = True,
        extended: bool = False,
        shape: dict[str, int] | None = None,
    ) -> Body:
        """Launch a kernel. The operation is enqueued at `enqueue` of the call's length; `overhead` comes before that.

        `twin`: the driver's row inside the runtime's row, one correlation id. `flusher`: the thread that does the
        overhead while this one waits. `recorded=False`: the API row gets lost. `shape`: gridX, blockX and the like.
        """
        name_of_call = "cudaLaunchKernelExC" if extended else "cudaLaunchKernel"
        with self.inside("api", name_of_call, "launch_call", recorded=recorded) as issued, ExitStack() as nested:
            target = stream or self.process.null
            for kind, ns in overhead:
                yield from self._overhead(kind, ns, flusher)
            if twin:
                yield Run(400)
                inner = nested.enter_context(self.inside("api", "cuLaunchKernel", "launch_call"))
                inner.correlation = issued.correlation
            yield from self._room(target)
            yield Run(int(call * enqueue))
            op = Op("kernel", name, duration, issued, stall, collective=collective, shape=shape)
            target.enqueue(op)
            yield Run(call - int(call * enqueue))

    def _overhead(self, kind: str, ns: int, flusher: HostThread | None = None) -> Body:
        cause = {"module_load": "module_load", "lazy_load": "module_load", "jit": "module_load"}.get(kind)
        cause = cause or ("queue_full" if kind == "buffer_full" else "profiler_overhead")
        with self.inside("overhead", kind, cause, owner=flusher):
            yield Run(ns)

    def _room(self, stream: Stream) -> Body:
        if stream.depth >= stream.limit:
            with self.inside("overhead", "buffer_full", "queue_full"):
                while stream.depth >= stream.limit:
                    yield Spin(stream.room)

    def fill(self, size: int, duration: int, stream: Stream | None = None, *, call: int = 4 * US) -> Body:
        """cudaMemsetAsync."""
        with self.inside("api", "cudaMemsetAsync", "launch_call") as issued:
            yield Run(call * 4 // 5)
            (stream or self.process.null).enqueue(Op("set", "memset", duration, issued, size=size))
            yield Run(call - call * 4 // 5)

    def copy(
        self,
        direction: str,
        size: int,
        duration: int,
        stream: Stream | None = None,
        *,
        call: int = 5 * US,
        stall: int = 0,
    ) -> Body:
        """cudaMemcpyAsync from or to pinned memory: returns as soon as the copy is enqueued."""
        with self.inside("api", "cudaMemcpyAsync", "launch_call") as issued:
            yield Run(call * 4 // 5)
            op = Op("copy", "memcpy", duration, issued, stall, size, direction)
            (stream or self.process.null).enqueue(op)
            yield Run(call - call * 4 // 5)

    def blocking_copy(
        self,
        direction: str,
        size: int,
        duration: int,
        stream: Stream | None = None,
        *,
        staging: int = 10 * US,
        host: str = "pageable",
        asynchronous: bool = False,
        upload: bool = False,
    ) -> Body:
        """A copy that keeps the thread: it stages pageable memory first, and waits for the copy to end. An `upload`
        stages once the stream is empty, and does not wait.

        thread  [== staging ==|......................|tail]    upload  [stream busy|== staging ==|tail]
        device                ..[== copy ==]                                                     ..[== copy ==]
        """
        name = "cudaMemcpyAsync" if asynchronous else "cudaMemcpy"
        stream = stream or self.process.null
        with self.inside("api", name, "blocking_copy") as issued:
            if upload:
                yield Spin(_all_done(_operations(stream)))
            yield Run(staging)
            op = Op("copy", "memcpy", duration, issued, 0, size, direction, host)
            stream.enqueue(op)
            if not upload:
                yield Spin(op.done)
            yield Run(2 * US)

    def synchronize(
        self, what: Stream | CudaEvent | Context | None = None, *, blocking: bool = False, cost: int = 2 * US
    ) -> Body:
        """Wait for a stream, an event or (None: the first) device; `blocking` sleeps in poll instead of spinning."""
        what = what or self.process.contexts[0]
        name, sync = _synchronization(what)
        with self.inside("api", name, "sync") as call:
            call.sync, call.device = sync, _context_of(what, self)
            yield Run(1 * US)
            finished = _all_done(_operations(what))
            if blocking and not finished.fired:
                with self.inside("os", "poll", "io_wait"):
                    yield Block(finished)
            else:
                yield Spin(finished)
            yield Run(cost)

    def event(self) -> CudaEvent:
        """cudaEventCreate, long before the trace."""
        self.process.events += 1
        return CudaEvent(self.process.events)

    def host_function(self, ns: int, stream: Stream | None = None, *, call: int = 5 * US) -> Body:
        """cudaLaunchHostFunc: the stream waits until a thread of the driver has run a function for `ns`."""
        with self.inside("api", "cudaLaunchHostFunc", "cuda_api") as issued:
            yield Run(call * 4 // 5)
            (stream or self.process.null).enqueue(Op("function", "host function", ns, issued))
            yield Run(call - call * 4 // 5)

    def record(self, event: CudaEvent, stream: Stream, *, call: int = 1 * US) -> Body:
        """cudaEventRecord."""
        with self.inside("api", "cudaEventRecord", "cuda_api") as issued:
            yield Run(call)
            event.after = [*stream.tail, *(wait.op for wait in stream.pending)]
            event.stream, event.sync_number = stream, event.sync_number + 1
            issued.sync = ("record", event.number, event.sync_number)
            issued.device = stream.context
            self.process.recorded_events.append((issued, stream))

    def wait_event(self, stream: Stream, event: CudaEvent, *, call: int = 1 * US) -> Body:
        """cudaStreamWaitEvent: the stream waits, the thread does not."""
        with self.inside("api", "cudaStreamWaitEvent", "cuda_api") as issued:
            yield Run(call)
            stream.wait_for(event)
            issued.sync, issued.device = ("wait", event.number, event.sync_number), stream.context
            self.process.waits.append((issued, stream))

    def query(self, event: CudaEvent) -> Body:
        """cudaEventQuery once."""
        with self.inside("api", "cudaEventQuery", "cuda_api") as call:
            yield Run(800)
            call.returned = 0 if event.complete else NOT_READY

    def spin_on(self, event: CudaEvent) -> Body:
        """Ask cudaEventQuery until the event is complete: a synchronization by hand, unless it already is."""
        if event.complete:
            yield from self.query(event)
            return
        with self.inside("api", "query spin", "sync", pseudo=True):
            while True:
                ready = event.complete
                yield from self.query(event)
                if ready:
                    return
                yield Run(600)

    def library(self, name: str, before: int, inner: Iterable[Body], after: int) -> Body:
        """A cuBLAS or cuDNN call: time of its own before and after the CUDA calls that it makes."""
        with self.inside("library", name, "cuda_api"):
            yield Run(before)
            for body in inner:
                yield from body
            yield Run(after)

    def build_graph(self, nodes: int, *, each: int = 8 * US, instantiate: int = 300 * US) -> Body:
        """Capture a stream and instantiate the graph: launches that make no operation."""
        with self.inside("api", "stream capture", "graph_build", pseudo=True):
            yield from self.api("cudaStreamBeginCapture", 4 * US, "graph_build")
            for _ in range(nodes):
                yield from self.compute(each)
                yield from self.api("cudaLaunchKernel", 3 * US, "launch_call")
            yield from self.api("cudaStreamEndCapture", 20 * US, "graph_build")
        yield from self.api("cudaGraphInstantiate", instantiate, "graph_build")

    def launch_graph(
        self, nodes: Sequence[Node], stream: Stream | None = None, *, number: int = 1, call: int = 12 * US
    ) -> Body:
        """cudaGraphLaunch: all nodes follow one another without the host."""
        target = stream or self.process.null
        with self.inside("api", "cudaGraphLaunch", "launch_call") as issued:
            yield Run(call * 4 // 5)
            launch = GraphLaunch(issued, number)
            target.context.gpu.graphs.append(launch)
            for node in nodes:
                op = Op("kernel", node.name, node.duration, issued, graph=launch)
                reason = "dispatch" if node.gap == TURNAROUND else "intra_graph"
                waits = [Wait(reason, launch.ops[-1], node.gap)] if launch.ops else []
                target.enqueue(op, waits)
                launch.ops.append(op)
            yield Run(call - call * 4 // 5)

    def prefetch(self, chunks: int, each: int, gap: int, stream: Stream | None = None) -> Body:
        """cudaMemPrefetchAsync: the driver moves pages in chunks, with its own work between them."""
        target = stream or self.process.null
        with self.inside("api", "cudaMemPrefetchAsync", "cuda_api") as issued:
            yield Run(20 * US)
            last: Op | None = None
            for _ in range(chunks):
                op = Op("migration", "migration", each, issued, copy="UM HtoD", size=2 << 20)
                target.enqueue(op, [Wait("unified_memory", last, gap)] if last else [])
                last = op
            yield Run(5 * US)


def _synchronization(what: Stream | CudaEvent | Context) -> tuple[str, tuple[str, int, int]]:
    none = 0xFFFFFFFF
    if isinstance(what, Stream):
        return "cudaStreamSynchronize", ("stream", none, what.number)
    if isinstance(what, CudaEvent):
        return "cudaEventSynchronize", ("event", what.number, what.sync_number)
    return "cudaDeviceSynchronize", ("context", none, none)


def _context_of(what: Stream | CudaEvent | Context, thread: Thread) -> Context:
    if isinstance(what, Context):
        return what
    stream = what.stream if isinstance(what, CudaEvent) else what
    return stream.context if stream else thread.process.contexts[0]


def _operations(what: Stream | CudaEvent | Context) -> list[Op]:
    if isinstance(what, CudaEvent):
        return list(what.after)
    streams = [what] if isinstance(what, Stream) else what.streams
    return [op for stream in streams for op in stream.unfinished]


def _all_done(ops: Iterable[Op]) -> Signal:
    signal = Signal()
    missing = [op for op in ops if not op.done.fired]
    left = [len(missing)]

    def arrived() -> None:
        left[0] -= 1
        if left[0] == 0:
            signal.fire()

    for op in missing:
        op.done.then(arrived)
    if not missing:
        signal.fire()
    return signal


__all__ = ["Call", "Channel", "Mutex", "Node", "Thread"]
