"""Waits of host threads, what may end them, and which files a thread read."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.identity import tid_of
from nsysdiag.events.rows import Rows
from nsysdiag.fields import Sentence
from nsysdiag.typed import joined

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


class Ends(IntEnum):
    """What ends a wait."""

    NO_THREAD = 0  # a disk or a timer
    SIGNAL = 1  # a condition variable: another thread of the process signals it
    RELEASE = 2  # a lock, semaphore or barrier: nothing that is traced
    WRITE = 3  # a pipe or a socket: a thread of any process writes
    CHILD = 4  # a process ends
    UNKNOWN = 5  # off the CPU in something that was not traced
    THREAD = 6  # a thread of the process ends


class Waits(Rows, frozen=True):
    """Waits [start, end) in ns of `thread` (globalTid). `name` says which call, `ends` is one of `Ends`; `timed` (1)
    are waits that may also end by themselves."""

    thread: IntArray
    start: IntArray
    end: IntArray
    name: IntArray
    ends: IntArray
    timed: IntArray


_BY_NAME = (
    (Ends.SIGNAL, re.compile(r"_*pthread_cond_\w*wait\w*")),
    (
        Ends.RELEASE,
        re.compile(
            r"_*pthread_(mutex_\w*lock|rwlock_\w*lock|barrier_wait|spin_lock)"
            r"|_*sem_\w*wait\w*|sem(timed)?op|futex\w*|flockfile|flock|lockf\w*"
        ),
    ),
    (
        Ends.WRITE,
        re.compile(
            r"_*(read|readv|recv\w*|poll|ppoll|__poll_chk|p?select|epoll_p?wait2?|accept4?|mq_\w*receive)(_chk)?"
        ),
    ),
    (Ends.CHILD, re.compile(r"waitpid|wait[34]?|waitid")),
    (Ends.THREAD, re.compile(r"_*pthread_(timed|clock|try)?join\w*")),
)
_TIMED = re.compile(r".*(timed|clock|poll|select|epoll).*")

SIGNALS = re.compile(r"_*pthread_cond_(signal|broadcast)")
RELEASES = re.compile(r"_*sem_post|_*pthread_(mutex|rwlock|spin)_unlock|futex_wake\w*|_*pthread_barrier_wait")
WRITES = re.compile(r"write|writev|send\w*|mq_\w*send|splice|vmsplice|close|shutdown|eventfd_write")


def wakes_another(name: str) -> bool:
    """Whether a call of this name may end a wait of another thread."""
    return any(each.fullmatch(name) for each in (SIGNALS, RELEASES, WRITES))


def ends_of(names: list[str]) -> IntArray:
    """What ends the waits in calls of each name."""
    found = [next((ends for ends, pattern in _BY_NAME if pattern.fullmatch(name)), Ends.NO_THREAD) for name in names]
    return np.array(found, dtype=np.int64)


def is_timed(names: list[str]) -> IntArray:
    """1 for calls that may end by themselves when a time is over."""
    return np.array([_TIMED.fullmatch(name) is not None for name in names], dtype=np.int64)


MOST = 2


class Files:
    """Paths by thread and time, read on demand."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._loaded = False
        self._tid = self._start = self._end = self._file = self._reach = np.zeros(0, dtype=np.int64)
        self._paths: dict[int, str] = {}

    def read_by(self, thread: IntArray, start: IntArray, end: IntArray) -> Sentence:
        """The files that threads were in during stretches [start, end), longest first: ` of data.bin, labels.bin`;
        empty where the trace does not tell."""
        if not self._loaded:
            self._load()
        if len(self._tid) == 0:
            return ""
        found: dict[str, int] = {}
        for who, low, high in zip(tid_of(thread).tolist(), start.tolist(), end.tolist(), strict=True):
            first, behind = np.searchsorted(self._tid, (who, who + 1)).tolist()
            behind = first + int(np.searchsorted(self._start[first:behind], high))
            first += int(np.searchsorted(self._reach[first:behind], low, side="right"))
            rows = np.arange(first, behind)
            overlap = np.minimum(self._end[rows], high) - np.maximum(self._start[rows], low)
            for row, ns in zip(rows[overlap > 0].tolist(), overlap[overlap > 0].tolist(), strict=True):
                path = self._paths.get(int(self._file[row]), "")
                found[path] = found.get(path, 0) + ns
        ranked = sorted(((ns, path) for path, ns in found.items() if path), reverse=True)[:MOST]
        return " of " + joined(", ", (typed.file(path) for _, path in ranked)) if ranked else ""

    def _load(self) -> None:
        self._loaded = True
        rows = self._trace.read("OSRT_FILE_ACCESS_EVENTS", "fileAccessId", "startedAt", "endedAt", "threadId")
        if len(rows) == 0:
            return
        known = self._trace.read("OSRT_FILE_ACCESS_DESCRIPTORS", "fileAccessId", "filePath")
        # The thread may be written as the system's number or as a globalTid: both end in it.
        order = np.lexsort((rows["startedAt"], tid_of(rows["threadId"])))
        self._tid, self._file = tid_of(rows["threadId"])[order], rows["fileAccessId"][order]
        self._start, self._end = rows["startedAt"][order], rows["endedAt"][order]
        # The latest end so far of each thread: what ends before a stretch is skipped without a look.
        self._reach = self._end.copy()
        for mine in np.split(np.arange(len(order)), np.flatnonzero(np.diff(self._tid)) + 1):
            self._reach[mine] = np.maximum.accumulate(self._end[mine])
        paths = zip(known["fileAccessId"].tolist(), known.text("filePath").texts(), strict=True)
        self._paths = {number: path for number, path in paths if path}
