"""GPUs: streams that run their operations in order, and what holds an operation back once it was enqueued.

             enqueued            ready        start          end
    ............|--- latency -----|-- stall ----|== running ==|
                |--- previous operation of the stream --|gap|
                |--- event of another stream ---|gap|

The constraint that ends last is what held the operation; each operation keeps these pieces of time with their reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulator.engine import US, Clock, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulator.host import Call, Process

TURNAROUND = 1_200
"""From the end of an operation to the start of the one queued behind it."""
BARRIER = 14 * US
"""The same across the barrier of the legacy default stream."""


@dataclass(slots=True)
class Wait:
    """One operation waits for another: why, and how long after its end it may start."""

    reason: str
    op: Op
    turnaround: int = TURNAROUND


@dataclass(slots=True, eq=False)
class Op:
    """Work on a device. `pieces` are (until, reason): what held it back from its enqueue to its start; `shape` are the
    columns of a kernel's launch shape that differ from the usual one."""

    kind: str
    name: str
    duration: int
    call: Call | None = None
    stall: int = 0
    size: int = 0
    copy: str = ""
    host_memory: str = "pinned"
    collective: Collective | None = None
    graph: GraphLaunch | None = None
    recorded: bool = True
    shape: dict[str, int] | None = None
    stream: Stream = field(init=False)
    enqueued: int = -1
    start: int = -1
    end: int = -1
    waits: list[Wait] = field(default_factory=list)
    pieces: list[tuple[int, str]] = field(default_factory=list)
    done: Signal = field(default_factory=Signal)
    missing: int = 0


@dataclass(slots=True, eq=False)
class GraphLaunch:
    """One launch of a graph: its operations in order."""

    call: Call
    number: int
    ops: list[Op] = field(default_factory=list)


class Collective:
    """A communication kernel on several devices: it ends everywhere `duration` ns after the last one started."""

    def __init__(self, members: int) -> None:
        self._missing = members
        self.started: list[Op] = []

    def join(self, op: Op) -> list[Op]:
        """Those that can exchange now that this one has started: all, once it is the last."""
        self.started.append(op)
        self._missing -= 1
        return [] if self._missing else self.started


class Neighbours(Collective):
    """Kernels that send and receive, one on each device: each ends `duration` ns after it and those of the devices that
    it exchanges with have started. `links` are pairs of numbers of GPUs that exchange."""

    def __init__(self, links: Sequence[tuple[int, int]]) -> None:
        members = {each for link in links for each in link}
        super().__init__(len(members))
        self._near = {each: {other for link in links if each in link for other in link} for each in members}
        self._by_gpu: dict[int, Op] = {}

    def join(self, op: Op) -> list[Op]:
        """Those that can exchange now that this one has started."""
        gpu = op.stream.context.gpu.number
        self._by_gpu[gpu] = op
        return [self._by_gpu[each] for each in sorted(self._near[gpu]) if self._near[each] <= self._by_gpu.keys()]


