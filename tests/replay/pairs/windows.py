"""Programs whose work runs once, fixed: a start, or a window without steps."""

from __future__ import annotations

import random
from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, faster, pair, ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

CONTEXT_NS = 120 * MS


def once(
    sim: Simulation,
    marks: Marks,
    *,
    loading: int = 0,
    allocating: int = 0,
    reading: int = 0,
    host: int = 0,
    kernel: int = 2 * MS,
    context: int = CONTEXT_NS,
    waits: bool = True,
    behind: int = 0,
    from_work: bool = False,
    first: bool = True,
) -> None:
    """A context, memory, and data from a file; then eight kernels, each with code that is loaded and host code before
    it. A kernel of length `behind` runs meanwhile. Where kernels take most of the time, it counts `from_work` on. The
    code of the `first` kernel may be there.

    T    [context .....][malloc][read ...][load][l][host][load][l][host] ... [sync]
    gpu                                            [k ]           [k ]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        yield from t.api("cudaFree", context, "context_init", ioctl=context * 3 // 4)
        for _ in range(4):
            yield from t.api("cudaMalloc", 200 * US + allocating // 4, "memory_allocation", ioctl=(allocating // 5))
        if reading:
            yield from t.read_file(reading)
        if from_work:
            marks.begin(t)
        if behind:
            yield from t.launch("long", behind)
        for number in range(8):
            overhead = [("lazy_load", loading // 8)] if loading and (first or number) else []
            yield from t.launch(f"stage_{number}", kernel, overhead=overhead)
            yield from ranged(t, "prepare", t.compute(host // 8 + 20 * US, "build_arguments"))
            if waits:
                yield from t.synchronize()
        yield from t.synchronize()
        marks.end(t)

    waking(sim.thread(solver(sim), main, name="solver"))


def irregular(sim: Simulation, marks: Marks, *, host: float, queue: int = 0) -> None:
    """A hundred kernels in no order that repeats, behind host code of any length; most of the time a kernel runs."""
    chance = random.Random(7)

    def main(t: Thread) -> Body:
        yield from t.api("cudaFree", 2 * MS, "context_init", ioctl=1 * MS)
        marks.begin(t)
        if queue:
            yield from t.launch("long", queue)
        for _ in range(100):
            ns = chance.randint(50, 900) * US
            yield from t.compute(round(ns * host), "build_arguments")
            yield from t.launch(f"part_{chance.randint(0, 60)}", chance.randint(200, 1500) * US)
            if chance.random() < 0.1:
                yield from t.synchronize()
        yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


def _of(name: str, program: partial[None], fix: dict[str, object], *rest: object, **options: object) -> Pair:
    return pair(name, program, fix, *rest, steps=0, **options)  # type: ignore[arg-type]


LOADED = partial(once, loading=160 * MS, host=40 * MS)
PAIRS: tuple[Pair, ...] = (
    _of("start without loading code", LOADED, {"loading": 0}, without("module_load"), (0.48, 0.52), quick=True),
    _of(
        "start that loads code behind a long kernel",
        partial(once, loading=160 * MS, behind=400 * MS, waits=False, from_work=True),
        {"loading": 0},
        without("module_load"),
        (0.0, 0.01),
    ),
    _of(
        "start that loads code behind a kernel that is too short",
        partial(once, loading=600 * MS, behind=400 * MS, waits=False, from_work=True),
        {"loading": 0},
        without("module_load"),
        (0.15, 0.40),
    ),
    _of(
        "start that allocates",
        partial(once, allocating=150 * MS, loading=20 * MS),
        {"allocating": 0},
        without("memory_allocation"),
        (0.40, 0.50),
    ),
    _of(
        "start that reads a file",
        partial(once, reading=200 * MS, loading=20 * MS),
        {"reading": 0},
        without("io_wait"),
        (0.50, 0.60),
    ),
    _of("start without its context", LOADED, {"context": 0}, without("context_init"), (0.32, 0.38)),
    _of(
        "start before the first work, as its finding says",
        LOADED,
        {"context": 0, "first": False},
        (),
        (0.42, 0.46),
        finding="startup",
    ),
    _of("start with half of a host range", LOADED, {"host": 20 * MS}, faster("host", "prepare", 0.5), (0.04, 0.07)),
    _of(
        "start whose kernels are halved",
        partial(once, kernel=40 * MS, loading=20 * MS, from_work=True),
        {"kernel": 20 * MS},
        faster("kernel", "stage_*", 0.5),
        (0.44, 0.50),
    ),
    _of(
        "window of kernels in any order without host code",
        partial(irregular, host=1.0),
        {"host": 0.0},
        without("host_compute"),
        (0.07, 0.12),
    ),
    _of(
        "window of kernels in any order with hidden host code",
        partial(irregular, host=0.1, queue=60 * MS),
        {"host": 0.0},
        without("host_compute"),
        (0.0, 0.03),
    ),
)
