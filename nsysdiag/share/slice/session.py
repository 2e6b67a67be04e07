"""What is not an event: devices, versions, the length of the capture, and the names that everything refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag.share.slice.nvtx import python_names
from nsysdiag.share.slice.rows import ALL, beginning, column, touching
from nsysdiag.share.slice.target import copied, source
from nsysdiag.share.slice.uses import decoded_sql
from nsysdiag.trace.enums import Severity
from nsysdiag.trace.tables import TABLES, table_spec
from nsysdiag.trace.trace import SLICE

if TYPE_CHECKING:
    from nsysdiag.share.slice.rows import Span
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
)
"""Small tables that describe devices and ranks."""
_FROM_THE_BEGINNING = ("CUDA_GPU_MEMORY_USAGE_EVENTS",)
"""What was allocated before a span still is."""
_VERSIONS = "'EXPORT_PRODUCT_NAME', 'EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION'"
_ENUMERATION = re.compile(r"ENUM_[A-Z0-9_]+")
"""As nsys names them; any other is a table that somebody added."""


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
    """Devices, versions, the length of the capture, what went wrong in it, and the meaning of numbers; and that this is
    a slice of it, whose borders part launches from their operations."""
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
    if target.renames:
        _copy_coded_strings(target)
    else:
        # As the reader finds them: digits as text are no id, though SQLite takes them for one in a comparison.
        target.fill(table_spec("StringIds"), "typeof(id) <> 'text' AND id IN (SELECT id FROM named)")


def _copy_coded_strings(target: Target) -> None:
    """Each string once for each of its uses."""
    table = target.create(table_spec("StringIds"))
    if table is None:
        return
    number, use = decoded_sql("n.id")
    key, value = column(table, "id"), column(table, "value")
    target.execute(
        f"INSERT OR IGNORE INTO {copied(table)} ({key}, {value}) SELECT n.id, named({use}, CAST(t.{value} AS BLOB))"
        f" FROM named AS n JOIN {source(table)} AS t ON t.{key} = {number} ORDER BY n.id"
    )


_ELSEWHERE = ("COMPOSITE_EVENTS", "DIAGNOSTIC_EVENT", *_WHOLE)
"""Tables with times that have a rule of their own, but later."""
