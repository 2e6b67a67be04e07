"""NVTX events: ranges and marks, the domains that they are in, and of payloads those that are known to be harmless."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.events.event_waits import HOST_FUNCTIONS
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import COMMUNICATION_DOMAIN, FORMATS, PYTHON_DOMAIN, RANGE_TYPES, bare_payload, payload_fields
from nsysdiag.events.samples import named_in, renumbered
from nsysdiag.share.target import (
    ALL,
    NONE,
    Role,
    SliceSpan,
    coded,
    column,
    copied,
    source,
    text_sql,
    touching,
    whole_sql,
)
from nsysdiag.trace.enums import NvtxEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsysdiag.share.target import SliceTarget
    from nsysdiag.trace.catalog import FoundTable


# Operations on devices, and the calls that launched them, however long before.

OPERATIONS = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    HOST_FUNCTIONS,
)
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_TIED = ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT")
PROCESS_MASK = ~0xFFFFFF
_GRAPH_LAUNCH = ("cudaGraphLaunch*", "cuGraphLaunch*", "hipGraphLaunch*")


def copy_operations(target: SliceTarget, span: SliceSpan | None) -> None:
    """The operations that touch the span, whole. TEMP launched: the processes and correlation ids of them; `later`
    if the operation began inside the span."""
    for name in OPERATIONS:
        target.fill(name, partial(touching, span=span))
    _gather(target, "launched", OPERATIONS, copied, "> 0", f"start >= {span.low if span else 0}")


def _gather(
    target: SliceTarget,
    index: str,
    names: Iterable[str],
    of: Callable[[FoundTable], str],
    where: str,
    later: str = "0",
) -> None:
    """TEMP table `index`: the processes and correlation ids in these tables `of` the source or the copy. The SQL
    `where` is about ids, and `later` is 1 if that SQL is true for any row."""
    target.execute(
        f"CREATE TEMP TABLE {index} (process INTEGER, correlation INTEGER, later INTEGER,"
        " PRIMARY KEY (correlation, process)) WITHOUT ROWID"
    )
    for table in filter(None, map(target.made.get, names)):
        if number := column(table, "correlationId"):
            target.execute(
                f"INSERT INTO {index} SELECT {_process(table)}, {number}, max({later}) FROM {of(table)}"
                f" WHERE {number} {where} GROUP BY 1, 2 ON CONFLICT DO UPDATE SET later = max(later, excluded.later)"
            )


def _process(table: FoundTable) -> str:
    """The process of a row in SQL; -1 in exports of 2020, which do not say."""
    if thread := column(table, "globalTid"):
        return f"(coalesce({thread}, -1) & {PROCESS_MASK})"
    owner = column(table, "globalPid")
    return f"coalesce({owner}, -1)" if owner else "-1"


def copy_calls(target: SliceTarget, host: SliceSpan | None) -> None:
    """CUDA calls that touch the span, or launched what was copied; with what CUPTI says about such calls. TEMP
    kept_calls: their processes and correlation ids.

    ```
    span                         [lo ................... hi)
    device                   [==A==)......[==B==)
    thread   [first] ... [launch A][wait][launch B]              all of them, and what is between A's launch and lo
    ```
    """
    target.fill(CALLS, ALL if host is None else partial(_about, target, host))
    _gather(target, "kept_calls", (CALLS,), copied, "> 0")
    for name in _TIED:
        target.fill(name, partial(_with_calls, target, host))


def _about(target: SliceTarget, host: SliceSpan, calls: FoundTable) -> str:
    """The calls that say something about the span or its operations."""
    launched, later = (_tied(target, calls, "launched", also) for also in ("", "later"))
    (first,) = target.execute(f"SELECT min({whole_sql('start')}) FROM {source(calls)} AS t WHERE {later}").fetchone()
    near = touching(calls, host.wider(host.low if first is None else first, host.high))
    return f"({near} OR {launched} OR {_first(target, calls)}) AND NOT {_graphs_elsewhere(target, calls)}"


def _with_calls(target: SliceTarget, host: SliceSpan | None, found: FoundTable) -> str:
    """Rows with an end that touch the span, and those of copied calls."""
    timed = touching(found, host) if column(found, "end") else NONE
    return f"{timed} OR {_tied(target, found, 'kept_calls')}"


def _first(target: SliceTarget, calls: FoundTable) -> str:
    """The first call of each process that launched something: it tells whether it made the context. And the one with
    the lowest correlation id: it tells what was launched before the capture. Without them the first calls of the slice
    would pass for those."""
    rows = target.trace.read(CALLS, "start", "globalTid", "correlationId")
    start, process, number = rows["start"], process_of(rows["globalTid"]), rows["correlationId"]
    chosen = []
    for (owner,) in target.execute("SELECT DISTINCT process FROM launched").fetchall():
        mine = np.flatnonzero((start >= 0) & ((process == owner) | (owner < 0)))
        for values, these in ((start, mine), (number, mine[number[mine] > 0])):
            chosen += [int(these[np.argmin(values[these])])] if len(these) else []
    if not chosen:
        return NONE
    # By their values, since rows of the file may have any numbers: a call too many does no harm.
    wanted = {column(calls, "start"): start[chosen], column(calls, "correlationId"): number[chosen]}
    lists = {name: ", ".join(map(str, values.tolist())) for name, values in wanted.items() if name}
    return "(" + " AND ".join(f"t.{name} IN ({values})" for name, values in lists.items()) + ")"


def _graphs_elsewhere(target: SliceTarget, calls: FoundTable) -> str:
    """Graph launches whose operations are all outside the span: without those they would pass for launches that left
    no operations at all. TEMP elsewhere: processes and correlation ids of the operations of all graph launches."""
    number, name, strings = column(calls, "correlationId"), column(calls, "nameId"), target.trace.table("StringIds")
    if not (number and name and strings):
        return NONE
    like = " OR ".join(f"value GLOB '{pattern}'" for pattern in _GRAPH_LAUNCH)
    rows = target.execute(f"SELECT {whole_sql('id')} FROM {source(strings)} WHERE {like}")
    names = ", ".join(str(string) for (string,) in rows if string is not None)
    if not names:
        return NONE
    graphs = f"{name} IN ({names})"
    launches = f"SELECT {number} AS correlation FROM {source(calls)} WHERE {graphs} AND {number} > 0"
    target.execute(f"CREATE TEMP TABLE graph_launches AS {launches}")  # once, not for each table of operations
    _gather(target, "elsewhere", OPERATIONS, source, "IN (SELECT correlation FROM graph_launches)")
    elsewhere, kept = (_tied(target, calls, index) for index in ("elsewhere", "launched"))
    return f"({graphs} AND {elsewhere} AND NOT {kept})"


def _tied(target: SliceTarget, table: FoundTable, index: str, also: str = "") -> str:
    """Rows whose process and correlation id are in a TEMP table; if either does not know its process, whose id."""
    number, process = column(table, "correlationId"), _process(table)
    low, high = target.execute(f"SELECT min(correlation), max(correlation) FROM {index}").fetchone()
    if number is None or low is None:
        return NONE
    same = f"{index}.correlation = t.{number}" + (f" AND {index}.{also}" if also else "")
    same += f" AND {index}.process IN ({process}, -1)" if process != "-1" else ""
    # Ids grow with time: most rows need not be looked up.
    return f"(t.{number} BETWEEN {low} AND {high} AND EXISTS (SELECT 1 FROM {index} WHERE {same}))"


NVTX = "NVTX_EVENTS"
_VALUES = ("uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue", "floatValue", "color")
"""What a program may write into an event besides its name: eight letters fit into the first. No rule reads them."""
_RANGES = ", ".join(str(int(kind)) for kind in RANGE_TYPES)


def copy_nvtx(target: SliceTarget, host: SliceSpan | None) -> None:
    """Ranges that touch the span, marks inside it, and the names of their domains. Payloads are kept of NCCL's calls
    (communicator, size, ranks) and of Python's stacks; a program may write anything into others."""
    found = target.trace.table(NVTX)
    if found is None:
        return
    place, kind = f"({_columns(found)})", column(found, "eventType")
    # TEMP telling: the domains whose payloads are kept; Python's are marked.
    target.execute("CREATE TEMP TABLE telling (process INTEGER, domain INTEGER, python INTEGER)")
    if text := column(found, "text"):
        target.execute(
            f"INSERT INTO telling SELECT {_columns(found)}, {text} = '{PYTHON_DOMAIN}' FROM {source(found)} AS t"
            f" WHERE {_named(found)} AND {text} IN ('{PYTHON_DOMAIN}', '{COMMUNICATION_DOMAIN}')"
        )
    changes = {"jsonTextId": "NULL", **_payloads(target, place), **_names(target, found)}
    if target.renames:
        changes |= dict.fromkeys(_VALUES, "NULL")
    ranges = f"({kind} IN ({_RANGES}) AND {touching(found, host, still_open=True)})"
    marks = f"({kind} = {NvtxEvent.MARK} AND {touching(found, host)})"
    target.fill(NVTX, f"{ranges} OR {marks}", changes)
    target.execute("CREATE TEMP TABLE used_domains (process INTEGER, domain INTEGER, PRIMARY KEY (process, domain))")
    target.execute(f"INSERT OR IGNORE INTO used_domains SELECT {_columns(found)} FROM {copied(found)} AS t")
    target.fill(NVTX, f"{_named(found)} AND {place} IN (SELECT * FROM used_domains)", changes)
    target.fill("NVTX_PAYLOAD_SCHEMA_ENTRIES", f"name IN {tuple(FORMATS)}")
    target.fill("NVTX_EXPORT_TRANSLATION", f"originalName IN {tuple(FORMATS)}")


