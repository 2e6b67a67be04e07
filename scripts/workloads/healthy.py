"""The host is far ahead all the time; the GPU always has work."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, run, steps

STEPS = 40
KERNELS, KERNEL_NS = 10, MS // 2


def body(log: Log) -> None:
    """Launch the kernels of all steps; wait once, at the end."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        for _ in range(KERNELS):
            device.work(KERNEL_NS)
    device.synchronize()


if __name__ == "__main__":
    run(body)
