"""How the programs here log what they do to themselves, so that a capture of them holds its own truth.

Every thread and process has a role. A thread logs the waits of its own (`wait`: kind of wait, and the roles that should
end it, nearest first), what it does for others in the meantime (`does`: io, compute, sleep or lock), the moments just
before it wakes somebody (`wake`), and how it keeps a GPU waiting (`injected`). All times are CLOCK_MONOTONIC_RAW in
nanoseconds. An anchor is an NVTX range with the clock read just before it opens and just after; anchors tell how this
clock maps to the clock of a trace. When a process is done, its records go to the file named on the command line, one
JSON object a line, or else nowhere.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

try:
    from nvtx import annotate
except ImportError:
    try:
        from torch.cuda import is_available
        from torch.cuda.nvtx import range as annotate  # type: ignore[no-redef]

        if not is_available():
            raise ImportError
    except ImportError:

        def annotate(message: str) -> AbstractContextManager[None]:  # type: ignore[no-redef]
            """No NVTX here: the program runs, but its log cannot be mapped to a trace."""
            return nullcontext()


ANCHORS = 8
BUSY_VALUES = 1 << 18
ON_DISK = "/var/tmp"


def clock() -> int:
    """Now, in nanoseconds of CLOCK_MONOTONIC_RAW."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Log:
    """The records of one process. Threads may share it; a forked child calls `fork` first."""

    def __init__(self) -> None:
        self.records: list[dict[str, object]] = []
        self.whose = ""
        """What the names of roles end with, where several processes have the same ones."""
        self.path = Path(sys.argv[1]) if any(sys.argv[1:2]) else None

    def fork(self, role: str) -> None:
        """In a child that was just forked: forget the parent's records, and be somebody."""
        self.records = []
        self.role(role)

    def add(self, record: str, **values: object) -> None:
        """A record of the calling thread."""
        self.records.append({"record": record, "pid": os.getpid(), "tid": threading.get_native_id(), **values})

    def role(self, name: str, *, tid: int | None = None, does: str | None = None) -> None:
        """The calling thread, or a thread of this process that cannot log itself, has this role.

        does: what it does all the time, where nothing else is logged.
        """
        self.add("role", role=name + self.whose, does=does, **({} if tid is None else {"tid": tid}))

    def wait(self, kind: str, *wakers: str) -> AbstractContextManager[None]:
        """The calling thread waits; the first role wakes it, which the second one woke before, and so on."""
        return self._span(kind, "wait", kind=kind, wakers=[waker + self.whose for waker in wakers])

    def does(self, what: str) -> AbstractContextManager[None]:
        """What the calling thread does while others may wait for it."""
        return self._span(what, "does", what=what)

    def injected(self, what: str, *, shown: bool = True) -> AbstractContextManager[None]:
        """The calling thread keeps an idle GPU waiting; in an NVTX range of its own only where shown."""
        return self._span(what if shown else None, "injected", what=what)

    def step(self) -> AbstractContextManager[None]:
        """A step of the program."""
        return self._span("step", "step")

    @contextmanager
    def _span(self, message: str | None, record: str, **values: object) -> Iterator[None]:
        """An NVTX range, but without a message, and a record of the time within it."""
        with nullcontext() if message is None else annotate(message):
            start = clock()
            yield
            self.add(record, **values, start=start, end=clock())

    def wake(self, how: str) -> None:
        """The calling thread wakes somebody now."""
        self.add("wake", how=how, time=clock())

    def anchors(self) -> None:
        """A few NVTX ranges with the clock read on both sides of their start."""
        for _ in range(ANCHORS):
            before = clock()
            with annotate("anchor"):
                self.add("anchor", before=before, after=clock())

    def save(self) -> None:
        """Append this process's new records to the log file."""
        if self.path:
            with self.path.open("a") as file:
                file.write("".join(json.dumps(record) + "\n" for record in self.records))
        self.records = []


def run(body: Callable[[Log], None]) -> None:
    """A whole program: anchors, the body on the thread with the role main, anchors."""
    log = Log()
    log.role("main")
    log.anchors()
    body(log)
    log.anchors()
    log.save()


def steps(log: Log, count: int) -> Iterator[int]:
    """So many steps, each in an NVTX range and logged."""
    for step in range(count):
        with log.step():
            yield step


def compute(seconds: float) -> None:
    """Keep a CPU busy, outside the interpreter's lock but for a moment every 0.1 ms or so."""
    end = time.perf_counter() + seconds
    values = np.ones(BUSY_VALUES, np.float32)
    while time.perf_counter() < end:
        np.sqrt(values, out=values)


def folder_on_disk() -> AbstractContextManager[str]:
    """A folder for as long as the context lasts; /tmp is often kept in memory, which no read has to wait for."""
    return TemporaryDirectory(dir=ON_DISK if os.access(ON_DISK, os.W_OK) else None)


@contextmanager
def uncached_file(path: Path, size: int) -> Iterator[int]:
    """A file descriptor of a file of zeros that is on the disk and not in the page cache."""
    with path.open("wb") as file:
        for _ in range(0, size, 1 << 20):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink()
