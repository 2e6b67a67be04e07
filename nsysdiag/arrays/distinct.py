"""The distinct values of a column of whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.constant import constant, is_constant
from nsysdiag.arrays.intervals import AT_ONCE, stretches

if TYPE_CHECKING:
    from nsysdiag.arrays.intervals import BoolArray, IntArray


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, sorted, and for each row its place among them; no sort where they are few and dense."""
    if len(values) == 0 or is_constant(values):
        return values[:1].copy(), _first_place(len(values))
    low, seen = _seen(values)
    if len(seen) == 1:
        return values[:1].copy(), _first_place(len(values))
    if len(seen) == 0:
        unique, inverse = np.unique(values, return_inverse=True)
        return unique, inverse.astype(np.int64)
    present = np.flatnonzero(seen)
    if len(present) == len(seen):
        return present + low, np.subtract(values, low, dtype=np.int64)
    return present + low, (np.cumsum(seen, dtype=np.int64) - 1).take(np.subtract(values, low, dtype=np.intp))


def _first_place(count: int) -> IntArray:
    """The place of one value that stands for all rows."""
    return constant(np.zeros(1, dtype=np.int64), count)


def distinct_values(values: IntArray) -> IntArray:
    """The distinct values, sorted; fast where there is one, as with the process of most tables."""
    if len(values) == 0 or is_constant(values):
        return values[:1].copy()  # a part of the array would keep all of it in memory
    low, seen = _seen(values)
    return np.flatnonzero(seen) + low if len(seen) else _sorted_distinct(values)


def _sorted_distinct(values: IntArray) -> IntArray:
    """The distinct values, sorted. np.unique takes far longer for a million of them: it makes a hash table."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def _seen(values: IntArray) -> tuple[int, BoolArray]:
    """The lowest of the values, at least one, and whether each number from it to the highest occurs; no flags where
    these are too many."""
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 65_536:
        return low, np.zeros(0, dtype=np.bool_)
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    for part in stretches(len(values)):
        seen[np.subtract(values[part], low, dtype=np.intp)] = True  # NumPy sets by 64 bits fastest
        if len(seen) <= AT_ONCE and seen.all():
            break
    return low, seen
