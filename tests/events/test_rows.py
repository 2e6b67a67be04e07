"""Rows picked from a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.rows import combinations, distinct, picked
from nsysdiag.events.scheduling import SwitchRows

COUNT = 12
VALUES = np.arange(100, 100 + COUNT)


@given(
    st.one_of(
        st.lists(st.integers(-COUNT, COUNT - 1), max_size=6).map(lambda rows: np.array(rows, dtype=np.int64)),
        st.lists(st.booleans(), min_size=COUNT, max_size=COUNT).map(np.array),
    )
)
def test_the_rows_picked_are_those_asked_for(index: npt.NDArray[np.generic]) -> None:
    assert VALUES[picked(index)].tolist() == VALUES[index].tolist()


def test_rows_that_follow_each_other_are_not_copied() -> None:
    assert picked(np.array([3, 4, 5])) == slice(3, 6)
    assert picked((VALUES > 102) & (VALUES < 106)) == slice(3, 6)
    assert not isinstance(picked(np.array([3, 5, 5])), slice)
    assert not isinstance(picked(np.array([5, 3, 7])), slice)


@given(st.lists(st.tuples(st.integers(5, 6), st.integers(-1, 1), st.sampled_from((0, 3, 10**12))), max_size=20))
def test_codes_of_combinations_stand_for_the_rows_in_order(rows: list[tuple[int, int, int]]) -> None:
    """Also where a column holds one value throughout, or no value at all."""
    columns = (
        [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)] if rows else 3 * [np.empty(0, int)]
    )
    code, keys = combinations(*columns)
    known = list(zip(*(key.tolist() for key in keys), strict=True))
    assert known == sorted(set(rows))
    assert [known[each] for each in code.tolist()] == rows


def test_the_place_of_one_value_takes_the_memory_of_one() -> None:
    for values in (np.full(COUNT, 7), np.full(COUNT, 7, dtype=np.int8)):
        known, place = distinct(values)
        assert known.tolist() == [7]
        assert place.tolist() == [0] * COUNT
        assert place.strides == (0,)


def test_parts_are_joined_and_released() -> None:
    one, two = (SwitchRows(*(np.full(count, count) for _ in SwitchRows.__struct_fields__)) for count in (2, 3))
    parts = [one.take(slice(0)), one, two]
    assert SwitchRows.concatenate(parts).time.tolist() == [2, 2, 3, 3, 3]
    assert len(parts) == 3
    assert SwitchRows.joined(parts).time.tolist() == [2, 2, 3, 3, 3]
    assert parts == []
    assert SwitchRows.joined([one]) is one
    assert len(SwitchRows.joined([one.take(slice(0))])) == 0
