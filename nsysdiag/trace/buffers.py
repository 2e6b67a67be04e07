"""Arrays that are filled batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nsysdiag.paged import laid_away
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nsysdiag.timeline.intervals import FloatArray
    from nsysdiag.trace.columns import IntArray


COMPACT_LIMIT = 1 << 30


class Sink(Protocol):
    """Takes what is read, batch by batch."""

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """One array a column, all of the same length."""


class Buffers:
    """One growing array a column. `capacity` is an expected number of rows: a hint, never relied upon."""

    def __init__(self, columns: Sequence[ColumnSpec], capacity: int) -> None:
        self.columns = columns
        self.rows = 0
        self._capacity = max(capacity, 1)
        self._arrays: list[npt.NDArray[Any]] = [np.empty(self._capacity, _dtype(column)) for column in columns]

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """Copy a batch in: one array a column, all of the same length."""
        rows = len(batch[0])
        if self.rows + rows > self._capacity:
            self._grow(self.rows + rows)
        for index, part in enumerate(batch):
            if self._arrays[index].dtype == np.int32 and not _fits(part):
                self._arrays[index] = self._arrays[index].astype(np.int64)
            self._arrays[index][self.rows : self.rows + rows] = part
        self.rows += rows

    def _grow(self, needed: int) -> None:
        self._capacity = max(needed, 2 * self._capacity)
        for index, array in enumerate(self._arrays):
            larger = np.empty(self._capacity, array.dtype)
            larger[: self.rows] = array[: self.rows]
            self._arrays[index] = larger

    def finish(self) -> list[IntArray | FloatArray]:
        """The columns as filled; NULL of a REAL column becomes NaN. Untouched memory is given back, and an integer that
        is the same in all rows takes the memory of one; such a column cannot be written to."""
        done: list[IntArray | FloatArray] = []
        for array in self._arrays:
            part = array[: self.rows]
            if array.dtype == np.float64:
                part[np.isneginf(part)] = np.nan
            elif len(part) and part.min() == part.max():
                done.append(np.broadcast_to(part[0], self.rows))
                continue
            done.append(laid_away(part if 2 * self.rows >= self._capacity else part.copy()))
        return done


def _dtype(column: ColumnSpec) -> type[np.int32] | type[np.int64] | type[np.float64]:
    if column.compact:
        return np.int32
    return np.float64 if column.type is ColumnType.REAL else np.int64


def _fits(values: npt.NDArray[np.generic]) -> bool:
    """Are all values small enough for a column of 32 bits?"""
    return len(values) == 0 or bool(values.min() >= -COMPACT_LIMIT and values.max() < COMPACT_LIMIT)
