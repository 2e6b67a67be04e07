"""Which waits end at a time of their own, and what is said of a loop that waits for one in each step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag import analyze
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.pipeline.changes import whatif
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.pacing import Timed, _judged, _turn_of_each, _varies
from nsysdiag.replay.predict import identity_of
from nsysdiag.replay.work import Stretch
from tests.replay.making import SETTINGS, model_of_pair
from tests.replay.pairs import PAIRS
from tests.replay.pairs.pair import simulated

PERIOD, US = 4_000_000, 1_000
CAMERA, SLEEPS = "camera by a sleep until a time", "sleep as long as ever"
works = st.lists(st.integers(200 * US, 3_000 * US), min_size=30, max_size=60)


def judged(begin: IntArray, end: IntArray) -> tuple[bool | None, int]:
    """What waits are that come once a step."""
    return _judged(begin, end, np.arange(len(begin)))


def until(work: list[int], due: IntArray) -> tuple[IntArray, IntArray]:
    """Waits after so much work each, until their times."""
    now, begin, end = 0, [], []
    for ns, time in zip(work, due.tolist(), strict=True):
        begin.append(now + ns)
        now = max(now + ns, time)
        end.append(now)
    return np.array(begin), np.array(end)


@given(works)
def test_waits_until_times_are_told_where_the_work_varies(work: list[int]) -> None:
    due = (1 + np.arange(len(work))) * PERIOD
    sure, period = judged(*until(work, due))
    few = np.median(np.abs(np.diff(work))) < 100 * US
    assert sure or few
    assert period == (PERIOD if sure else period)


@given(works, st.integers(100 * US, 3_000 * US))
def test_waits_as_long_as_ever_are_never_paced(work: list[int], wait: int) -> None:
    end = np.cumsum(work) + wait * (1 + np.arange(len(work)))
    assert judged(end - wait, end)[0] in (None, False)


def test_work_of_one_length_says_nothing() -> None:
    due = (1 + np.arange(40)) * PERIOD
    assert judged(*until([1_000 * US] * 40, due)) == (False, PERIOD)
    assert judged(due - PERIOD // 2, due) == (False, PERIOD)


def test_time_on_a_cpu_that_hardly_differs_is_work() -> None:
    """8.1 ms that are 2% longer or shorter against those that end with a period after work of 0.2 to 3 ms."""
    chance = np.random.default_rng(0)
    steady = np.round(8_100 * US * chance.normal(1, 0.02, 40)).astype(np.int64)
    begin, end = until(chance.integers(200 * US, 3_000 * US, 40).tolist(), (1 + np.arange(40)) * PERIOD)
    assert not _varies(steady, steady)
    assert _varies(end - begin, np.diff(end))


def test_time_on_a_cpu_that_ends_much_more_regularly_is_a_wait() -> None:
    """8 ms that are 1% longer or shorter as the work before them is, and end each 10 ms; or 80 µs apart from that."""
    ends = (1 + np.arange(40)) * PERIOD
    length = 8_000 * US + np.round(np.random.default_rng(0).normal(0, 80 * US, 40)).astype(np.int64)
    assert _varies(length, np.diff(ends))
    assert not _varies(length, np.diff(ends + length))


def test_few_waits_say_nothing() -> None:
    work = [1_000 * US, 2_000 * US] * 3
    assert judged(*until(work, (1 + np.arange(6)) * PERIOD))[0] is False


def test_a_step_that_is_late_does_not_hide_the_times() -> None:
    work = [1_500 * US + (at * 7919 % 13) * 50 * US for at in range(40)]
    work[::7] = [5_000 * US] * len(work[::7])
    assert judged(*until(work, (1 + np.arange(40)) * PERIOD)) == (True, PERIOD)


@given(works)
def test_host_code_beside_longer_kernels_is_not_paced(work: list[int]) -> None:
    """What follows each, a wait for the kernel, makes all steps as long; also where the work changes slowly."""
    for ns in (np.array(work), np.sort(work)):
        begin = np.arange(len(ns)) * PERIOD
        assert judged(begin, begin + ns)[0] in (None, False)


@pytest.mark.slow
def test_a_camera_is_paced_and_a_sleep_is_not() -> None:
    camera, sleeps = (model_of_pair(name) for name in (CAMERA, SLEEPS))
    assert camera.threads.timed.pace(camera.stretch) == pytest.approx(PERIOD, rel=0.01)
    assert sleeps.threads.timed.pace(sleeps.stretch) == 0
    assert len(sleeps.threads.timed) == 0
    assert identity_of(camera).exact


def test_what_waits_for_a_time_now_and_then_paces_no_loop() -> None:
    stretch = Stretch(np.arange(41) * PERIOD, stepwise=True)
    at = np.arange(10) * 4 * PERIOD
    some = np.ones(10, dtype=np.int64)
    assert Timed(some, at, at + PERIOD, some, some * 4 * PERIOD, some, some).pace(stretch) == 0


@pytest.mark.slow
def test_a_wait_that_is_taken_out_holds_nothing_back() -> None:
    changes = Changes.none(model_of_pair(CAMERA))
    assert changes.paced.all()
    changes.time[:] = 0
    assert not changes.paced.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cuda-solver", "MPI Rank 1"])
def test_what_a_rank_waits_for_unseen_may_be_other_ranks(name: str, tmp_path: Path) -> None:
    """Waits of which nothing was recorded end at their times: of a rank whose MPI calls were not traced they may be
    for others, which run the same program."""
    pair = PAIRS["camera, system calls not recorded"]
    simulation = simulated(pair.before, pair.gpus, pair.capture)[0]
    simulation.processes[0].name = name
    report = analyze(simulation.write(tmp_path / "trace.sqlite"), SETTINGS)
    alone = name == "cuda-solver"
    assert (report.diagnosis.paced_ns is not None) is alone
    assert ("The loop is paced" in report.diagnosis.headline) is alone
    assert any(each.saves and each.saves.ns > 0.05 * each.saves.of_ns for each in report.findings) is not alone


@pytest.mark.slow
@pytest.mark.parametrize(("name", "paced"), [(CAMERA, True), (SLEEPS, False)])
def test_it_is_said(name: str, paced: bool, tmp_path: Path) -> None:
    pair = PAIRS[name]
    trace = simulated(pair.before, pair.gpus)[0].write(tmp_path / "trace.sqlite")
    report = analyze(trace, SETTINGS)
    assert ("The loop is paced at 4.00 ms" in report.diagnosis.headline) is paced
    assert (report.diagnosis.paced_ns is not None) is paced
    known = {each.cause: each for each in report.findings}
    host = known["host_compute"]
    assert host.saves is not None
    assert (host.saves.ns < 0.01 * host.saves.of_ns) is paced
    assert (host.note == "the loop is paced at 4.00 ms") is paced
    assert (known["sleep"].saves.ns < 0.01 * host.saves.of_ns) is paced  # type: ignore[union-attr]
    found = whatif(trace, (Transform("without", "sleep"),), SETTINGS)
    assert (found.paced_ns is not None) is paced
    assert found.cannot_tell is paced


def test_turns_of_a_window_go_on_behind_one_that_is_missing() -> None:
    """And behind one more; of two that take about as long each keeps its own."""
    chance = np.random.default_rng(3)
    turn = np.delete(np.insert(np.tile([0, 1, 2], 30), 60, 2), 31)
    length = np.array([100_000, 240_000, 245_000])[turn] + chance.integers(0, 8_000, len(turn))
    found = _turn_of_each(length)
    assert (found % 3 == turn).mean() > 0.9  # twice as many turns are turns, too
    assert not _turn_of_each(length[:5]).any()
