"""A folder of Parquet files, one a table: checked when it is opened and again at the end, and its row groups.

```
file    PAR1 | row groups ........................ | footer | length of the footer | PAR1
```
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from nsysdiag.limits import TABLES
from nsysdiag.messages import InputError, printable
from nsysdiag.process import private_folder
from nsysdiag.shortage import has_room, is_shortage, memory_short
from nsysdiag.trace.capabilities import add_ends, has_changed, sha256_of
from nsysdiag.trace.catalog import decode, immutable_uri, quoted
from nsysdiag.trace.format import refused
from nsysdiag.trace.formats import SUFFIX, named, table_paths
from nsysdiag.trace.parquet.reader import (
    ParquetDatabase,
    filtered,
    found_tables,
    integers,
    is_bytes,
    is_foreign,
    key_of,
    nulls,
    plain,
    reals,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nsysdiag.arrays.intervals import BoolArray, IntArray
    from nsysdiag.trace.catalog import FoundTable
    from nsysdiag.trace.query import LongTexts


MAGIC, ENCRYPTED = b"PAR1", b"PARE"
_END_BYTES = 8
LEAST_BYTES = 12
"""The magic at both ends, and the length of the footer."""
FOOTER_BYTES = 64 << 20
"""Bytes of all footers of a folder; parsed, they take about ten times as much memory. A footer of nsys has 100 to 200
bytes for each column of each row group: for 100 million rows in groups of 1,000,000 it has 300 KB."""
GROUP_ROWS = 1 << 16
"""So many rows are read at once: nsys writes groups of 2,048, and each read has its price. Four times as many left the
cache of a core: 4,000,000 rows took 0.31 instead of 0.23 s of CPU time."""
CELL_BYTES = 16
"""A number as it is read, and as it is kept."""
INSTALL_HINT = "pip install '.[parquet]' in a copy of the repository, or export it again: nsys export --type sqlite"
AGAIN_HINT = "copy it again, or export it again: nsys export --type parquetdir"


class TableFile(Struct, frozen=True, dict=True):
    """A table: the file, its size and time when it was opened, what its footer says (pyarrow's FileMetaData), and the
    rows of each row group."""

    path: Path
    size_bytes: int
    modified_ns: int
    metadata: Any
    group_rows: IntArray

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.metadata.num_rows)

    @cached_property
    def schema(self) -> Any:
        """The columns and their types, as pyarrow's Schema."""
        return self.metadata.schema.to_arrow_schema()

    def changed(self) -> bool:
        """Whether the file is another one than when it was opened."""
        return has_changed(self.path, self.size_bytes, self.modified_ns)

    def parts(
        self,
        names: list[str],
        keys: list[str] | None = None,
        chosen: Callable[[dict[str, Any], int, int], BoolArray] | None = None,
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Columns by name, of some row groups at a time, and how many rows these are.

        With `chosen` only the rows for which it is true: it gets the columns `keys` of some row groups, their first
        row and their number of rows. Raises InputError if the file is damaged or a column is of a type that no export
        has.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._refuse_foreign([*names, *(keys or [])])
        with errors(self.path), self.path.open("rb") as stream:
            opened = pq.ParquetFile(stream, metadata=self.metadata, page_checksum_verification=True)
            for places, first, rows in self._batches():
                if chosen is None:
                    yield _read(opened, places, names, rows), rows
                    continue
                mask = chosen(_read(opened, places, keys or names[:1], rows), first, rows)
                if count := int(np.count_nonzero(mask)):
                    part = _read(opened, places, names, rows)
                    yield part if count == rows else filtered(part, mask), count
        pa.default_memory_pool().release_unused()  # 30 MiB of 200,000 kernels

    def _batches(self) -> Iterator[tuple[list[int], int, int]]:
        """Consecutive row groups that are read at once: their places, their first row and their number of rows."""
        first = np.cumsum(self.group_rows) - self.group_rows
        borders = np.flatnonzero(np.diff(first // GROUP_ROWS, prepend=-1))
        for places in np.split(np.arange(len(first)), borders)[1:]:
            yield places.tolist(), int(first[places[0]]), int(self.group_rows[places].sum())

    def _refuse_foreign(self, names: list[str]) -> None:
        for name in names:
            kind = self.schema.field(name).type
            if is_foreign(kind):
                table = printable(self.path.name.removesuffix(SUFFIX))
                raise InputError(
                    f"table {table}: column '{printable(name)}' holds values of type {printable(str(kind))[:64]}, "
                    "which no export has",
                    hint=AGAIN_HINT,
                )


def _read(opened: Any, places: list[int], names: list[str], rows: int) -> dict[str, Any]:
    """Columns of row groups that have so many rows by the footer. Raises MemoryError if memory is short, ValueError if
    they have more or fewer."""
    if not names:
        return {}
    if not has_room(rows * len(names) * CELL_BYTES):  # a small file may list any number of rows
        raise MemoryError(f"Unable to allocate {rows * len(names) * CELL_BYTES} bytes")
    read = opened.read_row_groups(places, columns=names, use_threads=False)
    if read.num_rows != rows:
        raise ValueError(f"its footer lists {rows:,} rows, its pages hold {read.num_rows:,}")
    return {name: read.column(name) for name in names}


@contextmanager
def errors(path: Path) -> Iterator[None]:
    """Whatever pyarrow says of a damaged file is an InputError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        if is_shortage(error):
            raise memory_short(error, f"read '{printable(path)}'") from error
        raise refused(path, f"cannot be read, it may be corrupt: {_first_line(error)}", AGAIN_HINT) from error


def _first_line(error: BaseException) -> str:
    return printable(str(error).strip().split("\n")[0])[:200]


def table_file(path: Path, most: int) -> TableFile:
    """The table in a file with a footer of at most `most` bytes. Raises InputError for other files, and if pyarrow is
    missing."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        what = "is a folder of Parquet files, and pyarrow, which reads them, is not installed"
        raise refused(path.parent, what, INSTALL_HINT) from error
    status = _checked(path, most)
    with errors(path), path.open("rb") as stream:  # pyarrow takes paths in UTF-8 only
        metadata = pq.read_metadata(stream)
        rows = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
        found = TableFile(path, status.st_size, status.st_mtime_ns, metadata, np.array(rows, np.int64))
        names = [name.casefold() for name in found.schema.names]
        if min(rows, default=0) < 0 or sum(rows) != found.rows:
            raise ValueError("the row counts of its row groups do not add up to that of its footer")
    if len(set(names)) < len(names):
        raise refused(path, "has two columns of one name", AGAIN_HINT)
    return found


def _checked(path: Path, most: int) -> os.stat_result:
    """The status of a file that begins and ends as a Parquet file does."""
    try:
        status = path.stat()  # before it is opened: a pipe would block
        if not stat.S_ISREG(status.st_mode):
            raise refused(path, "is not an ordinary file", AGAIN_HINT)
        with path.open("rb") as stream:
            head = stream.read(len(MAGIC))
            stream.seek(max(status.st_size - _END_BYTES, 0))
            tail = stream.read(_END_BYTES)
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror}", "check the permissions and the disk") from error
    size, footer = status.st_size, int.from_bytes(tail[:4], "little")
    too_much = f"is not read: its list of row groups takes {footer:,} bytes, more than {most:,}"
    for wrong, what, hint in (
        (ENCRYPTED in (head, tail[4:]), "is an encrypted Parquet file", "nsys writes none: export it again"),
        (head != MAGIC, "is not a Parquet file", AGAIN_HINT),
        (size < LEAST_BYTES or tail[4:] != MAGIC, f"is a truncated Parquet file ({size:,} bytes)", AGAIN_HINT),
        (footer > size - LEAST_BYTES, "is a damaged Parquet file: its footer is longer than the file", AGAIN_HINT),
        (footer > most, too_much, "write it again with larger row groups"),
    ):
        if wrong:
            raise refused(path, what, hint)
    return status


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
    for part, _ in file.parts(list(types)):
        connection.executemany(insert, zip(*map(_cells, part.values()), strict=True))
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
        return column.to_pylist()
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
            raise refused(self.path, f"cannot be read: {error.strerror}", AGAIN_HINT) from error
        if len(found) > TABLES:
            raise refused(self.path, f"holds {len(found):,} tables, more than {TABLES:,}", AGAIN_HINT)
        files, room = {}, FOOTER_BYTES
        for each in found:
            file = files[decode(os.fsencode(each.name.removesuffix(SUFFIX)))] = table_file(each, room)
            room -= file.metadata.serialized_size
        return files

    def database(self, reader: str, warn: Callable[[str], None], long: LongTexts) -> ParquetDatabase:
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
            what = f"could not be copied to a private SQLite file: {printable(error)}"
            hint = "make room for temporary files, or export it again: nsys export --type sqlite"
            raise refused(self.path, what, hint) from error
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
