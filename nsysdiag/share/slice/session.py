"""Tables without a rule elsewhere: events that hold until the next one, other events, the session and the names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag.share.slice.nvtx import python_names
from nsysdiag.share.slice.roles import decoded_sql
from nsysdiag.share.slice.sql import ALL, beginning, column, copied, source, touching, whole_sql
from nsysdiag.trace.enums import Severity
from nsysdiag.trace.tables import TABLES, table_spec
from nsysdiag.trace.trace import SLICE

if TYPE_CHECKING:
    from nsysdiag.share.slice.sql import Span
    from nsysdiag.share.slice.target import Target

STRINGS = ("nameId", "shortName", "demangledName", "mangledName", "textId", "symbol", "module")
"""Columns that hold ids of StringIds."""
_WHOLE = (
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_CUDA_GPU",
    "TARGET_INFO_CUDA_STREAM",
    "TARGET_INFO_CUDA_NULL_STREAM",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_WDDM_CONTEXTS",
    "TARGET_INFO_GPU_METRICS",
    "TARGET_INFO_SESSION_START_TIME",
    "MPI_RANKS",
    "MPI_COMMUNICATORS",
)
"""Small tables that describe devices and ranks."""
_FROM_THE_BEGINNING = ("CUDA_GPU_MEMORY_USAGE_EVENTS",)
"""What was allocated before a span still is."""
_ELSEWHERE = ("COMPOSITE_EVENTS", "DIAGNOSTIC_EVENT", *_WHOLE)
"""Tables with times that have a rule of their own, but later."""
_VERSIONS = "'EXPORT_PRODUCT_NAME', 'EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION'"
_ENUMERATION = re.compile(r"ENUM_[A-Z0-9_]+")
"""As nsys names them; any other is a table that was added."""


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


def copy_other_events(target: Target, device: Span | None, host: Span | None) -> None:
    """All declared tables of events that no other rule has copied: rows that touch the span."""
    for spec in TABLES.values():
        found = target.trace.table(spec.name)
        if found is None or spec.name in target.made or beginning(found) is None or spec.name in _ELSEWHERE:
            continue
        where = touching(found, device if column(found, "metricId") else host)
        if spec.name in _FROM_THE_BEGINNING and host is not None:
            where = f"{beginning(found)} < {host.high}"
        target.fill(spec, where)


def copy_files(target: Target) -> None:
    """The files that copied accesses name."""
    accesses = target.made.get("OSRT_FILE_ACCESS_EVENTS")
    if accesses is not None:
        used = f"SELECT fileAccessId FROM {copied(accesses)}"
        target.fill(table_spec("OSRT_FILE_ACCESS_DESCRIPTORS"), f"fileAccessId IN ({used})")


def copy_session(target: Target, *, slice_of: bool) -> None:
    """Devices, versions, the length of the capture, its problems, and the meaning of numbers. Also the mark of a slice,
    whose borders separate launches from their operations."""
    for name in _WHOLE:
        target.fill(table_spec(name), ALL)
    target.fill(table_spec("ANALYSIS_DETAILS"), ALL, {"startTime": "0", "stopTime": "0"})
    facts = target.fill(table_spec("META_DATA_EXPORT"), f"name IN ({_VERSIONS})")
    if facts is not None and slice_of:
        target.execute(f"INSERT INTO {copied(facts)} (name, value) VALUES (?, ?)", (SLICE, "1"))
    target.fill(
        table_spec("DIAGNOSTIC_EVENT"),
        f"severity IN ({int(Severity.WARNING)}, {int(Severity.ERROR)})",
    )
    for table in target.trace.ordinary_tables():
        if _ENUMERATION.fullmatch(table.name):
            target.copy_enumeration(table)


def copy_strings(target: Target) -> None:
    """The names that copied rows refer to."""
    target.execute("CREATE TEMP TABLE named (id INTEGER PRIMARY KEY)")
    for table in target.made.values():
        for name in filter(None, (column(table, each) for each in STRINGS)):
            target.execute(f"INSERT OR IGNORE INTO named SELECT {name} FROM {copied(table)} WHERE {name} IS NOT NULL")
    for number in python_names(target):
        target.execute("INSERT OR IGNORE INTO named VALUES (?)", (number,))
    if not target.renames:
        # As the reader finds them: digits as text are no id, though SQLite takes them for one in a comparison.
        target.fill(table_spec("StringIds"), "typeof(id) <> 'text' AND id IN (SELECT id FROM named)")
        return
    strings = target.create(table_spec("StringIds"))
    if strings is None:
        return
    original, role = decoded_sql("n.id")  # each string once for each of its roles
    key, value = column(strings, "id"), column(strings, "value")
    target.execute(
        f"INSERT OR IGNORE INTO {copied(strings)} ({key}, {value}) SELECT n.id, named({role}, CAST(t.{value} AS BLOB))"
        f" FROM named AS n JOIN {source(strings)} AS t ON t.{key} = {original} ORDER BY n.id"
    )
