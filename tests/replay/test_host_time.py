"""Pieces of host time: together they are all of it, and none of it twice."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag import Settings
from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.causes import IN_LAUNCH_CALL, PLACE
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import replay
from tests.replay.making import VARIED, model_of_pair, modelled, replay_of
from tests.replay.pairs import PAIRS
from tests.replay.pairs.pair import simulated
from tests.shared import Shared


def assert_tiled(model: Model) -> None:
    """Each ns of host time is in one piece, but what is outside the time of the axis."""
    pieces, program = model.pieces, model.program
    spans = Intervals(pieces.start, pieces.end)
    assert spans.total() == union(spans).total()
    whole = model.on_axis(program.thread, program.start, program.end)
    assert (spans.start >= whole.start[pieces.owner]).all()
    assert (spans.end <= whole.end[pieces.owner]).all()
    told = np.bincount(pieces.owner, spans.end - spans.start, len(program))
    assert (told == whole.end - whole.start).all()
    assert (model.unseen == program.end - program.start - told).all()


@pytest.mark.parametrize("name", VARIED)
def test_pieces_tile_host_time(name: str) -> None:
    model = model_of_pair(name)
    assert_tiled(model)
    assert not model.unseen.any()


@pytest.mark.slow
def test_time_outside_the_window_is_kept_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Launches run far ahead of the window that is asked for; the window's threads are known within it only."""
    trace = simulated(PAIRS["host code behind a full queue"].before, 1)[0].write(
        tmp_path_factory.mktemp("window") / "trace.sqlite"
    )
    whole = modelled(replay_of(trace)).stretch
    middle = (whole.begin + whole.end) // 2
    model = modelled(replay_of(trace, Settings(timeline=False, start_ns=middle)))
    assert_tiled(model)
    ns, residual = Changes.none(model).edges()
    assert np.array_equal(replay(model.graph, ns, residual), model.graph.time)


@pytest.mark.slow
def test_time_before_the_first_work_is_kept(shared: Shared) -> None:
    """A thread wakes the launching one long before the first operation."""
    from tests.diagnosis.programs import PROGRAMS

    program = PROGRAMS["the_profiler_takes_a_third"]
    model = modelled(replay_of(shared.file(f"{program.name}.sqlite", program.run()[0].write)))
    assert_tiled(model)
    edges, none = model.graph.edges, Changes.none(model)
    ns, _ = none.edges()
    program_edges = edges.kind == 0
    assert (ns[program_edges] == edges.ns[program_edges]).all()


def test_time_in_a_launch_call_is_that_of_its_call() -> None:
    model = model_of_pair("graph in place of slow launches")
    inside = model.call_of_piece >= 0
    assert inside.any()
    spans = model.launch_spans
    call = model.call_of_piece[inside]
    assert (model.pieces.start[inside] >= spans.start[call]).all()
    assert (model.pieces.end[inside] <= spans.end[call]).all()
    launching = model.pieces.cause == PLACE[IN_LAUNCH_CALL]
    assert inside[launching].all()
