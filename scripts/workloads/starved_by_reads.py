"""The GPU waits for batches that a worker process reads from a file which is not in the page cache."""

from __future__ import annotations

import os
from pathlib import Path

from device import open_device
from loader import train
from waitlog import Log, folder_on_disk, run, uncached_file

STEPS = 20
BATCH_BYTES = 12 << 20
KEPT_BYTES = 1 << 14


def body(log: Log) -> None:
    """Take a batch, work on it, wait for that."""
    device = open_device(log)
    with (
        folder_on_disk() as folder,
        uncached_file(Path(folder) / "batches", STEPS * BATCH_BYTES) as descriptor,
    ):

        def read(number: int) -> bytes:
            with log.does("io"):
                return os.pread(descriptor, BATCH_BYTES, number * BATCH_BYTES)[:KEPT_BYTES]

        train(log, device, read, STEPS)


if __name__ == "__main__":
    run(body)
