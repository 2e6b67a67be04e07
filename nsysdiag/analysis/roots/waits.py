"""Waits of host threads, and what may end them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from nsysdiag.activity.rows import Rows
from nsysdiag.timeline.intervals import IntArray


class Ends(IntEnum):
    """What ends a wait."""

    NOBODY = 0  # a disk or a timer
    SIGNAL = 1  # a condition variable: another thread of the process signals it
    RELEASE = 2  # a lock, semaphore or barrier, or the end of a thread: nothing that is traced
    WRITE = 3  # a pipe or a socket: a thread of any process writes
    CHILD = 4  # a process ends
    UNKNOWN = 5  # off the CPU in something that was not traced


@dataclass(frozen=True, slots=True)
class Waits(Rows):
    """Waits [start, end) in ns of `thread` (globalTid). `name` tells calls apart, `ends` is one of `Ends`; `timed` (1)
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
            r"_*pthread_(mutex_\w*lock|rwlock_\w*lock|barrier_wait|spin_lock|(timed|clock|try)?join\w*)"
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
)
_TIMED = re.compile(r".*(timed|clock|poll|select|epoll).*")

SIGNALS = re.compile(r"_*pthread_cond_(signal|broadcast)")
RELEASES = re.compile(r"_*sem_post|_*pthread_(mutex|rwlock|spin)_unlock|futex_wake\w*|_*pthread_barrier_wait")
WRITES = re.compile(r"write|writev|send\w*|mq_\w*send|splice|vmsplice|close|shutdown|eventfd_write")


def ends_of(names: list[str]) -> IntArray:
    """What ends the waits in calls of each name."""
    found = [next((ends for ends, pattern in _BY_NAME if pattern.fullmatch(name)), Ends.NOBODY) for name in names]
    return np.array(found, dtype=np.int64)


def is_timed(names: list[str]) -> IntArray:
    """1 for calls that may end by themselves when a time is over."""
    return np.array([_TIMED.fullmatch(name) is not None for name in names], dtype=np.int64)
