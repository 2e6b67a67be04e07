"""Percentiles that occur, histograms that count everything, and medians by group."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.groups import medians
from nsysdiag.launches.launches import _intervals, distribution

durations = st.lists(st.one_of(st.integers(0, 2_000), st.integers(0, 1 << 40)), min_size=1, max_size=40)


def test_percentiles_are_values_of_the_data() -> None:
    found = distribution(np.arange(1, 101))
    assert found is not None
    assert (found.p5_ns, found.p25_ns, found.p50_ns) == (5, 25, 50)
    assert (found.p75_ns, found.p95_ns, found.p99_ns, found.max_ns) == (75, 95, 99, 100)
    assert (found.count, found.total_ns) == (100, 5050)


def test_of_two_values_the_median_is_the_lower() -> None:
    found = distribution(np.array([1_000, 9_000]))
    assert found is not None
    assert (found.p5_ns, found.p50_ns, found.p75_ns) == (1_000, 1_000, 9_000)


def test_bins_at_1_2_and_5_from_the_first_to_the_last_in_use() -> None:
    found = distribution(np.array([99, 100, 199, 500, 999, 1_000]))
    assert found is not None
    assert found.bins == [(0, 1), (100, 2), (200, 0), (500, 2), (1_000, 1)]
    alone = distribution(np.array([3_000_000]))
    assert alone is not None
    assert alone.bins == [(2_000_000, 1)]


def test_nothing_has_no_distribution() -> None:
    assert distribution(np.empty(0, dtype=np.int64)) is None


@pytest.mark.parametrize(
    ("pauses", "in_a_row"), [([], 100_000), ([5_000_000], 100_000), ([2_000], 102_000)], ids=["none", "one", "no pause"]
)
def test_launches_in_a_row_are_those_without_pauses(pauses: list[int], in_a_row: int) -> None:
    """100 launches follow each other after 1 µs each."""
    found = _intervals(np.cumsum([0, *[1_000] * 50, *pauses, *[1_000] * 50]))
    assert found["in_a_row_ns"] == in_a_row
    assert found["interval"].total_ns == 100_000 + sum(pauses)


@given(durations)
def test_any_durations(values: list[int]) -> None:
    found = distribution(np.sort(np.array(values)))
    assert found is not None
    ordered = sorted(values)
    for percent, value in ((5, found.p5_ns), (50, found.p50_ns), (99, found.p99_ns)):
        assert value == next(each for at, each in enumerate(ordered, start=1) if 100 * at >= percent * len(values))
    edges = [edge for edge, _ in found.bins]
    assert sum(count for _, count in found.bins) == len(values)
    for edge, count in found.bins[:-1]:
        assert count == sum(edge <= value < edges[edges.index(edge) + 1] for value in values)


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.integers(0, 99), st.integers(0, 1 << 40))), max_size=40))
def test_medians_by_group(rows: list[tuple[int, int]]) -> None:
    code, duration = (np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1))
    groups = [[each for number, each in rows if number == group] for group in range(5)]
    expected = [statistics.median_low(group) if group else 0 for group in groups]
    assert medians(code, duration, 5).tolist() == expected
