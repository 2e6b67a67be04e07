"""NVTX events: ranges and marks, the domains that they are in, and of payloads those that are known to be harmless."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nsysdiag.events.nccl_payload import FIELD, bare_payload, communicator_fields
from nsysdiag.events.nvtx import COMMUNICATION_DOMAIN, PYTHON_DOMAIN, RANGE_TYPES
from nsysdiag.events.python_stacks import named_in, renumbered
from nsysdiag.share.slice.operations import PROCESS_MASK
from nsysdiag.share.slice.roles import Role, coded
from nsysdiag.share.slice.sql import Span, column, copied, source, text_sql, touching
from nsysdiag.trace.enums import NvtxEvent
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from nsysdiag.share.slice.target import Target
    from nsysdiag.trace.catalog import FoundTable

NVTX = "NVTX_EVENTS"
_VALUES = ("uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue", "floatValue", "color")
"""What a program may write into an event besides its name: eight letters fit into the first. No rule reads them."""
_RANGES = ", ".join(str(int(kind)) for kind in RANGE_TYPES)


def copy_nvtx(target: Target, host: Span | None) -> None:
    """Ranges that touch the span, marks inside it, and the names of their domains. Payloads are kept of NCCL's calls
    (a communicator) and of Python's stacks; a program may write anything into others."""
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
    target.fill(table_spec(NVTX), f"{ranges} OR {marks}", changes)
    target.execute("CREATE TEMP TABLE used_domains (process INTEGER, domain INTEGER, PRIMARY KEY (process, domain))")
    target.execute(f"INSERT OR IGNORE INTO used_domains SELECT {_columns(found)} FROM {copied(found)} AS t")
    target.fill(table_spec(NVTX), f"{_named(found)} AND {place} IN (SELECT * FROM used_domains)", changes)
    target.fill(table_spec("NVTX_PAYLOAD_SCHEMA_ENTRIES"), f"name = '{FIELD}'")


def _payloads(target: Target, place: str) -> dict[str, str]:
    """Where names change, of a payload only what is read stays, with its strings' new ids."""
    if not target.renames:
        return {"binaryData": f"CASE WHEN {place} IN (SELECT process, domain FROM telling) THEN binaryData END"}
    fields = communicator_fields(target.trace)
    function_id, file_id = partial(coded, Role.PYTHON_FUNCTION), partial(coded, Role.PYTHON_FILE)
    target.function("python_payload", lambda data: renumbered(data, function_id, file_id))
    target.function("nccl_payload", lambda data: bare_payload(data, fields))
    of = "CAST(binaryData AS BLOB)"
    python, other = (
        f"{place} IN (SELECT process, domain FROM telling WHERE {which})" for which in ("python", "NOT python")
    )
    return {"binaryData": f"CASE WHEN {python} THEN python_payload({of}) WHEN {other} THEN nccl_payload({of}) END"}


def _names(target: Target, found: FoundTable) -> dict[str, str]:
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


def python_names(target: Target) -> list[int]:
    """The ids of the functions and files that the copied stacks of Python name."""
    table = target.made.get(NVTX)
    if table is None or column(table, "binaryData") is None:
        return []
    rows = target.execute(
        f"SELECT CAST(binaryData AS BLOB) FROM {copied(table)} AS t WHERE binaryData IS NOT NULL"
        f" AND ({_columns(table)}) IN (SELECT process, domain FROM telling WHERE python)"
    )
    return sorted({number for (payload,) in rows for number in named_in(payload)})
