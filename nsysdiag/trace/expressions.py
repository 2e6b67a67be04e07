"""How a declared column is read from the file: quoted by SQLAlchemy, with its default for NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.tables import ColumnType

if TYPE_CHECKING:
    from nsysdiag.trace.catalog import FoundColumn
    from nsysdiag.trace.tables import ColumnSpec

NULL_REAL = "-9e999"  # minus infinity: SQLite has no NaN, and a first batch of NULLs would lose its type


def column_sql(table: str, spec: ColumnSpec, found: tuple[FoundColumn, ...]) -> str:
    """The SQL of a column, named as it is declared, made of the columns that the file has for it."""
    statement = sa.select(_expression(table, spec, found).label(spec.name))
    return str(statement.compile(compile_kwargs={"literal_binds": True})).removeprefix("SELECT ").strip()


def _expression(table: str, spec: ColumnSpec, found: tuple[FoundColumn, ...]) -> sa.ColumnElement[Any]:
    column, *others = (_named(table, each) for each in found)
    if spec.parts:
        for part in others:
            column = column.op(spec.operator)(part)
        # A product beyond 64 bits is a float to SQLite: the cast cuts it to what fits.
        return sa.cast(_known(column, str(spec.default)), sa.INTEGER)
    if spec.type is ColumnType.REAL:
        return sa.cast(_known(column, NULL_REAL), sa.REAL)
    if spec.type is ColumnType.BLOB:
        # Of NULL, hex() makes the empty text.
        return sa.func.nullif(sa.func.hex(column), sa.literal_column("''"))
    if spec.type is ColumnType.INTEGER and not found[0].not_null:
        return _known(column, str(spec.default))
    return column


def _named(table: str, column: FoundColumn) -> sa.ColumnElement[Any]:
    return sa.literal_column(f"{quoted(table)}.{quoted(column.name)}")


def _known(column: sa.ColumnElement[Any], default: str) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(column, sa.literal_column(default))
