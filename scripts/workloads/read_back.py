"""Every step ends with a number read back from the GPU, on which the host then computes."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, compute, run, steps

STEPS = 60
KERNELS, KERNEL_NS = 4, MS // 2
COMPUTE_SECONDS = 0.002


def body(log: Log) -> None:
    """Work, read a number, think about it."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        for _ in range(KERNELS):
            device.work(KERNEL_NS)
        device.read_back()
        with log.injected("after the read-back"):
            compute(COMPUTE_SECONDS)


if __name__ == "__main__":
    run(body)