def _payloads(target: SliceTarget, place: str) -> dict[str, str]:
    """Where names change, of a payload only what is read stays, with its strings' new ids."""
    if not target.renames:
        return {"binaryData": f"CASE WHEN {place} IN (SELECT process, domain FROM telling) THEN binaryData END"}
    fields = payload_fields(target.trace)
    function_id, file_id = partial(coded, Role.PYTHON_FUNCTION), partial(coded, Role.PYTHON_FILE)
    target.function("python_payload", lambda data: renumbered(data, function_id, file_id))
    target.function("nccl_payload", lambda data: bare_payload(data, fields))
    of = "CAST(binaryData AS BLOB)"
    python, other = (
        f"{place} IN (SELECT process, domain FROM telling WHERE {which})" for which in ("python", "NOT python")
    )
    return {"binaryData": f"CASE WHEN {python} THEN python_payload({of}) WHEN {other} THEN nccl_payload({of}) END"}


def _names(target: SliceTarget, found: FoundTable) -> dict[str, str]:
    """The names of ranges and of domains, which are in the same columns."""
    changes = {}
    if text := column(found, "text"):
        changes["text"] = [text_sql(role, text) for role in (Role.DOMAIN, Role.RANGE)]
    if number := column(found, "textId"):
        changes["textId"] = [target.reference(role, number) for role in (Role.DOMAIN, Role.RANGE)]
    return {
        name: f"CASE WHEN {_named(found)} THEN {domain} ELSE {other} END" for name, (domain, other) in changes.items()
    }


def _named(found: FoundTable) -> str:
    """Rows that name a domain."""
    return f"{column(found, 'eventType')} = {NvtxEvent.DOMAIN_CREATE}"


def _columns(found: FoundTable) -> str:
    """The process and the domain of an event: ids of domains are a process's own."""
    thread, domain = column(found, "globalTid"), column(found, "domainId")
    return f"coalesce({thread or 0}, 0) & {PROCESS_MASK}, coalesce({domain or -1}, -1)"


def python_names(target: SliceTarget) -> list[int]:
    """The ids of the functions and files that the copied stacks of Python name."""
    table = target.made.get(NVTX)
    if table is None or column(table, "binaryData") is None:
        return []
    rows = target.execute(
        f"SELECT CAST(binaryData AS BLOB) FROM {copied(table)} AS t WHERE binaryData IS NOT NULL"
        f" AND ({_columns(table)}) IN (SELECT process, domain FROM telling WHERE python)"
    )
    return sorted({number for (payload,) in rows for number in named_in(payload)})
