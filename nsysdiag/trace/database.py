"""What a trace is read from: tables of columns, whether they lie in an SQLite file or in a folder of Parquet files."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from nsysdiag.limits import CELL_BYTES
from nsysdiag.messages import InputError, printable
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.catalog import FoundTable, Schema, read_schema
from nsysdiag.trace.profiler.file import GZIP_MAGIC, is_profiler_trace, json_of
from nsysdiag.trace.query import Choice, ChosenPairs, TimeLimit, count_sql, row_bound_sql, string_rows
from nsysdiag.trace.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsysdiag.trace.catalog import Connections
    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.query import LongTexts
    from nsysdiag.trace.reader import Pair
    from nsysdiag.trace.tables import ColumnSpec


# What a file is, by its first bytes: an SQLite database, an nsys report, or something to say no to.

SQLITE_MAGIC = b"SQLite format 3\x00"
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
EXPORT_HINT = "export it from the report: nsys export --type sqlite --output trace.sqlite trace.nsys-rep"

_MAGICS = (
    (b"\x1f\x8b", "a gzip archive", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first: unzstd"),
    (b"\xfd7zXZ\x00", "an xz archive", "unpack it first: unxz"),
    (b"BZh", "a bzip2 archive", "unpack it first: bunzip2"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip"),
    (b"\x89HDF", "an HDF5 file", "export to SQLite instead: nsys export --type sqlite"),
    (b"PAR1", "a Parquet file", "pass the folder that contains it, which nsys export --type parquetdir wrote"),
    (b"ARROW1", "an Arrow file", "export to SQLite instead: nsys export --type sqlite"),
    (b"SQLite format", "an SQLite database with a damaged header", EXPORT_HINT),
)
_SUFFIXES = {
    ".qdstrm": ("a raw event stream (.qdstrm)", "turn it into a report first: QdstrmImporter -i"),
    ".ncu-rep": ("a Nsight Compute report", "this program reads Nsight Systems traces"),
}


class FileKind(StrEnum):
    """The files that can be read, if need be after an export."""

    SQLITE = "sqlite"
    REPORT = "report"
    PROFILER = "profiler"


def sniff(path: Path) -> FileKind:
    """What the file is. Raises InputError for everything that is no database, nsys report or trace of PyTorch."""
    check_regular_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise InputError(
            f"'{printable(path)}' cannot be read: {error.strerror}", hint=_permission_hint(error)
        ) from error
    if head.startswith(SQLITE_MAGIC):
        _check_complete(path, head)
        return FileKind.SQLITE
    if head.startswith(REPORT_MAGIC) or (head and path.suffix.lower() in {".nsys-rep", ".qdrep"}):
        return FileKind.REPORT
    if head.lstrip().startswith((b"{", b"[", GZIP_MAGIC)) and is_profiler_trace(path):
        return FileKind.PROFILER
    raise _not_a_trace(path, head)


def check_regular_file(path: Path) -> os.stat_result:
    """The status of an existing ordinary file. Raises InputError; a pipe is not opened, for that could
    block."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"'{printable(path)}' does not exist", hint="check the path") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"'{printable(path)}' cannot be read: {reason}", hint=_permission_hint(error)) from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(
            f"'{printable(path)}' is a folder",
            hint="name a .sqlite file in it, or a folder that nsys export --type parquetdir wrote",
        )
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"'{printable(path)}' is not an ordinary file", hint="save the export to a file and name that")
    return status


