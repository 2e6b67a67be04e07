"""What several intervals take together: tiny cases, and a painter of single nanoseconds as oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.buckets import taken
from nsysdiag.arrays.intervals import Intervals
from tests.arrays.oracle import HI, LO, forward_pairs, paint, sets

WHOLE = Intervals.of([(0, 20)])


def total(rows: list[tuple[int, int, int]], parts: Intervals = WHOLE, most: int = 10) -> float:
    spans = Intervals.of([row[:2] for row in rows])
    (ns,) = taken(spans, [np.array([row[2] for row in rows], dtype=np.int64)], most, parts)
    return ns


def test_the_picture() -> None:
    """
    0     6     12    18
    [---- 4 ----)
          [---- 5 ----)      most 8
    """
    assert total([(0, 12, 4), (6, 18, 5)], most=8) == 6 * 4 + 6 * 8 + 6 * 5


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], 0),
        ([(0, 10, 5), (10, 20, 5)], 100),  # one after another: never together
        ([(0, 10, 5), (0, 10, 5)], 100),  # side by side: up to the cap
        ([(0, 10, 7), (0, 10, 7)], 100),  # above it
        ([(5, 5, 9)], 0),  # no length
        ([(-100, 200, 3)], 60),  # begun before, over after
        ([(6, 18, 5), (0, 12, 4)], 12 * 4 + 12 * 5),  # in any order
        ([(0, 20, 0), (3, 5, 2)], 4),
    ],
)
def test_small_cases(rows: list[tuple[int, int, int]], expected: int) -> None:
    assert total(rows) == expected


def test_only_inside_the_parts() -> None:
    """
    0         10        20
    [--- 4 ---)[-- 6 ---)
      [)         [--)          2 .. 4 and 13 .. 18
    """
    assert total([(0, 10, 4), (10, 20, 6)], Intervals.of([(2, 4), (13, 18)])) == 2 * 4 + 5 * 6
    assert total([(0, 10, 4)], Intervals.empty()) == 0


def test_more_ns_than_fit_into_64_bits() -> None:
    year, whole = 365 * 86_400 * 10**9, 10**9
    assert total([(0, year, whole)], Intervals.of([(0, year)]), whole) == float(year) * whole


def test_two_weights_at_once() -> None:
    spans = Intervals.of([(0, 10), (5, 15)])
    assert taken(spans, [np.array([1, 2]), np.array([8, 8])], 10, WHOLE) == [10 + 20, 5 * 8 + 5 * 10 + 5 * 8]


@given(forward_pairs, sets, st.data())
def test_as_painted_ns_by_ns(pairs: list[tuple[int, int]], parts: Intervals, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(0, 12), min_size=len(pairs), max_size=len(pairs)))
    level = np.zeros(HI - LO, dtype=np.int64)
    for pair, weight in zip(pairs, weights, strict=True):
        level += weight * paint([pair])
    inside = paint(zip(parts.start.tolist(), parts.end.tolist(), strict=True))
    rows = [(*pair, weight) for pair, weight in zip(pairs, weights, strict=True)]
    assert total(rows, parts) == np.minimum(level, 10)[inside].sum()
