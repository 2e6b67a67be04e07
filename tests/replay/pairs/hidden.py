"""Causes that are hidden behind work of the device, wholly or in part: less comes back than they take."""

from __future__ import annotations

from functools import partial

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import Pair, loop, pair, varied, without
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

KERNELS = 20


def ahead(
    sim: Simulation,
    marks: Marks,
    *,
    what: str,
    ns: int,
    work: int,
    limit: int = 1024,
    every: int = 1,
    left: bool = True,
    starting: int = 0,
) -> None:
    """The host runs ahead of the device, as far as the queue allows, and does something in each step meanwhile.

    T    [l][l][l][ reads ......][l][l][l][ reads ......]
    gpu     [ k ][ k ][ k ][ k ][ k ][ k ][ k ][ k ]
    """
    process = solver(sim)
    process.null.limit = limit

    def step(t: Thread, number: int) -> Body:
        for kernel in range(KERNELS):
            yield from t.launch("smooth", varied(work // KERNELS, "smooth", number, kernel))
        if left and number % every == every - 1:
            yield from _doing(t, what, varied(ns, what, number))

    loop(sim, marks, step, process=process, starting=starting)


def _doing(t: Thread, what: str, ns: int) -> Body:
    if what == "read":
        yield from t.read_file(ns)
    elif what == "sleep":
        yield from t.sleep(ns)
    else:
        yield from t.compute(ns, what)


def slow_calls(sim: Simulation, marks: Marks, *, call: int, each: int) -> None:
    """Slow launch calls of kernels that are slower still."""

    def step(t: Thread, number: int) -> Body:
        for kernel in range(KERNELS):
            yield from t.launch("smooth", varied(each, "smooth", number, kernel), call=call)

    loop(sim, marks, step)


def waits_in_the_end(sim: Simulation, marks: Marks, *, synchronized: bool = True) -> None:
    """A wait for an event that was recorded a step ago, while the next step is queued: it keeps nothing idle.

    T    [l: 1][l: 2][event 1 ....][l: 3][event 2 ....]
    gpu     [=== 1 =======][=== 2 =======][=== 3 ===]
    """
    process = solver(sim)
    events: list = []  # type: ignore[type-arg]

    def step(t: Thread, number: int) -> Body:
        for kernel in range(KERNELS):
            yield from t.launch("smooth", varied(100 * US, "smooth", number, kernel))
        events.append(t.event())
        yield from t.record(events[-1], process.null)
        if synchronized and number:
            yield from t.synchronize(events[-2])

    loop(sim, marks, step, process=process)


def slow_steps(sim: Simulation, marks: Marks, *, every: int, ns: int, left: bool = True) -> None:
    """Each so many steps a checkpoint is written, and the others are alike.

    T    [step][step]...[step][write ........][step][step]
    """

    def step(t: Thread, number: int) -> Body:
        yield from t.launch("advance", varied(1800 * US, "advance", number))
        yield from t.synchronize()
        yield from t.compute(150 * US, "next_time")
        if left and number % every == every - 1:
            yield from t.os_call("write", varied(ns, "write", number), "io_wait", blocked=True)

    loop(sim, marks, step, steps=60)


GONE = {"left": False}
FILES, SLEEP, HOST_CODE = without("io_wait"), without("sleep"), without("host_compute")
PAIRS: tuple[Pair, ...] = (
    pair(
        "file read behind a full queue",
        partial(ahead, what="read", ns=2 * MS, work=4 * MS, limit=64),
        GONE,
        FILES,
        (-0.005, 0.005),
        quick=True,
    ),
    pair(
        "file read while the host is far ahead",
        partial(ahead, what="read", ns=2 * MS, work=4 * MS, starting=30 * MS),
        GONE,
        FILES,
        (-0.005, 0.005),
    ),
    pair(
        "host code behind a full queue",
        partial(ahead, what="log", ns=1500 * US, work=2 * MS, limit=30),
        GONE,
        HOST_CODE,
        (-0.005, 0.005),
    ),
    pair(
        "sleep longer than what a short queue hides",
        partial(ahead, what="sleep", ns=3 * MS, work=4 * MS, limit=10),
        GONE,
        SLEEP,
        (0.15, 0.27),
    ),
    pair("sleep hidden for a quarter", partial(ahead, what="sleep", ns=4 * MS, work=1 * MS), GONE, SLEEP, (0.72, 0.78)),
    pair("sleep hidden for a half", partial(ahead, what="sleep", ns=4 * MS, work=2 * MS), GONE, SLEEP, (0.47, 0.54)),
    pair(
        "sleep hidden almost wholly", partial(ahead, what="sleep", ns=4 * MS, work=3800 * US), GONE, SLEEP, (0.03, 0.1)
    ),
    pair(
        "host code hidden for a half",
        partial(ahead, what="log", ns=2 * MS, work=1 * MS),
        GONE,
        HOST_CODE,
        (0.48, 0.55),
        capture=EVERYTHING.but(nvtx=False),
    ),
    pair(
        "slow launch calls of slower kernels",
        partial(slow_calls, call=30 * US, each=90 * US),
        {"call": 0},
        without("launch_call"),
        (0.0, 0.02),
    ),
    pair("event sync behind queued work", waits_in_the_end, {"synchronized": False}, without("sync"), (0.0, 0.005)),
    pair(
        "checkpoint every tenth step",
        partial(slow_steps, every=10, ns=12 * MS),
        GONE,
        FILES,
        (0.33, 0.41),
        steps=60,
        warm=10,
    ),
    pair(
        "checkpoint every fourth step",
        partial(slow_steps, every=4, ns=5 * MS),
        GONE,
        FILES,
        (0.34, 0.42),
        steps=60,
        warm=4,
    ),
    pair(
        "rare read that the queue hides",
        partial(ahead, what="read", ns=6 * MS, work=4 * MS, limit=200, every=8),
        GONE,
        FILES,
        (-0.005, 0.005),
        warm=8,
    ),
)
