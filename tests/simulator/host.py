"""Host threads as generators: they hold a CPU core, run, block and wait, and keep a log of every nanosecond.

A body yields `Run(ns)` (needs the core), `Block(signal)` (off the CPU until it fires), `Spin(signal)` (on the CPU
until it fires) or `Stop(until)` (kept off the CPU). The calls it is inside of are a stack; each stretch with one stack
and one state is a `Span`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulator.engine import US, Clock, Core, Signal, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulator.device import Context, Gpu, Stream

NEVER = 1 << 62
WAKE = 4 * US
"""From the moment a blocked thread may go on to the moment it asks for its core."""


@dataclass(frozen=True, slots=True)
class Run:
    ns: int


@dataclass(frozen=True, slots=True)
class Block:
    signal: Signal


@dataclass(frozen=True, slots=True)
class Spin:
    signal: Signal


@dataclass(frozen=True, slots=True)
class Stop:
    """Ready, and without a CPU, until then: its share of the CPUs is used up."""

    until: int


Body = Generator[Run | Block | Spin | Stop, None, None]


@dataclass(slots=True, eq=False)
class Call:
    """Something a thread is inside of. `kind`: api, library, os, mpi or overhead; `cause` is what it is to blame for.

    `owner` is the thread whose row it is: a profiler's worker may do the work while this thread waits for it. A call
    that is not `recorded` lost its row; a `pseudo` call never had one, but others that begin and end it have. `label`
    tells waits for one kind of thing apart: GIL. `messages` are those of a call of MPI: the other rank and the tag of
    each that it sends or receives, and the number of its request, 0 for none; without them it has no such columns.
    """

    kind: str
    name: str
    cause: str
    owner: HostThread
    start: int
    end: int = -1
    correlation: int = 0
    returned: int = 0
    recorded: bool = True
    pseudo: bool = False
    sync: tuple[str, int, int] | None = None
    device: Context | None = None
    label: str = ""
    messages: tuple[tuple[int, int, int], ...] = ()


@dataclass(slots=True, eq=False)
class Waited:
    """One time that a thread was blocked: [start, until), until `by` ended it (None: a timer, the device, the disk).

    thread  [== runs ==][ start ...... until |latency|== runs ==]
    by      ..................[== runs ==|wake call]

    `wake` is the call by which it did, if by one. What is left of the call after `until` is the scheduler's latency.
    """

    start: int
    until: int = NEVER
    by: HostThread | None = None
    wake: Call | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) of one thread: the calls around it, outermost first, and cpu, waiting (for a core) or blocked."""

    start: int
    end: int
    stack: tuple[Call, ...]
    state: str
    symbol: str


@dataclass(slots=True)
class Range:
    """An NVTX range."""

    name: str
    start: int
    end: int = -1


class Process:
    """A process with its CUDA contexts, one a device; `ordinal` numbers count its own visible devices.

    A child that was forked without a word to the profiler has no `os_calls`, but scheduling and samples. Samples of a
    program that is not `python` have no frames of an interpreter. `rank` is that of MPI, -1 for none.
    """

    def __init__(self, pid: int, name: str, gpus: list[Gpu]) -> None:
        from tests.simulator.device import Context

        self.pid = pid
        self.name = name
        self.os_calls = True
        self.python = True
        self.rank = -1
        self.contexts = [Context(self, gpu, ordinal, ordinal + 1) for ordinal, gpu in enumerate(gpus)]
        self.threads: list[HostThread] = []
        self.correlations = 100
        self.events = 0
        self.recorded_events: list[tuple[Call, Stream]] = []
        self.waits: list[tuple[Call, Stream]] = []

    @property
    def null(self) -> Stream:
        """The legacy default stream of the first device."""
        return self.contexts[0].null

    def stream(self, device: int = 0, *, blocking: bool = False) -> Stream:
        return self.contexts[device].stream(blocking=blocking)


