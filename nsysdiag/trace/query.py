"""The SELECT statements: columns as SQLAlchemy writes them, for the declared ones ahead of time, of the chosen rows."""

from __future__ import annotations

import codecs
import hashlib
import sqlite3
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import Struct

from nsysdiag.limits import BLOB_BYTES, CELL_BYTES, TEXT_BYTES, marked
from nsysdiag.trace.catalog import FoundColumn, FoundTable, decode, quoted
from nsysdiag.trace.tables import ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsysdiag.trace.tables import ColumnSpec


FILE = Path(__file__).parents[1] / "data" / "columns.json"


class Chosen(Struct, frozen=True):
    """A restriction: only rows whose `column` is one of `ids`."""

    column: str
    ids: Sequence[int]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell whether a row is chosen."""
        return (self.column,)


class ChosenRows(Struct, frozen=True):
    """A restriction: only the rows with these rowids."""

    ids: Sequence[int]
    columns: ClassVar[tuple[str, ...]] = ()


class RowPart(Struct, frozen=True):
    """A restriction: only rows with rowids above `behind` and up to `until`, None for no border; about `rows`."""

    behind: int | None
    until: int | None
    rows: int
    columns: ClassVar[tuple[str, ...]] = ()


class TimeLimit(Struct, frozen=True):
    """A restriction: only rows that reach into [low, high). The columns of their start and end are one for moments; a
    row whose end is unknown may last."""

    start: str
    end: str
    low: int
    high: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell whether a row is chosen."""
        return (self.start,) if self.start == self.end else (self.start, self.end)


Choice = Chosen | ChosenRows | RowPart | TimeLimit


def select_sql(table: FoundTable, columns: Sequence[ColumnSpec], *choices: Choice) -> str:
    """The SQL that reads these columns, which the table must have, in the order of the rows in the file.

    The order is explicit because columns are read by several statements, and SQLite may read one of them from an index,
    in another order. By rowid it costs nothing.
    """
    selected = _selected(table.name, tuple((column, table.sources(column)) for column in columns))
    return f"{selected}{_where(table, choices)}{_row_order(table)}"


@lru_cache(maxsize=1024)
def _selected(table: str, columns: tuple[tuple[ColumnSpec, tuple[FoundColumn, ...]], ...]) -> str:
    """What is read of which table. Kept, as the tables of a kind of trace are the same in each."""
    return f"SELECT {', '.join(_column(table, spec, found) for spec, found in columns)} FROM {quoted(table)}"


def _column(table: str, spec: ColumnSpec, found: tuple[FoundColumn, ...]) -> str:
    """How a column is read: written ahead if all its names are as they are declared."""
    ahead = written_ahead().get(column_key(table, spec, found))
    if ahead is not None:
        return ahead
    from nsysdiag.trace.expressions import column_sql  # imports SQLAlchemy, which takes long

    return column_sql(table, spec, found)


