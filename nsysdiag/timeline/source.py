"""What a lane is drawn from: rows with a start and an end, and how they are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, ascending, rows_from

Named = Callable[[IntArray], tuple[IntArray, list[str]]]
"""For rows of a source, the code of each one's name, and the names that the codes stand for."""


class Source(Struct, frozen=True):
    """Rows [start, end) in ns, sorted by start, none of them empty. `reach` is the largest end so far. `kinds` is None
    where all rows are of one kind; `shares` says whether their share of the time means anything."""

    kind: str
    label: str
    thread: int | None
    depth: int
    start: IntArray
    end: IntArray
    reach: IntArray
    named: Named | None
    kinds: IntArray | None = None
    shares: bool = True

    @property
    def spans(self) -> Intervals:
        """The rows as intervals."""
        return Intervals(self.start, self.end)


def reach_of(end: IntArray) -> IntArray:
    """The largest end so far."""
    return end if ascending(end) else np.maximum.accumulate(end)


def rows_in(source: Source, parts: Intervals) -> IntArray:
    """The rows of a source that touch the set `parts`, each once.

    ```
    rows    [--)[----)    [--)  [-------------)
    parts        [----)          [-)    [-)
                0 no, 1 yes, 2 no, 3 yes, once
    ```
    """
    first = np.searchsorted(source.reach, parts.start, side="right")
    count = np.maximum(np.searchsorted(source.start, parts.end, side="left") - first, 0)
    part = np.repeat(np.arange(len(parts)), count)
    row = rows_from(first, count)
    return np.unique(row[source.end[row] > parts.start[part]])


def codes_of(code: IntArray, names: list[str]) -> Named:
    """Names by a code for each row; only those that the chosen rows have are given."""

    def named(rows: IntArray) -> tuple[IntArray, list[str]]:
        present, place = np.unique(code[rows], return_inverse=True)
        return place.astype(np.int64), [names[each] for each in present.tolist()]

    return named
