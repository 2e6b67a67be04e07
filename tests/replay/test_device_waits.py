"""Waits of threads for devices: for which operations each may wait, and launch calls that a full queue held."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.causes import ALLOCATION, PLACE, SYNCHRONIZATION
from nsysdiag.events.calls import CallRows
from nsysdiag.replay.device_waits import _groups
from nsysdiag.replay.model import Model
from nsysdiag.replay.queues import FEWEST_QUEUED, HELD_NS, RELEASED_NS, full_queues
from nsysdiag.replay.work import Class, Work
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.making import (
    VARIED,
    activity_of,
    calls_of,
    model_of_pair,
    modelled,
    replay_of_program,
    work_of,
    works,
)
from tests.replay.pairs.pair import loop
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body

Wait = Callable[[Thread, list[Stream]], Body]


def two_gpus(wait: Wait) -> Model:
    """A short kernel on the first GPU and a long one on the second in each step, and a wait.

    gpu 0  [short]             [short]
    gpu 1   [= long =======]    [= long =======]
    T      [l][l][wait    ]    [l][l][wait    ]
    """

    def build(simulation: Simulation, marks: Marks) -> None:
        process = solver(simulation)
        streams = [process.stream(0), process.stream(1)]

        def step(t: Thread, number: int) -> Body:
            yield from t.launch("short", 40 * US, streams[0])
            yield from t.launch("long", 400 * US, streams[1])
            yield from wait(t, streams)
            yield from t.compute(20 * US)

        loop(simulation, marks, step, steps=12, process=process)

    return modelled(replay_of_program(build, 2))


def awaited(model: Model, cause: str = SYNCHRONIZATION) -> set[str]:
    """The names of the operations that waits of a cause are for."""
    held = model.threads.held
    return {model.names.texts[model.names.short[at]] for at in held.target[held.cause == PLACE[cause]].tolist()}


def for_a_stream(t: Thread, streams: list[Stream]) -> Body:
    yield from t.synchronize(streams[0])
    yield from t.compute(400 * US)


def for_a_device(t: Thread, streams: list[Stream]) -> Body:
    yield from t.synchronize(streams[1].context)


def for_the_other_device(t: Thread, streams: list[Stream]) -> Body:
    yield from t.synchronize(streams[0].context)
    yield from t.compute(400 * US)


def by_asking(t: Thread, streams: list[Stream]) -> Body:
    """A query tells neither stream nor device."""
    event = t.event()
    yield from t.record(event, streams[1])
    yield from t.spin_on(event)


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize(
    ("wait", "name"),
    [(for_a_stream, "short"), (for_a_device, "long"), (for_the_other_device, "short"), (by_asking, "long")],
)
def test_a_wait_is_for_its_stream_or_device(wait: Wait, name: str) -> None:
    assert awaited(two_gpus(wait)) == {name}


@pytest.mark.slow
def test_a_free_waits_where_the_device_worked() -> None:
    def free(t: Thread, streams: list[Stream]) -> Body:
        yield from t.free(3 * US)
        yield from t.compute(400 * US)
        yield from t.free(3 * US)

    model = two_gpus(free)
    held = model.threads.held
    assert awaited(model, ALLOCATION) == {"short"}
    assert (model.work.end[held.target] > held.begin)[held.cause == PLACE[ALLOCATION]].all()


@pytest.mark.parametrize("name", VARIED)
def test_what_a_wait_waits_for_is_over_when_it_returns(name: str) -> None:
    model = model_of_pair(name)
    held = model.threads.held
    assert (model.work.end[held.target] <= held.end).all()
    assert (model.work.issued[held.target] <= held.begin).all()


@given(works(), st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 8), st.integers(-1, 1)), max_size=8))
def test_the_group_of_a_wait(work: Work, waits: list[tuple[int, int, int]]) -> None:
    """Process 0 has all operations; the others have none. A stream is said only of a wait of process 0; it may have no
    operation."""
    process, stream, device = np.array(waits, dtype=np.int64).reshape(-1, 3).T
    stream = np.where(process == 0, stream, -1)
    issued, operation, of_wait = _groups(work, activity_of(work), process, stream, device)  # type: ignore[arg-type]
    for at, group in enumerate(of_wait.tolist()):
        rows = sorted(set(operation[issued.group == group].tolist()))
        mine = np.full(len(work), process[at] == 0)
        if stream[at] >= 0:
            mine = work.stream == stream[at]
        elif device[at] >= 0:
            mine &= work.device == device[at]
        assert rows == np.flatnonzero(mine).tolist()


def queue(count: int, held_ns: int, returned_ns: int = 1_000) -> tuple[Work, CallRows]:
    """Kernels of 100 µs, launched 1 µs apart; the last launch call is held until the third kernel has started, when
    `count` others are queued."""
    start = 100_000 * np.arange(count + 4)
    rows = [(0, int(each), 100_000, 0, int(Class.COMPUTE), 0) for each in start]
    work = work_of(rows)
    issued = 1_000 * np.arange(len(work)) - 100_000
    issued[-1] = work.start[2] + returned_ns - held_ns
    work = Work(work.row, work.start, work.end, work.launch, issued, work.stream, work.device, work.kind)
    calls = calls_of(work, 500)
    calls.end[-1] = issued[-1] + held_ns
    return work, calls


def test_a_full_queue_is_left_when_an_operation_starts() -> None:
    work, calls = queue(FEWEST_QUEUED, 50_000)
    found = full_queues(work, calls)
    assert found.target.tolist() == [2]
    assert found.call.tolist() == [len(work) - 1]
    assert found.begin.tolist() == [calls.start[-1] + 500]


@pytest.mark.parametrize(
    ("count", "held_ns", "returned_ns"),
    [(FEWEST_QUEUED - 1, 50_000, 1_000), (FEWEST_QUEUED, HELD_NS, 1_000), (FEWEST_QUEUED, 60_000, RELEASED_NS + 1)],
    ids=["few are queued", "a short call", "returns long after"],
)
def test_other_long_launch_calls_are_not_held(count: int, held_ns: int, returned_ns: int) -> None:
    assert len(full_queues(*queue(count, held_ns, returned_ns))) == 0


def test_nothing_is_held_without_launches() -> None:
    work = work_of([(0, 5, 3, 0, int(Class.COMPUTE), -1)])
    assert len(full_queues(work, CallRows.empty())) == 0
    assert len(full_queues(Work.empty(), CallRows.empty())) == 0


EVERY_NS, AHEAD, TAKES_NS = 20_000, 64, 2_000
"""Of a program that is ahead by a whole queue: from kernel to kernel, by how many, and for how long a call that does
not wait lasts."""


def ahead(count: int, before: int, *, filled: bool) -> tuple[Work, CallRows]:
    """All but the first `before` kernels of a program that is always ahead by a full queue, and all its calls: of
    those that `filled` the queue, or only later ones."""
    at = np.arange(AHEAD if filled else AHEAD + before, count)
    room = EVERY_NS * (at - AHEAD)
    begin, end = room - EVERY_NS + TAKES_NS + 1_000, room + TAKES_NS
    if filled:
        first = 3_000 * (np.arange(AHEAD) - AHEAD) - EVERY_NS
        begin, end = np.concatenate((first, begin)), np.concatenate((first + TAKES_NS, end))
    same = np.zeros(len(begin), dtype=np.int64)
    calls = CallRows(begin, end, same + 7, same, same, same)
    start, launch = EVERY_NS * np.arange(before, count), np.arange(before, count) - (count - len(begin))
    row, device = np.arange(len(start)), np.zeros(len(start), dtype=np.int64)
    issued = np.where(launch >= 0, begin[launch], start)
    return Work(row, start, start + EVERY_NS - 500, launch, issued, device, device, device + Class.COMPUTE), calls


@pytest.mark.parametrize(("before", "filled"), [(0, True), (200, True), (200, False)])
def test_a_queue_that_is_always_full_holds_calls_in_any_part_of_a_trace(before: int, filled: bool) -> None:
    """In the middle of a trace the queue was taken for empty, as operations before the part were not counted; and
    without calls that do not wait, each was taken for work of the host."""
    work, calls = ahead(600, before, filled=filled)
    found = full_queues(work, calls, np.zeros(1, dtype=np.int64))
    assert len(found) >= 600 - 2 * AHEAD - before
    assert (calls.end[found.call] - found.begin >= EVERY_NS - 3 * TAKES_NS).all()
    assert (work.start[found.target] == calls.end[found.call] - TAKES_NS).all()


def test_calls_that_are_never_held_by_a_queue_are_work() -> None:
    """Their program keeps the same number of operations ahead by waits of its own: few kernels start during a call."""
    work, calls = ahead(600, 200, filled=False)
    short = calls.take(np.arange(len(calls)))
    short.start[:] = calls.end - TAKES_NS
    assert len(full_queues(work, short, np.zeros(1, dtype=np.int64))) == 0
