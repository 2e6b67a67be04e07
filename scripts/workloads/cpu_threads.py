"""A small threaded program with known waits, to be captured by nsys without a GPU.

A loader thread reads a file in pieces, decodes each and feeds a short queue. The main thread takes a piece a
step, computes on it, takes a lock that another thread holds for a known time, and sleeps. Every step and each
part of it is an NVTX range. At the end it prints, as JSON, how long each part took by its own clock.
"""

from __future__ import annotations

import json
import os
import queue
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import nvtx

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 20
PIECE_BYTES = 1 << 20
DECODE_SECONDS = 0.015
LOCK_HELD_SECONDS = 0.005
SLEEP_SECONDS = 0.004
SIDE = 192


class Clock:
    """Total nanoseconds by part."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = defaultdict(int)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """An NVTX range that is timed as well."""
        start = time.perf_counter_ns()
        with nvtx.annotate(name):
            yield
        self.totals[name] += time.perf_counter_ns() - start


def write_data(path: Path) -> None:
    """The file that the loader reads, out of the page cache where the system allows that."""
    path.write_bytes(np.random.default_rng(0).bytes(STEPS * PIECE_BYTES))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def load(path: Path, pieces: queue.Queue[np.ndarray]) -> None:
    """The loader: read, decode (busy for a known time), hand over."""
    with path.open("rb", buffering=0) as file:
        for _ in range(STEPS):
            with nvtx.annotate("read"):
                data = np.frombuffer(file.read(PIECE_BYTES), dtype=np.uint8)
            with nvtx.annotate("decode"):
                decoded = decode(data)
            pieces.put(decoded)


def decode(data: np.ndarray) -> np.ndarray:
    """Keep a CPU busy outside the interpreter's lock for DECODE_SECONDS."""
    end = time.perf_counter() + DECODE_SECONDS
    decoded = data.astype(np.float32)
    while time.perf_counter() < end:
        decoded = np.sqrt(decoded + 1.0)
    return decoded


def hold(lock: threading.Lock, turn: threading.Semaphore, held: threading.Semaphore) -> None:
    """The contender: takes the lock first in every step and keeps it for LOCK_HELD_SECONDS."""
    for _ in range(STEPS):
        turn.acquire()
        with lock:
            held.release()
            time.sleep(LOCK_HELD_SECONDS)


def run(path: Path) -> dict[str, int]:
    """All steps on the main thread; nanoseconds by part."""
    clock, lock = Clock(), threading.Lock()
    pieces: queue.Queue[np.ndarray] = queue.Queue(maxsize=2)
    turn, held = threading.Semaphore(0), threading.Semaphore(0)
    threads = [
        threading.Thread(target=load, args=(path, pieces), name="loader"),
        threading.Thread(target=hold, args=(lock, turn, held), name="contender"),
    ]
    for thread in threads:
        thread.start()
    for _ in range(STEPS):
        with clock.part("step"):
            step(clock, pieces, lock, turn, held)
    for thread in threads:
        thread.join()
    return dict(clock.totals)


def step(
    clock: Clock,
    pieces: queue.Queue[np.ndarray],
    lock: threading.Lock,
    turn: threading.Semaphore,
    held: threading.Semaphore,
) -> None:
    """One step: wait for data, compute, wait for the lock, sleep."""
    with clock.part("next_piece"):
        piece = pieces.get()
    with clock.part("compute"):
        square = piece[: SIDE * SIDE].reshape(SIDE, SIDE)
        np.einsum("ij,jk->ik", square, square)
    turn.release()
    held.acquire()
    with clock.part("contended_lock"), lock:
        pass
    with clock.part("sleep"):
        time.sleep(SLEEP_SECONDS)


def main() -> None:
    """Run on a temporary file and print the totals."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pieces.bin"
        write_data(path)
        print(json.dumps(run(path), indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
