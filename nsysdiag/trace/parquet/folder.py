"""The folder behind a trace: its Parquet files, checked when it is opened and again at the end."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysdiag.limits import TABLES
from nsysdiag.messages import InputError, printable
from nsysdiag.process import private_folder
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.capabilities import add_ends, sha256_of
from nsysdiag.trace.catalog import decode, immutable_uri, quoted
from nsysdiag.trace.formats import named
from nsysdiag.trace.parquet.file import AGAIN_HINT, FOOTER_BYTES, TableFile, errors, table_file
from nsysdiag.trace.parquet.names import SUFFIX, table_paths
from nsysdiag.trace.parquet.reader import ParquetDatabase, found_tables, key_of
from nsysdiag.trace.parquet.values import groups, integers, is_bytes, is_foreign, nulls, plain, read_groups, reals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.database import Database
    from nsysdiag.trace.query import LongTexts


# A private SQLite copy of a folder of Parquet files: for bundles, whose slice is an SQLite file.


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


class ParquetFolder:
    """See Source: a trace of Parquet files for as long as it is read."""

    noun = "a folder of Parquet files"

    def __init__(self, path: Path) -> None:
        self.path: Path = named(path)
        self.warnings: list[str] = []
        self._cleanup = ExitStack()
        self._files = self._opened()
        self.size_bytes: int = sum(each.size_bytes for each in self._files.values())
        self.most_rows: int = max((each.rows for each in self._files.values()), default=0)

    def _opened(self) -> dict[str, TableFile]:
        try:
            found = table_paths(self.path)
        except OSError as error:
            raise InputError(f"'{printable(self.path)}' cannot be read: {error.strerror}", hint=AGAIN_HINT) from error
        if len(found) > TABLES:
            raise InputError(
                f"'{printable(self.path)}' holds {len(found):,} tables, more than {TABLES:,}", hint=AGAIN_HINT
            )
        files, room = {}, FOOTER_BYTES
        for each in found:
            file = files[decode(os.fsencode(each.name.removesuffix(SUFFIX)))] = table_file(each, room)
            room -= file.metadata.serialized_size
        return files

    def database(self, reader: str, warn: Callable[[str], None], long: LongTexts) -> Database:
        """What reads it; `reader` is that of SQLite files."""
        return ParquetDatabase(self._files, warn, long)

    @cached_property
    def uri(self) -> str:
        """The URI that opens a private SQLite copy immutably. It is made at the first call."""
        copy = self._cleanup.enter_context(private_folder()) / "trace.sqlite"
        try:
            with errors(self.path):
                write_sqlite(self._files, found_tables(self._files), copy)
        except sqlite3.Error as error:
            if is_shortage(error):
                raise memory_short(error, f"copy '{printable(self.path)}'") from error
            raise InputError(
                f"'{printable(self.path)}' could not be copied to a private SQLite file: {printable(error)}",
                hint="make room for temporary files, or export it again: nsys export --type sqlite",
            ) from error
        return immutable_uri(copy)

    def fingerprint(self, schema: str) -> str:
        """32 hex digits over the names and sizes of the files, and the first and last MiB of each."""
        digest = hashlib.sha256(schema.encode())
        for name, file in self._files.items():
            digest.update(f"{name}\n{file.size_bytes}\n".encode())
            with errors(file.path):
                add_ends(digest, file.path, file.size_bytes)
        return digest.hexdigest()[:32]

    def sha256(self) -> str:
        """The SHA-256 over the names and the SHA-256 of each file."""
        digest = hashlib.sha256()
        for name, file in self._files.items():
            with errors(file.path):
                digest.update(f"{name} {sha256_of(file.path)}\n".encode())
        return digest.hexdigest()

    def changed(self) -> bool:
        """Whether any file is another one than when the folder was opened, or one came or went."""
        try:
            now = len(table_paths(self.path))
        except OSError:
            return True
        return now != len(self._files) or any(each.changed() for each in self._files.values())

    def close(self) -> None:
        """Remove private files."""
        self._cleanup.close()
