"""The GPU waits for batches that a worker process decodes too slowly."""

from __future__ import annotations

from device import open_device
from loader import train
from waitlog import Log, compute, run

STEPS = 20
DECODE_SECONDS = 0.012
BATCH = bytes(1 << 14)


def body(log: Log) -> None:
    """Take a batch, work on it, wait for that."""

    def decode(_number: int) -> bytes:
        with log.does("compute"):
            compute(DECODE_SECONDS)
        return BATCH

    train(log, open_device(log), decode, STEPS)


if __name__ == "__main__":
    run(body)
