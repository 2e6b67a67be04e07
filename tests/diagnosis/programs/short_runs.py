"""Programs whose GPU works for a small part of the time since the first CUDA call, and near misses: programs that only
look like it."""

from __future__ import annotations

from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver, start_up
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

STEADY = r"(?i)\bsteady state of|takes? [\d.]+% of each step"
STARTS = (NO_PYTORCH, SMALLER, STEADY)
A_START = read("startup", basis=("cold",), seconds=(None, "host", "copies"), never=STARTS, headline=("start",))


def _loop(sim: Simulation, start_ms: int, steps: int, kernels: int, each_us: int, host_us: int) -> None:
    def main(t: Thread) -> Body:
        yield from t.api("cudaFree", start_ms * MS, "context_init", ioctl=start_ms * MS // 2)
        for _ in range(steps):
            for name in ("predict", "correct", "limit")[:kernels]:
                yield from t.launch(name, each_us * US, call=3 * US)
            yield from t.synchronize()
            yield from t.compute(host_us * US, "next_time")

    sim.thread(solver(sim), main, name="solver")


@program(A_START, {"compute": (0.2, 0.9)}, quick=True)
def five_tiny_steps(sim: Simulation, marks: Marks) -> None:
    """Five steps of 60 µs behind 150 ms of start.

    T    [context ..........................][l][l][l][l][l]
    """
    del marks
    _loop(sim, 150, 5, 2, 20, 10)


@program(A_START, {"compute": (0.2, 0.9)})
def ninety_tiny_steps(sim: Simulation, marks: Marks) -> None:
    """Two milliseconds of steps behind 66 ms of start: 270 operations, and still no steady state."""
    del marks
    _loop(sim, 66, 90, 3, 4, 6)


@program(
    read("memory", basis=("cold",), seconds=("startup", "host", None), never=STARTS, headline=("start", "memory")),
    {"compute": (0.02, 0.12)},
    phases="start-up.*",
)
def pinned_buffers_for_one_result(sim: Simulation, marks: Marks) -> None:
    """300 ms of pinned allocations, and 45 ms of work: eight blocks, and a sort that takes most of it.

    T    [context][host alloc ...][host alloc ...][copy][blocks][sort .....][copy]
    """
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaSetDevice", 40 * MS, "context_init", ioctl=20 * MS)
        yield from t.launch("clear", 200 * US)
        for _ in range(2):
            yield from t.api("cudaHostAlloc", 150 * MS, "memory_allocation", ioctl=100 * MS)
        yield from t.copy("HtoD", 30 << 20, 5 * MS)
        for _ in range(8):
            yield from t.launch("block", 500 * US)
        yield from t.launch("sort", 20 * MS)
        yield from t.copy("DtoH", 30 << 20, 5 * MS)
        yield from t.synchronize()

    sim.thread(solver(sim), main, name="solver")


@program(
    read("startup", basis=("cold",), seconds=("kernels", "host", None), never=STARTS, headline=("start",)),
    {"compute": (0.5, 1.0)},
    phases="start-up.*",
)
def most_work_once_after_a_long_first_call(sim: Simulation, marks: Marks) -> None:
    """A first call of 2.2 s, then 300 ms of work, of which a fifth repeats."""
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaFree", 2_200 * MS, "context_init", ioctl=1_500 * MS)
        for number in range(4):
            yield from t.launch(f"assemble_{number}", 55 * MS)
            yield from t.synchronize()
            yield from t.compute(2 * MS, "next_part")
        for _ in range(20):
            yield from t.launch("relax", 3 * MS)
            yield from t.synchronize()
            yield from t.compute(200 * US, "norm")

    sim.thread(solver(sim), main, name="solver")


@program(
    read("host", basis=("cold",), seconds=("startup", None), never=STARTS, headline=("host", "start")),
    {"compute": (0.2, 0.95)},
    phases="start-up.*",
)
def host_code_then_a_few_steps(sim: Simulation, marks: Marks) -> None:
    """A start that is mostly host code, then 20 steps of a millisecond."""
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaMalloc", 60 * MS, "context_init", ioctl=40 * MS)
        yield from t.compute(700 * MS, "build_mesh")
        for _ in range(20):
            yield from t.launch("advect", 500 * US)
            yield from t.launch("project", 300 * US)
            yield from t.synchronize()
            yield from t.compute(100 * US, "next_time")

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "input",
        seconds=(None,),
        step_ms=41,
        lead=(88, 97),
        never=(NO_PYTORCH, r"(?i)shows a start|no steady state"),
        headline=("input|read",),
    ),
    {"compute": (0.03, 0.07)},
    phases="start-up steady( teardown)?",
    quick=True,
)
def a_long_loop_that_waits_for_input(sim: Simulation, marks: Marks) -> None:
    """The GPU works for 5% of the time since the first call, in a loop that goes on: no start.

    T    [context][read .......][l][read .......][l][read .......][l]
    """

    def main(t: Thread) -> Body:
        yield from start_up(t, 400 * MS)
        marks.begin(t)
        for _ in range(80):
            yield from t.os_call("read", 37 * MS, "io_wait", blocked=True)
            yield from t.launch("advect", 1_200 * US)
            yield from t.launch("project", 800 * US)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        basis=("window",),
        seconds=("copies", None),
        lead=(70, 100),
        headline=("render|shade|sort",),
        never=(NO_PYTORCH, SMALLER, r"(?i)shows a start"),
    ),
    {"compute": (0.7, 1.0)},
)
def one_result_that_takes_longer_than_the_start(sim: Simulation, marks: Marks) -> None:
    """250 ms of start, then 700 ms of work once: the work is judged."""
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaMalloc", 250 * MS, "context_init", ioctl=150 * MS)
        yield from t.copy("HtoD", 300 << 20, 60 * MS)
        for name in ("render", "shade", "sort"):
            yield from t.launch(name, 190 * MS)
        yield from t.copy("DtoH", 300 << 20, 60 * MS)
        yield from t.synchronize()

    sim.thread(solver(sim), main, name="solver")
