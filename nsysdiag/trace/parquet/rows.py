"""Which rows of a Parquet table are read: row groups whose statistics rule them out are not looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.trace.parquet.arrays import nulls
from nsysdiag.trace.parquet.values import integers
from nsysdiag.trace.query import Choice, Chosen, ChosenPairs, ChosenRows, Within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.arrays.intervals import BoolArray, IntArray
    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.parquet.file import TableFile

GROUP_ROWS = 1 << 16
"""So many rows are read at once: nsys writes groups of 2,048, and each read has its price. Four times as many left the
cache of a core: 4,000,000 rows took 0.31 instead of 0.23 s of CPU time."""
UNSIGNED = 1 << 63
"""From here on an unsigned number of the file is a negative one here."""


def columns_of(table: FoundTable, choice: Choice) -> list[str]:
    """The columns of the file that tell whether a row is chosen."""
    if isinstance(choice, ChosenRows):
        return []
    if isinstance(choice, Chosen):
        names = [choice.column]
    elif isinstance(choice, ChosenPairs):
        names = list(choice.columns)
    else:
        names = [choice.start] if choice.start == choice.end else [choice.start, choice.end]
    return [found.name for name in names if (found := table.column(name)) is not None]


def chosen_in(columns: dict[str, Any], table: FoundTable, choice: Choice, first: int, rows: int) -> BoolArray:
    """Which of `rows` rows are chosen: those from the row `first` of the table on, of which `columns` holds what
    `columns_of` names."""
    if isinstance(choice, ChosenRows):
        found = np.zeros(rows, np.bool_)
        at = np.asarray(choice.ids, np.int64) - 1 - first
        found[at[(at >= 0) & (at < rows)]] = True
        return found
    names = columns_of(table, choice)
    values = [integers(columns[name], 0)[0] for name in names]
    known = [~nulls(columns[name]) for name in names]
    if isinstance(choice, Within):
        return _within(choice, values, known)
    ids = [choice.ids] if isinstance(choice, Chosen) else list(zip(*choice.pairs, strict=True))
    sides = [np.isin(value, np.asarray(each)) & there for value, each, there in zip(values, ids, known, strict=True)]
    chosen: BoolArray = np.logical_and.reduce(sides)
    return chosen


def _within(choice: Within, values: list[IntArray], known: list[BoolArray]) -> BoolArray:
    """A row whose end is unknown may last."""
    start, end = values[0], values[-1]
    found: BoolArray = known[0] & (start < choice.high)
    if choice.start == choice.end:
        return found & (start >= choice.low)
    return found & ((end > choice.low) | ~known[-1])


def groups(file: TableFile, table: FoundTable, choices: Sequence[Choice]) -> Iterator[tuple[list[int], int, int]]:
    """The row groups that may hold chosen rows, some at a time: their places, the row that the first begins with, and
    how many rows they have. Those of one time follow each other."""
    places: list[int] = []
    first = rows = at = 0
    for place in range(file.metadata.num_row_groups):
        group_rows = file.metadata.row_group(place).num_rows
        ruled_out = any(_ruled_out(place, file, table, choice) for choice in choices)
        if places and (ruled_out or rows >= GROUP_ROWS):
            yield places, first, rows
            places, rows = [], 0
        if not ruled_out:
            first = at if not places else first
            places.append(place)
            rows += group_rows
        at += group_rows
    if places:
        yield places, first, rows


def _ruled_out(place: int, file: TableFile, table: FoundTable, choice: Choice) -> bool:
    """Whether the statistics of a row group tell that it holds no chosen row."""
    if isinstance(choice, Within):
        start, end = (_limits(place, file, table, name) for name in (choice.start, choice.end))
        late = start is not None and start[0] >= choice.high
        early = end is not None and (end[1] < choice.low if choice.start == choice.end else end[1] <= choice.low)
        return late or (early and end is not None and (choice.start == choice.end or end[2] == 0))
    if isinstance(choice, Chosen):
        limits = _limits(place, file, table, choice.column)
        ids = np.asarray(choice.ids, np.int64)
        return limits is not None and not np.any((ids >= limits[0]) & (ids <= limits[1]))
    return False


def _limits(place: int, file: TableFile, table: FoundTable, name: str) -> tuple[int, int, int] | None:
    """See TableFile.limits; None too where numbers are so large that they are negative ones here."""
    found = table.column(name)
    limits = None if found is None else file.limits(found.name, place)
    return None if limits is None or limits[1] >= UNSIGNED else limits