class HostThread:
    """The state machine under a body: core, state, stack and log.

    `loads` says that the thread loads data, and what in a trace tells so: its name, its nvtx ranges, its frames in CPU
    samples. `latency` is how long it takes from a wake-up to the request for its core, `returning` from there to
    the end of the call that it waited in. `stopped` are times at which it was kept off the CPU.
    """

    def __init__(self, clock: Clock, process: Process, name: str, tid: int, core: Core) -> None:
        self.clock = clock
        self.process = process
        self.name = name
        self.tid = tid
        self.core = core
        self.spans: list[Span] = []
        self.calls: list[Call] = []
        self.ranges: list[Range] = []
        self.waits: list[Waited] = []
        self.cpu: list[tuple[int, int]] = []
        self.stopped: set[int] = set()
        self.ended = Signal()
        self.shares_core = False
        self.loads = ""
        self.frames: tuple[str, ...] = ()
        self.latency: Callable[[], int] = lambda: WAKE
        self.returning: Callable[[], int] = lambda: 0
        self._stack: list[Call] = []
        self._open_ranges: list[Range] = []
        self._symbol = "main"
        self._state = "waiting"
        self._since = 0
        self._on_since = 0
        self._timer: Timer | None = None
        self._run_end = 0
        self._remaining: int | None = None
        self._body: Body | None = None

    def begin(self, body: Body) -> None:
        """Start the thread now."""
        self._body = body
        self._since = self.clock.now
        self.core.request(self)

    @property
    def preemptible(self) -> bool:
        return self._timer is not None

    def granted(self) -> None:
        """The core is ours."""
        self._enter("cpu")
        self._on_since = self.clock.now
        if self._remaining is None:
            self._resume()
        else:
            self._run(self._remaining)

    def preempted(self) -> None:
        """The core goes to another thread in the middle of a run."""
        assert self._timer is not None
        self._timer.cancelled = True
        self._timer = None
        self._remaining = self._run_end - self.clock.now
        self._leave("waiting")

    def _resume(self) -> None:
        assert self._body is not None
        request = next(self._body, None)
        if request is None:
            self._leave("ended")
            self.core.release()
            self.ended.fire(self)
        elif isinstance(request, Run):
            self._run(request.ns)
        elif isinstance(request, Spin):
            request.signal.then(self._resume)
        elif isinstance(request, Stop):
            self._stop(request.until)
        else:
            self._block(request.signal)

    def _run(self, ns: int) -> None:
        self._run_end = self.clock.now + ns
        self._timer = self.clock.at(self._run_end, self._ran)

    def _ran(self) -> None:
        self._timer = self._remaining = None
        self._resume()

    def _stop(self, until: int) -> None:
        self._leave("waiting")
        self.core.release()
        self.stopped.add(self.clock.now)
        self.clock.at(until, lambda: self.core.request(self))

    def _block(self, signal: Signal) -> None:
        if signal.fired:
            self._resume()
            return
        self._leave("blocked")
        self.core.release()
        waited = Waited(self.clock.now)
        self.waits.append(waited)
        signal.then(lambda: self._wake_later(waited, signal))

    def _wake_later(self, waited: Waited, signal: Signal) -> None:
        waited.until = self.clock.now
        if isinstance(signal.by, HostThread):
            waited.by, waited.wake = signal.by, signal.by.innermost
        self.clock.at(self.clock.now + self.latency(), self._wake)

    @property
    def innermost(self) -> Call | None:
        """The call that the thread is in, of those around it the last."""
        return self._stack[-1] if self._stack else None

    def _wake(self) -> None:
        self._enter("waiting")
        self.core.request(self)

    def _leave(self, state: str) -> None:
        self.cpu.append((self._on_since, self.clock.now))
        self._enter(state)

    def _enter(self, state: str) -> None:
        self._cut()
        self._state = state

    def _cut(self) -> None:
        if self.clock.now > self._since:
            span = Span(self._since, self.clock.now, tuple(self._stack), self._state, self._symbol)
            self.spans.append(span)
        self._since = self.clock.now

    @contextmanager
    def inside(
        self,
        kind: str,
        name: str,
        cause: str,
        *,
        recorded: bool = True,
        pseudo: bool = False,
        owner: HostThread | None = None,
        label: str = "",
    ) -> Iterator[Call]:
        """The calls a body makes are `with` blocks around what happens in them."""
        call = Call(kind, name, cause, owner or self, self.clock.now, recorded=recorded, pseudo=pseudo, label=label)
        if kind == "api" and not pseudo:
            self.process.correlations += 1
            call.correlation = self.process.correlations
        self._cut()
        self._stack.append(call)
        self.calls.append(call)
        yield call
        self._cut()
        self._stack.pop()
        call.end = self.clock.now

    def push(self, name: str) -> None:
        """Open an NVTX range."""
        self._open_ranges.append(Range(name, self.clock.now))
        self.ranges.append(self._open_ranges[-1])

    def pop(self) -> None:
        """Close the NVTX range opened last."""
        self._open_ranges.pop().end = self.clock.now

    @contextmanager
    def symbol(self, name: str) -> Iterator[None]:
        """What CPU samples see while the thread computes."""
        self._cut()
        before, self._symbol = self._symbol, name
        yield
        self._cut()
        self._symbol = before
