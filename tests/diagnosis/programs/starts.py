"""Programs whose start, reference run or pauses are no part of what repeats."""

from __future__ import annotations

from tests.diagnosis.agreement import Steps
from tests.diagnosis.programs.registry import MS, US, Marks, busy_step, program, read, solver, start_up
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

STARTED = r"(?i)start-?up (takes|is|leads)|loading (takes|leads)"
START_AND_LOOP = r"start-up steady( teardown)?"
MOSTLY_KERNELS = {"compute": (0.9, 1.0), "idle": (0.0, 0.1)}


def _steps(sim: Simulation, marks: Marks, start: int, count: int, *, ranges: bool) -> None:
    def main(t: Thread) -> Body:
        yield from start_up(t, start)
        marks.begin(t)
        for step in range(count):
            if ranges:
                t.push(f"step {step}")
            yield from busy_step(t)
            if ranges:
                t.pop()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        step_ms=4.3,
        lead=(89, 100),
        steps=Steps(58, 60, 4.0, 4.4),
        headline=("advect|project",),
        never=(NO_PYTORCH, SMALLER, STARTED),
    ),
    MOSTLY_KERNELS,
    phases=START_AND_LOOP,
    quick=True,
)
def long_start_then_steps(sim: Simulation, marks: Marks) -> None:
    """A start as long as the steps after it; the steps are busy.

    T    [context][load][load]...[try]..[try]..[ step ][ step ][ step ]
    gpu           .......k......k....k......k..[======][======][======]
    """
    _steps(sim, marks, 300 * MS, 60, ranges=True)


@program(
    read(
        "kernels",
        step_ms=4.3,
        lead=(89, 100),
        steps=Steps(38, 40, 4.1, 4.4),
        headline=("advect|project",),
        never=(NO_PYTORCH, SMALLER, STARTED),
    ),
    MOSTLY_KERNELS,
    phases=START_AND_LOOP,
)
def start_longer_than_the_steps(sim: Simulation, marks: Marks) -> None:
    """The start takes ten times as long as all steps, which have no ranges: a pair of kernels comes four
    times a step, and every fourth pair ends with the synchronization."""
    _steps(sim, marks, 1_800 * MS, 40, ranges=False)


