"""Which rows a window holds, and around which gaps there are windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.timeline.levels import LEAST_PAD_NS, LaneSource, exact_parts, rows_in
from tests.arrays.oracle import Pairs, forward_pairs, pairs

MS = 1_000_000


def source(rows: Pairs) -> LaneSource:
    start, end = (
        (np.array(side, dtype=np.int64) for side in zip(*sorted(rows), strict=True))
        if rows
        else (
            np.empty(0, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        )
    )
    return LaneSource("stream", start, end, None)


def every(step: int, low: int, high: int, length: int = 1_000) -> Pairs:
    return [(at, at + length) for at in range(low, high, step)]


@given(forward_pairs, forward_pairs)
def test_a_window_holds_every_row_that_touches_it_once(rows: Pairs, windows: Pairs) -> None:
    lane, parts = source([row for row in rows if row[1] > row[0]]), union(Intervals.of(windows))
    expected = [
        at
        for at, (start, end) in enumerate(pairs(Intervals(lane.start, lane.end)))
        if any(start < last and end > first for first, last in pairs(parts))
    ]
    assert rows_in(lane, parts).tolist() == expected


def test_where_everything_fits_everything_is_exact() -> None:
    parts = exact_parts([source(every(10_000, 0, MS))], Intervals.of([(5, 6)]), 0, MS, room=100)
    assert pairs(parts) == [(0, MS)]


def test_else_the_first_gaps_have_windows_until_the_room_is_gone() -> None:
    """
    ```
    rows     every 10 µs, 100 µs long gaps at 10, 20 and 30 ms
    windows        [gap]           [gap]          no room
    ```
    """
    rows = [row for row in every(10_000, 0, 40 * MS) if row[0] % (10 * MS) >= 100_000]
    gaps = Intervals.of([(20 * MS, 20_100_000), (10 * MS, 10_100_000), (30 * MS, 30_100_000)])
    parts = exact_parts([source(rows)], gaps, 0, 40 * MS, room=25)
    pad = LEAST_PAD_NS
    # A window may take a 24th of the room on either side, here one row: the next one ends it.
    assert len(parts) == 3
    assert all(end - start <= 100_000 + 2 * pad for start, end in pairs(parts))
    assert exact_parts([source(rows)], gaps, 0, 40 * MS, room=2).total() < parts.total()


@pytest.mark.parametrize(("room", "held"), [(40, True), (30, False)])
def test_what_is_wanted_whole_comes_first_if_it_takes_at_most_half_of_the_room(room: int, held: bool) -> None:
    """20 rows of 100: no window around a gap would hold more than one of them on either side."""
    rows, step = every(10_000, 0, MS), (300_000, 500_000)
    parts = exact_parts([source(rows)], Intervals.of([(0, 9_000)]), 0, MS, room, Intervals.of([step]))
    assert any(start <= step[0] and end >= step[1] for start, end in pairs(parts)) == held
    assert len(rows_in(source(rows), parts)) <= room


def test_a_window_of_too_many_rows_keeps_the_end_of_its_gap() -> None:
    """The host did thousands of things in the gap: those just before the launch are the ones to see."""
    rows = every(100, 0, MS, length=50)
    (window,) = pairs(exact_parts([source(rows)], Intervals.of([(0, MS)]), 0, MS, room=240))
    assert window == (MS - 1_000, MS)


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 50)), max_size=60), forward_pairs, st.integers(1, 30))
def test_no_more_rows_than_there_is_room_for(rows: Pairs, gaps: Pairs, room: int) -> None:
    lane = source([(start * 1_000, start * 1_000 + length) for start, length in rows])
    parts = exact_parts([lane], Intervals.of([(low * 1_000, high * 1_000) for low, high in gaps]), 0, 2 * MS, room)
    assert len(rows_in(lane, parts)) <= room
