"""Moments and edges: every edge goes forward, and what a thread does and waits for adds up to its time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from nsysdiag.events.rows import previous_on_stream
from nsysdiag.replay.device_waits import Behind, DeviceWaits
from nsysdiag.replay.edges import KnownOrder, launch_cost, program_order
from nsysdiag.replay.meetings import Meetings
from nsysdiag.replay.moments import DEVICE, NEVER, EdgeKind, Edges, Moments, What, moments_of
from nsysdiag.replay.orders import Before, Pace, pace_of
from nsysdiag.replay.work import Class, Work
from tests.replay.making import VARIED, calls_of, model_of_pair, threads_of, work_of, works

THREAD = 7


def alone(work: Work) -> Meetings:
    """No rank meets another."""
    none = np.empty(0, np.int64)
    return Meetings(none, np.full(len(work), -1), none, none)


def pace(work: Work) -> Pace:
    return pace_of(Work.empty(), Work.empty().issued, Before.empty(), Before.empty(), Work.empty().issued, 2)


def wait_of(begin: int, end: int) -> DeviceWaits:
    """One wait [begin, end)."""
    return DeviceWaits(*(np.array([each]) for each in (THREAD, begin, end, 3, -1, 0)))


def order_of(work: Work, begin: int = 0) -> KnownOrder:
    """What is known of operations that threads launch and do not wait for."""
    threads, calls, meetings, none = threads_of(work), calls_of(work), alone(work), Before.empty()
    moments, places = moments_of(work, threads, calls, meetings)
    return KnownOrder(
        begin=begin,
        work=work,
        calls=calls,
        threads=threads,
        meetings=meetings,
        moments=moments,
        places=places,
        in_order=Edges.empty(),
        length=work.length,
        cost=np.zeros(len(work), dtype=np.int64),
        awaited=none,
        barred=none,
        hidden=none,
        pace=pace(work),
        behind=Behind.empty(),
    )


@given(works())
def test_moments_are_in_order(work: Work) -> None:
    moments, places = moments_of(work, threads_of(work), calls_of(work), alone(work))
    assert (np.diff(moments.time) >= 0).all()
    assert moments.time[places.operation - 1].tolist() == work.start.tolist()
    assert moments.time[places.launch - 1].tolist() == work.issued[work.launch >= 0].tolist()
    assert sorted([*places.operation, *places.launch]) == list(range(1, len(moments) + 1))


@given(works())
def test_edges_of_devices_go_forward(work: Work) -> None:
    """Whatever overlaps, takes no time, or starts at once."""
    order = order_of(work)
    edges = Edges.concatenate(order.on_devices())
    assert (edges.source < edges.target).all()
    into = np.isin(order.places.operation, edges.target[edges.kind == EdgeKind.STREAM])
    assert into.tolist() == [bool((work.stream[:at] == work.stream[at]).any()) for at in range(len(work))]


@given(works(), st.integers(-10, 20))
def test_what_was_launched_before_starts_when_it_did(work: Work, begin: int) -> None:
    order = order_of(work, begin)
    edges, time = order.begun_before(), order.time
    held = dict(zip(edges.target.tolist(), (time[edges.source] + edges.ns).tolist(), strict=True))
    assert all(ns <= time[place] for place, ns in held.items())
    assert len(held) == len(edges) <= len({*zip(work.stream.tolist(), work.kind.tolist(), strict=True)})
    first = np.flatnonzero((previous_on_stream(work.stream) < 0) & (work.issued < begin))
    assert all(held[place] == time[place] for place in order.places.operation[first].tolist())


@given(works())
def test_a_launch_costs_no_more_than_the_time_to_the_start(work: Work) -> None:
    cost = launch_cost(work, threads_of(work), calls_of(work), Before.empty(), np.zeros(len(work), np.bool_))
    assert ((cost >= 0) & (cost <= np.maximum(work.start - work.issued, 0))).all()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(-5, 9), st.booleans()), max_size=12))
def test_host_time_and_lag_are_no_longer_than_the_time_between(rows: list[tuple[int, int, int, bool]]) -> None:
    """Waits of one thread that nest, overlap and take no time; some were released before they began."""
    parts = [Moments.points(np.array([0]), What.LAUNCH, np.array([THREAD]))]
    for begin, length, left, waits in rows:
        end = np.array([begin + length])
        released = np.minimum(np.array([begin + length - left]), end)
        if waits:
            parts.append(Moments.returns(wait_of(begin, begin + length), released, np.array([3])))
        else:
            parts.append(Moments.points(end, What.LAUNCH, np.array([THREAD])))
    every = Moments.concatenate(parts)
    moments = every.take(np.lexsort((every.thread, every.what, every.time)))
    program, edges = program_order(moments)
    between = np.diff(moments.time)
    assert ((program.end >= program.start) & (program.lag >= 0)).all()
    assert (edges.ns == program.end - program.start + program.lag).all()
    assert (edges.ns <= between).all()
    assert (edges.ns[program.cause < 0] == between[program.cause < 0]).all()


def test_the_lag_of_a_wait() -> None:
    """The wait from 10 to 50 is released at 30; host time from 0 to 10, and a lag of 20."""
    launch = Moments.points(np.array([0, 60]), What.LAUNCH, np.array([THREAD, THREAD]))
    wait = Moments.returns(wait_of(10, 50), np.array([30]), np.array([3]))
    other = Moments.points(np.array([20]), What.OPERATION, np.array([DEVICE]))
    every = Moments.concatenate([launch, wait, other])
    program, edges = program_order(every.take(np.argsort(every.time)))
    assert program.lag.tolist() == [20, 0]
    assert edges.ns.tolist() == [10 + 20, 10]
    assert list(zip(edges.source.tolist(), edges.target.tolist(), strict=True)) == [(1, 3), (3, 4)]


def test_a_point_was_never_released() -> None:
    assert Moments.points(np.array([5]), What.WAKE, np.array([THREAD])).released.tolist() == [NEVER]


def test_nodes_of_a_graph_that_overlap_are_in_order_of_their_starts() -> None:
    work = work_of([(0, 0, 9, 0, Class.COMPUTE, 0), (0, 4, 9, 0, Class.COMPUTE, 4)])
    edges = Edges.concatenate(order_of(work).on_devices())
    assert (edges.ns.tolist(), edges.row.tolist()) == ([4], [-1])


@pytest.mark.parametrize("name", VARIED)
def test_all_edges_of_a_model_go_forward(name: str) -> None:
    edges = model_of_pair(name).graph.edges
    assert (edges.source < edges.target).all()
    assert (edges.ns >= 0).all()


@pytest.mark.parametrize("name", VARIED)
def test_a_wait_for_a_device_is_for_all_that_was_launched_before(name: str) -> None:
    """What had finished before the wait ended, and was launched since the wait before: of each stream and class the
    last, unless a wait's stream is not known, as that of a query."""
    model = model_of_pair(name)
    work, waited, edges, places = model.work, model.threads.waited, model.graph.edges, model.places
    held, finished = waited.held, waited.finished
    assert (work.end[finished.operation] <= held.end[finished.wait]).all()
    assert (work.issued[finished.operation] <= held.begin[finished.wait]).all()
    known = set(zip(finished.wait.tolist(), finished.operation.tolist(), strict=True))
    for wait, target in enumerate(held.target.tolist()):
        before = [at for at in range(target) if work.stream[at] == work.stream[target]]
        before = [at for at in before if work.kind[at] != work.kind[target]]
        since = max((begin for begin in held.begin.tolist() if begin < held.begin[wait]), default=-1)
        if before and work.issued[before[-1]] >= since:
            assert (wait, before[-1]) in known
    mine = edges.kind == EdgeKind.FINISHED
    expected = {(operation, places.finished[wait]) for wait, operation in known}
    for wait, operation, own in zip(*astuple(finished), strict=True):
        if own and not waited.whole[wait]:
            expected.add((operation, places.held[wait]))
    assert set(zip(edges.row[mine].tolist(), edges.target[mine].tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", VARIED)
def test_a_wait_is_for_what_the_waits_before_it_were_for(name: str) -> None:
    """From one wait of a group to the next there is an edge, and one to the end of each wait for the whole group."""
    model = model_of_pair(name)
    waited, edges, finished = model.threads.waited, model.graph.edges, model.places.finished
    known = set(zip(edges.source.tolist(), edges.target.tolist(), edges.kind.tolist(), strict=True))
    for group in set(waited.group.tolist()):
        mine = [at for at in waited.in_order.tolist() if waited.group[at] == group and finished[at] >= 0]
        for one, next_one in pairwise(mine):
            assert (finished[one], finished[next_one], EdgeKind.PASSED) in known
        for wait in mine:
            assert not waited.whole[wait] or (finished[wait], model.places.held[wait], EdgeKind.RELEASED) in known
        others = [at for at in waited.in_order.tolist() if waited.group[at] == group and finished[at] < 0]
        assert len(others) <= 1
