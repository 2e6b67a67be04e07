"""The host sleeps between steps; the GPU has nothing to do."""

from __future__ import annotations

import time

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 20
WORK_NS = 2 * MS
SLEEP_SECONDS = 0.008


def body(log: Log) -> None:
    """Work, wait for it, sleep."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        with log.injected("sleep"):
            time.sleep(SLEEP_SECONDS)


if __name__ == "__main__":
    run(body)
