"""Time in equal periods: tiny cases, and a painter of single nanoseconds as oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.buckets import Periods, in_periods
from nsysdiag.arrays.intervals import Intervals, intersect
from tests.arrays.oracle import LO, paint, sets


def rows(periods: Periods) -> list[tuple[int, int]]:
    return list(zip(periods.inside.tolist(), periods.covered.tolist(), strict=True))


def test_whole_periods_and_what_is_left() -> None:
    """
    0    10   20   30  35
    [-----------------)       periods of 10
      [--------)              2 .. 20
    """
    periods = in_periods(Intervals.of([(2, 20)]), Intervals.of([(0, 35)]), 10, 100)
    assert rows(periods) == [(10, 8), (10, 10), (10, 0), (5, 0)]


def test_of_several_parts_only_time_inside() -> None:
    """
    5   15   25   35   45   55
    [-------)         [-------)       5 .. 19 and 41 .. 55, periods from 5 on
      [)                 [)           7 .. 9 and 44 .. 46
    """
    covered, parts = Intervals.of([(7, 9), (44, 46)]), Intervals.of([(5, 19), (41, 55)])
    assert rows(in_periods(covered, parts, 10, 100)) == [(10, 2), (4, 0), (0, 0), (4, 1), (10, 1)]


def test_too_many_periods_are_doubled_until_they_fit() -> None:
    periods = in_periods(Intervals.of([(0, 1000)]), Intervals.of([(0, 1000)]), 10, 30)
    assert (periods.length, len(rows(periods))) == (40, 25)


def test_some_together() -> None:
    periods = in_periods(Intervals.of([(2, 20)]), Intervals.of([(0, 35)]), 10, 100).together(2)
    assert (periods.start, periods.length, rows(periods)) == (0, 20, [(20, 18), (15, 0)])


def test_no_time_at_all() -> None:
    with pytest.raises(ValueError, match="no time"):
        in_periods(Intervals.empty(), Intervals.empty(), 10, 100)


@given(sets, sets, st.integers(1, 30), st.integers(1, 70))
def test_as_painted_ns_by_ns(anything: Intervals, parts: Intervals, length: int, most: int) -> None:
    if not len(parts):
        return
    covered = intersect(anything, parts)
    periods = in_periods(covered, parts, length, most)
    inside = paint(zip(parts.start.tolist(), parts.end.tolist(), strict=True))
    busy = paint(zip(covered.start.tolist(), covered.end.tolist(), strict=True))
    assert len(rows(periods)) <= most
    assert periods.length in {length * 2**power for power in range(8)}
    for at, row in enumerate(rows(periods)):
        begin = periods.start - LO + at * periods.length
        piece = slice(begin, begin + periods.length)
        assert row == (inside[piece].sum(), busy[piece].sum())
    assert sum(row[0] for row in rows(periods)) == inside.sum()
