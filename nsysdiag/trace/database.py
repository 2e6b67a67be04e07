"""What a trace is read from: tables of columns, whether they lie in an SQLite file or in a folder of Parquet files."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from nsysdiag.limits import CELL_BYTES
from nsysdiag.messages import InputError, printable
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.catalog import FoundTable, Schema, read_schema
from nsysdiag.trace.format import EXPORT_HINT
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
