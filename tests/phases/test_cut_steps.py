"""Steps that an end of the trace cuts are not counted."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.phases.jobs import DOWNLOAD, MS, UPLOAD, Job, assert_exact, named, steps_between

STEP_NS = 250 * MS


def exchange(job: Job) -> None:
    """A step of 250 ms from its kernel on: a kernel, a download, host code, and the upload for the next one."""
    job.kernel(1, 18 * MS).copy(DOWNLOAD, 19 * MS).idle(175 * MS).copy(UPLOAD, 38 * MS)


def with_loop(job: Job, starts: list[int]) -> Job:
    job.loops.append(steps_between([*starts, job.now]))
    return job


def exchanges(count: int) -> Job:
    """So many whole steps, and one of which the trace holds the beginning."""
    job, starts = Job(), []
    for _ in range(count):
        starts.append(job.now)
        exchange(job)
    starts.append(job.now)
    return with_loop(job.kernel(1, 18 * MS).copy(DOWNLOAD, 19 * MS), starts)


@pytest.mark.parametrize(("count", "basis"), [(3, "phase"), (4, "phase"), (5, "steady")])
def test_a_last_step_without_its_work_is_not_counted(count: int, basis: str) -> None:
    """The phase ends with the last whole step, so that its figures are those of a step. What is left of the next one is
    no teardown."""
    found = exchanges(count).phases()
    phase = found.phases[0]
    assert phase.steps is not None
    assert (phase.steps.count, phase.steps.median_ns) == (count, STEP_NS)
    assert (found.basis, phase.repeats) == (basis, count)
    assert phase.end - phase.start == count * STEP_NS
    assert (named(found), found.judged) == (["steady", "steady"], [0])


def test_among_many_steps_a_cut_one_has_no_phase_of_its_own() -> None:
    """It takes less than a hundredth of the phase."""
    found = exchanges(40).phases()
    assert named(found) == ["steady"]
    assert found.phases[0].steps is not None
    assert found.phases[0].steps.count == 40


def test_a_last_step_that_lacks_a_short_operation_is_whole() -> None:
    """A memory set before each kernel but the first belongs to the step before."""
    job, starts = Job(), []
    for _ in range(6):
        starts.append(job.now)
        job.kernel(1, 20 * MS).copy(DOWNLOAD, MS // 100).copy(UPLOAD, MS // 100)
    job = with_loop(job, starts)
    job.rows.pop()
    job.loops[0].ends[-1] -= MS // 100
    found = job.phases()
    assert named(found) == ["steady"]
    assert found.phases[0].steps is not None
    assert found.phases[0].steps.count == 6


@pytest.mark.parametrize(("count", "counted"), [(2, 2), (3, 3), (20, 20)])
def test_a_last_step_without_its_idle_end_is_a_repeat(count: int, counted: int) -> None:
    """Half of each step is idle. The last of a few counts, and its length, which the trace cuts, does not."""
    found = Job().steps(count, (1, 20 * MS), (2, 30 * MS), (0, 50 * MS), loop=True).phases()
    phase = found.phases[0]
    assert named(found) == ["steady"]
    assert phase.repeats == count
    assert phase.steps is not None
    assert (phase.steps.count, phase.steps.median_ns) == (counted, 100 * MS)


def test_a_first_step_without_its_work_is_not_counted() -> None:
    """A slice that begins inside a named step."""
    job = Job()
    starts = [job.now]
    job.copy(DOWNLOAD, 5 * MS).idle(60 * MS).copy(UPLOAD, 10 * MS)
    for _ in range(4):
        starts.append(job.now)
        exchange(job)
    found = with_loop(job, starts).phases()
    steady = next(phase for phase in found.phases if phase.name == "steady")
    assert steady.start == starts[1]
    assert steady.steps is not None
    assert (steady.steps.count, steady.steps.median_ns) == (4, STEP_NS)


@example(whole=2, parts=[(1, 5, 0), (1, 5, 3)], first=1.0, last=0.0)
@given(
    whole=st.integers(2, 12),
    parts=st.lists(st.tuples(st.integers(1, 4), st.integers(5, 50), st.integers(0, 50)), min_size=2, max_size=4),
    first=st.floats(0, 1),
    last=st.floats(0, 1),
)
def test_whole_steps_fit_into_their_phase(
    whole: int, parts: list[tuple[int, int, int]], first: float, last: float
) -> None:
    """
    trace     |-------------------------------|
    steps  |..=|=====|=====|=====|=====|=====|==..
    """
    rows = [(name, work * MS, idle * MS) for name, work, idle in parts]
    length = sum(work + idle for _, work, idle in rows)
    job, starts = Job(), []
    for at in range(whole + 2):
        cut = int(first * length) if at == 0 else 0
        until = int(last * length) if at == whole + 1 else length
        starts.append(_part_of_a_step(job, rows, cut, until))
    found = with_loop(job, sorted({*starts} - {job.now})).phases()
    assert_exact(found, (found.start, found.end))
    for phase in found.phases:
        if phase.steps is not None:
            assert phase.steps.count <= whole + 2
            assert phase.steps.count <= phase.repeats
            # Half of the steps at least are as long as the median; of the last one only the idle end may be missing.
            at_least = phase.steps.count // 2 + 1
            idle_end = rows[-1][2]
            assert at_least * phase.steps.median_ns <= 1.1 * (phase.end - phase.start) + idle_end


def _part_of_a_step(job: Job, rows: list[tuple[int, int, int]], cut: int, until: int) -> int:
    """What a trace holds of a step between two times in it; returns where that begins."""
    begins, at = job.now, 0
    for name, work, idle in rows:
        for what, ns in ((name, work), (0, idle)):
            inside = max(min(at + ns, until) - max(at, cut), 0)
            at += ns
            _ = job.kernel(name, inside) if what and inside else job.idle(inside)
    return begins
