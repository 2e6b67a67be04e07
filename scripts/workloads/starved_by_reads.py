"""The GPU waits for batches that a worker process reads from a file which is not in the page cache."""

from __future__ import annotations

import os
from pathlib import Path

from device import MS, open_device
from loader import batches
from waitlog import Log, folder_on_disk, run, steps, uncached_file

STEPS = 20
WORK_NS = 2 * MS
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

        loader = batches(log, read, STEPS)
        for _ in steps(log, STEPS):
            with log.injected("data_loading"), log.wait("batch", "feeder", "worker"):
                next(loader)
            device.work(WORK_NS)
            device.synchronize()


if __name__ == "__main__":
    run(body)
