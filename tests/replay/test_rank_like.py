"""A late rank that behaves like the median one."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.replay.changes import Changes
from nsysdiag.replay.rank_like import LATE, _device_of_thread, _own_borders, _step_of, like_the_median
from nsysdiag.replay.run import run_of
from nsysdiag.replay.work import Class
from tests.replay.making import model_of_pair

LATE_KERNELS, LATE_HOST, EQUAL = (
    "slow kernels of one of eight ranks",
    "slow host of one of two ranks",
    "exchange in four buckets",
)


def busy(changes: Changes) -> np.ndarray:
    """The time of kernels by device."""
    work = changes.model.work
    return np.bincount(work.device, np.where(work.kind == Class.COMPUTE, changes.length, 0))


@pytest.mark.slow
def test_kernels_of_a_late_rank_take_as_long_as_those_of_the_median() -> None:
    changes = Changes.none(model_of_pair(LATE_KERNELS))
    before = busy(changes)
    assert like_the_median(changes)
    after, late = busy(changes), before > LATE * np.median(before)
    assert late.sum() == 1
    assert (after[~late] == before[~late]).all()
    assert after[late][0] == pytest.approx(np.median(before), rel=0.01)


@pytest.mark.slow
def test_host_time_of_a_late_rank() -> None:
    model = model_of_pair(LATE_HOST)
    changes = Changes.none(model)
    before = run_of(changes).ns
    assert like_the_median(changes)
    owner = _device_of_thread(model, model.program.thread)[model.pieces.owner]
    shortened = np.unique(owner[changes.time < 1])
    assert len(shortened) == 1
    assert run_of(changes).ns < before


@pytest.mark.slow
def test_communication_is_left_as_it_is() -> None:
    """A rank that waits inside a collective is not late by it."""
    changes = Changes.none(model_of_pair(LATE_KERNELS))
    like_the_median(changes)
    work = changes.model.work
    others = work.kind != Class.COMPUTE
    assert (changes.length == changes.model.length)[others].all()


@pytest.mark.slow
def test_ranks_that_are_equal_stay_as_they_are() -> None:
    changes = Changes.none(model_of_pair(EQUAL))
    before = run_of(changes).ns
    assert like_the_median(changes)
    assert run_of(changes).ns == before
    assert np.array_equal(changes.length, changes.model.length)


def test_one_rank_has_no_median() -> None:
    assert not like_the_median(Changes.none(model_of_pair("sync after each kernel of 60 µs")))


@pytest.mark.slow
def test_times_before_and_behind_the_steps_have_places_of_their_own() -> None:
    model = model_of_pair(EQUAL)
    borders = model.stretch.borders
    times = np.array([borders[0] - 1, borders[0], borders[1], borders[-1]])
    assert _step_of(model, np.full(4, -1), times).tolist() == [0, 1, 2, len(borders)]


def test_a_rank_has_steps_of_its_own() -> None:
    """It is behind the others by half a step, and each of its steps begins with the same launch as theirs."""
    common, steps = np.arange(0, 11_000, 1_000), 10
    issued = (np.arange(steps)[:, None] * 1_000 + [400, 500, 1_200]).reshape(-1)
    found = _own_borders(issued, np.tile([1, 2, 3], steps), np.array([1, 2, 3]), common)
    assert found is not None
    assert found[:steps].tolist() == (common[:steps] + 400).tolist()
    assert found[steps] > issued[-1]
    other = _own_borders(issued, np.tile([3, 1, 2], steps), np.array([1, 2, 3]), common)
    assert other is not None
    assert other[1 : steps - 1].tolist() == (common[1 : steps - 1] + 500).tolist()
    assert _own_borders(issued, np.arange(3 * steps), np.array([0, 1, 2]), common) is None


@pytest.mark.slow
def test_a_thread_that_launches_nothing_has_no_device() -> None:
    assert _device_of_thread(model_of_pair(EQUAL), np.array([1, 2])).tolist() == [-1, -1]
