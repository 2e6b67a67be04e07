"""The main thread wants a threading.Lock that another thread holds while it sleeps, computes or reads, in turn."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from waitlog import Log, annotate, compute, run, uncached_file

STEPS = 45
HELD_SECONDS = 0.008
PIECE_BYTES = 4 << 20


def hold(log: Log, lock: threading.Lock, held: threading.Semaphore, descriptor: int, go: threading.Semaphore) -> None:
    """The holder: takes the lock, says so, is busy with one of three things, lets go."""
    log.role("holder")
    doings: tuple[tuple[str, Callable[[int], object]], ...] = (
        ("sleep", lambda step: time.sleep(HELD_SECONDS)),
        ("compute", lambda step: compute(HELD_SECONDS)),
        ("io", lambda step: os.pread(descriptor, PIECE_BYTES, step * PIECE_BYTES)),
    )
    for step in range(STEPS):
        go.acquire()
        lock.acquire()
        held.release()
        what, doing = doings[step % len(doings)]
        with log.does(what):
            doing(step)
        log.wake("Lock.release")
        lock.release()


def body(log: Log) -> None:
    """Let the holder take the lock, then ask for it."""
    lock, go, held = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        uncached_file(Path(folder) / "pieces", STEPS * PIECE_BYTES) as descriptor,
    ):
        holder = threading.Thread(target=hold, args=(log, lock, held, descriptor, go))
        holder.start()
        for _ in range(STEPS):
            with annotate("step"):
                go.release()
                held.acquire()
                with log.wait("Lock.acquire", "holder"):
                    lock.acquire()
                lock.release()
                compute(0.001)
        holder.join()


if __name__ == "__main__":
    run(body)
