"""Repairs of what the launching thread does: its own code, sleep, files, locks, allocations, calls, lost turns."""

from __future__ import annotations

from functools import partial

from tests.builder import TraceBuilder
from tests.diagnosis.programs.families import allocations
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

MPI_DOMAIN = 7


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
    blocked = {"read": "io_wait", "write": "io_wait", "clock_nanosleep": "sleep"}
    if what in blocked:
        yield from t.os_call(what, ns, blocked[what], blocked=True)
    elif what == "munmap":
        yield from t.os_call(what, ns, "os_memory")
    elif what == "cublasGemmEx":
        yield from t.library(what, ns, [t.api("cudaFuncGetAttributes", 2 * US)], 2 * US)
    elif what == "cudaFree":
        yield from t.api("cudaMalloc", ns // 2, "memory_allocation", ioctl=ns // 3)
        yield from t.free(ns - ns // 2)
    elif what == "graph":
        yield from t.build_graph(8, instantiate=ns)
    else:
        yield from t.compute(ns, what)


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


def held_lock(sim: Simulation, marks: Marks, *, holding: int, other_code: int = 200 * US, locked: bool = True) -> None:
    """Another thread holds a lock for most of the time, in which it computes; or the launching thread does not need it.

    other  [lock][computes ......][unlock]
    T         [pthread_mutex_lock ......][l][sync]
    """
    process, mutex = solver(sim), sim.mutex()

    def other(t: Thread) -> Body:
        for number in range(STEPS + 10):
            yield from t.lock(mutex)
            yield from t.compute(varied(holding, "holding", number), "serialize")
            yield from t.unlock(mutex)
            yield from t.compute(other_code, "next_message")

    def step(t: Thread, number: int) -> Body:
        if locked:
            yield from t.lock(mutex)
        yield from t.compute(10 * US, "next_message")
        if locked:
            yield from t.unlock(mutex)
        yield from t.launch("sweep", varied(900 * US, "sweep", number))
        yield from t.synchronize()

    sim.thread(process, other, name="logger")
    waking(loop(sim, marks, step, process=process))


def shared_core(sim: Simulation, marks: Marks, *, host: int, kernel: int, shared: bool = True) -> None:
    """The launching thread shares its core with a busy process, or has one of its own.

    core 1  [T: host][ greedy ][T: host ][l][sync
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(varied(host, "host", number), "assemble")
        yield from t.launch("solve", varied(kernel, "solve", number))
        yield from t.synchronize()

    process, neighbour = solver(sim), sim.process(gpus=[], name="/usr/bin/neighbour")
    main = loop(sim, marks, step, process=process)
    busy = 2 * STEPS * host + 50 * MS
    sim.thread(neighbour, lambda t: t.compute(busy, "spin"), name="greedy", share=main if shared else None)


def exchanging(
    sim: Simulation, marks: Marks, *, ns: int, kernel: int, ranges: bool = False, factor: float = 1.0
) -> None:
    """Each step waits in MPI, as its rows or ranges of the domain MPI show."""
    called: list[tuple[int, int, tuple[int, int]]] = []

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("stencil", varied(kernel, "stencil", number))
        yield from t.synchronize()
        took = round(varied(ns, "MPI", number) * factor)
        if ranges:
            start = t.clock.now
            yield from t.compute(took, "opal_progress")
            called.append((start, t.clock.now, (t.process.pid, t.tid)))
        elif took:
            yield from t.mpi("MPI_Sendrecv", took)

    def write(trace: TraceBuilder) -> None:
        trace.nvtx("MPI", 0, None, domain=MPI_DOMAIN, event_type=75)
        for begin, end, thread in called:
            trace.nvtx("MPI_Sendrecv", begin, end, thread=thread, domain=MPI_DOMAIN)

    if ranges:
        sim.noise.append(write)
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
        quick=True,
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
        quick=True,
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
        "lock that another thread holds",
        partial(held_lock, holding=2 * MS),
        {"locked": False},
        without("lock_wait"),
        (0.50, 0.62),
    ),
    pair(
        "host code under a lock that the launching thread needs",
        partial(held_lock, holding=2 * MS),
        {"holding": 0, "other_code": 0},
        HOST_CODE,
        (0.50, 0.62),
    ),
    pair(
        "core shared with a busy process",
        partial(shared_core, host=6 * MS, kernel=2 * MS),
        {"shared": False},
        without("off_cpu"),
        (0.36, 0.48),
    ),
    pair(
        "wait in MPI",
        partial(exchanging, ns=900 * US, kernel=1 * MS),
        {"factor": 0.0},
        (),
        (0.42, 0.52),
        finding="communication",
    ),
    pair(
        "range of MPI halved",
        partial(exchanging, ns=900 * US, kernel=1 * MS, ranges=True),
        {"factor": 0.5},
        faster("host", "MPI_Sendrecv", 0.5),
        (0.20, 0.27),
    ),
    pair(
        "sleep, as its finding says",
        partial(before_each_step, what="clock_nanosleep", ns=1500 * US, kernel=1 * MS),
        GONE,
        (),
        (0.55, 0.63),
        finding="host",
    ),
)
