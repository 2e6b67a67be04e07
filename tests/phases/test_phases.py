"""Phases of jobs with known borders."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nsysdiag.phases.phases import find_phases
from tests.phases.jobs import DOWNLOAD, MIGRATION, MS, UPLOAD, Job, assert_exact, borders, named, steps_between

STEP = ((1, 4 * MS), (2, 3 * MS), (0, 3 * MS))
"""10 ms, of which the device is busy 7."""


def near(found: int, expected: int, step: int = 10 * MS) -> bool:
    """Within one step."""
    return abs(found - expected) <= step


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("start_ms", [30, 200, 1_900])
def test_a_start_a_loop_and_a_teardown(start_ms: int, *, known: bool) -> None:
    """
    window  [first kernels, idle][400 steps of 10 ms][idle .. download]
    """
    job = Job().kernel(9, MS).idle(start_ms * MS, "startup").kernel(8, MS)
    begin = job.now
    end = job.steps(400, *STEP, loop=known).now
    job.idle(300 * MS).copy(DOWNLOAD, 100 * MS)
    found = job.phases(first_call_ns=20 * MS)
    assert_exact(found, (100 * MS, job.now))
    assert named(found) == ["start-up", "steady", "teardown"]
    assert borders(found)[0] == 20 * MS
    assert near(borders(found)[1], begin)
    assert near(borders(found)[2], end)
    assert (found.basis, found.judged) == ("steady", [1])
    assert found.phases[1].strong
    assert found.phases[1].repeats >= 390


@pytest.mark.parametrize("known", [False, True])
def test_warm_up_steps_are_part_of_the_start(*, known: bool) -> None:
    """Ten steps ten times as long as the others, with kernels of their own for tuning."""
    job = Job().steps(10, (1, 4 * MS), (5, 20 * MS), (2, 3 * MS), (0, 73 * MS))
    begin = job.now
    job.steps(300, *STEP)
    if known:
        starts = np.append(100 * MS + np.arange(10) * 100 * MS, begin + np.arange(301) * 10 * MS)
        job.loops.append(steps_between(starts, named=True))
    found = job.phases()
    assert named(found) == ["start-up", "steady"]
    assert near(borders(found)[1], begin)
    assert found.judged == [1]


@pytest.mark.parametrize("known", [False, True])
def test_two_loops_with_a_pause(*, known: bool) -> None:
    job = Job()
    ends = [job.steps(1_000, (1, 3 * MS), (0, MS // 10), loop=known).now, job.idle(600 * MS).now]
    ends.append(job.steps(1_000, (1, MS // 2), (0, MS // 2), loop=known).now)
    found = job.phases()
    assert named(found) == ["steady", "pause", "steady"]
    assert all(near(*pair, 3 * MS) for pair in zip(borders(found)[1:], ends, strict=True))
    assert found.judged == [0, 2]


def test_two_loops_without_a_pause() -> None:
    """Training and evaluation: other kernels, so two phases."""
    job = Job().steps(300, *STEP)
    change = job.now
    job.steps(200, (3, 5 * MS), (4, 3 * MS), (0, 2 * MS))
    found = job.phases()
    assert named(found) == ["steady", "steady"]
    assert near(borders(found)[1], change)


def test_a_slow_drift_is_one_phase() -> None:
    """Steps from 10 to 16 ms: each like the one before, the last ones busy 44% where the first are 70%."""
    job = Job()
    for at in range(400):
        job.steps(1, *STEP).idle(at * 6 * MS // 400)
    found = job.phases()
    assert named(found) == ["steady"]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("every", [2, 3, 7, 10, 25, 50, 100])
def test_periodic_slow_steps_are_no_phases(every: int, *, known: bool) -> None:
    job = Job()
    starts = [job.now]
    for at in range(400):
        job.steps(1, *STEP)
        if at % every == every - 1:
            job.idle(25 * MS)
        starts.append(job.now)
    if known:
        job.loops.append(steps_between(starts, named=True))
    found = job.phases()
    assert named(found) == ["steady"]
    assert found.judged == [0]
    if known:
        steps = found.phases[0].steps
        assert steps is not None
        assert (steps.source, steps.count) == ("nvtx", 400)
        assert steps.median_ns in (10 * MS, 35 * MS)


def test_alternating_parts_are_a_step() -> None:
    """Six steps of two parts, each part 8% of the window."""
    job = Job()
    for _ in range(6):
        job.steps(40, (1, 4 * MS), (0, MS)).steps(40, (2, 2 * MS), (0, 3 * MS))
    found = job.phases()
    assert named(found) == ["steady"]


def test_parts_that_do_not_alternate_are_phases() -> None:
    """The near miss of the same: A-B-C-D, all different."""
    job = Job()
    for name in range(1, 5):
        job.steps(100, (name, 4 * MS), (0, MS))
    assert named(job.phases()) == ["steady"] * 4


def test_one_kernel_is_no_steady_state() -> None:
    job = Job().kernel(1, 30 * MS)
    found = job.phases(first_call_ns=0)
    assert_exact(found, (100 * MS, 130 * MS))
    assert (found.basis, named(found), found.judged) == ("cold", ["start-up"], [0])
    assert borders(found) == [0, 130 * MS]


def test_one_kernel_that_is_the_whole_run_is_judged() -> None:
    found = Job().kernel(1, 50_000 * MS).phases(first_call_ns=0)
    assert (found.basis, named(found), found.judged) == ("window", ["steady"], [0])


def test_without_gpu_rows_nothing_is_judged() -> None:
    found = find_phases([], None, narrowed=False)
    assert (found.basis, found.phases, found.judged) == ("none", [], [])
    nothing = Job().kernel(1, 0).signal(window=(5, 5))
    assert find_phases([nothing], 3, narrowed=True).basis == "none"


def test_a_device_that_is_merely_touched_changes_nothing() -> None:
    """Two tiny kernels on each of seven other devices, in the start and at the end."""
    job = Job().kernel(9, MS).idle(800 * MS, "startup").steps(300, *STEP).idle(400 * MS).copy(DOWNLOAD, MS)
    touched = Job(now=101 * MS).kernel(9, 1_000).idle(3_900 * MS).kernel(9, 1_000)
    alone = job.phases()
    touched_too = [touched.signal(number) for number in range(1, 8)]
    both = find_phases([job.signal(0), *touched_too], None, narrowed=False)
    assert borders(both)[:-1] == borders(alone)[:-1]
    assert (both.basis, both.judged, named(both)) == (alone.basis, alone.judged, named(alone))


def test_two_devices_in_step_are_one_job() -> None:
    first = Job().idle(500 * MS).steps(300, *STEP)
    second = Job().kernel(7, 5 * MS).idle(500 * MS, "startup").steps(299, *STEP)
    found = find_phases([first.signal(0), second.signal(1)], None, narrowed=False)
    assert_exact(found, (100 * MS, max(first.now - 3 * MS, second.now - 3 * MS)))
    assert named(found) == ["start-up", "steady"]
    assert near(borders(found)[1], 600 * MS)


def test_names_that_repeat_on_different_devices_do_not_repeat() -> None:
    """Each of eight devices runs ten kernels once: no name repeats on any."""
    jobs = []
    for number in range(8):
        job = Job()
        for name in range(10):
            job.kernel(100 * name + 1, 5 * MS).idle(5 * MS, "unknown")
        jobs.append(job.signal(number))
    assert find_phases(jobs, 0, narrowed=False).basis != "steady"
    assert not any(phase.repeats >= 3 for phase in find_phases(jobs, 0, narrowed=False).phases)


def test_migrations_extend_no_phase() -> None:
    job = Job().copy(MIGRATION, 50 * MS)
    begin = job.now
    end = job.steps(300, *STEP).now - 3 * MS
    job.copy(MIGRATION, 500 * MS)
    assert_exact(job.phases(), (begin, end))


def test_graph_launches_repeat() -> None:
    job = Job()
    for _ in range(300):
        job.graph(7 * MS).idle(3 * MS)
    found = job.phases()
    assert named(found) == ["steady"]
    assert found.phases[0].repeats == 300


def test_the_time_before_a_loop_that_begins_at_once_is_a_start_up() -> None:
    """From the first CUDA call, unless it is shorter than any phase."""
    job = Job().steps(300, *STEP)
    far, near_ = job.phases(first_call_ns=100 * MS - 500 * MS), job.phases(first_call_ns=99 * MS)
    assert (named(far), borders(far)[:2]) == (["start-up", "steady"], [-400 * MS, 100 * MS])
    assert (named(near_), borders(near_)[0]) == (["steady"], 100 * MS)
    assert far.judged == [1]


def test_a_short_steady_phase_is_named_but_not_judged() -> None:
    """Steady phases with less than a tenth of the steady time: the second loop has 6%."""
    job = Job().steps(300, *STEP).idle(400 * MS).steps(19, (3, 5 * MS), (4, 3 * MS), (0, 2 * MS))
    found = job.phases()
    assert named(found) == ["steady", "pause", "steady"]
    assert found.judged == [0]


def test_a_chunked_upload_is_no_steady_phase_beside_kernels() -> None:
    job = Job().kernel(9, MS)
    for _ in range(100):
        job.copy(UPLOAD, 5 * MS)
    begin = job.now
    job.steps(100, *STEP)
    found = job.phases()
    assert named(found) == ["start-up", "steady"]
    assert near(borders(found)[1], begin)


def test_copies_that_repeat_alone_are_a_steady_phase() -> None:
    """A test of bandwidth: there is nothing else."""
    job = Job()
    for _ in range(100):
        job.copy(UPLOAD, 5 * MS).copy(DOWNLOAD, 5 * MS)
    found = job.phases()
    assert (found.basis, named(found)) == ("steady", ["steady"])
    assert found.phases[0].repeats == 100


def without_first(job: Job, steps: int) -> Job:
    """The loop of a job, of which the first steps were not found."""
    (loop,) = job.loops
    job.loops = [loop.at(slice(steps, None))]
    return job


@pytest.mark.parametrize("missed", [1, 10])
def test_steps_that_were_not_found_are_no_start_up(missed: int) -> None:
    found = without_first(Job().steps(300, *STEP, loop=True), missed).phases()
    assert named(found) == ["steady"]
    steps = found.phases[0].steps
    assert steps is not None
    assert steps.count == 300 - missed


def test_a_part_of_a_step_is_no_start_up() -> None:
    """Steps of 500 ms, counted from their last kernel: what runs before the first of these is part of a step."""
    job = Job()
    starts = []
    for _ in range(30):
        job.kernel(1, 100 * MS).kernel(2, 200 * MS).idle(150 * MS)
        starts.append(job.now)
        job.kernel(3, 50 * MS)
    job.loops.append(steps_between(starts))
    assert named(job.phases()) == ["steady"]


def test_a_start_too_short_for_a_phase_of_its_own_ends_where_the_steps_begin() -> None:
    """1% of the window, in kernels of its own."""
    job = Job()
    for name in range(10, 15):
        job.kernel(name, 5 * MS).idle(MS)
    begin = job.now
    job.steps(300, *STEP, loop=True)
    found = job.phases()
    assert (named(found), borders(found)[1]) == (["start-up", "steady"], begin)


@pytest.mark.parametrize("slow", [23, 24, 25])
def test_a_slow_step_among_the_last_is_no_teardown(slow: int) -> None:
    """25 steps of which one takes three times as long, before an idle end."""
    job = Job().kernel(9, MS).idle(600 * MS, "startup")
    begin = job.now
    starts = [begin]
    for at in range(1, 26):
        job.kernel(1, 20 * MS).kernel(2, 20 * MS).idle((80 + 60) * MS if at == slow else 20 * MS)
        starts.append(job.now)
    job.loops.append(steps_between(starts, named=True))
    end = job.now
    job.idle(900 * MS).copy(DOWNLOAD, MS)
    found = job.phases()
    assert (named(found), borders(found)[1:3]) == (["start-up", "steady", "teardown"], [begin, end])


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("length_ms", [40, 100, 150])
def test_a_pause_shorter_than_any_phase_is_a_slow_step(length_ms: int, *, known: bool) -> None:
    """Up to 3.7% of 4 s, between the same steps."""
    job = Job()
    starts = [job.now]
    for at in range(400):
        job.steps(1, *STEP).idle(length_ms * MS if at == 150 else 0)
        starts.append(job.now)
    if known:
        job.loops.append(steps_between(starts, named=True))
    assert named(job.phases()) == ["steady"]


def job_that_falls_behind(*slow: tuple[tuple[int, int], ...]) -> Job:
    """Forty steps whose ranges are known, after half of them the slow ones."""
    job = Job()
    starts = [job.now, *(job.steps(1, *parts).now for parts in (*[STEP] * 20, *slow, *[STEP] * 20))]
    job.loops.append(steps_between(starts, named=True))
    return job


@pytest.mark.parametrize("waits_ms", [(25, 15), (60, 40, 50), (35, 60, 20, 45)])
def test_slow_steps_in_a_row_are_no_pause(waits_ms: tuple[int, ...]) -> None:
    """The loader falls behind for some steps, 8 to 28% of the time: the loop goes on, and all of it is judged."""
    found = job_that_falls_behind(*((*STEP, (0, wait * MS)) for wait in waits_ms)).phases()
    assert (named(found), found.judged) == (["steady"], [0])
    assert found.phases[0].steps is not None
    assert found.phases[0].steps.count == 40 + len(waits_ms)


@pytest.mark.parametrize(
    "steps",
    [
        (STEP, (*STEP, (0, 90 * MS))),  # one of two takes nearly all of the time
        ((*STEP, (0, 90 * MS)),),
        (((9, 20 * MS), (0, 20 * MS)), ((9, 15 * MS), (0, 20 * MS))),  # other kernels
    ],
)
def test_a_pause_in_one_step_or_other_work_is_no_slow_step(steps: tuple[tuple[tuple[int, int], ...], ...]) -> None:
    assert len(named(job_that_falls_behind(*steps).phases())) == 3


@pytest.mark.parametrize("seed", range(6))
def test_steps_that_wait_long_by_chance_are_one_phase(seed: int) -> None:
    """Of forty steps of 10 ms about every third waits 60 ms, at no regular distance."""
    chance = random.Random(seed)
    slow = [chance.random() < 0.3 for _ in range(40)]
    job = Job()
    starts = [job.now, *(job.steps(1, *STEP).idle(60 * MS * waits).now for waits in slow)]
    job.loops.append(steps_between(starts, named=True))
    found = job.phases()
    (at,) = found.judged
    assert named(found)[at:] == ["steady"]
    assert found.phases[at].steps is not None
    assert found.phases[at].steps.count >= 38


def test_a_pause_far_longer_than_the_stops_is_one() -> None:
    """Twice forty such steps, and 5 s between them."""
    chance = random.Random(1)
    job = Job()
    waits = [60 * (chance.random() < 0.3) for _ in range(80)]
    waits[39:41] = [5_000, 0]
    starts = [job.now, *(job.steps(1, *STEP).idle(ms * MS).now for ms in waits)]
    job.loops.append(steps_between(starts, named=True))
    found = job.phases()
    assert named(found) == ["steady", "pause", "steady"]
    assert found.judged == [0, 2]


def test_a_longer_pause_is_one() -> None:
    job = Job().steps(200, *STEP).idle(400 * MS).steps(200, *STEP)
    assert named(job.phases()) == ["steady", "pause", "steady"]


@pytest.mark.parametrize("own", [(1, 2), (1, 2, 5), (5, 1, 2, 6)])
def test_a_few_warm_up_steps(own: tuple[int, ...]) -> None:
    """Four slow steps with some of the kernels of the loop, or with others too."""
    job = Job().steps(4, *((name, 5 * MS) for name in own), (0, 150 * MS))
    begin = job.now
    job.steps(200, *STEP)
    found = job.phases()
    assert (named(found), found.judged) == (["start-up", "steady"], [1])
    assert near(borders(found)[1], begin)


def test_fewer_and_shorter_steps_of_other_kernels_are_no_warm_up() -> None:
    """Ten steps of evaluation, before training."""
    found = Job().steps(10, (5, 30 * MS), (6, 20 * MS), (0, 20 * MS)).steps(200, *STEP).phases()
    assert named(found) == ["steady", "steady"]


def test_two_loops_of_a_device_that_is_mostly_idle() -> None:
    """Busy for an eighth of the time: what changes is small beside the idle time of the start."""
    job = Job().kernel(9, MS).idle(6_000 * MS, "startup")
    borders_ = []
    for names in ((1, 2, 3, 4), (5, 6, 7)):
        borders_.append(job.now)
        for at in range(111):
            job.steps(1, *((name, 13 * MS // 10 // len(names)) for name in names), (0, 9 * MS))
            job.idle(20 * MS if at % 7 == 6 else 0)
        borders_.append(job.now)
        job.idle(370 * MS)
    found = job.kernel(8, MS).phases()
    assert named(found)[:4] == ["start-up", "steady", "pause", "steady"]
    assert all(near(*pair, 30 * MS) for pair in zip(borders(found)[1:4], borders_[:3], strict=True))


def test_unknown_steps_as_long_as_a_window_or_two() -> None:
    """43 steps in 90 windows: within a step the device is busy first and idle then, as if phases alternated."""
    job = Job().steps(43, *((name, 7 * MS) for name in (1, 2, 3, 4)), (0, 75 * MS))
    first = job.now
    second = job.idle(900 * MS).now
    found = job.steps(43, *((name, 9 * MS) for name in (5, 6, 7)), (0, 75 * MS)).phases()
    assert named(found) == ["steady", "pause", "steady"]
    assert near(borders(found)[1], first, 103 * MS)
    assert near(borders(found)[2], second, 103 * MS)


@pytest.mark.parametrize(("kernel", "busy_ms", "last"), [(1, 80, "steady"), (5, 80, "teardown"), (1, 20, "teardown")])
def test_a_tail_of_the_same_heavy_work_is_no_teardown(kernel: int, busy_ms: int, last: str) -> None:
    """Long kernels behind the loop, of the loop's names or other ones, or little of them."""
    job = Job().steps(100, *STEP, loop=True)
    for ms in (busy_ms, 2 * busy_ms):
        job.kernel(kernel, ms * MS // 2).kernel(kernel + 1, ms * MS // 2).idle(max(120 - ms, 0) * MS)
    job.kernel(kernel, MS)
    assert named(job.phases())[-1] == last
