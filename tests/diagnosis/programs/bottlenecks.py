"""Causes that were taken for others: the driver's calls, MPI, writes, stalls, first launches, passers-by."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.diagnosis.agreement import Cap
from tests.diagnosis.programs.registry import MS, US, Between, Marks, busy_step, program, read, solver, start_up
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import CUDA_ONLY, Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import Signal
from tests.simulator.host import Block, Body, Run

INPUT = r"(?i)data ?load|input data|waiting for input|feed path|input-bound"


@program(
    read(
        "memory",
        seconds=("kernels",),
        lead=(72, 84),
        headline=("memory|alloc",),
        named=("cudaMalloc",),
        never=(NO_PYTORCH, SMALLER, INPUT),
    ),
    {"compute": (0.17, 0.24), "memory_allocation": (0.72, 0.84)},
)
def allocations_by_the_driver(sim: Simulation, marks: Marks) -> None:
    """cudaMalloc spends its time in an ioctl of the driver: that is no read of data.

    T    [cudaMalloc [ioctl ........]][l][sync]
    gpu                                 [k ]
    """

    allocations(sim, marks)


def allocations(sim: Simulation, marks: Marks, *, kept: bool = False) -> None:
    """The same with an allocation in each step, or with memory that is kept."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(80):
            if not kept:
                yield from t.api("cudaMalloc", 4 * MS, "memory_allocation", ioctl=3_800 * US)
            yield from t.launch("sweep", 1_060 * US)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


MPI: dict[str, Between] = {"compute": (0.33, 0.42), "idle": (0.58, 0.67)}
EXCHANGE = read(
    "communication",
    seconds=("kernels",),
    lead=(54, 66),
    headline=("MPI",),
    named=("MPI_Sendrecv",),
    never=(NO_PYTORCH, SMALLER, INPUT, r"NCCL|nccl"),
    frameworks=("mpi",),
    no_frameworks=("pytorch",),
)


DOMAIN = 7


def _exchange(sim: Simulation, marks: Marks, *, ranges: bool) -> None:
    def call(t: Thread, name: str, ns: int) -> Body:
        if ranges:
            start = t.clock.now
            with t.inside("mpi", name, "", recorded=False):
                yield from t.compute(ns, "opal_progress")
            called.append((name, start, t.clock.now, (t.process.pid, t.tid)))
        else:
            yield from t.mpi(name, ns)

    def write(trace: TraceBuilder) -> None:
        trace.nvtx("MPI", 0, None, domain=DOMAIN, event_type=75)
        for name, begin, end, thread in called:
            trace.nvtx(name, begin, end, thread=thread, domain=DOMAIN)

    called: list[tuple[str, int, int, tuple[int, int]]] = []
    if ranges:
        sim.noise.append(write)

    def main(t: Thread) -> Body:
        yield from call(t, "MPI_Init", 60 * MS)
        yield from t.api("cudaFree", 10 * MS, "context_init", ioctl=8 * MS)
        yield from t.launch("set_up", 20 * US)
        yield from t.compute(20 * MS, "read_parameters")
        marks.begin(t)
        for _ in range(200):
            yield from t.launch("stencil", 1 * MS)
            yield from t.synchronize()
            yield from call(t, "MPI_Sendrecv", 1_100 * US)
            yield from call(t, "MPI_Allreduce", 500 * US)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(EXCHANGE, MPI, quick=True)
def waits_in_mpi(sim: Simulation, marks: Marks) -> None:
    """Each step exchanges its halo, and nothing runs meanwhile.

    T    [l][sync][MPI_Sendrecv ...][MPI_Allreduce][l][sync]
    gpu    [k ]                                      [k ]
    """
    _exchange(sim, marks, ranges=False)


@program(EXCHANGE, MPI)
def waits_in_mpi_by_ranges(sim: Simulation, marks: Marks) -> None:
    """The same, where ranges of the domain MPI alone show the calls."""
    _exchange(sim, marks, ranges=True)


@program(
    read("kernels", lead=(88, 100), headline=("advect|project",), never=(NO_PYTORCH, SMALLER, INPUT, r"comm-bound")),
    {"compute": (0.9, 1.0)},
)
def only_mpi_init(sim: Simulation, marks: Marks) -> None:
    """Half a second in MPI_Init is no communication."""

    def main(t: Thread) -> Body:
        yield from t.launch("probe", 20 * US)
        yield from t.mpi("MPI_Init", 500 * MS)
        marks.begin(t)
        for _ in range(60):
            yield from busy_step(t)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "host",
        seconds=("kernels", "sync"),
        lead=(52, 84),
        headline=("writ|host",),
        named=("writ",),
        never=(NO_PYTORCH, SMALLER, INPUT),
    ),
    {"compute": (0.17, 0.22), "io_wait": (0.77, 0.82)},
    quick=True,
)
def checkpoint_each_step(sim: Simulation, marks: Marks) -> None:
    """What each step writes is no input.

    T    [l][sync][write ........]
    gpu    [k ]..................
    """
    checkpoints(sim, marks)


