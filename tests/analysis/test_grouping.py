"""Rows by group."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.analysis.grouping import evenly


@pytest.mark.parametrize(
    ("code", "most", "kept"),
    [
        ([], 2, []),
        ([0, 0], 2, [0, 1]),
        ([0, 0, 0, 0, 0, 0, 1, 1], 2, [0, 3, 6, 7]),
        ([1, 0, 1, 0, 1], 1, [0, 1]),
        ([5, 5, 5, 5, 5], 3, [0, 2, 4]),
    ],
)
def test_evenly(code: list[int], most: int, kept: list[int]) -> None:
    assert np.flatnonzero(evenly(np.array(code, dtype=np.int64), most)).tolist() == kept


@pytest.mark.parametrize("rows", [1, 7, 999, 1000, 1001, 12_345])
def test_never_more_than_asked_for_and_all_of_it_where_there_is_enough(rows: int) -> None:
    kept = np.flatnonzero(evenly(np.zeros(rows, dtype=np.int64), 1000))
    assert len(kept) == min(rows, 1000)
    assert kept[0] == 0
    assert np.diff(kept).max(initial=0) <= -(-rows // 1000)
