"""Rows that are sorted into one table for each pair of ids while they are read: nothing is kept of the ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.trace.buffers import Buffers
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.tables import ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from nsysdiag.trace.columns import IntArray

Pair = tuple[int, int]
FIRST_ROWS = 4096


class SplitBuffers:
    """Takes batches whose first two columns are the ids; rows of a pair that nobody asked for are dropped."""

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
        place = self._places(batch[0].astype(np.int64, copy=False), batch[1].astype(np.int64, copy=False))
        order = np.argsort(place, kind="stable")  # within a pair the order of the file stays
        borders = np.searchsorted(place[order], np.arange(len(self._pairs) + 1))
        for number in np.flatnonzero(np.diff(borders)).tolist():
            rows = order[borders[number] : borders[number + 1]]
            self._parts[number].append([column[rows] for column in batch[2:]])

    def _places(self, first: IntArray, second: IntArray) -> IntArray:
        """The number of each row's pair, -1 where nobody asked for it."""
        at = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        beside = np.minimum(np.searchsorted(self._second, second), len(self._second) - 1)
        known = (self._first[at] == first) & (self._second[beside] == second)
        return np.where(known, self._place[at, beside], -1)

    def finish(self) -> dict[Pair, Columns]:
        """The rows of each pair that has any."""
        names = [column.name for column in self._columns]
        found = {}
        for pair, part in zip(self._pairs, self._parts, strict=True):
            if part.rows:
                found[pair] = Columns(dict(zip(names, part.finish(), strict=True)), names, part.rows)
        return found
