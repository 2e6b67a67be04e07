"""Threads that are born in the trace: the call of another thread that started each, and when its own activity began.

```
creator   ---[pthread_create]------------
                   \\
thread              `.....[ first activity
```
"""

from __future__ import annotations

import re

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, IntArray, nearest_before
from nsysdiag.events.axis import CallTable
from nsysdiag.events.identity import joint, pid_of, process_of, tid_of
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.wakeups.host_trace import HostTrace

THREADS = re.compile(r"_*(pthread_create|thrd_create|clone3?)")
PROCESSES = re.compile(r"_*(v?fork|clone3?|posix_spawnp?|system|popen)")
SOON_NS = 10_000_000
"""How long after such a call the thread may show itself: it may have stood in the queue of a busy CPU."""


class Births(Rows, frozen=True):
    """That `thread` was first active at `begun`, and the call of `creator` (globalTids) that started it began at `at`,
    in ns."""

    thread: IntArray
    begun: IntArray
    creator: IntArray
    at: IntArray


def births(host_trace: HostTrace, lo: int, hi: int) -> Births:
    """Those of the threads that were started in [lo, hi)."""
    calls = host_trace.tables.os_calls
    inside = (calls.start >= lo) & (calls.start < hi)
    started = [(_by_calls(calls, inside, pattern), pattern is PROCESSES) for pattern in (THREADS, PROCESSES)]
    if not any(len(rows) for rows, _ in started):
        return Births.empty()
    thread, begun = _first_activity(host_trace)
    fresh = (begun >= lo) & (begun < hi + SOON_NS) & ~np.isin(thread, host_trace.profilers)
    thread, begun = thread[fresh], begun[fresh]
    main = tid_of(thread) == pid_of(thread)
    parts = [_matched(thread[main == alone], begun[main == alone], calls, rows, alone=alone) for rows, alone in started]
    return Births.concatenate(parts)


def _by_calls(calls: CallTable, inside: BoolArray, pattern: re.Pattern[str]) -> IntArray:
    names = [at for at, name in enumerate(calls.names) if pattern.fullmatch(typed.plain(name))]
    return np.flatnonzero(inside & np.isin(calls.name, names)) if names else np.empty(0, dtype=np.int64)


def _first_activity(host_trace: HostTrace) -> tuple[IntArray, IntArray]:
    """All threads, and when the first of their rows begins, in ns."""
    tables, api = host_trace.tables, host_trace.activity.api_calls.rows
    rows = (tables.os_calls.thread, api.thread, tables.switches.thread)
    threads, lane = distinct(np.concatenate(rows))
    first = np.full(len(threads), np.iinfo(np.int64).max)
    np.minimum.at(first, lane, np.concatenate((tables.os_calls.start, api.start, tables.switches.time)))
    return threads, first


def _matched(thread: IntArray, begun: IntArray, calls: CallTable, rows: IntArray, *, alone: bool) -> Births:
    """Threads and the calls at `rows` in order, those of a process with each other; with `alone` those of all
    processes. Where several threads show themselves after the same call, the last of them is its own.

    ```
    calls     a   b            c
    threads             A  B     C       b is the last call before A and B: A is of a, and B of b
    ```
    """
    if len(rows) == 0 or len(thread) == 0:
        return Births.empty()
    owner, kin = (process_of(each) * (not alone) for each in (calls.thread[rows], thread))
    _, code = distinct(np.concatenate((owner, kin)))
    moments, rank = distinct(np.concatenate((calls.start[rows], begun)))
    called, asked = np.split(joint(code, rank, len(moments)), [len(rows)])
    order, kids = np.argsort(called, kind="stable"), np.argsort(asked, kind="stable")
    last = nearest_before(called[order], asked[kids])
    same = np.searchsorted(last, last, side="right") - 1 - np.arange(len(last))
    at = order[np.maximum(last - same, 0)]
    call, thread, begun = rows[at], thread[kids], begun[kids]
    known = (last >= same) & (last >= 0) & (owner[at] == kin[kids]) & (calls.thread[call] != thread)
    known &= (calls.start[call] <= begun) & (begun - calls.end[call] <= SOON_NS)
    return Births(thread[known], begun[known], calls.thread[call[known]].astype(np.int64), calls.start[call[known]])
