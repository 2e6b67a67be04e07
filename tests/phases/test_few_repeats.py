"""Phases with three or four repeats of the same operations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.operations import Category
from nsysdiag.phases.phases import find_phases
from nsysdiag.phases.steady import _once_a_repeat, same_sequences, without_warm_up
from tests.phases.jobs import DOWNLOAD, MS, UPLOAD, Job, assert_exact, named

KERNEL, OTHER = 1, 2
SLOW, USUAL = 180, 30
"""Of the first download and of later ones, in ms."""


def query(job: Job, download_ms: int, *, kernel: int = KERNEL) -> int:
    """A query, and when it began; the host works for 40 ms behind it."""
    began = job.now
    job.copy(UPLOAD, MS).copy(UPLOAD, MS).kernel(kernel, 4 * MS).kernel(OTHER, MS)
    job.copy(DOWNLOAD, download_ms * MS).idle(40 * MS).copy(DOWNLOAD, MS)
    return began


def queries(*downloads_ms: int, load_ms: int = 3_000) -> tuple[Job, list[int]]:
    """A job that loads data, and answers queries with downloads of these lengths; and when each of these began."""
    job = Job().copy(UPLOAD, 20 * MS).idle(load_ms * MS)
    return job, [query(job, each) for each in downloads_ms]


@pytest.mark.parametrize("others", [2, 3])
def test_a_slow_first_one_is_a_warm_up(others: int) -> None:
    job, begins = queries(SLOW, *[USUAL] * others)
    found = job.phases()
    assert_exact(found, (100 * MS, job.now))
    assert (found.basis, named(found)) == ("phase", ["start-up", "steady"])
    phase = found.phases[1]
    assert (phase.start, phase.end, phase.repeats) == (begins[1], job.now, others)
    assert phase.steps is not None
    assert (phase.steps.count, phase.steps.median_ns) == (others, 78 * MS)
    assert (phase.steps.source, phase.steps.warm_up_ns) == ("sequence", begins[1] - begins[0])


def test_a_first_one_that_is_hardly_slower_is_a_repeat() -> None:
    job, begins = queries(USUAL + 20, USUAL, USUAL)
    steps = job.phases().phases[-1].steps
    assert job.phases().phases[-1].start == begins[0]
    assert steps is not None
    assert (steps.count, steps.warm_up_ns) == (3, None)


def test_other_operations_are_no_repeat() -> None:
    job, _ = queries(SLOW, USUAL)
    query(job, USUAL, kernel=5)
    job.kernel(KERNEL, MS)
    assert same_sequences(job.signal().device, 0, job.now) is None


def test_repeats_begin_behind_the_longest_idle_time() -> None:
    """The upload before the first query looks like the last operation of a query."""
    job = Job().copy(DOWNLOAD, MS)
    begins = []
    for _ in range(3):
        begins.append(job.idle(50 * MS).now)
        job.kernel(KERNEL, 4 * MS).idle(MS).kernel(OTHER, MS).copy(DOWNLOAD, MS)
    assert same_sequences(job.signal().device, 0, job.now).tolist() == [*begins, job.now]  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [2, 5])
def test_two_repeats_and_five_are_left_to_others(count: int) -> None:
    """Two tell no usual length; of five the search for loops knows more."""
    job, _ = queries(*[USUAL] * count)
    assert same_sequences(job.signal().device, 0, job.now) is None


def test_operations_come_in_any_order() -> None:
    """Two at once: the one that begins first may end last."""
    job = Job()
    for _ in range(3):
        job.rows.append((job.now, job.now + 9 * MS, job.kernel(KERNEL, MS).rows[-1][2], OTHER, -1))
        job.idle(20 * MS)
    found = same_sequences(job.signal().device, 0, job.now)
    assert found is not None
    assert np.diff(found).tolist() == [21 * MS, 21 * MS, 9 * MS]


def test_nothing_ran() -> None:
    assert same_sequences(Job().kernel(1, MS).signal().device, 0, 1) is None


@pytest.mark.parametrize(
    ("lengths", "kept"), [([90, 30, 30], 2), ([44, 30, 30], 3), ([30, 30, 90], 3), ([90, 30, 46], 3), ([91, 60, 61], 2)]
)
def test_how_much_slower_a_warm_up_is(lengths: list[int], kept: int) -> None:
    borders = np.cumsum([0, *lengths])
    assert len(without_warm_up(borders)) - 1 == kept


def test_an_operation_over_the_border_of_two_phases_begins_in_the_first() -> None:
    """Steps of other operations follow while the last of the three before them still runs."""
    job = Job(47)
    names = [(0, 1, 1), (1, 26, 1), (26, 51, 1), (27, 31, 2), (31, 32, 1), (32, 36, 2)]
    names += [(36, 37, 1), (37, 41, 2), (41, 42, 1), (42, 46, 2), (46, 47, 1)]
    job.rows = [(start, end, Category.KERNEL, name, -1) for start, end, name in names]
    assert_exact(find_phases([job.signal()], None, narrowed=False), (0, 51))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=16), st.booleans())
def test_a_name_comes_once_a_repeat(operations: list[tuple[int, int]], again: bool) -> None:
    """Of names that come three or four times at one distance, that with most time; of several the lowest."""
    key, length = zip(*(operations * 4 if again else operations), strict=True) if operations else ((), ())
    found = []
    for name in sorted(set(key)):
        at = [place for place, each in enumerate(key) if each == name]
        if len(at) in (3, 4) and len({*map(int.__sub__, at[1:], at)}) == 1:
            found.append((-sum(length[place] for place in at), at))
    expected = min(found, key=lambda each: each[0])[1] if found else []
    assert _once_a_repeat(np.array(key, dtype=np.int64), np.array(length, dtype=np.int64)).tolist() == expected
