"""A private SQLite copy of a folder of Parquet files: for bundles, whose slice is an SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.parquet.arrays import nulls
from nsysdiag.trace.parquet.keys import key_of
from nsysdiag.trace.parquet.rows import groups, read_groups
from nsysdiag.trace.parquet.values import integers, is_bytes, is_foreign, plain, reals

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
    """Write a table; columns that no export has are left out, and so is a primary key that a damaged file breaks."""
    names = [column.name for column in table.columns.values() if not is_foreign(file.schema.field(column.name).type)]
    if not names:
        return
    types = {name: _type(file.schema.field(name).type) for name in names}
    keys = key_of(table.name) if all(types.get(name) == "INTEGER" for name in key_of(table.name)) else ()
    if _filled(connection, file, table, types, keys) < file.rows:
        connection.execute(f"DROP TABLE {quoted(table.name)}")
        _filled(connection, file, table, types, ())


def _filled(
    connection: sqlite3.Connection, file: TableFile, table: FoundTable, types: dict[str, str], keys: tuple[str, ...]
) -> int:
    """Make a table with these columns and this primary key; the number of rows that it takes."""
    lines = [f"{quoted(name)} {kind}{' NOT NULL' * (name in keys)}" for name, kind in types.items()]
    lines += [f"PRIMARY KEY ({', '.join(map(quoted, keys))})"] if keys else []
    connection.execute(f"CREATE TABLE {quoted(table.name)} ({', '.join(lines)})")
    # Texts come as bytes, as they may be broken.
    values = ", ".join("CAST(? AS TEXT)" if kind == "TEXT" else "?" for kind in types.values())
    insert = f"INSERT OR IGNORE INTO {quoted(table.name)} VALUES ({values})"
    before = connection.total_changes
    with file.opened() as opened:
        for places, _, _ in groups(file, table, []):
            columns_read = read_groups(opened, places, list(types))
            connection.executemany(insert, zip(*map(_cells, columns_read.values()), strict=True))
    return connection.total_changes - before


def _type(kind: Any) -> str:
    """The type of a column in an export: one of SQLite's for each of Arrow's."""
    import pyarrow as pa

    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "REAL"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "BLOB" if kind in (pa.binary(), pa.large_binary()) or pa.types.is_fixed_size_binary(kind) else "TEXT"


def _cells(column: Any) -> list[Any]:
    """The cells as SQLite holds them: numbers of 64 bits have a sign, texts are bytes."""
    import pyarrow as pa

    column = plain(column)
    if is_bytes(column.type) or pa.types.is_null(column.type):
        cells: list[Any] = column.to_pylist()
        return cells
    exact = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    values: list[Any] = (integers(column, 0)[0] if exact else reals(column)).tolist()
    if not column.null_count:
        return values
    return [None if missing else value for value, missing in zip(values, nulls(column).tolist(), strict=True)]
