"""Which rows of a Parquet table are read: row groups whose statistics rule them out are not looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.shortage import has_room
from nsysdiag.trace.parquet.arrays import nulls
from nsysdiag.trace.parquet.values import integers
from nsysdiag.trace.query import Choice, Chosen, ChosenPairs, ChosenRows, Within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.arrays.intervals import BoolArray, IntArray
    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.parquet.file import Statistics, TableFile

GROUP_ROWS = 1 << 16
"""So many rows are read at once: nsys writes groups of 2,048, and each read has its price. Four times as many left the
cache of a core: 4,000,000 rows took 0.31 instead of 0.23 s of CPU time."""
CELL_BYTES = 16
"""A number as it is read, and as it is kept."""
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
    """The row groups that may hold chosen rows, in batches of consecutive ones: their indices, their first row, and
    their number of rows."""
    possible = np.ones(file.metadata.num_row_groups, np.bool_)
    for choice in choices:
        possible &= _possible(file, table, choice)
    places: list[int] = []
    first = rows = at = 0
    for place, is_possible in enumerate(possible.tolist()):
        group_rows = file.metadata.row_group(place).num_rows
        if places and (not is_possible or rows >= GROUP_ROWS):
            yield places, first, rows
            places, rows = [], 0
        if is_possible:
            first = at if not places else first
            places.append(place)
            rows += group_rows
        at += group_rows
    if places:
        yield places, first, rows


def _possible(file: TableFile, table: FoundTable, choice: Choice) -> list[bool]:
    """For each row group whether it may hold chosen rows, as far as its statistics tell."""
    if isinstance(choice, Within):
        starts, ends = (_statistics(file, table, name) for name in (choice.start, choice.end))
        return [_reaches(choice, start, end) for start, end in zip(starts, ends, strict=True)]
    if isinstance(choice, Chosen):
        ids = np.asarray(choice.ids, np.int64)
        found = _statistics(file, table, choice.column)
        return [each is None or bool(np.any((ids >= each.low) & (ids <= each.high))) for each in found]
    return [True] * file.metadata.num_row_groups


def _reaches(choice: Within, start: Statistics | None, end: Statistics | None) -> bool:
    """Whether rows with these starts and ends may reach into the time; a row whose end is unknown may last."""
    if start is not None and start.low >= choice.high:
        return False
    if end is None:
        return True
    return end.high >= choice.low if choice.start == choice.end else end.high > choice.low or end.nulls > 0


def _statistics(file: TableFile, table: FoundTable, name: str) -> list[Statistics | None]:
    """See TableFile.statistics; None too where values are so large that they are negative ones here."""
    column = table.column(name)
    if column is None:
        return [None] * file.metadata.num_row_groups
    return [None if each is None or each.high >= UNSIGNED else each for each in file.statistics(column.name)]


def read_groups(opened: Any, places: list[int], names: list[str]) -> dict[str, Any]:
    """Columns of consecutive row groups. Raises MemoryError if memory is short, ValueError if the number of rows is not
    that of the footer."""
    if not names:
        return {}
    rows = sum(opened.metadata.row_group(place).num_rows for place in places)
    if not has_room(rows * len(names) * CELL_BYTES):
        raise MemoryError(f"Unable to allocate {rows * len(names) * CELL_BYTES} bytes")
    read = opened.read_row_groups(places, columns=names, use_threads=False)
    if read.num_rows != rows:
        raise ValueError(f"its footer lists {rows:,} rows, its pages hold {read.num_rows:,}")
    return {name: read.column(name) for name in names}
