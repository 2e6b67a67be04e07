"""Columns that SQLAlchemy writes ahead of time: they are what it writes now, and others are written as they are met."""

from __future__ import annotations

import os
import sqlite3
from itertools import product
from typing import TYPE_CHECKING

import msgspec
import pytest

from nsysdiag import open_trace
from nsysdiag.trace.catalog import FoundColumn
from nsysdiag.trace.expressions import column_sql
from nsysdiag.trace.query import FILE, column_key, written_ahead
from nsysdiag.trace.tables import TABLES
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsysdiag.trace.tables import ColumnSpec

UPDATE = bool(os.environ.get("NSYSDIAG_UPDATE_GOLDENS"))


def found_columns(spec: ColumnSpec) -> Iterator[tuple[FoundColumn, ...]]:
    """What a file may have for a declared column."""
    sources = [spec.parts] if spec.parts else [(name,) for name in (spec.name, *spec.older)]
    for names, not_null in product(sources, (False, True)):
        yield tuple(FoundColumn(name, not_null, 0) for name in names)


def written_now() -> dict[str, str]:
    return {
        column_key(table, spec, found): column_sql(table, spec, found)
        for declared in TABLES.values()
        for table in (declared.name, *declared.older)
        for spec in declared.columns
        for found in found_columns(spec)
    }


@pytest.fixture(scope="module", autouse=True)
def _updated() -> None:
    """Written before any test reads it, whatever their order."""
    if UPDATE:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(written_now(), order="sorted"), indent=1) + b"\n")
        written_ahead.cache_clear()


def test_file_is_what_sqlalchemy_writes() -> None:
    assert written_ahead() == written_now(), "run scripts/update_goldens"


def test_each_column_is_one_that_sqlite_reads() -> None:
    """In a table that has all columns that any declaration is read from."""
    for declared in TABLES.values():
        connection = sqlite3.connect(":memory:")
        names = {name for spec in declared.columns for name in (spec.parts or (spec.name, *spec.older))}
        for table in (declared.name, *declared.older):
            connection.execute(f"CREATE TABLE {table} ({', '.join(f'[{name}]' for name in sorted(names))})")
            for spec in declared.columns:
                for found in found_columns(spec):
                    read = connection.execute(f"SELECT {written_ahead()[column_key(table, spec, found)]} FROM {table}")
                    assert [title for title, *_ in read.description] == [spec.name]


def test_a_column_in_other_letters_is_read_as_well(tmp_path: Path) -> None:
    """It is not among those written ahead."""
    trace = TraceBuilder().kernel(10, 20).write(tmp_path / "trace.sqlite")
    with sqlite3.connect(trace) as connection:
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN deviceId TO DEVICEID")
    with open_trace(trace) as opened:
        assert opened.read("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId")["deviceId"].tolist() == [0]
