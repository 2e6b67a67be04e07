"""What is not an event: devices, versions, the length of the capture, and the names that everything refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.cutting.names import base_name, short_path
from nsysdiag.cutting.nvtx import python_names
from nsysdiag.cutting.rows import ALL, beginning, column, touching
from nsysdiag.cutting.target import copied
from nsysdiag.trace.enums import Severity
from nsysdiag.trace.safe_text import without_private_parts
from nsysdiag.trace.tables import TABLES, table_spec

if TYPE_CHECKING:
    from nsysdiag.cutting.cut import Cut
    from nsysdiag.cutting.rows import Span
    from nsysdiag.cutting.target import Target

_STRINGS = ("nameId", "shortName", "demangledName", "mangledName", "textId", "symbol", "module")
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
_ENUMERATION = "ENUM_"


def make_texts_safe(target: Target, cut: Cut) -> None:
    """Make known to SQL how each kind of text is changed."""
    target.function("given_name", cut.rename)
    target.function("program_name", lambda text: cut.rename(base_name(text)))
    target.function("short_name", lambda text: cut.rename(short_path(text)))
    target.function("safe_text", lambda text: cut.rename(without_private_parts(text)))


def copy_other_events(target: Target, device: Span | None, host: Span | None) -> None:
    """All declared tables of events that no other rule has copied: rows that touch the span."""
    for spec in TABLES.values():
        found = target.trace.table(spec.name)
        if found is None or spec.name in target.made or beginning(found) is None or spec.name in _ELSEWHERE:
            continue
        where = touching(found, device if column(found, "metricId") else host)
        if spec.name in _FROM_THE_BEGINNING and host is not None:
            where = f"{beginning(found)} < {host.high}"
        target.fill(spec, where, {"name": "given_name(CAST(name AS BLOB))"} if column(found, "name") else None)


def copy_files(target: Target) -> None:
    """The files that copied accesses name, each by the last part of its path."""
    accesses = target.made.get("OSRT_FILE_ACCESS_EVENTS")
    if accesses is not None:
        used = f"SELECT fileAccessId FROM {copied(accesses)}"
        changes = {"filePath": "program_name(CAST(filePath AS BLOB))"}
        target.fill(table_spec("OSRT_FILE_ACCESS_DESCRIPTORS"), f"fileAccessId IN ({used})", changes)


def copy_session(target: Target) -> None:
    """Devices, versions, the length of the capture, what went wrong in it, and the meaning of numbers."""
    for name in _WHOLE:
        target.fill(table_spec(name), ALL, {"uuid": "NULL"})
    target.fill(table_spec("ANALYSIS_DETAILS"), ALL, {"startTime": "0", "stopTime": "0"})
    target.fill(table_spec("META_DATA_EXPORT"), f"name IN ({_VERSIONS})")
    target.fill(
        table_spec("DIAGNOSTIC_EVENT"),
        f"severity IN ({int(Severity.WARNING)}, {int(Severity.ERROR)})",
        {"text": "safe_text(CAST(text AS BLOB))"},
    )
    for table in target.trace.ordinary_tables():
        if table.name.startswith(_ENUMERATION):
            target.copy_enumeration(table)


def copy_strings(target: Target) -> None:
    """The names that copied rows refer to, of paths their last part."""
    target.execute("CREATE TEMP TABLE named (id INTEGER PRIMARY KEY)")
    for table in target.made.values():
        for name in filter(None, (column(table, each) for each in _STRINGS)):
            target.execute(f"INSERT OR IGNORE INTO named SELECT {name} FROM {copied(table)} WHERE {name} IS NOT NULL")
    for number in python_names(target):
        target.execute("INSERT OR IGNORE INTO named VALUES (?)", (number,))
    target.fill(table_spec("StringIds"), "id IN (SELECT id FROM named)", {"value": "short_name(CAST(value AS BLOB))"})


_ELSEWHERE = ("COMPOSITE_EVENTS", "DIAGNOSTIC_EVENT", *_WHOLE)
"""Tables with times that have a rule of their own, but later."""
