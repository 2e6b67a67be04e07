"""The launching thread lets go of the interpreter's lock and wants it back from a thread that is all Python."""

from __future__ import annotations

import threading
import zlib

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 30
WORK_NS = 2 * MS
DATA = bytes(1 << 19)


def spin(log: Log, go: threading.Event, done: threading.Event) -> None:
    """The busy thread: bytecode and nothing else, whenever it may go."""
    log.role("spinner", does="compute")
    while not done.is_set():
        go.wait()
        while go.is_set() and not done.is_set():
            sum(i for i in range(1_000))


def body(log: Log) -> None:
    """Work, wait for it, then a short call that releases the lock beside the busy thread: 5 ms until it is back."""
    device = open_device(log)
    go, done = threading.Event(), threading.Event()
    spinner = threading.Thread(target=spin, args=(log, go, done))
    spinner.start()
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        go.set()
        with log.injected("gil"), log.wait("gil", "spinner"):
            zlib.crc32(DATA)
        go.clear()
    done.set()
    go.set()
    spinner.join()


if __name__ == "__main__":
    run(body)
