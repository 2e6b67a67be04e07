"""Arrays in which one value stands for all rows."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.arrays.constant import constant, is_constant


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64, np.bool_])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_first_value_stands_for_all_rows(kind: type, count: int) -> None:
    made = constant(np.array([1, 0], dtype=kind), count)
    assert made.dtype == kind
    assert made.tolist() == [kind(1)] * count
    assert is_constant(made) == (count > 0)


def test_of_a_column_that_is_the_same_throughout() -> None:
    assert constant(constant(np.array([3, 4]), 5), 2).tolist() == [3, 3]
    assert not is_constant(np.array([3, 3]))


def test_it_cannot_be_written_to() -> None:
    made = constant(np.array([3]), 5)
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 4
