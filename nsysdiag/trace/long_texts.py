"""Texts of any length as far as they are read: cut where they are too long, and counted."""

from __future__ import annotations

import codecs
import hashlib
import sqlite3
from threading import Lock
from typing import TYPE_CHECKING

from nsysdiag.limits import BLOB_BYTES, CELL_BYTES, TEXT_BYTES, marked
from nsysdiag.trace.connect import decode
from nsysdiag.trace.query import row_ids_sql, single_sql
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.query import Choice


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
        """A blob as hexadecimal digits; None where it is longer than BLOB_BYTES."""
        text = decode(cell)
        if len(text) <= 2 * BLOB_BYTES:
            return text
        self._left_out(hashlib.sha256(text.encode()).hexdigest(), len(text) // 2)
        return None

    def cells(
        self, connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, chosen: Choice | None
    ) -> Iterator[str | None]:
        """A column of texts or blobs, row by row: for tables with cells that SQLite refuses to load. The rows are in
        the order of `select_sql`. Raises sqlite3.DataError for a table without rowids."""
        sql = single_sql(table, column)
        for (row,) in connection.execute(row_ids_sql(table, chosen)).fetchall():
            try:
                (value,) = connection.execute(sql, (row,)).fetchone()
            except sqlite3.DataError:
                text = self._in_pieces(connection, table, column, row)
            else:
                as_text = self.digits if column.type is ColumnType.BLOB else self.decode
                text = None if value is None else as_text(value)
            yield text

    def _in_pieces(self, connection: sqlite3.Connection, table: FoundTable, column: ColumnSpec, row: int) -> str | None:
        found = table.column(column.name, *column.older)
        assert found is not None
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
