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
        return _of_few(values) or _of_many(values)
    present = np.flatnonzero(seen)
    if len(present) == len(seen):
        return present + low, np.subtract(values, low, dtype=np.int64)
    return present + low, (np.cumsum(seen, dtype=np.int64) - 1).take(np.subtract(values, low, dtype=np.intp))


FEW, SAMPLED = 128, 1_000
"""Rows are looked up among so many distinct values, not sorted; at first those of so many rows are known. Of 1,000,000
rows with 64 values far apart this takes 10 to 34 ms, by their order, and to sort them 15 to 72 ms."""

SPREAD = 2_654_435_761
"""A prime number near 2**32 divided by the golden ratio: its multiples spread evenly over the rows, and hit each of
values that take turns."""


def _of_few(values: IntArray) -> tuple[IntArray, IntArray] | None:
    """The distinct values and the place of each row among them; None unless they are few, most of them frequent."""
    if len(values) <= SAMPLED:
        return None
    known = _sorted_distinct(values[np.arange(SAMPLED) * SPREAD % len(values)])
    while len(known) <= FEW:
        place = np.searchsorted(known, values)
        others = values[known.take(place, mode="clip") != values]
        if not len(others):
            return known, place
        if 8 * len(others) > len(values):
            return None
        known = _sorted_distinct(np.append(known, others))
    return None


def _of_many(values: IntArray) -> tuple[IntArray, IntArray]:
    unique, inverse = np.unique(values, return_inverse=True)
    return unique, inverse.astype(np.int64)


def _first_place(count: int) -> IntArray:
    """The place of one value that stands for all rows."""
    return constant(np.zeros(1, dtype=np.int64), count)


def distinct_values(values: IntArray) -> IntArray:
    """The distinct values, sorted; fast where there is one, as with the process of most tables."""
    if len(values) == 0 or is_constant(values):
        return values[:1].copy()  # a part of the array would keep all of it in memory
    low, seen = _seen(values)
    if len(seen):
        return np.flatnonzero(seen) + low
    few = _of_few(values)
    return _sorted_distinct(values) if few is None else few[0]


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
