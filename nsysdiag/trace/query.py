"""The SELECT statements: quoted by SQLAlchemy, with defaults for NULL and for columns that the file does not
have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from nsysdiag.trace.tables import ColumnSpec, ColumnType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.trace.catalog import FoundTable

_DIALECT = sqlite.dialect()
NULL_REAL = "-9e999"  # minus infinity: SQLite has no NaN, and a first batch of NULLs would lose its type


@dataclass(frozen=True, slots=True)
class Chosen:
    """A restriction: only rows whose `column` is one of `ids`."""

    column: str
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class ChosenPairs:
    """A restriction: only rows whose two `columns` are one of `pairs`."""

    columns: tuple[str, str]
    pairs: Sequence[tuple[int, int]]


def select_sql(table: FoundTable, columns: Sequence[ColumnSpec], chosen: Chosen | ChosenPairs | None = None) -> str:
    """The SQL that reads these columns, which the table must have, in the order of the rows in the file.

    The order is asked for because different columns are read by different statements, and SQLite would
    otherwise be free to answer one of them from an index, in another order. By rowid it costs nothing.
    """
    source = _source(table)
    statement = sa.select(*[_expression(source, table, column) for column in columns])
    if chosen is not None:
        statement = statement.where(_restriction(source, table, chosen))
    return _sql(statement.order_by(*_row_order(source, table)))


def _source(table: FoundTable) -> sa.TableClause:
    return sa.table(table.name, *[sa.column(found.name) for found in table.columns.values()])


def _restriction(source: sa.TableClause, table: FoundTable, chosen: Chosen | ChosenPairs) -> sa.ColumnElement[bool]:
    if isinstance(chosen, ChosenPairs):
        # One list for each column: quicker than pairs, and who reads sorts the rows by pair anyhow.
        sides = zip(chosen.columns, zip(*chosen.pairs, strict=True), strict=True)
        return sa.and_(*(_restriction(source, table, Chosen(name, sorted(set(ids)))) for name, ids in sides))
    found = table.column(chosen.column)
    assert found is not None
    # As one literal: to build an expression for each of thousands of ids takes longer than to find the rows.
    ids: sa.ColumnElement[Any] = sa.literal_column(f"({', '.join(map(str, chosen.ids))})")
    return source.c[found.name].op("IN", is_comparison=True)(ids)


def _expression(source: sa.TableClause, table: FoundTable, spec: ColumnSpec) -> sa.ColumnElement[Any]:
    if spec.parts:
        return _combined(source, table, spec)
    found = table.column(spec.name, *spec.older)
    assert found is not None
    column: sa.ColumnElement[Any] = source.c[found.name]
    if spec.type is ColumnType.REAL:
        return sa.cast(sa.func.coalesce(column, sa.literal_column(NULL_REAL)), sa.REAL).label(spec.name)
    if spec.type is ColumnType.BLOB:
        # Of NULL, hex() makes the empty text.
        column = sa.func.nullif(sa.func.hex(column), sa.literal_column("''"))
    if spec.type is ColumnType.INTEGER and not found.not_null:
        column = sa.func.coalesce(column, sa.literal_column(str(spec.default)))
    return column.label(spec.name)


def _combined(source: sa.TableClause, table: FoundTable, spec: ColumnSpec) -> sa.ColumnElement[Any]:
    """The parts of a column combined. A product beyond 64 bits is a float to SQLite: the cast cuts it to what fits."""
    parts = [found for found in map(table.column, spec.parts) if found is not None]
    whole: sa.ColumnElement[Any] = source.c[parts[0].name]
    for part in parts[1:]:
        whole = whole.op(spec.operator)(source.c[part.name])
    whole = sa.func.coalesce(whole, sa.literal_column(str(spec.default)))
    return sa.cast(whole, sa.INTEGER).label(spec.name)


def _row_order(source: sa.TableClause, table: FoundTable) -> list[sa.ColumnElement[Any]]:
    if table.rowid is not None:
        return [sa.literal_column(table.rowid)]
    keys = sorted((found for found in table.columns.values() if found.key), key=lambda found: found.key)
    return [source.c[found.name] for found in keys]


def count_sql(table: FoundTable, chosen: Chosen | None = None) -> str:
    """The SQL that counts the rows, exactly."""
    source = _source(table)
    statement = sa.select(sa.func.count()).select_from(source)
    return _sql(statement if chosen is None else statement.where(_restriction(source, table, chosen)))


def any_text_sql(table: FoundTable, column: ColumnSpec) -> str:
    """The SQL that gives one row if a column holds anything, none if it is NULL throughout."""
    source = _source(table)
    found = table.column(column.name, *column.older)
    assert found is not None
    return _sql(sa.select(sa.literal_column("1")).where(source.c[found.name].is_not(None)).limit(1))


def row_bound_sql(table: FoundTable) -> str:
    """The SQL whose one value is the largest rowid, NULL without any row: in an export about the number of
    rows, and known without counting them."""
    assert table.rowid is not None
    return _sql(sa.select(sa.func.max(sa.literal_column(table.rowid))).select_from(_source(table)))


def _sql(statement: sa.Select[Any]) -> str:
    return str(statement.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True}))
