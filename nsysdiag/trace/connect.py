"""Connections to a trace file that can only read: immutable, query_only, no trust in the schema."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    """A connection of the standard library; text comes as bytes."""
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
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
    """A connection of the columnar driver. It has no way to set the defensive flag."""
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(uri) as connection:
        with connection.cursor() as cursor:
            for pragma in PRAGMAS:
                cursor.execute(pragma)
        yield connection
