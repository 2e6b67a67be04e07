"""Two hops: the main thread waits on a condition for A, A waits on another one for B, and B reads from a slow disk."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from waitlog import Log, annotate, compute, run, uncached_file

STEPS = 40
PIECE_BYTES = 6 << 20
PASS_ON_SECONDS = 0.001


class Mailbox:
    """Counts arrivals under a threading.Condition."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.arrived = 0

    def put(self) -> None:
        """One more has arrived."""
        with self.condition:
            self.arrived += 1
            self.condition.notify()

    def wait_for(self, count: int) -> None:
        """Until that many have arrived."""
        with self.condition:
            self.condition.wait_for(lambda: self.arrived >= count)


def read(log: Log, descriptor: int, go: threading.Semaphore, to_a: Mailbox) -> None:
    """B: read, then notify A."""
    log.role("B")
    for step in range(STEPS):
        go.acquire()
        with log.does("io"):
            os.pread(descriptor, PIECE_BYTES, step * PIECE_BYTES)
        log.wake("Condition.notify")
        to_a.put()


def pass_on(log: Log, to_a: Mailbox, to_main: Mailbox) -> None:
    """A: wait for B, compute a little, notify main."""
    log.role("A", does="lock")
    for step in range(STEPS):
        with log.wait("Condition.wait", "B"):
            to_a.wait_for(step + 1)
        with log.does("compute"):
            compute(PASS_ON_SECONDS)
        log.wake("Condition.notify")
        to_main.put()


def body(log: Log) -> None:
    """Start a read, wait for what A makes of it, compute."""
    to_a, to_main, go = Mailbox(), Mailbox(), threading.Semaphore(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        uncached_file(Path(folder) / "pieces", STEPS * PIECE_BYTES) as descriptor,
    ):
        threads = [
            threading.Thread(target=read, args=(log, descriptor, go, to_a)),
            threading.Thread(target=pass_on, args=(log, to_a, to_main)),
        ]
        for thread in threads:
            thread.start()
        for step in range(STEPS):
            with annotate("step"):
                go.release()
                with log.wait("Condition.wait", "A", "B"):
                    to_main.wait_for(step + 1)
                compute(PASS_ON_SECONDS)
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    run(body)
