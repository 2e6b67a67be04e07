"""A table as a record of equally long arrays, how rows are picked from it, and the distinct values of a column."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.arrays.nesting import constant, is_constant


def picked(mask: npt.NDArray[Any] | slice) -> npt.NDArray[Any] | slice:
    """The index itself; for consecutive rows, under a mask or one by one, the slice that picks them, which copies
    nothing."""
    if isinstance(mask, slice):
        return mask
    if mask.dtype != np.bool_:
        return slice(int(mask[0]), int(mask[-1]) + 1) if _follow(mask) else mask
    first = int(mask.argmax()) if len(mask) else 0
    count = int(np.count_nonzero(mask))
    return slice(first, first + count) if mask[first : first + count].all() else mask


def _follow(rows: npt.NDArray[Any]) -> bool:
    """Does each of the rows, at least one, follow the one before it?"""
    if len(rows) == 0 or int(rows[0]) < 0 or int(rows[-1]) - int(rows[0]) != len(rows) - 1:
        return False
    return bool(np.all(rows[1:] > rows[:-1]))


def taken(values: npt.NDArray[Any], index: npt.NDArray[Any] | slice) -> npt.NDArray[Any]:
    """The values at `index`; one value that stands for all rows still takes the memory of one."""
    if isinstance(index, slice) or not is_constant(values):
        return values[index]
    count = int(np.count_nonzero(index)) if index.dtype == np.bool_ else len(index)
    return constant(values, count) if count else values[:0]


def distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, sorted, and for each row its place among them; no sort where they are few and dense."""
    if len(values) == 0 or is_constant(values):
        return values[:1].copy(), np.zeros(len(values), dtype=np.int64)
    low, seen = _seen(values)
    if len(seen) == 1:
        return values[:1].copy(), np.zeros(len(values), dtype=np.int64)
    if len(seen) == 0:
        unique, inverse = np.unique(values, return_inverse=True)
        return unique, inverse.astype(np.int64)
    return np.flatnonzero(seen) + low, (np.cumsum(seen, dtype=np.int64) - 1)[values - low]


def distinct_values(values: IntArray) -> IntArray:
    """The distinct values, sorted; fast where there is one, as with the process of most tables."""
    if len(values) == 0 or is_constant(values):
        return values[:1].copy()  # a part of the array would keep all of it in memory
    low, seen = _seen(values)
    return np.flatnonzero(seen) + low if len(seen) else np.unique(values)


def _seen(values: IntArray) -> tuple[int, BoolArray]:
    """The lowest of the values, at least one, and whether each number from it to the highest occurs; no flags where
    these are too many."""
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 65_536:
        return low, np.zeros(0, dtype=np.bool_)
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[values - low if low != high else 0] = True
    return low, seen


class RowsOf:
    """The rows of each distinct value of a column, or of those `among` them: one sort for any number of values, no sort
    for one value."""

    def __init__(self, column: IntArray, among: IntArray | list[int] | None = None) -> None:
        every = np.arange(len(column), dtype=np.int32)
        rows = every if among is None else every[np.isin(column, among)]
        values = taken(column, rows)
        if len(values) and values.min() != values.max():
            order = np.argsort(values, kind="stable")
            rows, values = rows[order], values[order]
        borders = np.flatnonzero(values[1:] != values[:-1]) + 1
        self._rows = np.split(rows, borders) if len(rows) else []
        self._at = {int(column[rows[0]]): at for at, rows in enumerate(self._rows)}

    def __getitem__(self, value: int) -> IntArray:
        """The rows in their order; none where the column does not hold the value."""
        at = self._at.get(value)
        return np.empty(0, dtype=np.int32) if at is None else self._rows[at]

    def values(self) -> list[int]:
        """The distinct values, sorted."""
        return list(self._at)


class Rows(Struct, frozen=True):
    """Base of tables: all fields are arrays of one length, and an index means the same row in each."""

    def __len__(self) -> int:
        return len(astuple(self)[0])

    def take(self, index: npt.NDArray[Any] | slice) -> Self:
        """The rows at `index`: positions in the requested order, a mask, or a slice, whose rows are not copied."""
        index = picked(index)
        return type(self)(*(taken(values, index) for values in astuple(self)))

    @classmethod
    def empty(cls) -> Self:
        """No rows at all."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in cls.__struct_fields__))

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """All rows of `parts`, one table after the other; `parts` holds at least one."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        return cls(*map(np.concatenate, zip(*map(astuple, parts), strict=True)))
