"""The distinct values of a column: those that NumPy finds, whatever the type and however far they are apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.distinct import FEW, SAMPLED, distinct, distinct_values

FAR = 10**12


@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-FAR, FAR)), max_size=20), st.sampled_from((3, 100_000, FAR)))
def test_they_are_those_that_numpy_finds(values: list[int], within: int) -> None:
    """Few and dense, in a range that is scanned, and far apart."""
    column = np.clip(np.array(values, dtype=np.int64), -within, within)
    unique, inverse = np.unique(column, return_inverse=True)
    found, code = distinct(column)
    assert found.tolist() == distinct_values(column).tolist() == unique.tolist()
    assert code.tolist() == inverse.tolist()


@given(
    st.lists(st.integers(-FAR, FAR), min_size=1, max_size=2 * FEW),
    st.lists(st.integers(-FAR, FAR), max_size=5),
    st.integers(0, 99),
)
def test_few_values_far_apart_are_found_by_looking_them_up(few: list[int], rare: list[int], order: int) -> None:
    """Frequent values, and rare ones that a sample of the rows misses."""
    column = np.array(few * (8 * SAMPLED // len(few)) + rare)
    np.random.default_rng(order).shuffle(column)
    unique, inverse = np.unique(column, return_inverse=True)
    found, code = distinct(column)
    assert found.tolist() == distinct_values(column).tolist() == unique.tolist()
    assert code.tolist() == inverse.tolist()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.bool_])
def test_of_narrow_columns_too(kind: type[np.generic]) -> None:
    column = np.array([1, 0, 1, 1, 0]).astype(kind)
    assert distinct_values(column).tolist() == [0, 1]
    assert distinct(column)[1].tolist() == [1, 0, 1, 1, 0]


def test_one_value_that_stands_for_all_rows_is_found_without_a_look_at_them() -> None:
    column = constant(np.array([7]), 10**12)
    assert distinct_values(column).tolist() == [7]
