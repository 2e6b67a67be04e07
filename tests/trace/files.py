"""Tiny SQLite files for the tests of the trace layer, and a look at what lies in a folder."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

KERNEL = """CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER)"""
STRINGS = "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
NVTX = """CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL,
    text TEXT, globalTid INTEGER, doubleValue REAL)"""
KERNEL_ROW = (100, 200, 0, 1, 7, 1, 1 << 24, 1, 2, None)


def execute(path: Path, *statements: str) -> Path:
    """Run SQL statements on a database file, which is made if need be."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def insert(path: Path, table: str, rows: Iterable[Sequence[Any]]) -> Path:
    """Add rows to a table, all columns in their order."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for row in rows:
            connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', row)
    return path


def small_trace(path: Path) -> Path:
    """A trace of one kernel and two names."""
    execute(path, KERNEL, STRINGS)
    insert(path, "CUPTI_ACTIVITY_KIND_KERNEL", [KERNEL_ROW])
    return insert(path, "StringIds", [(1, "void saxpy(float*)"), (2, "saxpy")])


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file in a folder: size and time of the last change."""
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.rglob("*")}
