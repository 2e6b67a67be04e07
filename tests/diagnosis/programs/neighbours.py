"""Programs that share their GPU."""

from __future__ import annotations

from tests.diagnosis.programs.registry import MS, US, Marks, busy_step, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


@program(
    read(
        "other_process",
        seconds=("kernels",),
        lead=(50, 68),
        headline=("process|program",),
        never=(NO_PYTORCH, SMALLER, r"(?i)data ?load"),
    ),
    {"compute": (0.32, 0.48), "gpu_context_switch": (0.48, 0.66)},
    tolerated=("device_stall",),
    quick=True,
)
def another_process_has_the_gpu(sim: Simulation, marks: Marks) -> None:
    """The GPU works for another process for 3 ms of every 5.

    slices   [ mine ][ the other's ][ mine ][ the other's ]
    gpu      [k][k ].................[k][k ]
    """
    mine, other = solver(sim), solver(sim)
    sim.gpus[0].slices = [(start * MS, (start + 3) * MS, other) for start in range(2, 600, 5)]

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(40):
            for _ in range(16):
                yield from t.launch("update", 250 * US)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(mine, main, name="solver")


@program(
    read("kernels", lead=(88, 100), headline=("advect|project",), never=(NO_PYTORCH, SMALLER, r"(?i)other process")),
    {"compute": (0.9, 1.0)},
)
def a_process_that_does_next_to_nothing(sim: Simulation, marks: Marks) -> None:
    """Another process runs two tiny kernels: it is on the GPU, and costs nothing."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(80):
            yield from busy_step(t)
        marks.end(t)

    def probe(t: Thread) -> Body:
        for _ in range(2):
            yield from t.launch("probe", 3 * US)
            yield from t.sleep(100 * MS)

    sim.thread(solver(sim), main, name="solver")
    sim.thread(solver(sim), probe, name="monitor", start=20 * MS)
