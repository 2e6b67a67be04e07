"""SQL conditions: which rows of a table lie in a span of time, and events that hold until the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.share.slice.target import source, whole_sql
from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from nsysdiag.share.slice.target import Target
    from nsysdiag.trace.catalog import FoundTable

ALL, NONE = "1", "0"
_BEGINS = ("start", "startedAt", "timestamp")
_ENDS = ("end", "endedAt")


@dataclass(frozen=True, slots=True)
class Span:
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


_OF_EACH = {"SCHED_EVENTS": ("globalTid", "cpu"), "GPU_CONTEXT_SWITCH_EVENTS": ("gpuId",)}
"""What an event is about: the next one of the same thread or CPU ends what it says."""


def copy_switches(target: Target, span: Span | None) -> None:
    """The events inside the span, and their neighbours on both sides."""
    for name, groups in _OF_EACH.items():
        found = target.trace.table(name)
        if found is None:
            continue
        time = beginning(found)
        where = touching(found, span)
        if span is not None:
            for group in filter(None, (column(found, group) for group in groups)):
                number = whole_sql(group)
                bounds = (
                    f"SELECT {number} AS one, max(CASE WHEN {time} < {span.low} THEN {time} END) AS before,"
                    f" min(CASE WHEN {time} >= {span.high} THEN {time} END) AS behind FROM {source(found)} GROUP BY 1"
                )
                index = f"bounds_{name}_{group.strip(chr(34))}"
                target.execute(f"CREATE TEMP TABLE {index} (one INTEGER PRIMARY KEY, before INTEGER, behind INTEGER)")
                target.execute(f"INSERT INTO {index} SELECT * FROM ({bounds}) WHERE one IS NOT NULL")
                where += f" OR EXISTS (SELECT 1 FROM {index} WHERE one = {number} AND t.{time} IN (before, behind))"
        target.fill(table_spec(name), where)
