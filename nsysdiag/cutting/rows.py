"""SQL conditions: which rows of a table lie in a span of time.

```
span                [lo ..................... hi)
rows      [----)                                     not in it
                [----)    [--)    |           [------)      in it, and kept whole
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.trace.catalog import quoted

if TYPE_CHECKING:
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
