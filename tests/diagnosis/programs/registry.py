"""Simulated programs for the diagnosis: each with what is true of it, and what must and must never be said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.diagnosis.agreement import Reading
from tests.simulator import EVERYTHING, Capture, Simulation
from tests.simulator.actions import Thread
from tests.simulator.engine import MS, US
from tests.simulator.host import Body, Process

Between = tuple[float, float]
Truth = dict[str, Between]
"""Shares of the judged time, from and to: compute, exposed_comm, exposed_copy, idle, or a cause of the root ledger."""
SOLVER = "/opt/solver/bin/solver"
"""A program in C++, of which nothing is Python."""


@dataclass(slots=True)
class Marks:
    """When the time that is to be judged begins and ends, as the program's own thread sees it."""

    start_ns: int | None = None
    end_ns: int | None = None

    def begin(self, t: Thread) -> None:
        """Now."""
        self.start_ns = t.clock.now

    def end(self, t: Thread) -> None:
        """Now."""
        self.end_ns = t.clock.now


Build = Callable[[Simulation, Marks], None]


@dataclass(frozen=True, slots=True)
class Program:
    """`reading` is what an expert would say; `truth` are shares by device key, in the marked time or else in all.

    `said` are patterns that some sentence must match, `phases` is one that the names of all phases match. `working` are
    the devices that findings may be about, where not all. `exact`: the ledger of the whole trace is compared with the
    simulator's own. `quick` ones are always run."""

    name: str
    picture: str
    build: Build
    reading: Reading
    truth: dict[str, Truth]
    gpus: int = 1
    capture: Capture = EVERYTHING
    said: tuple[str, ...] = ()
    phases: str = ".*"
    working: frozenset[str] | None = None
    exact: bool = True
    quick: bool = False
    tolerated: frozenset[str] = field(default_factory=frozenset)

    def run(self) -> tuple[Simulation, Reading]:
        """The finished simulation, and the reading with the range that the program itself marked, as far as GPUs worked
        in it."""
        simulation, marks = Simulation(self.gpus), Marks()
        simulation.capture = self.capture
        self.build(simulation, marks)
        simulation.run()
        if marks.start_ns is None or marks.end_ns is None:
            return simulation, self.reading
        ops = [op for gpu in simulation.gpus for op in gpu.ops]
        start, end = min(op.start for op in ops), max(op.end for op in ops)
        return simulation, replace(self.reading, judged=(max(marks.start_ns, start), min(marks.end_ns, end)))


PROGRAMS: dict[str, Program] = {}


def program(
    reading: Reading,
    truth: Truth | dict[str, Truth],
    *,
    gpus: int = 1,
    capture: Capture = EVERYTHING,
    said: tuple[str, ...] = (),
    phases: str = ".*",
    working: frozenset[str] | None = None,
    exact: bool = True,
    quick: bool = False,
    tolerated: tuple[str, ...] = (),
) -> Callable[[Build], Build]:
    """Make a program of a function that scripts a simulation; its docstring is the picture."""

    def add(build: Build) -> Build:
        PROGRAMS[build.__name__] = Program(
            name=build.__name__,
            picture=build.__doc__ or "",
            build=build,
            reading=replace(reading, trace=build.__name__),
            truth=_by_device(truth),
            gpus=gpus,
            capture=capture,
            said=said,
            phases=phases,
            working=working,
            exact=exact,
            quick=quick,
            tolerated=frozenset(tolerated),
        )
        return build

    return add


def _by_device(truth: Truth | dict[str, Truth]) -> dict[str, Truth]:
    several = {key: each for key, each in truth.items() if isinstance(each, dict)}
    return several or {"gpu0": {name: each for name, each in truth.items() if isinstance(each, tuple)}}


def read(
    *bottlenecks: str,
    basis: tuple[str, ...] = ("steady",),
    seconds: tuple[str | None, ...] = (None,),
    **other: object,
) -> Reading:
    """What an expert would say of a program."""
    return Reading(trace="", bottlenecks=bottlenecks, bases=basis, shares={}, seconds=seconds, **other)  # type: ignore[arg-type]


def solver(sim: Simulation, gpus: list[int] | None = None) -> Process:
    """A process of a program in C++."""
    process = sim.process(gpus, name=SOLVER)
    process.python = False
    return process


def start_up(t: Thread, ns: int) -> Body:
    """The start of a program, which takes about `ns`: a context, first launches that load their kernels, and a choice
    of algorithms by trying them."""
    yield from t.api("cudaFree", ns // 3, "context_init", ioctl=ns // 4)
    for number in range(6):
        overhead = [("lazy_load", ns // 15)]
        yield from t.launch(f"set_up_{number}", 40 * US, overhead=overhead)
    for number in range(12):
        yield from t.compute(ns // 72, "choose_algorithm")
        yield from t.launch(f"candidate_{number}", 100 * US)
        yield from t.synchronize()


def busy_step(t: Thread, kernels: int = 8, each: int = 500 * US, host: int = 200 * US) -> Body:
    """Kernels one behind the other, then a synchronization and a little work of the host."""
    for number in range(kernels):
        yield from t.launch(("advect", "project")[number % 2], each)
    yield from t.synchronize()
    yield from t.compute(host, "update_time_step")


__all__ = ["MS", "PROGRAMS", "US", "Marks", "Program", "busy_step", "program", "read", "solver", "start_up"]
