"""The main thread waits for a queue.Queue that a loader thread feeds from a slow disk.

The loader's read is os.pread of a file that is not in the page cache. It decodes every fourth piece for longer than it
read it, so that both I/O and computing are what the main thread waits for in the end.
"""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from pathlib import Path

from waitlog import Log, annotate, compute, run, uncached_file

STEPS = 32
PIECE_BYTES = 4 << 20
DECODE_SECONDS = 0.015
COMPUTE_SECONDS = 0.002


def load(log: Log, descriptor: int, pieces: queue.Queue[bytes]) -> None:
    """The loader: read, decode some, hand over."""
    log.role("loader")
    for step in range(STEPS):
        with log.does("io"):
            piece = os.pread(descriptor, PIECE_BYTES, step * PIECE_BYTES)
        if step % 4 == 3:
            with log.does("compute"):
                compute(DECODE_SECONDS)
        log.wake("queue.put")
        pieces.put(piece)


def body(log: Log) -> None:
    """Take a piece a step and compute on it."""
    pieces: queue.Queue[bytes] = queue.Queue(maxsize=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        uncached_file(Path(folder) / "pieces", STEPS * PIECE_BYTES) as descriptor,
    ):
        loader = threading.Thread(target=load, args=(log, descriptor, pieces))
        loader.start()
        for _ in range(STEPS):
            with annotate("step"):
                with log.wait("queue.get", "loader"):
                    pieces.get()
                compute(COMPUTE_SECONDS)
        loader.join()


if __name__ == "__main__":
    run(body)
