"""The host computes between steps; the GPU has nothing to do."""

from __future__ import annotations

from device import MS, open_device
from waitlog import Log, compute, run, steps

STEPS = 20
WORK_NS = 2 * MS
COMPUTE_SECONDS = 0.008


def body(log: Log) -> None:
    """Work, wait for it, compute on a CPU."""
    device = open_device(log)
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        with log.injected("host_compute"):
            compute(COMPUTE_SECONDS)


if __name__ == "__main__":
    run(body)
