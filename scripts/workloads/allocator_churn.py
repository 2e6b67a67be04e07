"""Device memory is allocated at the driver and freed again in every step."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 20
WORK_NS = 2 * MS
TENSORS, TENSOR_BYTES = 4, 24 << 20


def body(log: Log) -> None:
    """Work, wait for it, allocate and free."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        with log.injected("memory_allocation"):
            for _ in range(TENSORS):
                device.churn(TENSOR_BYTES)


if __name__ == "__main__":
    run(body)