def _permission_hint(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "ask for read permission on the file and on the folders above it"
    return "check the path and the disk"


def _check_complete(path: Path, head: bytes) -> None:
    """The header of a database holds its length in pages, unless a very old program wrote it last."""
    if len(head) < 100:
        raise InputError(f"'{printable(path)}' is a truncated SQLite file ({len(head)} bytes)", hint=EXPORT_HINT)
    (page_size,) = struct.unpack(">H", head[16:18])
    changes, pages = struct.unpack(">II", head[24:32])
    (valid_for,) = struct.unpack(">I", head[92:96])
    expected = (65536 if page_size == 1 else page_size) * pages
    size = path.stat().st_size
    if changes == valid_for and size < expected:
        raise InputError(
            f"'{printable(path)}' is a truncated SQLite file: {size:,} of {expected:,} bytes",
            hint="copy it again, or " + EXPORT_HINT,
        )


def _not_a_trace(path: Path, head: bytes) -> InputError:
    if not head:
        return InputError(f"'{printable(path)}' is empty", hint=EXPORT_HINT)
    if path.suffix.lower() in _SUFFIXES:
        what, hint = _SUFFIXES[path.suffix.lower()]
        return InputError(f"'{printable(path)}' is {what}, not an exported trace", hint=hint)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["} or (head.startswith(GZIP_MAGIC) and json_of(path, 64)):
        hint = "for a saved report use `nsysdiag render`; otherwise " + EXPORT_HINT
        message = f"'{printable(path)}' is JSON, but no trace of the PyTorch profiler: it has no `traceEvents`"
        return InputError(message, hint=hint)
    for magic, what, hint in _MAGICS:
        if head.startswith(magic):
            return InputError(f"'{printable(path)}' is {what}, not an exported trace", hint=hint)
    return InputError(f"'{printable(path)}' is not an SQLite file", hint=EXPORT_HINT)


class Database(Protocol):
    """Reads tables. Reads may run in several threads at once, and raise InputError for what is damaged."""

    def schema(self) -> Schema:
        """The tables that are looked at."""

    def row_bounds(self, tables: Mapping[str, FoundTable]) -> dict[str, int]:
        """The number of rows of every table that holds any, or a bound that is known without counting."""

    def read(
        self, table: FoundTable, columns: Sequence[ColumnSpec], capacity: int, chosen: Choice | None = None
    ) -> Columns:
        """The columns, of all rows or of the chosen ones. `capacity` is a guess at the number of rows."""

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], chosen: ChosenPairs, within: TimeLimit | None
    ) -> dict[Pair, Columns]:
        """The rows of each chosen pair of ids; `columns` are the two ids and then numbers, all in the table."""

    def strings(self, table: FoundTable, ids: list[int]) -> Iterator[tuple[int, str]]:
        """The ids and texts of a table of strings that are among `ids`; some may come twice."""


class SqliteDatabase:
    """An SQLite file. `reader` is "adbc" or "sqlite3"; `warn` gets sentences on cells that had to be converted."""

    def __init__(
        self, path: Path, connections: Connections, reader: str, warn: Callable[[str], None], long: LongTexts
    ) -> None:
        self._path = path
        self._connections = connections
        self._reader = Reader(connections, reader, warn, long)
        self._long = long

    def schema(self) -> Schema:
        """See Database."""
        with self._reading() as connection:
            return read_schema(connection)

    def row_bounds(self, tables: Mapping[str, FoundTable]) -> dict[str, int]:
        """The largest rowid of every table that holds rows; their number where there are no rowids."""
        bounds = {}
        with self._reading() as connection:
            for name, table in tables.items():
                sql = count_sql(table) if table.rowid is None else row_bound_sql(table)
                (bound,) = connection.execute(sql).fetchone()
                if bound is not None and (table.rowid is not None or bound > 0):
                    bounds[name] = bound
        return bounds

    def read(
        self, table: FoundTable, columns: Sequence[ColumnSpec], capacity: int, chosen: Choice | None = None
    ) -> Columns:
        """See Database."""
        with self._input_errors():
            return self._reader.read(table, columns, capacity, chosen)

    def read_split(
        self, table: FoundTable, columns: Sequence[ColumnSpec], chosen: ChosenPairs, within: TimeLimit | None
    ) -> dict[Pair, Columns]:
        """See Database."""
        with self._input_errors():
            return self._reader.read_split(table, columns, chosen, within)

    def strings(self, table: FoundTable, ids: list[int]) -> Iterator[tuple[int, str]]:
        """See Database."""
        with self._reading() as connection:
            yield from string_rows(connection, table, ids, self._long)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._input_errors(), self._connections.stdlib() as connection:
            yield connection

    @contextmanager
    def _input_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DataError as error:  # SQLITE_TOOBIG
            raise InputError(
                f"'{printable(self._path)}' is not read: it has a text or an SQL statement of more than {CELL_BYTES:,}"
                " bytes, which no export has",
                hint=EXPORT_HINT,
            ) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for a message that quotes broken text
            if is_shortage(error):
                raise memory_short(error, f"read '{printable(self._path)}'") from error
            raise InputError(
                f"'{printable(self._path)}' cannot be read, it may be corrupt: {printable(error)}",
                hint="copy it again, or " + EXPORT_HINT,
            ) from error
