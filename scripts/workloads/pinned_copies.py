"""The batches of `pageable_copies` in pinned memory: the host runs ahead of the copies."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 20
WORK_NS = 2 * MS
BATCH_BYTES = 24 << 20


def body(log: Log) -> None:
    """A copy, which nobody waits for, then work on it."""
    device = open_device(log)
    batch = device.host_buffer(BATCH_BYTES, pinned=True)
    for _ in steps(log, STEPS):
        with log.injected("calls that copy"):
            device.copy_in(batch)
        device.work(WORK_NS)
    device.synchronize()


if __name__ == "__main__":
    run(body)
