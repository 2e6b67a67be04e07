"""Which tables and columns a file has, and which of them stand for the declared ones."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from nsysdiag import limits
from nsysdiag.limits import CELL_BYTES
from nsysdiag.shortage import is_shortage
from nsysdiag.trace.tables import TABLES, ColumnSpec, TableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from pathlib import Path


# Connections to a trace file that can only read: immutable, query_only, no trust in the schema.

T = TypeVar("T")

PRAGMAS = ("PRAGMA query_only=1", "PRAGMA trusted_schema=0")


def immutable_uri(path: Path) -> str:
    """The URI under which SQLite neither locks, nor writes, nor looks for journals; any file name is
    encoded."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


def decode(value: object) -> str:
    """A cell as text. Broken UTF-8 survives as backslash escapes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    return str(value)


@contextmanager
def stdlib_connection(uri: str) -> Iterator[sqlite3.Connection]:
    """A connection of the standard library; text comes as bytes. A cell larger than CELL_BYTES raises
    sqlite3.DataError before it takes memory."""
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
        connection.text_factory = bytes  # broken UTF-8 must not raise while rows are fetched
        if sys.version_info >= (3, 12):
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        for pragma in PRAGMAS:
            connection.execute(pragma)
        yield connection
    finally:
        connection.close()


@contextmanager
def adbc_connection(uri: str) -> Iterator[Any]:
    """A connection of the columnar driver, by its own interface: that of the Python database API imports pyarrow and
    pandas where they are installed. It has no way to set the defensive flag."""
    import adbc_driver_manager
    import adbc_driver_sqlite

    with adbc_driver_sqlite.connect(uri) as database, adbc_driver_manager.AdbcConnection(database) as connection:
        for pragma in PRAGMAS:
            with adbc_driver_manager.AdbcStatement(connection) as statement:
                statement.set_sql_query(pragma)
                statement.execute_update()
        yield connection


class _ConnectionPool(Generic[T]):
    """Connections that are used again: one at a time by each thread, as many as are needed at once."""

    def __init__(self, make: Callable[[], AbstractContextManager[T]]) -> None:
        self._make = make
        self._idle: list[tuple[T, ExitStack]] = []
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[T]:
        """A connection for as long as the context lasts. One under which anything was raised is not used again."""
        try:
            connection, opened = self._idle.pop()
        except IndexError:
            opened = ExitStack()
            connection = opened.enter_context(self._make())
        with opened:
            yield connection
            self._idle.append((connection, opened.pop_all()))
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close what is not in use; the others close when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop()[1].close()


class Connections:
    """The connections to one file. Threads may ask for one at the same time."""

    def __init__(self, uri: str) -> None:
        self._stdlib = _ConnectionPool(partial(stdlib_connection, uri))
        self._adbc = _ConnectionPool(partial(adbc_connection, uri))

    def stdlib(self) -> AbstractContextManager[sqlite3.Connection]:
        """One of the standard library; text comes as bytes."""
        return self._stdlib.one()

    def adbc(self) -> AbstractContextManager[Any]:
        """One of the columnar driver."""
        return self._adbc.one()

    def close(self) -> None:
        """Close them all."""
        self._stdlib.close()
        self._adbc.close()


_ROWID_NAMES = ("rowid", "_rowid_", "oid")
_VERSION_SUFFIX = re.compile(r"_V(\d{1,9})$")
_MOST_RIVALS = 3


class FoundColumn(Struct, frozen=True):
    """A column of the file. `key` is its place in the primary key, from 1; 0 is none."""

    name: str
    not_null: bool
    key: int


class FoundTable(Struct, frozen=True):
    """An ordinary table of the file. `rowid` is the name of its rowid column; None without one."""

    name: str
    columns: dict[str, FoundColumn]
    rowid: str | None

    def column(self, *names: str) -> FoundColumn | None:
        """The first of these columns that exists, letter case aside as in SQL."""
        return next((self.columns[name.casefold()] for name in names if name.casefold() in self.columns), None)

    def sources(self, spec: ColumnSpec) -> tuple[FoundColumn, ...]:
        """The columns that a declared one is read from: one, or all of its parts; none if the table lacks any."""
        names: list[tuple[str, ...]] = [(part,) for part in spec.parts] or [(spec.name, *spec.older)]
        found = [column for each in names if (column := self.column(*each)) is not None]
        return tuple(found) if len(found) == len(names) else ()

    def is_keyed_by(self, name: str) -> bool:
        """Whether rows are found by this column without reading the whole table."""
        column = self.column(name)
        return column is not None and column.key == 1


class Resolution(Struct, frozen=True):
    """A declared table in the file: its table, or the reason why there is none (or no row in it), and a note for the
    user."""

    table: FoundTable | None
    reason: str
    warning: str | None = None


class Schema(Struct, frozen=True):
    """The ordinary tables that are looked at, by name; how many others there are; all schema SQL as one text."""

    tables: dict[str, FoundTable]
    left_out: int
    sql: str


def read_schema(connection: sqlite3.Connection) -> Schema:
    """The schema of a file. Views and virtual tables are never read: neither has a root page, and only sqlite_master is
    queried about them. If there are more than limits.TABLES tables, the declared ones come first, then others of
    nsys."""
    rows = connection.execute("SELECT type, name, rootpage, sql FROM sqlite_master ORDER BY type, name").fetchall()
    names = [decode(name) for kind, name, page, _ in rows if kind == b"table" and isinstance(page, int) and page > 0]
    names = [name for name in names if not name.startswith("sqlite_")]
    tables, columns = {}, 0
    for name in looked_at(names):
        tables[name] = _found_table(connection, name)
        columns += len(tables[name].columns)
        if columns > limits.COLUMNS:
            break
    sql = "\n".join("|".join(map(decode, row)) for row in rows)
    return Schema({name: tables[name] for name in names if name in tables}, len(names) - len(tables), sql)


def looked_at(names: Iterable[str]) -> list[str]:
    """Of more tables than limits.TABLES the declared ones come first, then others of nsys."""
    return sorted(names, key=lambda name: (name not in _NAMES, not is_nsys_table(name)))[: limits.TABLES]


def _found_table(connection: sqlite3.Connection, name: str) -> FoundTable:
    columns = {}
    for _, raw_name, _, not_null, _, key in connection.execute(f"PRAGMA table_info({quoted(name)})"):
        column = FoundColumn(decode(raw_name), bool(not_null), key)
        columns[column.name.casefold()] = column
    rowid = next((rowid for rowid in _ROWID_NAMES if rowid not in columns), None)  # that no column has taken
    if rowid is not None:
        try:
            connection.execute(f"SELECT {rowid} FROM {quoted(name)} LIMIT 0")
        except sqlite3.OperationalError as error:
            if is_shortage(error):
                raise
            rowid = None  # a table without rowids
    return FoundTable(name, columns, rowid)


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def resolve(spec: TableSpec, tables: dict[str, FoundTable], filled: Container[str]) -> Resolution:
    """What stands for a declared table. Of several candidates the first with rows (`filled`) is taken."""
    candidates = sorted(_candidates(spec, tables), key=lambda table: table.name not in filled)
    if not candidates:
        return Resolution(None, f"no table {spec.name} in this export")
    table, *others = candidates
    for column in spec.columns:
        if column.required and not table.sources(column):
            reason = f"table {table.name} lacks the required column '{column.name}'"
            return Resolution(None, reason, reason if table.name in filled else None)
    if table.name not in filled:
        return Resolution(table, f"table {table.name} exists but is empty")
    rivals = [other.name for other in others if other.name in filled]
    more = len(rivals) - _MOST_RIVALS
    rivals = [*rivals[:_MOST_RIVALS], f"{more:,} more"] if more > 0 else rivals
    warning = f"{table.name} and {', '.join(rivals)} all hold rows; only {table.name} is read" if rivals else None
    return Resolution(table, "", warning)


def _candidates(spec: TableSpec, tables: dict[str, FoundTable]) -> Iterator[FoundTable]:
    """Tables under the canonical name, then with a version suffix (newest first), then under older names."""
    for base in (spec.name, *spec.older):
        for name in sorted(tables, key=_version, reverse=True):
            if name != base and without_version(name) != base:
                continue
            table = tables[name]
            if spec.identified_by is None or table.column(spec.identified_by):
                yield table


def without_version(name: str) -> str:
    """The name of a table without the suffix of a newer version: `OSRT_API` for `OSRT_API_V2`."""
    return _VERSION_SUFFIX.sub("", name)


def _version(name: str) -> tuple[bool, int]:
    """Sort key: the name without a suffix is the largest."""
    match = _VERSION_SUFFIX.search(name)
    return (match is None, int(match[1]) if match else 0)


_EVENTS = re.compile(r"[A-Z][A-Z0-9_]*")
_TIMES = ("start", "timestamp")
_OF_AN_OPERATION = ("start", "end", "deviceId", "streamId", "correlationId")
_OPERATIONS = "CUPTI_ACTIVITY_KIND_"


def unread_events(tables: dict[str, FoundTable], filled: Container[str]) -> list[FoundTable]:
    """The tables of events with rows that are not declared, by name: upper case, as nsys writes them, with a time."""
    return [
        table
        for name, table in sorted(tables.items())
        if name in filled and without_version(name) not in _NAMES and _EVENTS.fullmatch(name)
        if table.column(*_TIMES)
    ]


def is_work(table: FoundTable) -> bool:
    """Whether the rows of an undeclared table are operations on a stream of a device. CUPTI gives no other record both
    a stream and two times, but those of synchronization and events, which are declared."""
    return table.name.startswith(_OPERATIONS) and all(map(table.column, _OF_AN_OPERATION))


def is_nsys_table(name: str) -> bool:
    """Whether a table of this name is one that nsys writes."""
    base = without_version(name)
    return base in _NAMES or base.startswith(("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "ENUM_NSYS_", "META_DATA_"))


_NAMES = frozenset(name for spec in TABLES.values() for name in (spec.name, *spec.older))
