"""The launching thread computes on one core that it shares with two busy processes."""

from __future__ import annotations

import os

from device import MS, open_device
from preempt import compute_until, neighbour
from waitlog import Log, clock, run, steps

STEPS, STEP_NS = 20, 30 * MS
WORK_NS = 2 * MS
NEIGHBOURS, NEIGHBOUR_NS = 2, 1_000 * MS


def forked_neighbour(log: Log) -> int:
    """Its process id; the neighbour itself never returns."""
    child = os.fork()
    if child == 0:
        neighbour(log, NEIGHBOUR_NS)
        os._exit(0)
    return child


def body(log: Log) -> None:
    """Work, wait for it, then compute on what is left of a core."""
    device = open_device(log)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    children = [child for _ in range(NEIGHBOURS) if (child := forked_neighbour(log))]
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        with log.injected("off_cpu and host_compute"):
            compute_until(log, clock() + STEP_NS, "neighbours")
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    run(body)
