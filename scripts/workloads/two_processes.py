"""Two processes on one GPU, neither of which knows of the other."""

from __future__ import annotations

import subprocess
import sys

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 40
WORK_NS = 4 * MS
CHILD = "child"


def body(log: Log) -> None:
    """Work, wait for it, while a second program does the same."""
    if CHILD in sys.argv:
        work(log)
        return
    child = subprocess.Popen([sys.executable, *sys.argv, CHILD])
    work(log)
    child.wait()


def work(log: Log) -> None:
    """Steps of a kernel each; what they take beyond it is the other's."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        with log.injected("step"):
            device.work(WORK_NS)
            device.synchronize()


if __name__ == "__main__":
    run(body)