def checkpoints(sim: Simulation, marks: Marks, *, every: int = 1) -> None:
    """The same with a checkpoint every so many steps."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for step in range(60):
            yield from t.launch("advance", 3 * MS)
            yield from t.synchronize()
            for _ in range(3 if step % every == 0 else 0):
                yield from t.os_call("write", 4 * MS, "io_wait", blocked=True)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "input",
        seconds=("kernels", "sync"),
        lead=(52, 84),
        headline=("read|input|file",),
        never=(NO_PYTORCH, SMALLER, r"(?i)checkpoint"),
    ),
    {"compute": (0.17, 0.22), "io_wait": (0.77, 0.82)},
)
def reads_each_step(sim: Simulation, marks: Marks) -> None:
    """The same with reads: that is input."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(60):
            yield from t.read_file(12 * MS)
            yield from t.launch("advance", 3 * MS)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "unknown",
        seconds=("kernels",),
        lead=(50, 68),
        never=(NO_PYTORCH, SMALLER, r"(?i)(join|batch|combine) (the )?(small|tiny)? ?copies"),
    ),
    {"compute": (0.3, 0.45), "device_stall": (0.5, 0.68)},
)
def stalls_without_a_reason(sim: Simulation, marks: Marks) -> None:
    """Queued kernels that start late: the trace does not say why, and there are no copies.

    T    [l][l][l][l]
    gpu    [k ]......[k ]......[k ]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(30):
            for _ in range(6):
                yield from t.launch("update", 1 * MS, stall=1_600 * US)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        seconds=(None, "startup"),
        lead=(70, 100),
        headline=("advect|project",),
        never=(NO_PYTORCH, SMALLER, r"(?i)many (small|short) (launches|kernels)|launch-bound"),
        caps=(Cap("launch", 0.05),),
    ),
    {"compute": (0.7, 0.92), "module_load": (0.08, 0.3)},
)
def one_first_launch(sim: Simulation, marks: Marks) -> None:
    """One kernel is loaded at its first launch, in the middle of the loop: that is not many launches.

    T    [step][step][launch: load ...........][step][step]
    """
    del marks

    def main(t: Thread) -> Body:
        for step in range(60):
            if step == 30:
                yield from t.launch("rare", 50 * US, overhead=[("lazy_load", 39 * MS)])
            yield from busy_step(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "unknown",
        seconds=("kernels", "sync"),
        lead=(55, 86),
        headline=("assemble_matrix",),
        never=(NO_PYTORCH, SMALLER, r"(?i)(fix|fix) the feed path"),
    ),
    {"compute": (0.15, 0.25), "uncovered": (0.74, 0.85)},
    capture=CUDA_ONLY,
    quick=True,
)
def unknown_in_one_range(sim: Simulation, marks: Marks) -> None:
    """Nothing but CUDA and NVTX was captured: a range says where the time goes, nothing says why.

    T    <assemble_matrix ...........>[l][sync]
    gpu                                 [k ]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(60):
            t.push("assemble_matrix")
            yield from t.compute(8 * MS)
            t.pop()
            yield from t.launch("factorize", 2 * MS)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read("host", "unknown", seconds=("kernels", "sync"), lead=(45, 80), never=(NO_PYTORCH, SMALLER, r"telemetry")),
    {"compute": (0.2, 0.3), "idle": (0.7, 0.8)},
    exact=False,
)
def a_passer_by_at_some_wake_ups(sim: Simulation, marks: Marks) -> None:
    """The real waker leaves no row. Another thread happens to run at a tenth of the ends of such waits.

    T          [l][sync][pthread_cond_wait ......][l][sync][pthread_cond_wait ......]
    telemetry  [sleep ........................][signal]
    """
    due: list[Signal] = [Signal() for _ in range(12)]

    def main(t: Thread) -> Body:
        marks.begin(t)
        for step in range(119):
            yield from t.launch("advance", 1 * MS)
            yield from t.synchronize()
            if step % 10 == 5:
                t.clock.at(t.clock.now + 3 * MS - 40 * US, due[step // 10].fire)
            yield from t.os_call("pthread_cond_wait", 3 * MS, "lock_wait", blocked=True)
        marks.end(t)

    def watch(t: Thread) -> Body:
        for signal in due:
            with t.inside("os", "clock_nanosleep", "sleep"):
                yield Run(300)
                yield Block(signal)
            yield from t.compute(20 * US, "count_requests")
            yield from t.put(sim.channel(), "pthread_cond_signal")
            yield from t.compute(20 * US, "count_requests")

    process = solver(sim)
    sim.thread(process, main, name="solver")
    sim.thread(process, watch, name="telemetry")


@program(
    read("kernels", lead=(88, 100), headline=("advect|project",), never=(NO_PYTORCH, SMALLER)),
    {"compute": (0.9, 1.0)},
)
def busy_all_the_time(sim: Simulation, marks: Marks) -> None:
    """Nothing is wrong: the kernels take the time, and no smaller GPU is proposed."""

    def main(t: Thread) -> Body:
        yield from start_up(t, 20 * MS)
        marks.begin(t)
        for _ in range(100):
            yield from busy_step(t, host=20 * US)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
