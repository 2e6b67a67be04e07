"""The host copies its batches from pageable memory, and waits for every copy."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 20
WORK_NS = 2 * MS
BATCH_BYTES = 24 << 20


def copy_and_work(log: Log, *, pinned: bool) -> None:
    """A copy, then work on it."""
    device = open_device(log)
    batch = device.host_buffer(BATCH_BYTES, pinned=pinned)
    for _ in steps(log, STEPS):
        with log.injected("calls that copy"):
            device.copy_in(batch)
        device.work(WORK_NS)
    device.synchronize()


def body(log: Log) -> None:
    """The host waits for each copy."""
    copy_and_work(log, pinned=False)


if __name__ == "__main__":
    run(body)
