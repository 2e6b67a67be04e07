"""Two processes on one GPU, neither of which knows of the other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from device import MS, open_device
from meeting import Meeting, Shared
from waitlog import Log, run, steps

PROCESSES, STEPS = 2, 40
WORK_NS = 4 * MS


def body(log: Log) -> None:
    """Work, wait for it, while a second program does the same."""
    with tempfile.TemporaryDirectory() as folder:
        here, shared = Meeting(Path(folder) / "meeting", 0, PROCESSES), Shared(Path(folder) / "device")
        other = subprocess.Popen([sys.executable, __file__, *(sys.argv[1:2] or [""]), folder])
        work(log, here, shared)
        other.wait()


def work(log: Log, meeting: Meeting, shared: Shared) -> None:
    """Steps of a kernel each, begun together; what they take beyond it is the other's."""
    meeting.gather()
    device = open_device(log, shared=shared)
    for _ in steps(log, STEPS):
        with log.injected("step"):
            device.work(WORK_NS)
            device.synchronize()


def second(folder: Path) -> None:
    """The other program."""
    log = Log()
    log.whose = " of the other"
    log.role("main")
    work(log, Meeting(folder / "meeting", 1, PROCESSES), Shared(folder / "device"))
    log.save()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        second(Path(sys.argv[2]))
    else:
        run(body)
