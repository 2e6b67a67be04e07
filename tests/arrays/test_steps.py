"""How many intervals are open: tiny cases, and a painter of single nanoseconds as oracle."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.buckets import StepFunction, count_open, in_buckets, open_in_buckets, time_by_level
from nsysdiag.arrays.intervals import Intervals, union

SPAN = 64
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)).map(sorted), max_size=12)


def steps_of(rows: list[tuple[int, int]], low: int, high: int) -> StepFunction:
    spans = Intervals.of(rows)
    return count_open(np.sort(spans.start), np.sort(spans.end), low, high)


def levels(steps: StepFunction) -> list[tuple[int, int]]:
    return list(zip(steps.time.tolist(), steps.level.tolist(), strict=True))


def test_each_start_raises_and_each_end_lowers() -> None:
    # [----)         2 4 is inside of 0 8, 8 12 begins as 0 8 ends
    #   [-)
    #       [---)
    assert levels(steps_of([(0, 8), (2, 4), (8, 12)], 0, 20)) == [(0, 1), (2, 2), (4, 1), (8, 1), (12, 0)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (3, 6, [(3, 2), (4, 1)]),  # begun before
        (-5, 3, [(-5, 0), (0, 1), (2, 2)]),  # nothing yet
        (13, 15, [(13, 0)]),  # all over
        (4, 5, [(4, 1)]),  # borders on a step
    ],
)
def test_only_inside_the_borders(low: int, high: int, expected: list[tuple[int, int]]) -> None:
    assert levels(steps_of([(0, 8), (2, 4), (8, 12)], low, high)) == expected


def test_nothing_is_ever_open() -> None:
    assert levels(steps_of([], 5, 10)) == [(5, 0)]
    assert levels(steps_of([(7, 7)], 5, 10)) == [(5, 0), (7, 0)]


def test_times_near_the_largest_number_do_not_wrap_around() -> None:
    assert levels(steps_of([(3, 2**62 + 1)], 0, 10)) == [(0, 0), (3, 1)]
    assert levels(steps_of([(2**62 + 1, 2**62 + 3)], 0, 10)) == [(0, 0)]


def test_no_time_is_an_error() -> None:
    with pytest.raises(ValueError, match="no time between 10 and 10"):
        steps_of([(0, 8)], 10, 10)


def test_time_by_level_counts_only_the_parts() -> None:
    steps = steps_of([(0, 8), (2, 4)], 0, 10)
    assert time_by_level(steps, Intervals.of([(0, 10)])).tolist() == [2, 6, 2]
    assert time_by_level(steps, Intervals.of([(0, 3), (9, 10)])).tolist() == [1, 2, 1]
    assert time_by_level(steps, Intervals.of([(4, 8)])).tolist() == [0, 4]


def test_of_parts_where_nothing_is_there_is_no_level_at_all() -> None:
    steps = steps_of([(0, 8), (2, 4)], 0, 20)
    assert time_by_level(steps, Intervals.empty()).tolist() == []
    assert time_by_level(steps, Intervals.of([(30, 40)])).tolist() == []


def test_buckets_hold_the_lowest_the_mean_and_the_highest() -> None:
    # level   1 1 2 2 1 1 1 1 0 0     in buckets of 4, 3 and 3 ns
    found = in_buckets(steps_of([(0, 8), (2, 4)], 0, 10), 3)
    assert found.edges.tolist() == [0, 3, 6, 10]
    assert (found.lowest.tolist(), found.highest.tolist()) == ([1, 1, 0], [2, 2, 1])
    assert found.mean.tolist() == [4 / 3, 4 / 3, 0.5]


@pytest.mark.parametrize("low", [10, -10])
def test_never_more_buckets_than_ns_wherever_they_begin(low: int) -> None:
    assert in_buckets(steps_of([(low, low + 2)], low, low + 3), 5).edges.tolist() == [low, low + 1, low + 2, low + 3]


def test_never_more_buckets_than_ns() -> None:
    assert len(in_buckets(steps_of([(0, 8)], 0, 3), 250).mean) == 3


@given(pairs, st.integers(0, SPAN - 1), st.integers(1, SPAN), st.integers(1, 10), pairs)
def test_against_the_painter(
    rows: list[tuple[int, int]], low: int, length: int, most: int, chosen: list[tuple[int, int]]
) -> None:
    high = low + length
    painted = [sum(start <= ns < end for start, end in rows) for ns in range(low, high)]
    steps = steps_of(rows, low, high)
    assert np.repeat(steps.level, steps.spans.end - steps.spans.start).tolist() == painted
    parts = union(Intervals.of([(max(start, low), min(end, high)) for start, end in chosen]))
    inside = [
        any(start <= ns < end for start, end in zip(parts.start, parts.end, strict=True)) for ns in range(low, high)
    ]
    counted = time_by_level(steps, parts).tolist()
    assert counted == [
        sum(level == depth and yes for depth, yes in zip(painted, inside, strict=True)) for level in range(len(counted))
    ]
    assert sum(counted) == parts.total()
    found = in_buckets(steps, most)
    for at, (start, end) in enumerate(zip(found.edges[:-1] - low, found.edges[1:] - low, strict=True)):
        part = painted[start:end]
        assert (found.lowest[at], found.highest[at]) == (min(part), max(part))
        assert found.mean[at] == pytest.approx(sum(part) / len(part))


@given(pairs, pairs, st.integers(1, 10), st.integers(1, 8))
def test_stretch_by_stretch_it_is_the_same(
    rows: list[tuple[int, int]], chosen: list[tuple[int, int]], most: int, at_once: int
) -> None:
    spans, parts = Intervals.of(rows), union(Intervals.of(chosen))
    if not len(parts):
        return
    start, end = np.sort(spans.start), np.sort(spans.end)
    whole = count_open(start, end, int(parts.start[0]), int(parts.end[-1]))
    with patch("nsysdiag.arrays.buckets.AT_ONCE", at_once):
        found, levels = open_in_buckets(start, end, parts, most)
    expected = in_buckets(whole, most)
    assert levels.tolist() == time_by_level(whole, parts).tolist()
    for name in ("edges", "lowest", "mean", "highest"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
