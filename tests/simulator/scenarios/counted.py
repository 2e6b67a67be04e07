"""A run with the GPU's own counters beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.counters import Counters
from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import register

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation

STEPS, SHORT = 16, 20
LATE = 60 * MS
"""From here on the clock is low."""


def counters() -> Counters:
    """A kernel that fills the GPU, one that moves memory with few SMs, and short ones."""
    return Counters(
        activity={
            "SMs Active [Throughput %]": {"gemm": 92, "index_copy": 35, "elementwise": 60},
            "Tensor Active [Throughput %]": {"gemm": 71, "index_copy": 0, "elementwise": 0},
            "DRAM Read Bandwidth [Throughput %]": {"gemm": 28, "index_copy": 64, "elementwise": 45},
            "DRAM Write Bandwidth [Throughput %]": {"gemm": 9, "index_copy": 22, "elementwise": 40},
        },
        clock=[(0, 1_410_000_000), (LATE, 1_130_000_000)],
        idle_clock=210_000_000,
        foreign={"SMs Active [Throughput %]": 55, "GPC Clock Frequency [MHz]": 1_410_000_000},
    )


@register("host_compute", gpus=2)
def counted_training(sim: Simulation) -> None:
    """Steps of one long, one half-long and many short kernels with Python in between; the other GPU is somebody else's.

    T    [Python ......][gemm][index_copy][elementwise x 20][sync .........]
    gpu  ...............|======= gemm =======|= index_copy =|-|-|-|-|-|-|-|-|
    SM   0               92%                  35%            60%, with pauses
    """

    def body(t: Thread) -> Body:
        for step in range(STEPS):
            t.push(f"step {step}")
            yield from t.compute(1_700 * US, "collate")
            t.push("forward")
            yield from t.launch("gemm", 3 * MS)
            yield from t.launch("index_copy", 740 * US)
            t.pop()
            t.push("optimizer")
            for _ in range(SHORT):
                yield from t.launch("elementwise", 30 * US)
            yield from t.synchronize()
            t.pop()
            t.pop()

    sim.counters = counters()
    for gpu in sim.gpus:
        gpu.clock_hz, gpu.bandwidth = 1_410_000_000, 2_039_040_000_000
    sim.thread(sim.process([0]), body)
