"""The new database: tables like those of the source, filled with chosen rows and declared columns only."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nsysdiag.messages import InputError, OutputError, printable
from nsysdiag.share.slice.sql import (
    PLAIN,
    REFERENCES,
    SOURCE,
    TEXTS,
    Rename,
    Role,
    coded_sql,
    keys_of,
    role_of,
    source,
    text_sql,
    whole_sql,
    without_folders,
)
from nsysdiag.trace.catalog import FoundTable, quoted
from nsysdiag.trace.reader import to_integer
from nsysdiag.trace.tables import ColumnSpec, ColumnType, TableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsysdiag.trace.trace import Trace


_NO_INTEGER = 1 << 64
_UNWRITABLE = ("disk is full", "disk i/o error")


@contextmanager
def target_of(trace: Trace, path: Path, rename: Rename | None = None) -> Iterator[SliceTarget]:
    """A new database at `path`, which must not exist, with the trace attached to it read-only.

    Nothing is ever deleted or changed in it, so that its pages hold only the requested rows. Raises InputError if the
    trace cannot be read, OutputError if the database cannot be written.
    """
    with closing(_new(path)) as connection:
        try:
            connection.execute(f"ATTACH ? AS {SOURCE}", (trace.uri,))
            connection.execute("BEGIN")
            yield SliceTarget(connection, trace, rename)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if any(sign in str(error).lower() for sign in _UNWRITABLE):
                raise _unwritable(error) from error
            raise InputError(f"'{trace.file}' cannot be read, it may be corrupt: {printable(error)}") from error


def _new(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rwc", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unwritable(error) from error
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    # An export has dozens of tables with a few rows each, and a table takes a page at least.
    for pragma in ("page_size=1024", "trusted_schema=0", "temp_store=MEMORY", "synchronous=OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA journal_mode=OFF").fetchall()  # a private file: after a failure it is removed
    return connection


def _unwritable(error: sqlite3.Error) -> OutputError:
    return OutputError(f"cannot write a part of the trace: {printable(error)}", hint="make room for temporary files")


class SliceTarget:
    """Tables are made by `create` and filled by `fill`; `execute` and `executemany` are for temporary tables and
    queries.

    With `rename`, names are replaced by role. As a string may have several roles, ids of strings are `coded` by
    role."""

    def __init__(self, connection: sqlite3.Connection, trace: Trace, rename: Rename | None) -> None:
        self._connection = connection
        self.trace = trace
        self.renames: bool = rename is not None
        change = rename or without_folders
        self.shown: Rename = change
        """What a name becomes, by its role."""

        def named(number: int, value: object) -> str | None:
            return change(role_of(number), trace.text(value)) if isinstance(value, bytes) else None

        def whole(value: object) -> int | None:
            found = to_integer(value, _NO_INTEGER)
            return None if found == _NO_INTEGER else found

        connection.create_function("named", 2, named, deterministic=True)
        connection.create_function("whole", 1, whole, deterministic=True)
        self.made: dict[str, FoundTable] = {}
        """The tables that were made, by their canonical names: their names and columns are those of the source."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement."""
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """One statement for each of the rows."""
        self._connection.executemany(sql, rows)

    def function(self, name: str, change: Callable[[bytes], bytes | None]) -> None:
        """Make a change of bytes known to SQL."""

        def changed(value: object) -> bytes | None:
            return change(value) if isinstance(value, bytes) else None

        self._connection.create_function(name, 1, changed, deterministic=True)

    def create(self, spec: TableSpec) -> FoundTable | None:
        """Make a table like that of the source; None where that has none. Columns that are neither declared nor plain
        stay away."""
        there_is = self.trace.table(spec.name)
        if there_is is None:
            return None
        found = self._keyed(there_is)
        types = {there.name: ColumnType.INTEGER for there in found.columns.values() if there.name in PLAIN}
        for column in spec.columns:
            if there := found.column(column.name, *column.older):
                types[there.name] = column.type
        kept = {key: there for key, there in found.columns.items() if there.name in types}
        partial = any(there.key for key, there in found.columns.items() if key not in kept)  # a part of a key is none
        if partial or not self._whole_keys(found):
            kept = {key: replace(there, key=0) for key, there in kept.items()}
        table = FoundTable(found.name, kept, found.rowid)
        self._create(table, types)
        self.made[spec.name] = table
        return table

    def _keyed(self, table: FoundTable) -> FoundTable:
        """The table with its keys in the source, which may be a copy of files that tell none."""
        info = self.execute("SELECT lower(name), pk FROM pragma_table_info(?, ?)", (table.name, SOURCE))
        keys: dict[str, int] = dict(info.fetchall())
        columns = {key: replace(there, key=keys.get(there.name.lower(), 0)) for key, there in table.columns.items()}
        return replace(table, columns=columns)

    def _whole_keys(self, table: FoundTable) -> bool:
        """Whether all keys are integers. Others may be equal once they are, and a rowid takes no text or fraction."""
        other = " OR ".join(f"typeof({quoted(there.name)}) <> 'integer'" for there in keys_of(table))
        return not other or not self.execute(f"SELECT 1 FROM {source(table)} WHERE {other} LIMIT 1").fetchone()

    def _create(self, table: FoundTable, types: Mapping[str, ColumnType]) -> None:
        # Not the source's own SQL: comments and defaults in it may be private.
        keys = keys_of(table)
        lines = [f"{quoted(there.name)} {types[there.name]}" for there in table.columns.values()]
        lines += [f"PRIMARY KEY ({', '.join(quoted(there.name) for there in keys)})"] if keys else []
        ending = " WITHOUT ROWID" if keys and table.rowid is None else ""
        self.execute(f"CREATE TABLE main.{quoted(table.name)} ({', '.join(lines)}){ending}")

    def fill(self, spec: TableSpec, where: str, changes: Mapping[str, str] | None = None) -> FoundTable | None:
        """Create the table if needed and copy the rows for which the SQL condition `where` is true, in order.

        `changes` maps a column's canonical name to the SQL of its new value; names are always changed. Returns None if
        the source has no such table.
        """
        table = self.made.get(spec.name) or self.create(spec)
        if table is None:
            return None
        values = {quoted(there.name): whole_sql(quoted(there.name)) for there in table.columns.values()}
        for declared in spec.columns:
            if there := table.column(declared.name, *declared.older):
                name = quoted(there.name)
                values[name] = (changes or {}).get(declared.name) or self._value(spec, declared, name)
        names, sources = (", ".join(part) for part in (values, values.values()))
        order = table.rowid or ", ".join(quoted(there.name) for there in keys_of(table)) or "1"
        self.execute(
            f"INSERT INTO main.{quoted(table.name)} ({names}) SELECT {sources} FROM {source(table)} AS t"
            f" WHERE {where} ORDER BY {order}"
        )
        return table

    def _value(self, spec: TableSpec, declared: ColumnSpec, name: str) -> str:
        """What is copied into a column, in SQL."""
        if declared.type is ColumnType.TEXT:
            return text_sql(TEXTS[spec.name][declared.name], name)
        if declared.type is ColumnType.BLOB:
            return "NULL"
        if declared.type is ColumnType.REAL:
            return f"CASE WHEN typeof({name}) NOT IN ('text', 'blob') THEN {name} END"
        role = REFERENCES.get(spec.name, {}).get(declared.name) if self.renames else None
        return whole_sql(name) if role is None else self.reference(role, name)

    def reference(self, role: Role, name: str) -> str:
        """The new id of a string in SQL, given the column with its old one."""
        number = whole_sql(name)
        if not self.renames:
            return number
        return "NULL" if role is Role.NONE else coded_sql(role, number)

    def copy_enumeration(self, table: FoundTable) -> None:
        """Copy a table of numbers and their meanings: columns id, name and label. With `rename` one that it would
        rename stays away."""
        table = self._keyed(table)
        types = {"id": ColumnType.INTEGER, "name": ColumnType.TEXT, "label": ColumnType.TEXT}
        kept = {key: there for key, there in table.columns.items() if there.name in types}
        if "id" not in kept or self.shown(Role.ENUMERATION, table.name) != table.name:
            return
        if not self._whole_keys(table):
            kept = {key: replace(there, key=0) for key, there in kept.items()}
        self._create(FoundTable(table.name, kept, table.rowid), types)
        names = {key: quoted(there.name) for key, there in kept.items()}
        values = (whole_sql(name) if key == "id" else text_sql(Role.ENUMERATION, name) for key, name in names.items())
        self.execute(
            f"INSERT INTO main.{quoted(table.name)} ({', '.join(names.values())})"
            f" SELECT {', '.join(values)} FROM {source(table)} ORDER BY id"
        )
