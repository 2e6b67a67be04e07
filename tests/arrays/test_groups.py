"""Rows by group."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.arrays.groups import evenly, group_durations, medians


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


@pytest.mark.parametrize("unit", [1, 1 << 31, 1 << 60, -1])
def test_groups_are_the_same_however_long_the_durations_are(unit: int) -> None:
    code = np.array([2, 0, 2, 0, 2, 2], dtype=np.int64)
    groups = group_durations(code, np.array([3, 1, 1, 4, 2, 1], dtype=np.int64) * unit)
    found = [(row[0], row[1], row[2] // unit) for row in zip(groups.code, groups.count, groups.total, strict=True)]
    assert sorted(found) == [(0, 2, 5), (2, 4, 7)]
    shortest, longest = (
        dict(zip(groups.code, groups.shortest, strict=True)),
        dict(zip(groups.code, groups.longest, strict=True)),
    )
    assert sorted((shortest[2] // unit, longest[2] // unit)) == [1, 3]


def test_medians_of_more_than_half_a_number_are_exact() -> None:
    code = np.array([0, 0, 0, 2], dtype=np.int64)
    assert medians(code, np.array([1 << 40, 7, (1 << 40) + 1, 5], dtype=np.int64), 3).tolist() == [1 << 40, 0, 5]
