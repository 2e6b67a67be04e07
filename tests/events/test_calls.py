"""Which of several calls with one correlation id launched an operation."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.events.calls import CallRows, match_launches

PROCESS = 1 << 48 | 4242 << 24
SEVEN = 7


def calls(*rows: tuple[int, int, int, int]) -> CallRows:
    """Calls of correlation id 7: start, end, tid, code of the name."""
    start, end, tid, name = np.array(rows, dtype=np.int64).T
    same = np.full(len(rows), SEVEN, dtype=np.int64)
    return CallRows(start, end, PROCESS | tid, same, name, np.zeros(len(rows), dtype=np.int64))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((10, 30, 1, 5), (12, 25, 1, 4), id="the outer before the inner"),
        pytest.param((10, 30, 1, 5), (10, 25, 1, 4), id="both begin together: the longer"),
        pytest.param((10, 30, 2, 4), (10, 30, 1, 5), id="the very same time: by name"),
        pytest.param((10, 30, 1, 4), (10, 30, 2, 4), id="the same name too: by thread"),
    ],
)
def test_the_call_is_the_same_in_any_order_of_rows(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int]
) -> None:
    for rows in ((first, second), (second, first)):
        (found,) = match_launches(np.array([PROCESS]), np.array([SEVEN]), calls(*rows)).tolist()
        assert rows[found] == first
