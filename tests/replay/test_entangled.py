"""What threads that take turns may do once one of them is faster."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.replay.beside import StepWork
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.entangled import loosened, met_by_chance, taken_out
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.moments import EdgeKind
from nsysdiag.replay.run import run_of
from nsysdiag.replay.transforms import apply
from tests.replay.making import model_of_pair
from tests.replay.pairs.pair import faster

LOCK = "host code before a lock that is held most of the time"
SHARED = "sync of steps that share a stream with another thread"


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["file read by another thread on demand", "semaphore of a thread that computes"])
def test_who_asks_and_who_answers_do_not_meet_by_chance(name: str) -> None:
    model = model_of_pair(name)
    assert not met_by_chance(model).any()
    assert loosened(Changes.none(model)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["worker faster than the steps", "sleep that hides a worker"])
def test_who_loads_data_is_met_by_nobody_by_chance(name: str) -> None:
    assert not met_by_chance(model_of_pair(name)).any()


@pytest.mark.slow
def test_without_locks_a_step_is_shorter() -> None:
    model = model_of_pair(LOCK)
    changes = Changes.none(model)
    assert met_by_chance(model).any()
    loose = loosened(changes)
    assert loose is not None
    assert run_of(loose).ns < run_of(changes).ns
    assert not changes.dropped.any()


@pytest.mark.slow
def test_a_lock_stays_where_its_holder_is_faster() -> None:
    model = model_of_pair("file read while a lock is held")
    changes = Changes.none(model)
    apply(changes, Transform("without", "io_wait"))
    loose = loosened(changes)
    assert loose is None or not (loose.dropped & (model.graph.edges.kind == EdgeKind.WAKE)).any()


@pytest.mark.slow
def test_a_lock_is_free_if_its_holders_wait_for_it_as_well() -> None:
    model = model_of_pair("sync within a lock of three launching threads")
    changes = Changes.none(model)
    changes.time[:] = 0.5
    loose, locks = loosened(changes), model.threads.woken.lock > 0
    assert loose is not None
    assert locks.any()
    assert loose.dropped[model.graph.of_rows(EdgeKind.WAKE, locks)].all()


def test_who_launches_no_work_of_the_steps_may_still_wait_for_the_device() -> None:
    model = model_of_pair("sync beside long kernels of another thread, as the finding says")
    of_others, changes = model.waits_of_others, [Changes.none(model, view) for view in (View.LIKELY, View.LEAST)]
    for each in changes:
        apply(each, Transform("without", "sync"))
    likely, least = changes
    assert not likely.held[of_others].all()
    assert least.held[of_others].all()
    assert np.array_equal(likely.held[~of_others], least.held[~of_others])


@pytest.mark.slow
def test_what_another_thread_launches_in_the_same_stream_takes_no_time() -> None:
    model = model_of_pair(SHARED)
    others = model.others_work < StepWork.OWN
    assert 0 < others.sum() < len(model.work)
    loose = loosened(Changes.none(model))
    assert loose is not None
    assert not loose.length[others].any()
    assert np.array_equal(loose.length[~others], model.length[~others])


def test_no_more_is_saved_than_is_taken_out() -> None:
    model = model_of_pair("file read by another thread on demand")
    changes = Changes.none(model)
    assert taken_out(changes) == 0
    transform = faster("kernel", "assemble", 0.5)
    apply(changes, transform)
    assert taken_out(changes) == pytest.approx(model.length.sum() / 2 / model.stretch.count, rel=0.001)
    changes.eager[0] = True
    assert taken_out(changes) == np.inf
