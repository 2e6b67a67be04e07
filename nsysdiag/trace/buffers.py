"""Arrays that are filled batch by batch, of all rows or of each of several pairs of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nsysdiag.arrays.spill import spill
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nsysdiag.arrays.intervals import FloatArray
    from nsysdiag.trace.columns import IntArray

COMPACT_LIMIT = 1 << 30
"""A column of 32 bits that meets a value beyond this gets 64."""


class Sink(Protocol):
    """Takes what is read, batch by batch."""

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """One array a column, all of the same length."""


class Buffers:
    """One growing array a column. `capacity` is an expected number of rows: a hint, never relied upon."""

    def __init__(self, columns: Sequence[ColumnSpec], capacity: int) -> None:
        self.columns = columns
        self.rows: int = 0
        self._capacity = max(capacity, 1)
        self._arrays: list[npt.NDArray[Any]] = [np.empty(self._capacity, _dtype(column)) for column in columns]

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """Copy a batch in: one array a column, all of the same length."""
        rows = len(batch[0])
        if self.rows + rows > self._capacity:
            self._grow(self.rows + rows)
        for index, part in enumerate(batch):
            narrow = self._arrays[index].dtype == np.int32
            if narrow and rows and not (part.min() >= -COMPACT_LIMIT and part.max() < COMPACT_LIMIT):
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
        """The filled columns; NULL of a REAL column becomes NaN. Untouched memory is freed. An integer column with one
        value in all rows takes the memory of one, and is read-only."""
        done: list[IntArray | FloatArray] = []
        for array in self._arrays:
            part = array[: self.rows]
            if array.dtype == np.float64:
                part[np.isneginf(part)] = np.nan
            elif len(part) and part.min() == part.max():
                done.append(np.broadcast_to(part[0], self.rows))
                continue
            # Here and not at the end of a step: what is read ahead waits for its step, and of columns that are copied
            # one at a time those before are in files by then.
            done.append(spill(part if 2 * self.rows >= self._capacity else part.copy()))
        return done


def _dtype(column: ColumnSpec) -> type[np.int32] | type[np.int64] | type[np.float64]:
    if column.compact:
        return np.int32
    return np.float64 if column.type is ColumnType.REAL else np.int64


Pair = tuple[int, int]
FIRST_ROWS = 4096


class SplitBuffers:
    """Takes batches whose first two columns are the ids; rows of other pairs are dropped."""

    def __init__(self, columns: Sequence[ColumnSpec], pairs: Sequence[Pair]) -> None:
        self._columns = columns
        self._pairs = sorted(set(pairs))
        self._first, self._second = (np.unique([pair[side] for pair in self._pairs]) for side in (0, 1))
        self._place = np.full((len(self._first), len(self._second)), -1)
        for number, (first, second) in enumerate(self._pairs):
            self._place[np.searchsorted(self._first, first), np.searchsorted(self._second, second)] = number
        self._parts = [Buffers(columns, FIRST_ROWS) for _ in self._pairs]

    def append(self, batch: Sequence[npt.NDArray[np.generic]]) -> None:
        """Copy a batch in: the two ids and one array for each column, all of the same length."""
        first, second = (ids.astype(np.int64, copy=False) for ids in batch[:2])
        row = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        column = np.minimum(np.searchsorted(self._second, second), len(self._second) - 1)
        asked_for = (self._first[row] == first) & (self._second[column] == second)
        place = np.where(asked_for, self._place[row, column], -1)
        order = np.argsort(place, kind="stable")  # within a pair the order of the file stays
        borders = np.searchsorted(place[order], np.arange(len(self._pairs) + 1))
        for number in np.flatnonzero(np.diff(borders)).tolist():
            rows = order[borders[number] : borders[number + 1]]
            self._parts[number].append([values[rows] for values in batch[2:]])

    def finish(self) -> dict[Pair, Columns]:
        """The rows of each pair that has any."""
        names = [column.name for column in self._columns]
        found = {}
        for pair, part in zip(self._pairs, self._parts, strict=True):
            if part.rows:
                found[pair] = Columns(dict(zip(names, part.finish(), strict=True)), names, part.rows)
        return found
