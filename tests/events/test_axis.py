"""The thread axis: a lane for each thread, and no two that touch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.messages import InputError

LOW, HIGH = -50, 150


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def axis(*threads: int) -> ThreadAxis:
    return ThreadAxis.over(int64(list(threads)), LOW, HIGH)


def test_the_lanes_are_those_of_the_threads() -> None:
    lanes = axis(9, 4, 9, 7)
    assert lanes.threads.tolist() == [4, 7, 9]
    assert lanes.lane(int64([7, 9, 4, 5, 100, -1])).tolist() == [1, 2, 0, -1, -1, -1]


def test_no_threads_at_all() -> None:
    assert axis().lane(int64([1, 2])).tolist() == [-1, -1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(LOW, HIGH))))
def test_a_position_leads_back_to_its_time(points: list[tuple[int, int]]) -> None:
    lanes = axis(1, 2, 3)
    position = lanes.position(int64([rank for rank, _ in points]), int64([time for _, time in points]))
    assert lanes.time(position).tolist() == [time for _, time in points]
    assert (position // lanes.stride).tolist() == [rank for rank, _ in points]


def test_whole_lanes_side_by_side_never_touch() -> None:
    lanes = axis(1, 2, 3)
    whole = lanes.place(int64([0, 1, 2]), Intervals(int64([LOW] * 3), int64([HIGH] * 3)))
    assert len(union(whole)) == 3


@pytest.mark.parametrize("far", [10**18, np.iinfo(np.int64).max])
def test_times_outside_move_to_the_border(far: int) -> None:
    lanes = axis(1, 2)
    placed = lanes.place(int64([0]), Intervals(int64([-far]), int64([far])))
    assert lanes.time(placed.start).tolist() == [LOW]
    assert lanes.time(placed.end).tolist() == [HIGH]


def test_times_too_far_apart_to_be_real() -> None:
    with pytest.raises(InputError, match="too far apart"):
        ThreadAxis.over(np.arange(1_000, dtype=np.int64), 0, 2**55)


def test_times_too_far_apart_without_any_thread() -> None:
    with pytest.raises(InputError, match="too far apart"):
        ThreadAxis.over(np.array([], dtype=np.int64), -1_000_000, 2**63 - 1)
