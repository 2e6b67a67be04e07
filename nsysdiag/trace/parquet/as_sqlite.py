"""A private SQLite copy of a folder of Parquet files: for bundles, whose slice is an SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.parquet.rows import groups
from nsysdiag.trace.parquet.values import integers, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.parquet.file import TableFile


def write_sqlite(files: Mapping[str, TableFile], tables: Mapping[str, FoundTable], target: Path) -> None:
    """Write the tables into a new file, rows in their order."""
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "trusted_schema=0"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("BEGIN")
        for name, table in tables.items():
            _write(connection, files[name], table)
        connection.execute("COMMIT")


def _write(connection: sqlite3.Connection, file: TableFile, table: FoundTable) -> None:
    names = [column.name for column in table.columns.values()]
    refuse_foreign(table.name, file.schema, names)
    columns = ", ".join(f"{quoted(name)} {_type(file.schema.field(name).type)}" for name in names)
    connection.execute(f"CREATE TABLE {quoted(table.name)} ({columns})")
    insert = f"INSERT INTO {quoted(table.name)} VALUES ({', '.join('?' * len(names))})"
    with file.opened() as opened:
        for places, _, _ in groups(file, table, []):
            read = opened.read_row_groups(places, columns=names, use_threads=False)
            connection.executemany(insert, zip(*(_cells(read.column(name)) for name in names), strict=True))


def _type(kind: Any) -> str:
    """The type of a column in an export: one of SQLite's for each of Arrow's."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return "REAL"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "BLOB" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "TEXT"


def _cells(column: Any) -> list[Any]:
    """The cells as SQLite holds them: numbers of 64 bits have a sign."""
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        cells: list[Any] = column.to_pylist()
        return cells
    values: list[Any] = integers(column, 0)[0].tolist()
    if not column.null_count:
        return values
    return [None if missing else value for value, missing in zip(values, column.is_null().to_pylist(), strict=True)]