class CudaEvent:
    """A marker in a stream; complete when all that was in the stream before it is."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sync_number = 0
        self.after: list[Op] = []
        self.stream: Stream | None = None

    @property
    def complete(self) -> bool:
        return all(op.done.fired for op in self.after)


class Gpu:
    """A physical device.

    `slices` are (start, end, process): times in which it works for that process alone. `latency` is the time from an
    enqueue to the start on a device that has nothing else to wait for, `turnaround` that from the end of an operation
    to the start of the one queued behind it. `clock_hz` and `bandwidth` (bytes a second) are the chip's highest, where
    the trace is to say so.
    """

    def __init__(self, clock: Clock, number: int, name: str) -> None:
        self.clock = clock
        self.number = number
        self.name = name
        self.latency = 3 * US
        self.turnaround = TURNAROUND
        self.clock_hz: int | None = None
        self.bandwidth: int | None = None
        self.ops: list[Op] = []
        self.functions: list[Op] = []
        self.graphs: list[GraphLaunch] = []
        self.slices: list[tuple[int, int, Process]] = []
        self.contexts: list[Context] = []


class Context:
    """What one process has on one GPU: streams. Stream 7 is the legacy default stream."""

    def __init__(self, process: Process, gpu: Gpu, ordinal: int, number: int) -> None:
        self.process = process
        self.gpu = gpu
        self.ordinal = ordinal
        self.number = number
        self.null = Stream(self, 7, "null")
        self.streams = [self.null]
        gpu.contexts.append(self)

    def stream(self, *, blocking: bool = False) -> Stream:
        stream = Stream(self, 12 + len(self.streams), "blocking" if blocking else "non-blocking")
        self.streams.append(stream)
        return stream


class Stream:
    """Operations in order. `tail` is what the next one comes after; `limit` is how many fit into the queue."""

    def __init__(self, context: Context, number: int, kind: str) -> None:
        self.context = context
        self.number = number
        self.kind = kind
        self.tail: list[Op] = []
        self.pending: list[Wait] = []
        self.depth = 0
        self.limit = 1024
        self.room = Signal()

    @property
    def unfinished(self) -> list[Op]:
        return [op for op in (*self.tail, *(wait.op for wait in self.pending)) if not op.done.fired]

    def wait_for(self, event: CudaEvent) -> None:
        """What is enqueued from now on waits for the event; for an operation of several events once."""
        known = {id(wait.op) for wait in self.pending}
        self.pending += [Wait("stream_wait", op) for op in event.after if id(op) not in known]

    def enqueue(self, op: Op, waits: Sequence[Wait] = ()) -> None:
        """Put an operation behind all that is in the stream."""
        now = self.context.gpu.clock.now
        op.stream, op.enqueued = self, now
        op.waits = list(waits) or [*self._order(), *self.pending, *self._barriers()]
        self.tail, self.pending = [op], []
        self.depth += 1
        (self.context.gpu.functions if op.kind == "function" else self.context.gpu.ops).append(op)
        op.done.then(self._finished)
        op.missing = len(op.waits)
        for wait in op.waits:
            wait.op.done.then(lambda: _arrived(op))
        if not op.waits:
            _schedule(op)

    def _order(self) -> list[Wait]:
        order = ("host_function" if last.kind == "function" else "order" for last in self.tail)
        return [Wait(*each, self.context.gpu.turnaround) for each in zip(order, self.tail, strict=True)]

    def _barriers(self) -> list[Wait]:
        if self.kind == "null":
            others = [stream for stream in self.context.streams if stream.kind == "blocking"]
        else:
            others = [self.context.null] if self.kind == "blocking" else []
        return [Wait("stream_barrier", op, BARRIER) for other in others for op in other.tail]

    def _finished(self) -> None:
        self.depth -= 1
        room, self.room = self.room, Signal()
        room.fire()


def _arrived(op: Op) -> None:
    op.missing -= 1
    if op.missing == 0:
        _schedule(op)


def _schedule(op: Op) -> None:
    """All that the operation waits for is done: when does it start, and what held it until then?"""
    clock = op.stream.context.gpu.clock
    chains = [[(op.enqueued + op.stream.context.gpu.latency, "launch_latency")]]
    chains += [_chain(wait) for wait in op.waits]
    op.pieces = max(chains, key=lambda chain: chain[-1][0])
    ready = _after_slices(op, max(clock.now, op.pieces[-1][0]))
    if op.stall:
        if op.pieces[-1][1] == "dispatch":
            op.pieces.pop()  # one pause, not an ordinary turn-around and a stall
        op.pieces.append((ready + op.stall, "device_stall"))
    clock.at(ready + op.stall, lambda: _begin(op))


def _chain(wait: Wait) -> list[tuple[int, str]]:
    after = {"order": "dispatch", "stream_wait": "turnaround", "host_function": "turnaround"}.get(
        wait.reason, wait.reason
    )
    return [(wait.op.end, wait.reason), (wait.op.end + wait.turnaround, after)]


def _after_slices(op: Op, ready: int) -> int:
    for start, end, owner in op.stream.context.gpu.slices:
        if start <= ready < end and owner is not op.stream.context.process:
            op.pieces.append((end, "gpu_context_switch"))
            ready = end
    return ready


def _begin(op: Op) -> None:
    clock = op.stream.context.gpu.clock
    op.start = clock.now
    if op.collective is None:
        clock.at(clock.now + op.duration, lambda: _end(op))
    else:
        for member in op.collective.join(op):
            clock.at(clock.now + op.duration, lambda member=member: _end(member))  # type: ignore[misc]


def _end(op: Op) -> None:
    op.end = op.stream.context.gpu.clock.now
    op.done.fire()
