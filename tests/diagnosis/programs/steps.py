"""Loops whose steps are hard to find: layers in them, slow ones among them, slices of them."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.diagnosis.agreement import Steps
from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver, start_up
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

LAYERS = 24
INCOMPLETE = r"(?i)incomplete|lost rows|rows (are|were) (lost|missing)|dropped|without a kernel"


@program(
    read(
        "kernels",
        seconds=(None, "host"),
        step_ms=11.5,
        lead=(84, 96),
        steps=Steps(19, 20, 10.5, 12.5),
        headline=("attention|linear",),
        never=(NO_PYTORCH, SMALLER, r"(?i)\b4[678]\d (steps|iterations)"),
    ),
    {"compute": (0.85, 0.96)},
    quick=True,
)
def layers_in_steps(sim: Simulation, marks: Marks) -> None:
    """Layers repeat more often than steps, and are none.

    NVTX  <step 0 .................................><step 1
          <layer 0><layer 1>...<layer 23><optimizer> <layer 0>
    """

    def main(t: Thread) -> Body:
        yield from start_up(t, 30 * MS)
        marks.begin(t)
        for step in range(20):
            t.push(f"step {step}")
            for layer in range(LAYERS):
                t.push(f"layer {layer}")
                yield from t.launch("attention", 250 * US)
                yield from t.launch("linear", 150 * US)
                t.pop()
            t.push("optimizer")
            yield from t.launch("update_weights", 900 * US)
            yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.compute(700 * US, "log_loss")
            t.pop()
            t.pop()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        basis=("window",),
        seconds=(None, "host", "sync"),
        lead=(78, 95),
        headline=("attention|linear",),
        never=(NO_PYTORCH, SMALLER, r"(?i)\b\d+ (training )?(steps|iterations)\b"),
    ),
    {"compute": (0.8, 0.93)},
    exact=False,
)
def slice_within_a_step(sim: Simulation, marks: Marks) -> None:
    """An export of a part of one step: blocks repeat, but no loop closes.

    NVTX  ..(blocks.17)><(blocks.18)><(blocks.19)>..
    """
    del marks

    def main(t: Thread) -> Body:
        for block in range(60):
            t.push(f"forward (blocks.{block})")
            for _ in range(6):
                yield from t.launch("attention", 1_500 * US)
                yield from t.launch("linear", 600 * US)
            yield from t.blocking_copy("HtoD", 8, 2 * US)
            yield from t.compute(1_600 * US, "next_block")
            t.pop()
        for _ in range(200):
            yield from t.launch("linear_backward", 900 * US)

    def cut(trace: TraceBuilder) -> None:
        trace.between(300 * MS, 600 * MS)

    sim.noise.append(cut)
    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        seconds=("host", "sync"),
        step_ms=4.1,
        lead=(68, 80),
        steps=Steps(98, 100, 3.8, 4.2),
        headline=("advance",),
        never=(NO_PYTORCH, SMALLER),
    ),
    {"compute": (0.68, 0.8), "io_wait": (0.13, 0.2)},
    said=(r"(?i)every (10th|tenth)",),
    quick=True,
)
def every_tenth_step_writes_a_log(sim: Simulation, marks: Marks) -> None:
    """Each tenth step is three times as long.

    T    [step][step]...[step: write ........][step]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for step in range(100):
            t.push(f"step {step}")
            yield from t.launch("advance", 3_600 * US)
            yield from t.synchronize()
            yield from t.compute(350 * US, "next_time")
            if step % 10 == 9:
                yield from t.os_call("write", 8 * MS, "io_wait", blocked=True)
            t.pop()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        seconds=("host", "sync"),
        step_ms=2.1,
        lead=(74, 88),
        steps=Steps(244, 250, 1.9, 2.1),
        headline=("advance",),
        never=(NO_PYTORCH, SMALLER, r"(?i)no repeating step"),
    ),
    {"compute": (0.76, 0.88), "host_compute": (0.1, 0.24)},
    said=(r"(?i)every 25th",),
)
def every_25th_step_is_slow(sim: Simulation, marks: Marks) -> None:
    """No ranges, and each 25th step is three times as long: the others repeat all the same."""

    def main(t: Thread) -> Body:
        yield from start_up(t, 30 * MS)
        marks.begin(t)
        for step in range(250):
            yield from t.launch("advance", 1_400 * US)
            yield from t.launch("limit", 400 * US)
            yield from t.synchronize()
            yield from t.compute((4_180 if step % 25 == 24 else 180) * US, "next_time")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


def _far_ahead(t: Thread, marks: Marks) -> Body:
    marks.begin(t)
    for _ in range(100):
        for name in ("attention", "linear", "norm", "update"):
            yield from t.launch(name, 700 * US)
        yield from t.compute(2_400 * US, "next_batch")
    yield from t.synchronize()
    marks.end(t)


@program(
    read(
        "kernels",
        basis=("steady", "phase", "window"),
        lead=(94, 100),
        headline=("attention|linear|norm|update",),
        never=(NO_PYTORCH, SMALLER, INCOMPLETE, r"(?i)cannot tell how busy"),
    ),
    {"compute": (0.96, 1.0)},
    exact=False,
)
def slice_with_cut_ends(sim: Simulation, marks: Marks) -> None:
    """The host is far ahead: at the start of the slice operations have no launch, at its end launches no operation.

    T         [l][l][l]|[l][l][l][l][l][l][l]|
    gpu                |[k][k][k][k][k][k][k]|[k][k][k]
    """
    whole = Marks()
    sim.noise.append(lambda trace: trace.between(100 * MS, 220 * MS))
    sim.thread(solver(sim), lambda t: _far_ahead(t, whole), name="solver")
    marks.start_ns, marks.end_ns = 100 * MS, 220 * MS


@program(
    read("kernels", basis=("steady", "phase", "window"), seconds=(None, "unknown", "launch"), never=(NO_PYTORCH,)),
    {"compute": (0.8, 0.97)},
    exact=False,
    said=(r"(?i)incomplete|lost|no kernel|not recorded|missing",),
)
def rows_lost_in_the_middle(sim: Simulation, marks: Marks) -> None:
    """Every tenth kernel has no row, all over the capture: that is a loss, and no cut."""

    def lose(trace: TraceBuilder) -> None:
        trace.thin_out("CUPTI_ACTIVITY_KIND_KERNEL", 10)

    sim.noise.append(lose)
    sim.thread(solver(sim), lambda t: _far_ahead(t, marks), name="solver")
