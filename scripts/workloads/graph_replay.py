"""The tiny kernels of `launch_bound`, launched as one CUDA graph a step."""

from __future__ import annotations

from device import open_device
from waitlog import Log, run, steps

STEPS = 40
KERNELS = 50


def body(log: Log) -> None:
    """The same loop; the host launches once a step."""
    device = open_device(log)
    launch = device.graph_of_tiny(KERNELS)
    for _ in steps(log, STEPS):
        launch()
    device.synchronize()


if __name__ == "__main__":
    run(body)
