"""Operations on devices, and the calls that launched them, however long before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.cutting.rows import NONE, Span, column, touching
from nsysdiag.cutting.target import copied, source
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from nsysdiag.cutting.target import Target
    from nsysdiag.trace.catalog import FoundTable

OPERATIONS = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_TIED = ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT")
PROCESS_MASK = ~0xFFFFFF
_GRAPH_LAUNCH = ("cudaGraphLaunch*", "cuGraphLaunch*")


def copy_operations(target: Target, span: Span | None) -> None:
    """The operations that touch the span, whole. TEMP launched: the processes and correlation ids of them; `later`
    where the operation began inside the span."""
    for name in OPERATIONS:
        target.fill(table_spec(name), _of_span(target, name, span))
    target.execute(
        "CREATE TEMP TABLE launched (process INTEGER, correlation INTEGER, later INTEGER,"
        " PRIMARY KEY (process, correlation)) WITHOUT ROWID"
    )
    low = span.low if span else 0
    for table in filter(None, map(target.made.get, OPERATIONS)):
        if number := column(table, "correlationId"):
            target.execute(
                f"INSERT INTO launched SELECT {_process(table)}, {number}, max(start >= {low}) FROM {copied(table)}"
                f" WHERE {number} > 0 GROUP BY 1, 2"
                " ON CONFLICT DO UPDATE SET later = max(later, excluded.later)"
            )


def _of_span(target: Target, name: str, span: Span | None) -> str:
    found = target.trace.table(name)
    return touching(found, span) if found else NONE


def _process(table: FoundTable) -> str:
    """The process of a row in SQL; -1 in exports of 2020, which do not say."""
    owner = column(table, "globalPid")
    return f"coalesce({owner}, -1)" if owner else "-1"


def copy_calls(target: Target, host: Span | None) -> None:
    """CUDA calls that touch the span, or launched what was copied; with what CUPTI says about such calls.

    ```
    span                         [lo ................... hi)
    device                   [==A==)......[==B==)
    thread   [first] ... [launch A][wait][launch B]              all of them, and what lies between A's launch and lo
    ```
    """
    calls = target.trace.table(CALLS)
    if calls is not None:
        _choose_calls(target, calls, host)
        target.fill(table_spec(CALLS), f"t.{calls.rowid} IN (SELECT row FROM chosen)")
    _index_calls(target)
    for name in _TIED:
        found = target.trace.table(name)
        if found is not None:
            timed = touching(found, host) if column(found, "end") else NONE
            target.fill(table_spec(name), f"{timed} OR {_tied(found, 'kept_calls', _process(found))}")


def _choose_calls(target: Target, calls: FoundTable, host: Span | None) -> None:
    """TEMP chosen: the rows of calls to copy."""
    number, row = column(calls, "correlationId") or "0", calls.rowid
    process = f"(globalTid & {PROCESS_MASK})"
    launched = _tied(calls, "launched", process)
    if host is not None:
        query = f"SELECT min(start) FROM {source(calls)} AS t WHERE {_tied(calls, 'launched', process, 'later')}"
        (first,) = target.execute(query).fetchone()
        host = host.wider(host.low if first is None else first, host.high)
    target.execute(
        f"CREATE TEMP TABLE chosen AS SELECT {row} AS row, {process} AS process, {number} AS correlation, nameId"
        f" FROM {source(calls)} AS t WHERE {touching(calls, host)} OR {launched}"
    )
    if host is not None:
        _leave_out_other_graphs(target)
        _add_first_calls(target, calls, process, number)


def _leave_out_other_graphs(target: Target) -> None:
    """A graph launch whose operations lie outside the span would pass for one that left no operations at all."""
    names = _graph_launch_names(target)
    if not names:
        return
    target.execute(
        "CREATE TEMP TABLE alone AS SELECT process, correlation FROM chosen WHERE correlation > 0"
        f" AND nameId IN ({names}) EXCEPT SELECT process, correlation FROM launched"
    )
    target.execute("CREATE TEMP TABLE elsewhere (process INTEGER, correlation INTEGER)")
    for table in filter(None, map(target.made.get, OPERATIONS)):
        if number := column(table, "correlationId"):
            target.execute(
                f"INSERT INTO elsewhere SELECT DISTINCT {_process(table)}, {number} FROM {source(table)}"
                f" WHERE {number} IN (SELECT correlation FROM alone)"
            )
    target.execute(
        "DELETE FROM chosen WHERE EXISTS (SELECT 1 FROM alone NATURAL JOIN elsewhere"
        " WHERE alone.process = chosen.process AND alone.correlation = chosen.correlation)"
    )


def _graph_launch_names(target: Target) -> str:
    strings = target.trace.table("StringIds")
    if strings is None:
        return ""
    like = " OR ".join(f"value GLOB '{pattern}'" for pattern in _GRAPH_LAUNCH)
    used = f"id IN (SELECT DISTINCT nameId FROM chosen) AND ({like})"
    return ", ".join(str(row[0]) for row in target.execute(f"SELECT id FROM {source(strings)} WHERE {used}"))


def _add_first_calls(target: Target, calls: FoundTable, process: str, number: str) -> None:
    """The first call of each process tells whether it made the context, the lowest correlation id what was launched
    before the capture: without them the first calls of the slice would pass for those."""
    names = _graph_launch_names(target)
    for least, usable in (("start", "start >= 0"), (number, f"{number} > 0")):
        target.execute(
            f"INSERT INTO chosen SELECT row, process, correlation, nameId FROM (SELECT {calls.rowid} AS row,"
            f" {process} AS process, {number} AS correlation, nameId, min({least}) FROM {source(calls)} AS t"
            f" WHERE {usable} AND EXISTS (SELECT 1 FROM launched WHERE launched.process IN ({process}, -1))"
            f"{f' AND nameId NOT IN ({names})' if names else ''} GROUP BY 2)"
        )


def _index_calls(target: Target) -> None:
    """TEMP kept_calls: processes and correlation ids of the calls that were copied."""
    target.execute(
        "CREATE TEMP TABLE kept_calls (process INTEGER, correlation INTEGER, PRIMARY KEY (process, correlation))"
        " WITHOUT ROWID"
    )
    table = target.made.get(CALLS)
    number = column(table, "correlationId") if table else None
    if table and number:
        target.execute(
            f"INSERT OR IGNORE INTO kept_calls SELECT globalTid & {PROCESS_MASK}, {number} FROM {copied(table)}"
            f" WHERE {number} > 0 AND globalTid IS NOT NULL"
        )


def _tied(table: FoundTable, index: str, process: str, also: str = "1") -> str:
    """Rows whose process and correlation id are in a TEMP table; where either does not know its process, whose id."""
    number = column(table, "correlationId")
    if number is None:
        return NONE
    key = f"{index}.correlation = t.{number} AND {index}.{also}" if also != "1" else f"{index}.correlation = t.{number}"
    either = f"{index}.process IN ({process}, -1)" if process != "-1" else "1"
    return f"EXISTS (SELECT 1 FROM {index} WHERE {either} AND {key})"
