"""The main thread computes on one core that it shares with two busy neighbours, processes of their own.

Nobody calls anything: each process reads the clock all the time and takes every hole in it for time without the core.
"""

from __future__ import annotations

import os

from waitlog import Log, annotate, clock, run

NEIGHBOURS = 2
NEIGHBOUR_NS = 1_200_000_000
STEPS = 40
STEP_NS = 10_000_000
HOLE_NS = 1_000_000


def compute_until(log: Log, end: int, *rivals: str) -> None:
    """Keep the core busy; log the time on it as computing, and the holes as waits for the rivals, if it has any."""
    since = before = clock()
    while before < end:
        now = clock()
        if now - before > HOLE_NS:
            log.add("does", what="compute", start=since, end=before)
            if rivals:
                log.add("wait", kind="preempted", wakers=rivals, start=before, end=now)
            since = now
        before = now
    log.add("does", what="compute", start=since, end=before)


def neighbour(log: Log, ns: int = NEIGHBOUR_NS) -> None:
    """A forked neighbour: busy, then gone."""
    log.fork("neighbours")
    compute_until(log, clock() + ns)
    log.save()


def body(log: Log) -> None:
    """Share a core with the neighbours while computing step by step."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    children = []
    for _ in range(NEIGHBOURS):
        children.append(os.fork())
        if children[-1] == 0:
            neighbour(log)
            os._exit(0)
    begin = clock()
    for step in range(1, STEPS + 1):
        with annotate("step"):
            compute_until(log, begin + step * STEP_NS, "neighbours")
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    run(body)
