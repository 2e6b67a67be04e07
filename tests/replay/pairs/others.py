"""Fixes of what keeps the launching thread from outside: a lock, a busy core, MPI."""

from __future__ import annotations

from functools import partial

from tests.builder import TraceBuilder
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, pair, ranged, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

MPI_DOMAIN = 7


def held_lock(
    sim: Simulation,
    marks: Marks,
    *,
    holding: int,
    other_code: int = 200 * US,
    locked: bool = True,
    range_name: str = "",
) -> None:
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
            yield from ranged(t, range_name, t.lock(mutex))
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


PAIRS: tuple[Pair, ...] = (
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
        without("host_compute"),
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
        "lock held in a range, as its finding says",
        partial(held_lock, holding=3 * MS, range_name="acquire"),
        {"holding": 0},
        (),
        (0.60, 0.76),
        finding="host",
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
)
