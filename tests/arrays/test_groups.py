"""Rows by group."""

from __future__ import annotations

import statistics
from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.groups import (
    count_of_each,
    evenly,
    group_durations,
    group_totals,
    least_of_each,
    longest,
    median_of,
    medians,
    nth_largest,
    nth_smallest,
    some_of,
    sum_of_each,
    summed,
)

EMPTY = np.empty(0, dtype=np.int64)
PAIRS = st.lists(st.tuples(st.integers(0, 6), st.one_of(st.integers(0, 9), st.integers(-5, 1 << 40))), max_size=120)


@pytest.mark.parametrize(
    ("code", "most", "kept"),
    [
        ([], 2, []),
        ([0, 0], 2, [0, 1]),
        ([0, 0, 0, 0, 0, 0, 1, 1], 2, [0, 3, 6, 7]),
        ([1, 0, 1, 0, 1], 1, [0, 1]),
        ([5, 5, 5, 5, 5], 3, [0, 2, 4]),
    ],
)
def test_evenly(code: list[int], most: int, kept: list[int]) -> None:
    assert np.flatnonzero(evenly(np.array(code, dtype=np.int64), most)).tolist() == kept


@pytest.mark.parametrize("rows", [1, 7, 999, 1000, 1001, 12_345])
def test_never_more_than_asked_for_and_all_of_it_where_there_is_enough(rows: int) -> None:
    kept = np.flatnonzero(evenly(np.zeros(rows, dtype=np.int64), 1000))
    assert len(kept) == min(rows, 1000)
    assert kept[0] == 0
    assert np.diff(kept).max(initial=0) <= -(-rows // 1000)


@given(st.integers(0, 500), st.integers(1, 60))
def test_some_rows_are_those_that_are_evenly_spread(rows: int, most: int) -> None:
    kept = np.flatnonzero(evenly(np.zeros(rows, dtype=np.int64), most))
    ranks = np.arange(rows)
    spread = (ranks * most // max(rows, 1) != (ranks - 1) * most // max(rows, 1)) | (rows <= most)
    assert some_of(rows, most).tolist() == kept.tolist() == np.flatnonzero(spread).tolist()


@pytest.mark.parametrize("unit", [1, 1 << 31, 1 << 60, -1])
def test_groups_are_the_same_however_long_the_durations_are(unit: int) -> None:
    code = np.array([2, 0, 2, 0, 2, 2], dtype=np.int64)
    groups = group_durations(code, np.array([3, 1, 1, 4, 2, 1], dtype=np.int64) * unit)
    found = [(row[0], row[1], row[2] // unit) for row in zip(groups.code, groups.count, groups.total, strict=True)]
    assert sorted(found) == [(0, 2, 5), (2, 4, 7)]
    shortest, longest = (
        dict(zip(groups.code, groups.shortest, strict=True)),
        dict(zip(groups.code, groups.longest, strict=True)),
    )
    assert sorted((shortest[2] // unit, longest[2] // unit)) == [1, 3]


def test_medians_of_more_than_half_a_number_are_exact() -> None:
    code = np.array([0, 0, 0, 2], dtype=np.int64)
    assert medians(code, np.array([1 << 40, 7, (1 << 40) + 1, 5], dtype=np.int64), 3).tolist() == [1 << 40, 0, 5]


def by_group(pairs: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    """The sorted durations of each group; largest total first, of equal ones the lower code."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for code, duration in sorted(pairs):
        found[code].append(duration)
    return sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@given(PAIRS)
def test_groups_are_those_of_plain_lists(pairs: list[tuple[int, int]]) -> None:
    groups, expected = group_durations(*columns(pairs)), by_group(pairs)
    for field in ("code", "count", "total", "median", "shortest", "longest", "p95"):
        assert getattr(groups, field).dtype == np.int64
    assert groups.code.tolist() == [code for code, _ in expected]
    assert groups.count.tolist() == [len(mine) for _, mine in expected]
    assert groups.total.tolist() == [sum(mine) for _, mine in expected]
    assert groups.mean.tolist() == [sum(mine) // len(mine) for _, mine in expected]
    assert groups.median.tolist() == [statistics.median_low(mine) for _, mine in expected]
    assert groups.shortest.tolist() == [mine[0] for _, mine in expected]
    assert groups.longest.tolist() == [mine[-1] for _, mine in expected]
    # The smallest that 95% of them do not exceed.
    assert groups.p95.tolist() == [
        next(each for at, each in enumerate(mine, 1) if 100 * at >= 95 * len(mine)) for _, mine in expected
    ]


@given(PAIRS)
def test_totals_are_those_of_plain_lists(pairs: list[tuple[int, int]]) -> None:
    totals, expected = group_totals(*columns(pairs)), by_group(pairs)
    assert totals.total.dtype == np.int64
    rows = zip(totals.code.tolist(), totals.count.tolist(), totals.total.tolist(), strict=True)
    assert list(rows) == [(code, len(mine), sum(mine)) for code, mine in expected]


@given(st.lists(st.integers(0, 6), max_size=40), st.sampled_from([np.int8, np.int64]), st.sampled_from([3, 60]))
def test_codes_are_counted_as_in_plain_lists(codes: list[int], kind: type, at_once: int) -> None:
    with patch("nsysdiag.arrays.groups.AT_ONCE", at_once), patch("nsysdiag.arrays.intervals.AT_ONCE", at_once):
        assert count_of_each(np.array(codes, dtype=kind), 7).tolist() == [codes.count(each) for each in range(7)]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 40)), max_size=120))
def test_medians_are_those_of_plain_lists(pairs: list[tuple[int, int]]) -> None:
    expected = {code: statistics.median_low(mine) for code, mine in by_group(pairs)}
    assert medians(*columns(pairs), 9).tolist() == [expected.get(code, 0) for code in range(9)]


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 9))
def test_evenly_keeps_as_many_as_it_may_and_the_first(code: list[int], most: int) -> None:
    kept = evenly(np.array(code, dtype=np.int64), most)
    for each in set(code):
        mine = [at for at, its in enumerate(code) if its == each]
        chosen = [place for place, at in enumerate(mine) if kept[at]]
        assert len(chosen) == min(len(mine), most)
        assert chosen[0] == 0
        gaps = np.diff([*chosen, len(mine)])
        assert gaps.max() - gaps.min() <= 1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=60), st.integers(0, 9))
def test_the_longest_are_those_that_a_sort_puts_first(rows: list[tuple[int, int]], most: int) -> None:
    ns, start = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)) if rows else 2 * [EMPTY]
    expected = sorted(range(len(rows)), key=lambda at: (-rows[at][0], rows[at][1], at))[:most]
    assert longest(ns, start, most).tolist() == expected
    assert longest(ns, start[::-1], most, np.arange(len(ns))[::-1]).tolist() == expected


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from((3, 1_000, 10**15)), st.integers(0, 2_000))
def test_of_many_values_the_same_is_the_nth_largest(seed: int, most: int, highest: int, more: int) -> None:
    """With and without ties, and in rising order, where every 16th is no fair share of the largest."""
    values = np.random.default_rng(seed).integers(0, highest, 64 * most + more)
    for each in (values, np.sort(values), np.sort(values)[::-1]):
        assert nth_largest(each, most) == np.sort(values)[-most]


@given(st.integers(0, 2**32), st.integers(1, 3_000), st.sampled_from((1, 2, 15, 40, 10**15)), st.floats(0, 0.999))
def test_the_nth_smallest(seed: int, count: int, highest: int, share: float) -> None:
    """In turns as well, as the gaps of a loop are: few values, many of them, and those that a sample does not show."""
    values = np.random.default_rng(seed).integers(0, highest, count)
    values[49::50] += highest
    for each in (values, np.sort(values)[::-1]):
        assert nth_smallest(each, int(share * count)) == np.sort(values)[int(share * count)]
        assert median_of(each) == np.sort(values)[(count - 1) // 2]


def test_sums_by_name() -> None:
    assert summed([]) == {}
    assert summed([{"host": 3, "sync": 1}, {}, {"sync": -1, "input": 5}]) == {"host": 3, "sync": 0, "input": 5}


def test_one_code_for_all_values() -> None:
    """The same with one code in memory as with one for each value."""
    values = np.array([5, -2, 9], dtype=np.int32)
    for code in (constant(np.array([1]), 3), np.array([1, 1, 1])):
        assert sum_of_each(code, values, 3).tolist() == [0, 12, 0]
        assert least_of_each(code, values, 3).tolist() == [np.iinfo(np.int64).max, -2, np.iinfo(np.int64).max]
