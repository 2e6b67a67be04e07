"""Which parts of a job repeat, between borders that are given."""

from __future__ import annotations

import numpy as np

from nsysdiag.iterations.loop import Loop
from nsysdiag.phases.signal import job_work
from nsysdiag.phases.steady import JobParts, segments_of
from tests.phases.jobs import MS, Job, steps_between


def parts_of(job: Job, borders: list[int], loops: list[Loop]) -> JobParts:
    """The parts of a job of one device."""
    signal = job.signal()
    return segments_of(np.array(borders, np.int64), loops, [signal], job_work([signal.device], borders[0], borders[-1]))


def test_one_step_of_a_loop_is_no_repeat() -> None:
    """Its kernel runs three times a step, which would do without the steps; two steps are a repeat."""
    step = ((1, 20 * MS), (0, 5 * MS)) * 3
    job = Job().steps(5, *step, loop=True)
    starts = job.loops[0].borders.tolist()
    assert parts_of(job, [starts[0], starts[1], starts[5]], []).steady.tolist() == [True, True]
    assert parts_of(job, [starts[0], starts[1], starts[5]], job.loops).steady.tolist() == [False, True]
    assert parts_of(job, [starts[0], starts[2], starts[5]], job.loops).steady.tolist() == [True, True]


def test_part_of_a_step_may_be_steady_if_it_is_strong() -> None:
    """Two epochs with 100 alike steps each, where the epochs are the loop that was found."""
    job = Job().steps(400, (1, 2 * MS), (2, 2 * MS), (0, MS))
    job.loops.append(steps_between([100 * MS, 1_100 * MS, 2_100 * MS], named=True))
    found = parts_of(job, [100 * MS, 900 * MS, 2_100 * MS], job.loops)
    assert found.steady.tolist() == found.strong.tolist() == [True, True]


def test_halves_meet_between_steps() -> None:
    """Two steps; in the second the device waits between its two kinds of kernels."""
    parts = [(name, 100 * MS) for name in (1, 1, 1, 2, 2, 2)]
    job = Job().steps(1, *parts)
    middle = job.now
    job.steps(1, *parts[:3], (0, 600 * MS), *parts[3:])
    steps = steps_between([100 * MS, middle, job.now], named=True)
    assert not parts_of(job, [100 * MS, job.now], []).steady[0]
    assert parts_of(job, [100 * MS, job.now], [steps]).steady[0]


def test_what_carries_the_time_says_how_often_it_repeats() -> None:
    """A kernel that runs once takes 30% of the time, one that runs 7 times the rest; and the other way round."""
    for once, often, repeats in ((30, 10, 7), (70, 30 / 7, 1)):
        job = Job().kernel(1, once * MS)
        for _ in range(7):
            job.kernel(2, int(often * MS))
        assert parts_of(job, [100 * MS, job.now], []).repeats.tolist() == [repeats]


def test_accounts_add_up_to_the_time() -> None:
    job = Job().kernel(1, 30 * MS).idle(20 * MS, "startup").idle(10 * MS, "memory").idle(25 * MS).copy(1, 15 * MS)
    found = parts_of(job, [100 * MS, 150 * MS, 200 * MS], [])
    assert found.account.sum(axis=1).tolist() == [1, 1]
    assert found.account.tolist() == [[0.6, 0, 0, 0.4, 0, 0], [0, 0, 0.3, 0, 0.2, 0.5]]
    assert found.busy_ns.tolist() == [30 * MS, 15 * MS]


def test_a_loop_that_waits_in_each_step_is_steady() -> None:
    """The device works 1% of each step. Without the loop, with few steps or with a loop of half the time, such a part
    is not told from a start."""
    step = ((1, MS), (0, 99 * MS))
    looped = Job().steps(20, *step, loop=True)
    assert parts_of(looped, [100 * MS, looped.now], looped.loops).steady.tolist() == [True]
    assert parts_of(looped, [100 * MS, looped.now], []).steady.tolist() == [False]
    first = looped.loops[0].borders
    few, half = (steps_between(starts, named=True) for starts in (first[:5], first[:11]))
    assert parts_of(looped, [100 * MS, looped.now], [few]).steady.tolist() == [False]
    assert parts_of(looped, [100 * MS, looped.now], [half]).steady.tolist() == [False]


def test_an_open_loop_that_hardly_works_is_no_steady_part() -> None:
    """Where it is not known when steps end, what fills the time is not known, either."""
    job = Job().steps(20, (1, MS), (0, 99 * MS), loop=True, closed=False)
    assert parts_of(job, [100 * MS, job.now], job.loops).steady.tolist() == [False]


def test_rare_copies_are_no_steady_part() -> None:
    job = Job()
    starts = [job.now]
    for _ in range(20):
        job.copy(1, MS).idle(99 * MS)
        starts.append(job.now)
    loops = [steps_between(starts, named=True)]
    assert parts_of(job, [100 * MS, job.now], loops).steady.tolist() == [False]
