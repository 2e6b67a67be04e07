"""The launching thread lets go of the interpreter's lock and wants it back from a thread that is all Python."""

from __future__ import annotations

import threading
import zlib

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 30
WORK_NS = 2 * MS
DATA = bytes(1 << 19)


def spin(log: Log, done: threading.Event) -> None:
    """The busy thread: bytecode and nothing else."""
    log.role("spinner", does="compute")
    while not done.is_set():
        sum(i for i in range(1_000))


def body(log: Log) -> None:
    """Work, wait for it, then a short call that releases the lock: 5 ms until it is back."""
    device = open_device(log)
    done = threading.Event()
    spinner = threading.Thread(target=spin, args=(log, done))
    spinner.start()
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        with log.injected("gil"), log.wait("gil", "spinner"):
            zlib.crc32(DATA)
    done.set()
    spinner.join()


if __name__ == "__main__":
    run(body)
