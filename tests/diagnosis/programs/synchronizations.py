"""Programs that synchronize: what removing the call saves is not the gap that follows it."""

from __future__ import annotations

from tests.diagnosis.agreement import Cap
from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Channel, Thread
from tests.simulator.host import Body


@program(
    read(
        "kernels",
        seconds=("sync",),
        lead=(58, 68),
        headline=("relax",),
        named=("cudaDeviceSynchronize",),
        never=(NO_PYTORCH, SMALLER),
        caps=(Cap("sync", 0.42),),
    ),
    {"compute": (0.58, 0.68), "idle": (0.32, 0.42)},
    quick=True,
)
def sync_before_every_small_kernel(sim: Simulation, marks: Marks) -> None:
    """Without the synchronization the host would run ahead: the gaps are its doing, up to its own wait.

    T    [l][sync ..][host][l][sync ..][host]
    gpu    [== k ==].........[== k ==]
    """

    small_kernels(sim, marks)


def small_kernels(sim: Simulation, marks: Marks, *, synchronized: bool = True) -> None:
    """The same with the synchronization, or without."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(1_500):
            yield from t.launch("relax", 60 * US)
            if synchronized:
                yield from t.synchronize()
            yield from t.compute(25 * US, "next_colour")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "host",
        lead=(80, 97),
        headline=("host|CPU|mesh|thread|wait",),
        never=(NO_PYTORCH, SMALLER),
        caps=(Cap("sync", 0.07), Cap("launch", 0.05)),
    ),
    {"compute": (0.03, 0.08), "host_compute": (0.85, 0.97)},
    quick=True,
)
def sync_with_a_slow_worker_behind(sim: Simulation, marks: Marks) -> None:
    """A thread makes the work at its own rate: to remove the synchronization brings nothing.

    worker  [parse ....][put][parse ....][put]
    T       [wait .........][l][sync][wait ...][l][sync]
    gpu                      [k]               [k]
    """
    worker_behind(sim, marks)


def worker_behind(sim: Simulation, marks: Marks, *, synchronized: bool = True) -> None:
    """The same with the synchronization, or without."""
    items: Channel = sim.channel()

    def work(t: Thread) -> Body:
        for _ in range(150):
            yield from t.compute(1 * MS, "parse_mesh")
            yield from t.put(items, "pthread_cond_signal")

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(150):
            yield from t.get(items, "pthread_cond_wait")
            yield from t.launch("assemble", 55 * US)
            if synchronized:
                yield from t.synchronize()
        marks.end(t)

    process = solver(sim)
    sim.thread(process, main, name="solver")
    sim.thread(process, work, name="mesher")


@program(
    read(
        "host",
        seconds=("kernels",),
        lead=(75, 86),
        headline=("sleep|host|asleep",),
        never=(NO_PYTORCH, SMALLER),
        caps=(Cap("sync", 0.18),),  # what the kernels before the sleep could hide behind it
    ),
    {"compute": (0.13, 0.2), "sleep": (0.75, 0.86)},
)
def pause_after_synchronizations(sim: Simulation, marks: Marks) -> None:
    """Many synchronized kernels, then a sleep: what the waits could give back is no credit for the pause.

    T    [l][sync][l][sync][l][sync][ sleep ............]
    gpu    [k]      [k]      [k]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(30):
            for _ in range(20):
                yield from t.launch("smooth", 100 * US)
                yield from t.synchronize()
            yield from t.sleep(10 * MS)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        seconds=("host", "sync"),
        lead=(68, 78),
        headline=("gradient",),
        never=(NO_PYTORCH, SMALLER, r"(?i)overlap the copies|copy-bound"),
        caps=(Cap("copies", 0.01), Cap("sync", 0.3)),
    ),
    {"compute": (0.7, 0.78), "host_compute": (0.2, 0.28)},
)
def read_back_of_a_few_bytes(sim: Simulation, marks: Marks) -> None:
    """A copy of four bytes that blocks is a wait for the kernels before it.

    T    [l][l][l][l][cudaMemcpy ........][host ...]
    gpu    [k  ][k  ][k  ][k  ]c..........
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(120):
            for _ in range(4):
                yield from t.launch("gradient", 300 * US)
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.compute(380 * US, "test_convergence")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
