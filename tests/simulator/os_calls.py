"""What a scripted thread can do without CUDA: computing, files, memory, sleep, locks, pipes, waiting for others."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulator.engine import US, Signal
from tests.simulator.host import Block, Body, HostThread, Run

if TYPE_CHECKING:
    from collections.abc import Callable

UNTRACED = frozenset({"sem_post", "sem_clockwait"})
"""OS calls that nsys never records: what ends most waits of Python's locks, and those with a time limit."""
ENTRY = 300
"""The way into the kernel of the OS, before a thread can block there."""


@dataclass(slots=True)
class Mutex:
    """Held by one thread at a time; handed over in order."""

    held: bool = False
    waiting: deque[Signal] = field(default_factory=deque)


@dataclass(slots=True)
class Channel:
    """A pipe, semaphore or condition variable: what is put in is taken out in order, and a taker waits for it. All
    calls on one channel are those of one of these."""

    items: int = 0
    waiting: deque[Signal] = field(default_factory=deque)
    kind: str = ""

    def used_by(self, call: str) -> None:
        """Raises ValueError where the call is none of those before: no `write` ends a `sem_wait`."""
        kind = next((each for each in ("sem_", "pthread_cond_") if call.startswith(each)), "pipe")
        if self.kind not in ("", kind):
            raise ValueError(f"{call} on a channel of kind {self.kind}")
        self.kind = kind


class OsThread(HostThread):
    """A host thread that computes and calls the operating system."""

    def compute(self, ns: int, symbol: str = "_PyEval_EvalFrameDefault") -> Body:
        """Run on the CPU; samples see `symbol`."""
        with self.symbol(symbol):
            yield Run(ns)

    def _blocked_until(self, signal: Signal) -> Body:
        """Off the CPU until then, and a little longer before the call that the thread waits in returns."""
        yield Block(signal)
        if ns := self.returning():
            yield Run(ns)

    def os_call(self, name: str, ns: int, cause: str, *, blocked: bool = False) -> Body:
        """An OS call of a fixed length, on the CPU or off it."""
        with self.inside("os", name, cause, recorded=name not in UNTRACED):
            if not blocked:
                yield Run(ns)
                return
            over = Signal()
            self.clock.at(self.clock.now + ns, over.fire)
            yield Run(ENTRY)
            yield from self._blocked_until(over)

    def sleep(self, ns: int, name: str = "clock_nanosleep") -> Body:
        """Sleep for a time."""
        yield from self.os_call(name, ns, "sleep", blocked=True)

    def until(self, time: int, name: str = "clock_nanosleep", cause: str = "sleep") -> Body:
        """Sleep until a time, or read what an outside source has from then on; it is past: go on at once."""
        yield from self.os_call(name, max(time - self.clock.now, 2 * ENTRY), cause, blocked=True)

    def spawn(self, body: Callable[[], HostThread], name: str = "pthread_create", *, ns: int = 25 * US) -> Body:
        """Start a thread or process in the middle of the call that does so."""
        with self.inside("os", name, "sleep"):
            yield Run(ns // 2)
            body()
            yield Run(ns - ns // 2)

    def read_file(self, ns: int, name: str = "read") -> Body:
        """Wait for the disk."""
        yield from self.os_call(name, ns, "io_wait", blocked=True)

    def mpi(self, name: str, ns: int) -> Body:
        """A call of MPI, which asks again and again whether the others have come."""
        with self.inside("mpi", name, ""):
            yield Run(ns)

    def stuck(self, ns: int) -> Body:
        """Off the CPU in something that no table records: a page fault, a raw system call."""
        yield Run(ENTRY)
        over = Signal()
        self.clock.at(self.clock.now + ns - ENTRY, over.fire)
        yield Block(over)

    def lock(self, mutex: Mutex, name: str = "pthread_mutex_lock") -> Body:
        """Take a mutex, waiting for it where another thread holds it."""
        if not mutex.held:
            mutex.held = True
            yield Run(50)
            return
        handed = Signal()
        mutex.waiting.append(handed)
        with self.inside("os", name, "lock_wait"):
            yield Run(ENTRY)
            yield from self._blocked_until(handed)

    def unlock(self, mutex: Mutex) -> Body:
        """Give a mutex back; the next waiting thread has it at once."""
        yield Run(100)
        if mutex.waiting:
            mutex.waiting.popleft().fire(self)
        else:
            mutex.held = False

    def put(self, channel: Channel, name: str = "write", *, lasting: int = 500) -> Body:
        """Write to a pipe, or signal a condition variable; the call goes on for `lasting` ns after that."""
        channel.used_by(name)
        cause = "io_wait" if name == "write" else ""
        with self.inside("os", name, cause, recorded=name not in UNTRACED):
            yield Run(1_500)
            channel.items += 1
            if channel.waiting:
                channel.waiting.popleft().fire(self)
            yield Run(lasting)

    def broadcast(self, channel: Channel) -> Body:
        """pthread_cond_broadcast: all that wait for the channel get something."""
        channel.used_by("pthread_cond_broadcast")
        with self.inside("os", "pthread_cond_broadcast", ""):
            yield Run(1_500)
            waiting, channel.waiting = channel.waiting, deque()
            channel.items += len(waiting)
            for arrived in waiting:
                arrived.fire(self)
            yield Run(500)

    def get(self, channel: Channel, name: str = "read") -> Body:
        """Read from a pipe (io_wait), or wait on a condition variable or semaphore (lock_wait)."""
        channel.used_by(name)
        cause = "io_wait" if name in {"read", "poll", "recv"} else "lock_wait"
        with self.inside("os", name, cause, recorded=name not in UNTRACED):
            yield Run(1_200)
            while channel.items == 0:
                arrived = Signal()
                channel.waiting.append(arrived)
                yield from self._blocked_until(arrived)
            channel.items -= 1

    def join(self, thread: HostThread, name: str = "pthread_join") -> Body:
        """Wait for the end of a thread: pthread_join, or the sem_wait of Python's Thread.join."""
        with self.inside("os", name, "sleep" if name == "pthread_join" else "lock_wait"):
            yield Run(ENTRY)
            yield from self._blocked_until(thread.ended)

    def wait_for_exit(self, thread: HostThread, *, exiting: int = 700 * US) -> Body:
        """waitpid for a process of one thread. Nothing is seen of the process while the OS clears it away."""
        gone = Signal()

        def clear_away() -> None:
            self.clock.at(self.clock.now + exiting, lambda: gone.fire(thread))

        thread.ended.then(clear_away)
        with self.inside("os", "waitpid", "sleep"):
            yield Run(ENTRY)
            yield from self._blocked_until(gone)
