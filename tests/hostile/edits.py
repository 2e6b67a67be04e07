"""Edits of a trace, made of arbitrary bytes: cells, rows, columns and tables that are changed, copied or taken away."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from nsysdiag.trace.catalog import quoted

if TYPE_CHECKING:
    from pathlib import Path

Value = int | float | str | bytes | None
MOST_EDITS = 12
ROWS = ("1", "rowid = {row}", "rowid % 3 = {row} % 3", "rowid > {row}")
VALUES: tuple[Value, ...] = (
    None,
    0,
    -1,
    1,
    2,
    59,
    100,
    0xFFFFFFFF,
    2**31,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63 - 2,
    -(2**63),
    0.5,
    -1e300,
    float("inf"),
    "",
    "text",
    "12",
    "1e5",
    "'\"%s\n\x1b[31m<b>",
    "\u202e\u2066",
    b"\xff\x00\xc3(",
    "NCCL",
    "Python Backtrace",
    "void gemm<float, 4>(int)",
)
CHANGES = (
    "value",
    "value",
    "value",
    "other column",
    "sum",
    "drop column",
    "empty",
    "drop table",
    "copy rows",
    "negate",
)


class Choices:
    """Numbers taken from bytes, one after another; 0 where they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, of one byte, or of two where one cannot reach."""
        size = 1 if bound <= 256 else 2
        found = int.from_bytes(self._data[self._at : self._at + size], "little")
        self._at += size
        return found % max(bound, 1)


def statements(data: bytes, columns: dict[str, list[str]]) -> list[tuple[str, tuple[Value, ...]]]:
    """The SQL that the bytes stand for, on these tables."""
    choices, found = Choices(data), []
    while choices and len(found) < MOST_EDITS:
        names = list(columns)
        table = names[choices.below(len(names))]
        column = columns[table][choices.below(len(columns[table]))]
        found.append(_statement(choices, table, column, columns[table]))
    return found


def _statement(choices: Choices, table: str, column: str, columns: list[str]) -> tuple[str, tuple[Value, ...]]:
    where = ROWS[choices.below(len(ROWS))].format(row=choices.below(24))
    value = VALUES[choices.below(len(VALUES))]
    other = quoted(columns[choices.below(len(columns))])
    name, whole = quoted(column), quoted(table)
    update = f"UPDATE {whole} SET {name} = {{}} WHERE {where}"
    change = CHANGES[choices.below(len(CHANGES))]
    plain = {
        "other column": update.format(other),
        "negate": update.format(f"-{name}"),
        "drop column": f"ALTER TABLE {whole} DROP COLUMN {name}",
        "empty": f"DELETE FROM {whole} WHERE {where}",
        "drop table": f"DROP TABLE {whole}",
        "copy rows": f"INSERT INTO {whole} SELECT * FROM {whole} WHERE {where}",
    }
    if change in plain:
        return plain[change], ()
    return update.format(f"{name} + ?" if change == "sum" else "?"), (value,)


def columns_of(trace: Path) -> dict[str, list[str]]:
    """The columns of every table of a trace, by name."""
    with closing(sqlite3.connect(f"{trace.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
            for (name,) in tables
            if not name.startswith(("ENUM_", "sqlite_"))
        }


def edited(trace: bytes, data: bytes, columns: dict[str, list[str]], target: Path) -> list[str]:
    """Write the trace with the edits of `data`; those that an earlier one made impossible are left out. Returns the
    statements."""
    target.write_bytes(trace)
    found = statements(data, columns)
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for statement, values in found:
            with suppress(sqlite3.Error):
                connection.execute(statement, values)
    return [f"{statement} {values}" for statement, values in found]


def patched(trace: bytes, data: bytes) -> bytes:
    """The bytes of a file with some replaced: groups of four of `data` are a page's number, a place in it and two
    bytes; a first byte above 250 cuts the file short."""
    changed = bytearray(trace)
    if data[:1] > b"\xfa":
        del changed[int.from_bytes(data[1:4], "little") % max(len(changed), 1) :]
    for at in range(0, len(data) - 4, 5):
        page, place = data[at], int.from_bytes(data[at + 1 : at + 3], "little")
        where = page * 4096 + place % 4096
        if where + 2 <= len(changed):
            changed[where : where + 2] = data[at + 3 : at + 5]
    return bytes(changed)
