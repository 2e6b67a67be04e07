"""The reader that always works: rows through the standard library, which also reads the text columns."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysdiag.limits import TEXT_BYTES, short_name
from nsysdiag.trace.catalog import decode
from nsysdiag.trace.columns import TextColumn
from nsysdiag.trace.query import select_sql
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nsysdiag.trace.buffers import Sink
    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.query import Choice, LongTexts

BATCH_ROWS = 8192
_WRAP = 1 << 64
_INT64 = range(-(1 << 63), 1 << 63)


def read_rows(connection: sqlite3.Connection, sql: str, columns: Sequence[ColumnSpec], buffers: Sink) -> dict[str, int]:
    """Read the result of `sql`, numbers only, into the buffers. Returns for each column the number of cells
    that were no number of its type and had to be converted."""
    converted: dict[str, int] = {}
    cursor = connection.execute(sql)
    while rows := cursor.fetchmany(BATCH_ROWS):
        cells = zip(*rows, strict=True)
        buffers.append([_column(column, part, converted) for column, part in zip(columns, cells, strict=True)])
    return converted


def _column(spec: ColumnSpec, cells: tuple[Any, ...], converted: dict[str, int]) -> Any:
    """One column of a batch. numpy's own choice of type tells whether all cells are numbers of the right
    one."""
    if spec.type is ColumnType.REAL:
        return np.array(cells, np.float64)
    if set(map(type, cells)) == {int}:
        return np.fromiter(cells, np.int64, len(cells))
    numbers = [to_integer(cell, spec.default) for cell in cells]
    odd = sum(type(cell) is not int for cell in cells)
    converted[spec.name] = converted.get(spec.name, 0) + odd
    return np.array(numbers, np.int64)


def to_integer(cell: object, default: int) -> int:
    """The integer value of a cell with another type: digits are parsed, floats are truncated, an unsigned 64-bit number
    wraps to int64 (ids use the top bits); anything else is `default`."""
    try:
        number = int(cell) if isinstance(cell, int | float) else int(decode(cell))
    except (ValueError, OverflowError):
        return default
    if not -(_WRAP // 2) <= number < _WRAP:
        return default
    return number if number in _INT64 else number - _WRAP


class _Codes(dict[Any, int]):
    """Cell to code, numbering new texts as they come. `text_of` makes the text of a cell, or None."""

    def __init__(self, text_of: Callable[[Any], str | None]) -> None:
        super().__init__({None: -1})
        self.texts: dict[str, int] = {}
        self._text_of = text_of

    def __missing__(self, cell: object) -> int:
        text = self._text_of(cell)
        code = -1 if text is None else self.texts.setdefault(text, len(self.texts))
        if not isinstance(cell, bytes) or len(cell) <= TEXT_BYTES:
            self[cell] = code
        return code


def read_text(
    connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, chosen: Choice | None, long: LongTexts
) -> TextColumn:
    """Read a column of texts or blobs, each as it is mentioned (limits.short_name); a blob is not cut."""
    blob = column.type is ColumnType.BLOB
    try:
        cells = _batches(connection.execute(select_sql(table, [column], chosen)))
        return _coded(cells, long.digits if blob else lambda cell: short_name(long.decode(cell)))
    except sqlite3.DataError:
        if table.rowid is None:
            raise
        return _coded([long.cells(connection, table, column, chosen)], str if blob else short_name)


def _batches(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(BATCH_ROWS):
        (cells,) = zip(*rows, strict=True)
        yield cells


def _coded(batches: Iterable[Iterable[Any]], text_of: Callable[[Any], str | None]) -> TextColumn:
    codes = _Codes(text_of)
    parts = [np.fromiter(map(codes.__getitem__, cells), np.int64) for cells in batches]
    return TextColumn(np.concatenate(parts) if parts else np.empty(0, np.int64), list(codes.texts))
