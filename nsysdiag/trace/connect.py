"""Connections to a trace file that can only read: immutable, query_only, no trust in the schema."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nsysdiag.limits import CELL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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


class _Pool(Generic[T]):
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
        self._stdlib = _Pool(partial(stdlib_connection, uri))
        self._adbc = _Pool(partial(adbc_connection, uri))

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
