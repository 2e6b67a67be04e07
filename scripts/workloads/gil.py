"""The main thread lets go of the interpreter's lock and then wants it back from a busy thread that is all Python."""

from __future__ import annotations

import threading
import zlib

from waitlog import Log, annotate, run

STEPS = 80
DATA = bytes(1 << 21)


def spin(log: Log, done: threading.Event) -> None:
    """The busy thread: bytecode and nothing else, so that it lets go only when asked to, every 5 ms."""
    log.role("spinner", does="compute")
    count = 0
    while not done.is_set():
        for _ in range(1000):
            count += 1


def body(log: Log) -> None:
    """A short call that releases the lock, again and again."""
    zlib.crc32(DATA)  # the first call also fetches the memory
    done = threading.Event()
    spinner = threading.Thread(target=spin, args=(log, done))
    spinner.start()
    for _ in range(STEPS):
        with annotate("step"):
            with log.wait("gil", "spinner"):
                zlib.crc32(DATA)
            sum(range(20_000))
    done.set()
    spinner.join()


if __name__ == "__main__":
    run(body)
