"""NVTX events: ranges and marks, the domains that they are in, and of payloads those that are known to be harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.activity.nccl_payload import FIELD
from nsysdiag.activity.nvtx import COMMUNICATION_DOMAIN, PYTHON_DOMAIN, RANGE_TYPES
from nsysdiag.activity.python_stacks import named_in
from nsysdiag.cutting.operations import PROCESS_MASK
from nsysdiag.cutting.rows import Span, column, touching
from nsysdiag.cutting.target import copied, source
from nsysdiag.trace.enums import NvtxEvent
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from nsysdiag.cutting.target import Target

NVTX = "NVTX_EVENTS"
_SCHEMAS = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_RANGES = ", ".join(str(int(kind)) for kind in RANGE_TYPES)
_PROCESS = f"coalesce(t.globalTid, 0) & {PROCESS_MASK}"


def copy_nvtx(target: Target, host: Span | None) -> None:
    """Ranges that touch the span, marks inside it, and the names of their domains. Payloads are kept of NCCL's calls
    (a communicator) and of Python's stacks; a program may write anything into others."""
    found = target.trace.table(NVTX)
    if found is None:
        return
    target.execute("CREATE TEMP TABLE telling (process INTEGER, domain INTEGER, python INTEGER)")
    kind, domain = column(found, "eventType"), column(found, "domainId")
    named = f"{kind} = {NvtxEvent.DOMAIN_CREATE}"
    if domain and column(found, "text"):
        target.execute(
            f"INSERT INTO telling SELECT {_PROCESS}, {domain}, text = '{PYTHON_DOMAIN}' FROM {source(found)} AS t"
            f" WHERE {named} AND text IN ('{PYTHON_DOMAIN}', '{COMMUNICATION_DOMAIN}')"
        )
    known = f"EXISTS (SELECT 1 FROM telling WHERE process = {_PROCESS} AND domain = t.{domain or 0})"
    changes = {
        "text": "given_name(CAST(text AS BLOB))",
        "jsonText": "NULL",
        "jsonTextId": "NULL",
        "binaryData": f"CASE WHEN {known} THEN binaryData END",
    }
    ranges = f"({kind} IN ({_RANGES}) AND {touching(found, host, still_open=True)})"
    marks = f"({kind} = {NvtxEvent.MARK} AND {touching(found, host)})"
    target.fill(table_spec(NVTX), f"{ranges} OR {marks}", changes)
    if domain:
        used = f"SELECT coalesce(globalTid, 0) & {PROCESS_MASK}, domainId FROM {copied(found)}"
        target.execute(f"CREATE TEMP TABLE used_domains AS SELECT DISTINCT * FROM ({used})")
        target.fill(table_spec(NVTX), f"{named} AND ({_PROCESS}, {domain}) IN (SELECT * FROM used_domains)", changes)
    target.fill(table_spec(_SCHEMAS), f"name = '{FIELD}'")


def python_names(target: Target) -> list[int]:
    """The ids of the functions and files that the copied stacks of Python name."""
    table = target.made.get(NVTX)
    if table is None or column(table, "binaryData") is None:
        return []
    rows = target.execute(
        f"SELECT CAST(binaryData AS BLOB) FROM {copied(table)} AS t WHERE binaryData IS NOT NULL"
        f" AND EXISTS (SELECT 1 FROM telling WHERE python AND process = {_PROCESS} AND domain = t.domainId)"
    )
    return sorted({number for (payload,) in rows for number in named_in(payload)})
