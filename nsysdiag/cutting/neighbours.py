"""Events that mean something until the next one: scheduling, and contexts on a GPU.

```
span               [lo .................. hi)
thread     in   out|      in       out    |   in   out
                 ^ the last before         ^ the first behind: both are copied
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.cutting.rows import Span, beginning, column, touching
from nsysdiag.cutting.target import source, whole_sql
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from nsysdiag.cutting.target import Target

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
