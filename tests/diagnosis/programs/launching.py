"""Launches, graphs, page migrations and the profiler: what is the device's own, and what is not."""

from __future__ import annotations

from itertools import pairwise

from tests.builder import TraceBuilder
from tests.diagnosis.agreement import Cap
from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body

PAGES = 2 << 20


@program(
    read(
        "launch",
        seconds=("kernels", "sync", "parallelism"),
        lead=(60, 80),
        headline=("launch",),
        never=(NO_PYTORCH, SMALLER),
    ),
    {"compute": (0.2, 0.3), "launch_call": (0.6, 0.8)},
)
def launches_of_tiny_kernels(sim: Simulation, marks: Marks) -> None:
    """Each launch call takes four times as long as its kernel.

    T    [launch ....][launch ....][launch ....]
    gpu            [k]          [k]          [k]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(10):
            for _ in range(200):
                yield from t.launch("axpy", 3 * US, call=12 * US)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read("kernels", lead=(94, 100), headline=("node_",), never=(NO_PYTORCH, SMALLER, r"(?i)launch-bound")),
    {"compute": (0.7, 0.85), "intra_graph": (0.15, 0.3)},
)
def pauses_inside_a_graph(sim: Simulation, marks: Marks) -> None:
    """A graph whose nodes come 30 µs after one another: no launch is to blame, and no host.

    T    [graph launch][graph launch]
    gpu      [n]..[n]..[n]..[n]..[n]..[n]
    """
    nodes = [Node(f"node_{number}", 100 * US, 30 * US) for number in range(20)]

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(80):
            yield from t.launch_graph(nodes)
        yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


def _paging(sim: Simulation, marks: Marks, cause: str) -> None:
    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(40):
            yield from t.launch("sweep", 10 * MS)
        yield from t.synchronize()
        marks.end(t)

    def write(trace: TraceBuilder) -> None:
        starts = [op.start for op in sim.gpus[0].ops if op.kind == "kernel"]
        for start, after in pairwise([*starts, starts[-1] + 10 * MS]):
            for page in range(12):
                begin = start + 1 * MS + page * 500 * US
                if begin + 500 * US <= after:
                    trace.memcpy(begin, begin + 500 * US, kind="UM HtoD", cause=cause, size=PAGES)

    process = solver(sim)
    sim.thread(process, main, name="solver")
    sim.noise.append(write)


@program(
    read(
        "memory",
        seconds=("kernels",),
        lead=(52, 66),
        headline=("memory|page|paging|migrat",),
        named=("fault|migrat|paging",),
        never=(NO_PYTORCH, SMALLER, r"(?i)small copies"),
    ),
    {"compute": (0.97, 1.0)},
    exact=False,
)
def pages_fault_inside_kernels(sim: Simulation, marks: Marks) -> None:
    """Six of the ten milliseconds of each kernel are page faults: the kernel waits for its memory.

    gpu    [== k ==================]
    pages    [m][m][m][m][m][m]
    """
    _paging(sim, marks, "fault")


@program(
    read("kernels", lead=(95, 100), headline=("sweep",), never=(NO_PYTORCH, SMALLER, r"(?i)small copies")),
    {"compute": (0.97, 1.0)},
    exact=False,
)
def pages_prefetched_beside_kernels(sim: Simulation, marks: Marks) -> None:
    """The same pages, prefetched for the next kernel: nobody waits for them."""
    _paging(sim, marks, "prefetch")


@program(
    read(
        "kernels",
        seconds=(None, "sync", "launch", "host"),
        lead=(55, 75),
        headline=("advance",),
        never=(NO_PYTORCH, SMALLER),
        caps=(Cap("launch", 0.1), Cap("sync", 0.05), Cap("host", 0.05)),
    ),
    {"compute": (0.6, 0.7), "profiler_overhead": (0.3, 0.4)},
    said=(r"(?i)profiler",),
)
def the_profiler_takes_a_third(sim: Simulation, marks: Marks) -> None:
    """The profiler writes its buffers in each step: that is named, and nothing is promised of it.

    T    [flush ........][l][sync ............]
    gpu                   [== k ==============]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(60):
            yield from t.launch("advance", 4 * MS, overhead=[("flush", 2 * MS)])
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