@program(
    read(
        "host",
        seconds=("kernels", "sync"),
        step_ms=1.9,
        lead=(50, 80),
        steps=Steps(290, 300, 1.7, 1.9),
        headline=("host|CPU|exchange_halo",),
        never=(NO_PYTORCH, SMALLER, r"(?i)gpu-bound|kernel-bound"),
    ),
    {"compute": (0.2, 0.25), "host_compute": (0.73, 0.8)},
    phases=r"(start-up )?steady (pause )?steady( teardown)?",
)
def reference_then_loop(sim: Simulation, marks: Marks) -> None:
    """A reference run keeps the GPU busy; the run that matters does not.

    T    [reference, 200 times.......][host][l][host][l][host][l]
    gpu  [===][===][===][===][===]..........[k]......[k]......[k]
    """

    def main(t: Thread) -> Body:
        yield from start_up(t, 40 * MS)
        for _ in range(200):
            yield from t.launch("jacobi", 2 * MS, shape={"gridX": 4096})
            yield from t.blocking_copy("DtoH", 4, 2 * US)
        yield from t.api("cudaFree", 20 * MS, "memory_allocation")
        marks.begin(t)
        for _ in range(300):
            yield from t.launch("jacobi", 400 * US, shape={"gridX": 512})
            yield from t.synchronize()
            yield from t.compute(1_400 * US, "exchange_halo")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "startup",
        basis=("cold",),
        first_call_ns=0,
        seconds=(None, "host"),
        headline=("start|load",),
        named=("steady|warm", "delay|more steps"),
        never=(NO_PYTORCH, SMALLER, r"(?i)launch-bound", r"(?i)\b\d+ (steps|iterations)\b", r"(?i)work is small"),
    ),
    {"compute": (0.0, 0.02), "idle": (0.98, 1.0), "module_load": (0.9, 1.0)},
    quick=True,
)
def only_a_start(sim: Simulation, marks: Marks) -> None:
    """Two tiny kernels, each launched once: nothing but a start, from the first CUDA call on.

    T    [context........][load..][load..][read back]
    gpu                          k       k  c
    """
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaMalloc", 200 * MS, "context_init", ioctl=150 * MS)
        for name in ("fill", "reduce"):
            yield from t.launch(name, 3 * US, overhead=[("module_load", 19 * MS)])
        yield from t.blocking_copy("DtoH", 4, 2 * US)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        basis=("window",),
        seconds=("copies",),
        lead=(52, 62),
        headline=("render|shade|blur",),
        never=(NO_PYTORCH, SMALLER, STARTED, r"(?i)\b\d+ (steps|iterations)\b"),
    ),
    {"compute": (0.52, 0.62), "exposed_copy": (0.38, 0.48)},
)
def upload_kernels_download(sim: Simulation, marks: Marks) -> None:
    """A program that runs once through: its upload is no start-up, and nothing repeats.

    gpu  [copy][copy][copy][render][shade][blur][tone][sort][copy][copy]
    """
    del marks

    def main(t: Thread) -> Body:
        yield from t.api("cudaMalloc", 30 * MS, "context_init", ioctl=20 * MS)
        for _ in range(3):
            yield from t.copy("HtoD", 700 << 20, 30 * MS)
        for name in ("render", "shade", "blur", "tone", "sort"):
            yield from t.launch(name, 40 * MS)
        for _ in range(2):
            yield from t.copy("DtoH", 700 << 20, 30 * MS)
        yield from t.synchronize()

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        basis=("phase",),
        seconds=("host", "sync"),
        step_ms=100,
        lead=(58, 72),
        headline=("too few to be steady",),
        never=(NO_PYTORCH, SMALLER, r"(?i)steady state (of|:)"),
    ),
    {"compute": (0.67, 0.72), "host_compute": (0.28, 0.33)},
    phases=r"(start-up )?steady( teardown)?",
)
def three_repeats(sim: Simulation, marks: Marks) -> None:
    """What repeats does so three times: a phase, but no steady state.

    gpu  ..k..k.[==== 60 ms ====]....40 ms....[=============]...........[=============]
    """

    def main(t: Thread) -> Body:
        yield from start_up(t, 40 * MS)
        marks.begin(t)
        for _ in range(3):
            for name in ("scan", "join", "aggregate"):
                yield from t.launch(name, 20 * MS)
            yield from t.synchronize()
            yield from t.compute(40 * MS, "format_result")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read("kernels", lead=(89, 100), headline=("advect|project",), never=(NO_PYTORCH, SMALLER, r"(?i)no CPU|preempt")),
    {"compute": (0.1, 0.2), "sleep": (0.8, 0.9)},
    phases=r"(start-up )?steady pause steady( teardown)?",
)
def asleep_between_the_steps(sim: Simulation, marks: Marks) -> None:
    """Busy steps, ten seconds of sleep, busy steps: the sleep is a pause, and no lack of a CPU.

    gpu  [step][step][step]......................[step][step][step]
    """
    del marks

    def main(t: Thread) -> Body:
        for _ in range(200):
            yield from busy_step(t)
        yield from t.sleep(10_000 * MS)
        for _ in range(200):
            yield from busy_step(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        seconds=("host", "sync"),
        step_ms=48,
        lead=(70, 82),
        headline=("advect|evaluate",),
        never=(NO_PYTORCH, SMALLER),
    ),
    {"compute": (0.7, 0.82), "host_compute": (0.18, 0.3)},
    phases=r"start-up steady( steady| teardown)?",
)
def two_kinds_of_steps_in_turn(sim: Simulation, marks: Marks) -> None:
    """Ten short steps and a long evaluation, again and again: one steady phase, not twenty.

    gpu  [t][t][t][t][t][== evaluate ==]......[t][t][t][t][t][== evaluate ==]......
    """

    def main(t: Thread) -> Body:
        yield from start_up(t, 40 * MS)
        marks.begin(t)
        for _ in range(20):
            for _ in range(10):
                yield from busy_step(t, kernels=2)
            yield from t.launch("evaluate", 6 * MS)
            yield from t.synchronize()
            yield from t.compute(3 * MS, "count_errors")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "startup",
        basis=("cold",),
        first_call_ns=0,
        seconds=(None, "host", "unknown"),
        headline=("start|load|context", "and only .* of steady state"),
        never=(NO_PYTORCH, SMALLER),
    ),
    {"compute": (0.0, 0.2)},
    said=(r"(?i)read-?back|synchroni",),
    phases=r"start-up.*",
)
def short_loop_after_a_long_start(sim: Simulation, marks: Marks) -> None:
    """Five milliseconds of loop behind a start of a second: a cold capture, with a short loop worth a sentence.

    T    [context ...........][load][try]...[l][read back][l][read back]
    """
    del marks

    def main(t: Thread) -> Body:
        yield from start_up(t, 1_000 * MS)
        for _ in range(80):
            yield from t.launch("reduce", 20 * US)
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.compute(20 * US, "test_convergence")

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(89, 100),
        headline=("advect|project", r"\b2(\.\d+)? ?%"),
        named=(r'"gpus_present": 4', r'"gpus_used": 1'),
        never=(NO_PYTORCH, SMALLER),
    ),
    MOSTLY_KERNELS,
    gpus=4,
    said=(r"(?i)(3|three) (other )?GPUs|GPUs? .*unused|unused GPUs?|of (4|four) GPUs",),
)
def one_of_four_gpus_for_a_moment(sim: Simulation, marks: Marks) -> None:
    """One of four GPUs is used, for a fortieth of the capture: both are said first.

    T    [host ..............................][step][step][host ....................]
    """

    def main(t: Thread) -> Body:
        yield from t.compute(8_000 * MS, "read_mesh")
        yield from start_up(t, 20 * MS)
        marks.begin(t)
        for _ in range(60):
            yield from busy_step(t)
        marks.end(t)
        yield from t.compute(4_000 * MS, "write_mesh")

    sim.thread(solver(sim, [0]), main, name="solver")
