"""The GPU waits for batches that a worker process decodes too slowly."""

from __future__ import annotations

from device import MS, open_device
from loader import batches
from waitlog import Log, compute, run, steps

STEPS = 20
WORK_NS = 2 * MS
DECODE_SECONDS = 0.012
BATCH = bytes(1 << 14)


def body(log: Log) -> None:
    """Take a batch, work on it, wait for that."""

    def decode(_number: int) -> bytes:
        with log.does("compute"):
            compute(DECODE_SECONDS)
        return BATCH

    device = open_device(log)
    loader = batches(log, decode, STEPS)
    for _ in steps(log, STEPS):
        with log.injected("data_loading"), log.wait("batch", "feeder", "worker"):
            next(loader)
        device.work(WORK_NS)
        device.synchronize()


if __name__ == "__main__":
    run(body)
