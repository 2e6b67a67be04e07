"""Programs that copy: what overlap can save is the smaller side."""

from __future__ import annotations

from tests.diagnosis.agreement import Cap
from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

QUERIES = 40


@program(
    read(
        "copies",
        step_ms=63,
        lead=(88, 98),
        headline=("GB/s|MB|GB",),
        named=("pageable",),
        never=(NO_PYTORCH, SMALLER, r"(?i)overlap the copies with (the )?kernels"),
        caps=(Cap("copies", 0.05, "overlap"),),
    ),
    {"compute": (0.02, 0.05), "exposed_copy": (0.88, 0.98)},
    quick=True,
)
def copies_dwarf_compute(sim: Simulation, marks: Marks) -> None:
    """30 ms of copies from pageable memory around each 1 ms of kernels: to overlap them brings next to nothing.

    gpu  [== upload ==]k[= download =][== upload ==]k[= download =]
    """

    long_copies(sim, marks)


def long_copies(sim: Simulation, marks: Marks, *, overlapped: bool = False) -> None:
    """The same with copies that block, or with the kernels in a stream of their own."""

    def main(t: Thread) -> Body:
        copies, work = t.process.stream(), t.process.stream()
        marks.begin(t)
        for _ in range(QUERIES):
            if overlapped:
                yield from t.copy("HtoD", 120 << 20, 20 * MS, copies)
                yield from t.launch("select", 1 * MS, work)
                yield from t.copy("DtoH", 60 << 20, 10 * MS, copies)
            else:
                yield from t.blocking_copy("HtoD", 120 << 20, 20 * MS, staging=300 * US)
                yield from t.launch("select", 1 * MS)
                yield from t.blocking_copy("DtoH", 60 << 20, 10 * MS, staging=300 * US)
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "copies",
        seconds=("kernels",),
        step_ms=21,
        lead=(55, 63),
        headline=("GB/s|MB|GB",),
        never=(NO_PYTORCH, SMALLER),
        caps=(Cap("copies", 0.42, "overlap"), Cap("copies", 0.63)),
    ),
    {"compute": (0.37, 0.43), "exposed_copy": (0.55, 0.63)},
)
def copies_as_long_as_kernels(sim: Simulation, marks: Marks) -> None:
    """6 ms of pinned copies, 4 ms of kernels in one stream: half of it can hide.

    gpu  [copy ...][k ....][copy ...][k ....]
    """

    copies_and_kernels(sim, marks)


def copies_and_kernels(sim: Simulation, marks: Marks, *, overlapped: bool = False) -> None:
    """The same in one stream, or with the next copy beside the kernel."""

    def main(t: Thread) -> Body:
        upload = t.process.stream() if overlapped else t.process.null
        marks.begin(t)
        for _ in range(QUERIES):
            yield from t.copy("HtoD", 140 << 20, 6 * MS, upload)
            yield from t.launch("transform", 4 * MS)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "kernels",
        lead=(90, 100),
        headline=("transform",),
        never=(NO_PYTORCH, SMALLER, r"(?i)copy-bound"),
        caps=(Cap("copies", 0.03),),
    ),
    {"compute": (0.9, 1.0), "exposed_copy": (0.0, 0.03)},
)
def copies_behind_kernels(sim: Simulation, marks: Marks) -> None:
    """The same bytes in a stream of their own, behind longer kernels: nothing is lost to them.

    stream 1  [k ..........][k ..........]
    stream 2  [copy ...]    [copy ...]
    """

    def main(t: Thread) -> Body:
        upload, work = t.process.stream(), t.process.stream()
        marks.begin(t)
        for _ in range(QUERIES):
            yield from t.launch("transform", 7 * MS, work)
            yield from t.copy("HtoD", 140 << 20, 6 * MS, upload)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
