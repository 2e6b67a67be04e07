"""What each transform matches, and what it says where nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.causes import PLACE
from nsysdiag.messages import UsageError
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import EdgeKind
from nsysdiag.replay.run import run_of
from nsysdiag.replay.transforms import apply, causes_of
from nsysdiag.replay.work import Class
from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.making import VARIED, model_of_pair, modelled, replay_of_program
from tests.replay.pairs.pair import loop, ranged, varied
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

LAUNCHES = "graph in place of slow launches"
COPIES = "upload and download with a sync in each step"
WINDOW = "window of kernels in any order without host code"
SYNCS = "sync after each kernel of 60 µs"


def changed(model: Model, option: str, of: str = "", factor: float = 0.0) -> Changes:
    """The changes of one transform."""
    changes = Changes.none(model)
    apply(changes, Transform(option, of, factor))
    return changes


@pytest.mark.parametrize("name", VARIED)
def test_every_cause_with_time_can_be_taken_out(name: str) -> None:
    model = model_of_pair(name)
    now = run_of(Changes.none(model)).ns
    causes = causes_of(model)
    assert causes
    assert all(run_of(changed(model, "without", each)).ns <= now for each in causes)


def test_waits_for_loaders_are_data_loading() -> None:
    """Not the lock that they wait for: that is what they are named after where nobody knows better."""
    model = model_of_pair("worker that decodes")
    assert "data_loading" in causes_of(model)
    assert "lock_wait" not in causes_of(model)
    assert not changed(model, "without", "data_loading").woken.any()


@pytest.mark.parametrize(
    ("name", "option", "of", "hint"),
    [
        (SYNCS, "without", "synch", "near names: sync"),
        (SYNCS, "without", "module_load", "near names: "),
        (SYNCS, "without", "no such cause", "near names: "),
        (SYNCS, "kernel", "relaks", "near names: relax"),
        (LAUNCHES, "host", "layer", "near names: layers"),
        (LAUNCHES, "graphs", "layer", "near names: layers"),
        (LAUNCHES, "overlap", "copy", "near names: copies"),
        (LAUNCHES, "overlap", "communication", "near names: communication"),
        (LAUNCHES, "async-copies", "", None),
        (LAUNCHES, "rank-like", "median", None),
        (SYNCS, "merge", "relaks", "near names: relax"),
        (SYNCS, "merge", "relax", "near names: relax"),  # a synchronization is behind each
        (SYNCS, "stream", "relaks", "near names: relax"),
        (SYNCS, "workers", "", "no thread or process that loads data"),
        (LAUNCHES, "batch", "", "it needs as many steps"),
        (WINDOW, "ahead", "", "it needs steps"),
        (WINDOW, "batch", "", "it needs as many steps"),
    ],
)
def test_what_matches_nothing_is_an_error(name: str, option: str, of: str, hint: str | None) -> None:
    with pytest.raises(UsageError, match="matches nothing in the replayed time") as error:
        changed(model_of_pair(name), option, of)
    assert (error.value.hint or "").startswith(hint or "")
    assert (error.value.hint is None) == (hint is None)


def test_a_trace_without_ranges_has_no_names() -> None:
    model = model_of_pair(LAUNCHES)
    ranges = replace(model.names.ranges, rows=model.names.ranges.rows.take(slice(0)), names=[])
    with pytest.raises(UsageError, match="matches nothing") as error:
        changed(replace(model, names=replace(model.names, ranges=ranges)), "host", "layers")
    assert error.value.hint == "there are no names to choose from"


def test_there_is_no_such_option() -> None:
    with pytest.raises(ValueError, match="no transform 'faster'"):
        changed(model_of_pair(SYNCS), "faster")


def test_kernels_by_a_pattern() -> None:
    model = model_of_pair("kernels halved in both streams")
    changes = changed(model, "kernel", "inn?r", 0.5)
    inner = np.array([model.names.texts[each] == "inner" for each in model.names.short])
    assert np.abs(2 * changes.length - model.length)[inner].max() <= 1
    assert (changes.length == model.length)[~inner].all()


@pytest.mark.slow
def test_copies_by_a_pattern_that_no_kernel_has() -> None:
    model = model_of_pair("read-back after each step")
    copies = model.work.kind == Class.COPY
    assert copies.any()
    assert ((changed(model, "kernel", "*", 0.5).length < model.length) == ~copies).all()
    assert ((changed(model, "kernel", "memcpy*", 0.5).length < model.length) <= copies).all()
    assert (changed(model, "kernel", "memcpy*", 0.5).length < model.length).any()


def test_host_time_by_a_range() -> None:
    """All of it is inside: pieces may be cut where the range begins."""
    model = model_of_pair(LAUNCHES)
    changes = changed(model, "host", "step *", 0.25)
    assert ((changes.time >= 0.25) & (changes.time <= 1)).all()
    assert np.median(changes.time) == 0.25


def test_asynchronous_copies_hold_no_thread() -> None:
    model = model_of_pair("read-back after each step")
    changes = changed(model, "async-copies")
    copies = model.threads.held.cause == PLACE["blocking_copy"]
    assert copies.any()
    assert changes.held.tolist() == (~copies).tolist()


def test_copies_that_overlap_wait_for_copies_only() -> None:
    model = model_of_pair(COPIES)
    changes = changed(model, "overlap", "copies")
    edges = model.graph.edges
    operation = {place: row for row, place in enumerate(model.places.operation.tolist())}
    copies = model.work.kind == Class.COPY
    for at in np.flatnonzero(
        np.isin(edges.kind, (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.BARRIER)) & (edges.row >= 0)
    ):
        across = copies[edges.row[at]] != copies[operation[int(edges.target[at])]]
        assert changes.dropped[at] == across
    assert set(edges.kind[changes.dropped].tolist()) == {EdgeKind.STREAM}
    assert not changes.doubted.any()


@pytest.mark.slow
def test_communication_that_overlaps_and_kernels_may_still_need_each_other() -> None:
    model = model_of_pair("exchange in four buckets, with a sync in each step")
    changes = changed(model, "overlap", "communication")
    edges, communication = model.graph.edges, model.work.kind == Class.COMMUNICATION
    operation = {place: row for row, place in enumerate(model.places.operation.tolist())}
    for at in np.flatnonzero(changes.dropped):
        source, target = edges.row[at], operation[int(edges.target[at])]
        assert communication[source] != communication[target]
    assert changes.dropped.any()
    assert (changes.doubted == changes.dropped).all()


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "copy", "host"), [(3, 1, 2), (3, 1, 0), (1, 2, 1), (2, 2, 0)])
def test_copies_that_another_device_waits_for_may_save_nothing(kernel: int, copy: int, host: int) -> None:
    """GPU 0 makes the data, the copy moves it, GPU 1 uses it: there may be nothing to overlap. Lengths in ms."""

    def build(simulation: Simulation, marks: Marks) -> None:
        process = solver(simulation, [0, 1])
        makes, uses = process.stream(0), process.stream(1)

        def step(t: Thread, number: int) -> Body:
            yield from t.compute(max(varied(host * MS, number), US))
            yield from t.launch("make", varied(kernel * MS, "make", number), makes)
            yield from t.copy("PtoP", 1 << 26, varied(copy * MS, "copy", number), makes)
            event = t.event()
            yield from t.record(event, makes)
            yield from t.wait_event(uses, event)
            yield from t.launch("use", varied(kernel * MS, "use", number), uses)
            yield from t.synchronize(uses)

        loop(simulation, marks, step, process=process)

    model = modelled(replay_of_program(build, gpus=2))
    changes = changed(model, "overlap", "copies")
    assert (changes.doubted == changes.dropped).all()
    now = run_of(Changes.none(model)).ns
    assert run_of(changes).ns < 0.95 * now
    assert abs(run_of(replace(changes, proven=True)).ns - now) < 0.02 * now


def in_ranges(outer: str, inner: str) -> Model:
    """Each step is a range with four launches, of which the middle ones are in a range of their own.

    T   <step [l]<part [l][l]>[l]>
    """

    def build(simulation: Simulation, marks: Marks) -> None:
        process = solver(simulation)

        def launch(t: Thread) -> Body:
            yield from t.launch("k", 5 * US, process.null, call=20 * US)

        def part(t: Thread) -> Body:
            yield from launch(t)
            yield from launch(t)

        def whole(t: Thread) -> Body:
            yield from launch(t)
            yield from ranged(t, inner, part(t))
            yield from launch(t)

        def step(t: Thread, number: int) -> Body:
            yield from ranged(t, outer, whole(t))
            yield from t.compute(30 * US)

        loop(simulation, marks, step, steps=10, ranges=False, process=process)

    return modelled(replay_of_program(build))


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("pattern", "launches"), [("layers", 1), ("part", 3), ("*", 1)], ids=["outer", "inner", "both"]
)
def test_a_graph_takes_one_launch_for_each_outermost_range(pattern: str, launches: int) -> None:
    model = in_ranges("layers", "part")
    changes = changed(model, "graphs", pattern)
    steps = len(np.unique(model.work.launch)) // 4
    calls = np.unique(model.call_of_piece[(changes.time > 0) & (model.call_of_piece >= 0)])
    assert abs(len(calls) - launches * steps) <= 2
    assert abs(np.count_nonzero(changes.cost) - launches * steps) <= 2


@pytest.mark.parametrize("name", VARIED)
def test_no_latency_makes_nothing_later(name: str) -> None:
    model = model_of_pair(name)
    assert run_of(changed(model, "without", "launch_latency")).ns <= run_of(Changes.none(model)).ns
