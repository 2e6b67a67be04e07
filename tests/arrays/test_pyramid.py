"""Levels of detail: every level adds up to the same time, and a bucket is what lies in it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.buckets import coarser
from nsysdiag.arrays.intervals import Intervals, coverage_between, equal_edges, union
from tests.arrays.oracle import HI, LO, any_intervals, paint, pairs


def test_edges_are_whole_nanoseconds_over_all_of_the_time() -> None:
    assert equal_edges(100, 110, 1 << 2).tolist() == [100, 102, 105, 107, 110]


def test_edges_of_a_time_too_long_to_multiply() -> None:
    edges = equal_edges(0, 2**62, 1 << 14)
    assert edges[1] == 2**48
    assert edges[-1] == 2**62


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**62), st.integers(0, 14))
def test_each_edge_is_rounded_down_by_itself(low: int, span: int, exponent: int) -> None:
    exact = [low + (span * step >> exponent) for step in range((1 << exponent) + 1)]
    assert equal_edges(low, low + span, 1 << exponent).tolist() == exact


def test_pairs_add_up() -> None:
    assert [level.tolist() for level in coarser(np.array([3, 1, 4, 1, 5, 9, 2, 6]), 1)] == [
        [3, 1, 4, 1, 5, 9, 2, 6],
        [4, 5, 14, 8],
        [9, 22],
    ]


@given(any_intervals, st.integers(0, 6))
def test_every_bucket_holds_what_lies_in_it(intervals: Intervals, exponent: int) -> None:
    edges = equal_edges(LO, HI, 1 << exponent)
    covered = union(intervals)
    cells = paint(pairs(covered))
    expected = [
        int(cells[low - LO : high - LO].sum())
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    assert coverage_between(covered, edges).tolist() == expected


@given(any_intervals)
def test_every_level_adds_up_to_all_of_it(intervals: Intervals) -> None:
    covered = union(intervals)
    levels = coarser(coverage_between(covered, equal_edges(LO, HI, 1 << 6)), 0)
    assert [len(level) for level in levels] == [64, 32, 16, 8, 4, 2, 1]
    assert {int(level.sum()) for level in levels} == {covered.total()}
