"""Fixes of what the launching thread does: its own code, sleep, files, allocations, calls."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.bottlenecks import allocations
from tests.diagnosis.programs.registry import MS, US, Marks
from tests.replay.pairs.pair import Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


def between_launches(
    sim: Simulation, marks: Marks, *, kernels: int, each: int, host: int, factor: float = 1.0, ranges: bool = True
) -> None:
    """Host code before each launch.

    T    [host .....][l][host .....][l]
    gpu                [k]            [k]
    """

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            ns = round(varied(host, "host", number, kernel) * factor)
            yield from ranged(t, "prepare" if ranges else "", t.compute(ns, "build_arguments"))
            yield from t.launch("axpy", varied(each, "axpy", number, kernel))

    loop(sim, marks, step, ranges=ranges)


def in_and_around_a_range(sim: Simulation, marks: Marks, *, around: int, kernels: int = 8) -> None:
    """Host code before each launch: in a range before every second one, and `around` it before the others.

    T    [prepare .][l][host ......][l][prepare .][l][host ......][l]
    gpu             [k]             [k]           [k]             [k]
    """

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            inside = kernel % 2 == 0
            code = t.compute(varied(250 * US if inside else around, "host", number, kernel), "build_arguments")
            yield from ranged(t, "prepare" if inside else "", code)
            yield from t.launch("axpy", varied(50 * US, "axpy", number, kernel))

    loop(sim, marks, step)


def before_each_step(
    sim: Simulation, marks: Marks, *, what: str, ns: int, kernel: int, synchronized: bool = True, left: bool = True
) -> None:
    """Something that the launching thread does in each step: `what`; not any more where it is not `left`.

    T    [what ......][l][l][sync ...]
    gpu                 [k ][k ]
    """

    def step(t: Thread, number: int) -> Body:
        if left:
            yield from _doing(t, what, varied(ns, what, number))
        for part in range(2):
            yield from t.launch("sweep", varied(kernel, "sweep", number, part) // 2)
        if synchronized:
            yield from t.synchronize()

    waking(loop(sim, marks, step))


def _doing(t: Thread, what: str, ns: int) -> Body:
    if what == "read":
        yield from t.read_file(ns)
    elif what == "clock_nanosleep":
        yield from t.sleep(ns)
    elif what == "munmap":
        yield from t.os_call(what, ns, "os_memory")
    elif what == "cublasGemmEx":
        yield from t.library(what, ns, [t.api("cudaFuncGetAttributes", 2 * US)], 2 * US)
    elif what == "cudaFree":
        yield from t.api("cudaMalloc", ns // 2, "memory_allocation", ioctl=ns // 3)
        yield from t.free(ns - ns // 2)
    else:
        yield from t.build_graph(8, instantiate=ns)


def slow_launches(sim: Simulation, marks: Marks, *, kernels: int, each: int, call: int) -> None:
    """Launch calls longer than their kernels."""

    def step(t: Thread, number: int) -> Body:
        for kernel in range(kernels):
            ns = varied(call, "call", number, kernel) if call else 0
            yield from t.launch("axpy", varied(each, "axpy", number, kernel), call=ns)

    loop(sim, marks, step)


def first_launches(sim: Simulation, marks: Marks, *, every: int, ns: int, kind: str = "lazy_load") -> None:
    """Every so many steps something is loaded, compiled or written by the profiler in a launch call; never where `ns`
    is 0."""

    def step(t: Thread, number: int) -> Body:
        overhead = [(kind, varied(ns, kind, number))] if ns and number % every == 0 else []
        yield from t.launch("sweep", varied(1 * MS, "sweep", number), overhead=overhead)
        yield from t.synchronize()

    loop(sim, marks, step)


GONE, HALF = {"left": False}, {"factor": 0.5}
HOST_CODE, FILES = without("host_compute"), without("io_wait")
PREPARE = faster("host", "prepare", 0.5)
PAIRS: tuple[Pair, ...] = (
    pair(
        "host code between launches",
        partial(between_launches, kernels=8, each=100 * US, host=150 * US, ranges=False),
        {"factor": 0.0},
        HOST_CODE,
        (0.30, 0.40),
    ),
    pair(
        "much host code between launches",
        partial(between_launches, kernels=8, each=40 * US, host=400 * US),
        {"factor": 0.0},
        HOST_CODE,
        (0.85, 0.93),
    ),
    pair(
        "host range halved, and kernels are the limit then",
        partial(between_launches, kernels=10, each=100 * US, host=150 * US),
        HALF,
        PREPARE,
        (0.30, 0.40),
    ),
    pair(
        "host range halved, and the host stays the limit",
        partial(between_launches, kernels=10, each=40 * US, host=200 * US),
        HALF,
        PREPARE,
        (0.46, 0.50),
        quick=True,
    ),
    pair(
        "host range halved behind longer kernels",
        partial(between_launches, kernels=10, each=200 * US, host=100 * US),
        HALF,
        PREPARE,
        (0.0, 0.02),
    ),
    pair(
        "sleep",
        partial(before_each_step, what="clock_nanosleep", ns=2 * MS, kernel=1 * MS),
        GONE,
        without("sleep"),
        (0.62, 0.70),
    ),
    pair("file read", partial(before_each_step, what="read", ns=3 * MS, kernel=2 * MS), GONE, FILES, (0.56, 0.64)),
    pair(
        "short file read, scheduling not recorded",
        partial(before_each_step, what="read", ns=400 * US, kernel=2 * MS),
        GONE,
        FILES,
        (0.14, 0.22),
        capture=EVERYTHING.but(sched=False, samples=False),
    ),
    pair(
        "memory unmapped",
        partial(before_each_step, what="munmap", ns=700 * US, kernel=1 * MS),
        GONE,
        without("os_memory"),
        (0.36, 0.44),
    ),
    pair(
        "time in a library",
        partial(before_each_step, what="cublasGemmEx", ns=500 * US, kernel=1 * MS),
        GONE,
        without("cuda_api"),
        (0.30, 0.36),
        tolerated=0.05,
    ),
    pair(
        "cudaMalloc in each step",
        allocations,
        {"kept": True},
        without("memory_allocation"),
        (0.75, 0.82),
        steps=80,
    ),
    pair(
        "cudaMalloc and cudaFree in each step",
        partial(before_each_step, what="cudaFree", ns=800 * US, kernel=2 * MS, synchronized=False),
        GONE,
        without("memory_allocation"),
        (0.12, 0.20),
    ),
    pair(
        "graph built in each step",
        partial(before_each_step, what="graph", ns=900 * US, kernel=1 * MS),
        GONE,
        without("graph_build"),
        (0.45, 0.55),
    ),
    pair(
        "slow launch calls",
        partial(slow_launches, kernels=40, each=5 * US, call=30 * US),
        {"call": 0},
        without("launch_call"),
        (0.74, 0.84),
    ),
    pair(
        "launch calls a little longer than their kernels",
        partial(slow_launches, kernels=40, each=20 * US, call=30 * US),
        {"call": 0},
        without("launch_call"),
        (0.24, 0.34),
    ),
    pair(
        "kernel loaded in each step",
        partial(first_launches, every=1, ns=1 * MS),
        {"ns": 0},
        without("module_load"),
        (0.46, 0.54),
    ),
    pair(
        "kernel loaded in every fourth step",
        partial(first_launches, every=4, ns=300 * US),
        {"ns": 0},
        without("module_load"),
        (0.05, 0.09),
        warm=4,
    ),
    pair(
        "the profiler writes in each step",
        partial(first_launches, every=1, ns=500 * US, kind="flush"),
        {"ns": 0},
        without("profiler_overhead"),
        (0.28, 0.37),
    ),
    pair(
        "sleep, as its finding says",
        partial(before_each_step, what="clock_nanosleep", ns=1500 * US, kernel=1 * MS),
        GONE,
        (),
        (0.55, 0.63),
        finding="host",
    ),
    pair(
        "host code around a range, as its finding says",
        partial(in_and_around_a_range, around=300 * US),
        {"around": 0},
        (),
        (0.48, 0.56),
        finding="host",
        tolerated=0.02,
    ),
)