@cache
def written_ahead() -> dict[str, str]:
    """How SQLAlchemy writes each column of `tables.py`, by `column_key`. `scripts/update_goldens` makes the file."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, str])


def column_key(table: str, spec: ColumnSpec, found: tuple[FoundColumn, ...]) -> str:
    """What tells a column in a file from others: its table, its declaration, where it is read from, and if it can be
    NULL."""
    is_known = found[0].not_null and spec.type is ColumnType.INTEGER and not spec.parts
    return " ".join((table, spec.name, *(each.name for each in found), *(("NOT NULL",) if is_known else ())))


def _where(table: FoundTable, choices: Sequence[Choice], *conditions: str) -> str:
    chosen = [*conditions, *(_restriction(table, choice) for choice in choices)]
    return f" WHERE {' AND '.join(chosen)}" if chosen else ""


def _restriction(table: FoundTable, chosen: Choice) -> str:
    if isinstance(chosen, TimeLimit):
        start, end = _name(table, chosen.start), _name(table, chosen.end)
        if chosen.start == chosen.end:
            return f"{start} >= {chosen.low} AND {start} < {chosen.high}"
        return f"{start} < {chosen.high} AND ({end} > {chosen.low} OR {end} IS NULL)"
    assert isinstance(chosen, Chosen) or table.rowid is not None
    if isinstance(chosen, RowPart):
        sides = ((">", chosen.behind), ("<=", chosen.until))
        return " AND ".join(f"{table.rowid} {sign} {border}" for sign, border in sides if border is not None)
    column = _name(table, chosen.column) if isinstance(chosen, Chosen) else table.rowid
    return f"{column} IN ({', '.join(map(str, chosen.ids))})"


def _name(table: FoundTable, column: str) -> str:
    return f"{quoted(table.name)}.{quoted(column)}"


def _row_order(table: FoundTable) -> str:
    if table.rowid is not None:
        return f" ORDER BY {table.rowid}"
    keys = sorted((found for found in table.columns.values() if found.key), key=lambda found: found.key)
    names = ", ".join(f"{quoted(table.name)}.{quoted(found.name)}" for found in keys)
    return f" ORDER BY {names}" if names else ""


def single_sql(table: FoundTable, column: ColumnSpec) -> str:
    """The SQL that reads one column of the row whose rowid is its parameter."""
    return f"{_selected(table.name, ((column, table.sources(column)),))} WHERE {table.rowid} = ?"


def row_ids_sql(table: FoundTable, *choices: Choice) -> str:
    """The SQL that gives the rowids of the rows that `select_sql` reads, in the same order; for a table with rowids."""
    return f"SELECT {table.rowid} FROM {quoted(table.name)}{_where(table, choices)}{_row_order(table)}"


def count_sql(table: FoundTable, *choices: Choice) -> str:
    """The SQL that counts the rows, exactly."""
    return f"SELECT count(*) FROM {quoted(table.name)}{_where(table, choices)}"


def any_text_sql(table: FoundTable, column: ColumnSpec, *choices: Choice) -> str:
    """The SQL that gives one row if a column holds anything, none if it is NULL throughout. SQLite tells the type of a
    cell without loading it, whatever its size."""
    (found,) = table.sources(column)
    holds = f"typeof({quoted(found.name)}) <> 'null'"
    return f"SELECT 1 FROM {quoted(table.name)}{_where(table, choices, holds)} LIMIT 1"


def row_bound_sql(table: FoundTable) -> str:
    """The SQL for the largest rowid, which in an export is about the number of rows, without counting; for the number
    of rows if the table has no rowids. NULL for an empty table."""
    bound = "nullif(count(*), 0)" if table.rowid is None else f"max({table.rowid})"
    return f"SELECT {bound} FROM {quoted(table.name)}"


# Texts of any length as far as they are read: cut where they are too long, and counted.


def cut(pieces: Iterable[bytes], encoding: str = "utf-8") -> tuple[str, str, int]:
    """The beginning of a text that comes in pieces, with the mark of a cut; the hash of the whole, and its bytes."""
    digest, size, head = hashlib.sha256(), 0, b""
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        head += piece[: TEXT_BYTES - len(head)]
    # Not final: a character that the cut goes through is left out.
    beginning = codecs.getincrementaldecoder(encoding)("backslashreplace").decode(head)
    return marked(beginning, digest.hexdigest()), digest.hexdigest(), size


class LongTexts:
    """Decodes cells and records which ones were too long. Threads may use it at the same time."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._blobs: dict[str, int] = {}
        self._lock = Lock()

    def decode(self, cell: object) -> str:
        """A text cell, cut where it is longer than TEXT_BYTES."""
        if isinstance(cell, bytes) and len(cell) > TEXT_BYTES:
            return self._cut([cell])
        return decode(cell)

    def digits(self, cell: object) -> str | None:
        """A blob as hexadecimal digits; None if it is longer than BLOB_BYTES."""
        text = decode(cell)
        if len(text) <= 2 * BLOB_BYTES:
            return text
        self._left_out(hashlib.sha256(text.encode()).hexdigest(), len(text) // 2)
        return None

    def cells(
        self, connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, chosen: Sequence[Choice]
    ) -> Iterator[str | None]:
        """A column of texts or blobs, row by row: for tables with cells that SQLite refuses to load. The rows are in
        the order of `select_sql`. Raises sqlite3.DataError for a table without rowids."""
        sql = single_sql(table, column)
        for (row,) in connection.execute(row_ids_sql(table, *chosen)).fetchall():
            try:
                (value,) = connection.execute(sql, (row,)).fetchone()
            except sqlite3.DataError:
                text = self._in_pieces(connection, table, column, row)
            else:
                as_text = self.digits if column.type is ColumnType.BLOB else self.decode
                text = None if value is None else as_text(value)
            yield text

    def _in_pieces(self, connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, row: int) -> str | None:
        (found,) = table.sources(column)
        (encoding,) = connection.execute("PRAGMA encoding").fetchone()
        with connection.blobopen(table.name, found.name, row, readonly=True) as blob:
            if column.type is ColumnType.BLOB:
                self._left_out(f"{table.name} {found.name} {row}", len(blob))
                return None
            return self._cut(iter(lambda: blob.read(CELL_BYTES), b""), decode(encoding))

    def _cut(self, pieces: Iterable[bytes], encoding: str = "utf-8") -> str:
        text, digest, size = cut(pieces, encoding)
        with self._lock:
            self._texts[digest] = size
        return text

    def _left_out(self, key: str, size: int) -> None:
        with self._lock:
            self._blobs[key] = size

    def warnings(self) -> list[str]:
        """What was cut or left out: a sentence about texts and one about payloads, where there were any."""
        return [
            *_sentence(self._texts, "text", f"longer than {TEXT_BYTES:,} bytes", "cut"),
            *_sentence(self._blobs, "payload", f"longer than {BLOB_BYTES:,} bytes", "not read"),
        ]


def _sentence(sizes: dict[str, int], noun: str, which: str, done: str) -> list[str]:
    if not sizes:
        return []
    count = f"{len(sizes):,} {noun}s {which} were" if len(sizes) > 1 else f"1 {noun} {which} was"
    return [f"{count} {done}; the longest has {max(sizes.values()) / 1e6:,.1f} MB"]
