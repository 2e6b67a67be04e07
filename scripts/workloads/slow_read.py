"""The main thread reads itself: a file that is not in the page cache, then a slowly fed FIFO."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from waitlog import Log, annotate, compute, run, uncached_file

PIECES = 25
MESSAGES = 30
PIECE_BYTES = 4 << 20
FEED_SECONDS = 0.010
COMPUTE_SECONDS = 0.001
MESSAGE = bytes(512)


def feed(log: Log, path: Path) -> None:
    """The forked feeder: sleeps, then writes a message."""
    log.fork("feeder")
    descriptor = os.open(path, os.O_WRONLY)
    for _ in range(MESSAGES):
        with log.does("sleep"):
            time.sleep(FEED_SECONDS)
        log.wake("write")
        os.write(descriptor, MESSAGE)
    log.save()


def read_file(log: Log, path: Path) -> None:
    """Read and compute: nobody but the disk ends these waits."""
    with uncached_file(path, PIECES * PIECE_BYTES) as pieces:
        for piece in range(PIECES):
            with annotate("step"):
                with log.wait("pread of a file"):
                    os.pread(pieces, PIECE_BYTES, piece * PIECE_BYTES)
                compute(COMPUTE_SECONDS)


def read_messages(log: Log, path: Path) -> None:
    """Read and compute: the feeder ends these waits."""
    os.mkfifo(path)
    child = os.fork()
    if child == 0:
        feed(log, path)
        os._exit(0)
    messages = os.open(path, os.O_RDONLY)
    for _ in range(MESSAGES):
        with annotate("step"):
            with log.wait("read of a FIFO", "feeder"):
                os.read(messages, len(MESSAGE))
            compute(COMPUTE_SECONDS)
    os.waitpid(child, 0)


def body(log: Log) -> None:
    """From the file, then from the FIFO."""
    with tempfile.TemporaryDirectory() as folder:
        read_file(log, Path(folder) / "pieces")
        read_messages(log, Path(folder) / "fifo")


if __name__ == "__main__":
    run(body)
