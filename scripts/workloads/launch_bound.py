"""Kernels so short that the GPU is done with each before the host has launched the next."""

from __future__ import annotations

from device import open_device
from waitlog import Log, run, steps

STEPS = 20
KERNELS = 50


def body(log: Log) -> None:
    """A loop of tiny kernels."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        with log.injected("launches"):
            for _ in range(KERNELS):
                device.tiny()
        device.synchronize()


if __name__ == "__main__":
    run(body)
