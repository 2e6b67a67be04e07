"""The SELECT statements: quoted by SQLAlchemy, with defaults for NULL and for columns that the file does not
have."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects import sqlite

from nsysdiag.trace.catalog import FoundColumn, FoundTable, quoted
from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIALECT = sqlite.dialect()
NULL_REAL = "-9e999"  # minus infinity: SQLite has no NaN, and a first batch of NULLs would lose its type


class Chosen(Struct, frozen=True):
    """A restriction: only rows whose `column` is one of `ids`."""

    column: str
    ids: Sequence[int]


class ChosenPairs(Struct, frozen=True):
    """A restriction: only rows whose two `columns` are one of `pairs`."""

    columns: tuple[str, str]
    pairs: Sequence[tuple[int, int]]


class ChosenRows(Struct, frozen=True):
    """A restriction: only the rows with these rowids."""

    ids: Sequence[int]


class Within(Struct, frozen=True):
    """A restriction: only rows that reach into [low, high). The columns of their start and end are one for moments; a
    row whose end is unknown may last."""

    start: str
    end: str
    low: int
    high: int


Choice = Chosen | ChosenPairs | ChosenRows | Within


def select_sql(table: FoundTable, columns: Sequence[ColumnSpec], *choices: Choice | None) -> str:
    """The SQL that reads these columns, which the table must have, in the order of the rows in the file.

    The order is explicit because columns are read by several statements, and SQLite may read one of them from an index,
    in another order. By rowid it costs nothing.
    """
    selected = _selected(table.name, tuple((column, _found(table, column)) for column in columns))
    return f"{selected}{_where(table, choices)}{_row_order(table)}"


@lru_cache(maxsize=1024)
def _selected(table: str, columns: tuple[tuple[ColumnSpec, tuple[FoundColumn, ...]], ...]) -> str:
    """What is read of which table. Kept, as the tables of a kind of trace are the same in each."""
    source = _Source(table)
    return _sql(sa.select(*[_expression(source, spec, found) for spec, found in columns]).select_from(source.table))


def _found(table: FoundTable, spec: ColumnSpec) -> tuple[FoundColumn, ...]:
    """What a declared column is read from: one column, or its parts."""
    if spec.parts:
        return tuple(found for found in map(table.column, spec.parts) if found is not None)
    found = table.column(spec.name, *spec.older)
    assert found is not None
    return (found,)


def _where(table: FoundTable, choices: Sequence[Choice | None]) -> str:
    source = _Source(table.name)
    chosen = [_restriction(source, table, choice) for choice in choices if choice is not None]
    return f" WHERE {_sql(sa.and_(*chosen))}" if chosen else ""


class _Source:
    """A table of the file in a statement, without SQLAlchemy objects for its columns: these take longer to create than
    a small table to read."""

    def __init__(self, table: str) -> None:
        self.table = sa.table(table)
        self._name = quoted(table)

    def __getitem__(self, name: str) -> sa.ColumnElement[Any]:
        return sa.literal_column(f"{self._name}.{quoted(name)}")


def _restriction(source: _Source, table: FoundTable, chosen: Choice) -> sa.ColumnElement[bool]:
    if isinstance(chosen, Within):
        start, end = source[chosen.start], source[chosen.end]
        low: sa.ColumnElement[int] = sa.literal_column(str(chosen.low))
        high: sa.ColumnElement[int] = sa.literal_column(str(chosen.high))
        if chosen.start == chosen.end:
            return sa.and_(start >= low, start < high)
        return sa.and_(start < high, sa.or_(end > low, end.is_(None)))
    if isinstance(chosen, ChosenRows):
        assert table.rowid is not None
        return sa.literal_column(table.rowid).op("IN", is_comparison=True)(_listed(chosen.ids))
    if isinstance(chosen, ChosenPairs):
        # One list for each column: quicker than pairs, and who reads sorts the rows by pair anyhow.
        sides = zip(chosen.columns, zip(*chosen.pairs, strict=True), strict=True)
        return sa.and_(*(_restriction(source, table, Chosen(name, sorted(set(ids)))) for name, ids in sides))
    found = table.column(chosen.column)
    assert found is not None
    return source[found.name].op("IN", is_comparison=True)(_listed(chosen.ids))


def _listed(ids: Sequence[int]) -> sa.ColumnElement[Any]:
    """As one literal: to build an expression for each of thousands of ids takes longer than to find the rows."""
    return sa.literal_column(f"({', '.join(map(str, ids))})")


def _expression(source: _Source, spec: ColumnSpec, found: tuple[FoundColumn, ...]) -> sa.ColumnElement[Any]:
    column: sa.ColumnElement[Any] = source[found[0].name]
    if spec.parts:
        for part in found[1:]:
            column = column.op(spec.operator)(source[part.name])
        column = sa.func.coalesce(column, sa.literal_column(str(spec.default)))
        # A product beyond 64 bits is a float to SQLite: the cast cuts it to what fits.
        return sa.cast(column, sa.INTEGER).label(spec.name)
    if spec.type is ColumnType.REAL:
        return sa.cast(sa.func.coalesce(column, sa.literal_column(NULL_REAL)), sa.REAL).label(spec.name)
    if spec.type is ColumnType.BLOB:
        # Of NULL, hex() makes the empty text.
        column = sa.func.nullif(sa.func.hex(column), sa.literal_column("''"))
    if spec.type is ColumnType.INTEGER and not found[0].not_null:
        column = sa.func.coalesce(column, sa.literal_column(str(spec.default)))
    return column.label(spec.name)


def _row_order(table: FoundTable) -> str:
    if table.rowid is not None:
        return f" ORDER BY {table.rowid}"
    keys = sorted((found for found in table.columns.values() if found.key), key=lambda found: found.key)
    names = ", ".join(f"{quoted(table.name)}.{quoted(found.name)}" for found in keys)
    return f" ORDER BY {names}" if names else ""


def single_sql(table: FoundTable, column: ColumnSpec) -> str:
    """The SQL that reads one column of the row whose rowid is its parameter."""
    return f"{_selected(table.name, ((column, _found(table, column)),))} WHERE {table.rowid} = ?"


def row_ids_sql(table: FoundTable, *choices: Choice | None) -> str:
    """The SQL that gives the rowids of the rows that `select_sql` reads, in the same order; for a table with rowids."""
    return f"SELECT {table.rowid} FROM {quoted(table.name)}{_where(table, choices)}{_row_order(table)}"


def count_sql(table: FoundTable, *choices: Choice | None) -> str:
    """The SQL that counts the rows, exactly."""
    return f"SELECT count(*) FROM {quoted(table.name)}{_where(table, choices)}"


def any_text_sql(table: FoundTable, column: ColumnSpec) -> str:
    """The SQL that gives one row if a column holds anything, none if it is NULL throughout. SQLite tells the type of a
    cell without loading it, whatever its size."""
    (found,) = _found(table, column)
    return f"SELECT 1 FROM {quoted(table.name)} WHERE typeof({quoted(found.name)}) <> 'null' LIMIT 1"


def row_bound_sql(table: FoundTable) -> str:
    """The SQL for the largest rowid, NULL for an empty table. In an export it is about the number of rows, without
    counting."""
    assert table.rowid is not None
    return f"SELECT max({table.rowid}) FROM {quoted(table.name)}"


def _sql(statement: sa.Select[Any] | sa.ColumnElement[bool]) -> str:
    return str(statement.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True}))
