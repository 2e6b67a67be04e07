"""Pieces of SQL: tables and columns of the trace and of the new database, spans of time, new values of columns."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.limits import TEXT_BYTES
from nsysdiag.share.slice.roles import Role, number_of
from nsysdiag.trace.catalog import FoundColumn, FoundTable, quoted

SOURCE = "source"
"""The schema under which the trace is attached to the new database."""
ALL, NONE = "1", "0"
_BEGINS = ("start", "startedAt", "timestamp")
_ENDS = ("end", "endedAt")


class Span(Struct, frozen=True):
    """[low, high) in ns."""

    low: int
    high: int

    def wider(self, low: int, high: int) -> Span:
        """The span that reaches at least from `low` to `high` as well."""
        return Span(min(self.low, low), max(self.high, high))


def column(table: FoundTable, *names: str) -> str | None:
    """The first of these columns that the table has, quoted."""
    found = table.column(*names)
    return None if found is None else quoted(found.name)


def beginning(table: FoundTable) -> str | None:
    """The column that says when a row begins, quoted; None where rows have no time."""
    return column(table, *_BEGINS)


def touching(table: FoundTable, span: Span | None, *, still_open: bool = False) -> str:
    """Rows that overlap the span or begin in it; with `still_open` a row without an end never ends. All rows where the
    span is None or rows have no time."""
    begin, end = beginning(table), column(table, *_ENDS)
    if span is None or begin is None:
        return ALL
    inside = f"{begin} >= {span.low} AND {begin} < {span.high}"
    if end is None:
        return f"({inside})"
    never = f" OR {end} IS NULL" if still_open else ""
    return f"({begin} < {span.high} AND ({begin} >= {span.low} OR {end} > {span.low}{never}))"


def keys_of(table: FoundTable) -> list[FoundColumn]:
    """The columns of the primary key, in its order."""
    return sorted((there for there in table.columns.values() if there.key), key=lambda there: there.key)


def source(table: FoundTable) -> str:
    """A table of the trace in SQL."""
    return f"{SOURCE}.{quoted(table.name)}"


def copied(table: FoundTable) -> str:
    """A table of the new database in SQL."""
    return f"main.{quoted(table.name)}"


def text_sql(role: Role, name: str) -> str:
    """The new text in SQL, given the column with the old one."""
    if role is Role.NONE:
        return "NULL"
    return f"substr({name}, 1, {TEXT_BYTES})" if role is Role.OWN else f"named({number_of(role)}, CAST({name} AS BLOB))"


def whole_sql(name: str) -> str:
    """The value of a column as the integer that the reader takes it for; NULL where it stands for none. No other text
    is copied."""
    return f"CASE WHEN typeof({name}) IN ('integer', 'null') THEN {name} ELSE whole({name}) END"
