"""Cuts a part out of a trace: what it is, and the order in which tables are copied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from nsysdiag.events.callchains import file_name
from nsysdiag.share.nvtx import CALLS, PROCESS_MASK, copy_calls, copy_nvtx, copy_operations, python_names
from nsysdiag.share.target import (
    ALL,
    NONE,
    ROLES,
    Rename,
    Role,
    SliceSpan,
    SliceTarget,
    beginning,
    column,
    copied,
    decoded_sql,
    source,
    target_of,
    text_sql,
    touching,
    whole_sql,
)
from nsysdiag.trace.catalog import FoundTable, decode, quoted
from nsysdiag.trace.enums import Severity
from nsysdiag.trace.format import RANK
from nsysdiag.trace.formats import INPUT_FORMATS
from nsysdiag.trace.tables import ColumnSpec, ColumnType, TableSpec, table_spec
from nsysdiag.trace.trace import SLICE, Trace

# Whose rows they are: the processes of the captured program, and the threads of it that occur.

_OWNERS = ("globalTid", "globalPid")
_FILES = {"OSRT_FILE_ACCESS_DESCRIPTORS": ("fileAccessId", "OSRT_FILE_ACCESS_EVENTS", "fileAccessId", "IS NOT NULL")}
_CHAINS = {
    "OSRT_CALLCHAINS": ("id", "OSRT_API", "callchainId", "> 0"),
    "CUDA_CALLCHAINS": ("id", CALLS, "callchainId", "> 0"),
    "SAMPLING_CALLCHAINS": ("id", "COMPOSITE_EVENTS", "id", "> 0"),
}
"""Tables of which the rows are copied that copied rows refer to: by which key, from which table and column, and if what
holds for that."""


def find_own_processes(target: SliceTarget, owners: Sequence[str]) -> None:
    """TEMP own: the processes that left rows of the tables `owners`, and those of the same program, for a forked child
    may be untraced. Where other programs were scheduled too, the capture is one of the whole machine: then a process
    with the same name may be any user's."""
    target.execute("CREATE TEMP TABLE own (process INTEGER PRIMARY KEY)")
    for name in owners:
        target.executemany("INSERT OR IGNORE INTO own VALUES (?)", [(each,) for each in _processes(target, name)])
    own = {process for (process,) in target.execute("SELECT process FROM own")}
    names = _process_names(target)
    programs = {names[process] for process in own if process in names}
    kin = {process for process, name in names.items() if name in programs}
    if _processes(target, "SCHED_EVENTS") <= own | kin:
        target.executemany("INSERT OR IGNORE INTO own VALUES (?)", [(process,) for process in sorted(kin)])


def _processes(target: SliceTarget, name: str) -> set[int]:
    """The processes of the copied rows of a table; the idle loop is none."""
    table = target.made.get(name)
    owner = column(table, *_OWNERS) if table else None
    if table is None or owner is None:
        return set()
    found = target.execute(f"SELECT DISTINCT {owner} & {PROCESS_MASK} FROM {copied(table)} WHERE {owner} IS NOT NULL")
    return {process for (process,) in found if process}


def _process_names(target: SliceTarget) -> dict[int, str]:
    table = target.trace.table("PROCESSES")
    if table is None or column(table, "name") is None:
        return {}
    process = whole_sql("globalPid")
    rows = target.execute(f"SELECT {process}, CAST(name AS BLOB) FROM {source(table)} WHERE name IS NOT NULL")
    return {process: file_name(decode(name)) for process, name in rows if process is not None}


def copy_samples(target: SliceTarget, host: SliceSpan | None, *, lean: bool) -> None:
    """CPU samples of the program's own processes; if the slice is `lean`, of threads that made CUDA calls."""

    def mine(found: FoundTable) -> str:
        owner, calls = column(found, "globalTid"), target.made.get(CALLS)
        if not owner:
            return NONE
        if lean and calls is not None:
            return f"{touching(found, host)} AND t.{owner} IN (SELECT DISTINCT globalTid FROM {copied(calls)})"
        return f"{touching(found, host)} AND t.{owner} & {PROCESS_MASK} IN (SELECT process FROM own)"

    target.fill("COMPOSITE_EVENTS", mine)


def copy_referred(target: SliceTarget, names: Mapping[str, tuple[str, str, str, str]]) -> None:
    """The rows that copied rows of another table refer to: see _CHAINS."""
    for name, (key, owner, number, where) in names.items():
        rows = target.made.get(owner)
        if rows is not None and (refers := column(rows, number)):
            target.fill(name, f"{key} IN (SELECT {refers} FROM {copied(rows)} WHERE {refers} {where})")


def copy_people(target: SliceTarget) -> None:
    """Names of the program's own processes and threads, of those that occur in what was copied so far."""
    target.execute("CREATE TEMP TABLE occurring (thread INTEGER PRIMARY KEY)")
    for table in target.made.values():
        for owner in filter(None, (column(table, name) for name in _OWNERS)):
            target.execute(f"INSERT OR IGNORE INTO occurring SELECT {owner} FROM {copied(table)} WHERE {owner} > 0")
    target.execute(
        f"CREATE TEMP TABLE people AS SELECT DISTINCT thread & {PROCESS_MASK} AS process FROM occurring"
        f" WHERE thread & {PROCESS_MASK} IN (SELECT process FROM own)"
    )
    target.fill(
        "ThreadNames",
        f"globalTid IN (SELECT thread FROM occurring) AND globalTid & {PROCESS_MASK} IN (SELECT process FROM people)",
    )
    target.fill("PROCESSES", "globalPid IN (SELECT process FROM people)")


# Tables without a rule elsewhere: events that hold until the next one, other events, the session and the names.

STRINGS = sorted(
    {
        name
        for table, uses in ROLES.items()
        for name in uses
        if table_spec(table).column(name).type is ColumnType.INTEGER
    }
)
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
_VERSIONS = ("EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
_MARKS = ", ".join(f"'{name}'" for name in (*_VERSIONS, RANK, *(each.mark for each in INPUT_FORMATS if each.mark)))
_ENUMERATION = re.compile(r"ENUM_[A-Z0-9_]+")
"""As nsys names them; any other is a table that was added."""


_OF_EACH = {"SCHED_EVENTS": ("globalTid", "cpu"), "GPU_CONTEXT_SWITCH_EVENTS": ("gpuId",)}
"""What an event is about: the next one of the same thread or CPU ends what it says."""


def copy_switches(target: SliceTarget, span: SliceSpan | None) -> None:
    """The events inside the span, and their neighbours on both sides."""
    for name in _OF_EACH:
        target.fill(name, partial(_with_neighbours, target, name, span))


def _with_neighbours(target: SliceTarget, name: str, span: SliceSpan | None, found: FoundTable) -> str:
    time, where = beginning(found), touching(found, span)
    if span is None:
        return where
    for group in filter(None, (column(found, each) for each in _OF_EACH[name])):
        index, number = f"bounds_{name}_{group.strip(chr(34))}", whole_sql(group)
        target.execute(
            f"CREATE TEMP TABLE {index} AS SELECT {number} AS one,"
            f" max(CASE WHEN {time} < {span.low} THEN {time} END) AS before,"
            f" min(CASE WHEN {time} >= {span.high} THEN {time} END) AS behind FROM {source(found)} GROUP BY 1"
        )
        where += f" OR ({number}, t.{time}) IN (SELECT one, before FROM {index} UNION SELECT one, behind FROM {index})"
    return where


def copy_other_events(target: SliceTarget, device: SliceSpan | None, host: SliceSpan | None) -> None:
    """All declared tables of events that no other rule has copied: rows that touch the span."""

    def near(name: str, found: FoundTable) -> str:
        if name in _FROM_THE_BEGINNING and host is not None:
            return f"{beginning(found)} < {host.high}"
        return touching(found, device if column(found, "metricId") else host)

    for name in target.specs:
        found = target.trace.table(name)
        if found and name not in target.made and beginning(found) and name not in _ELSEWHERE:
            target.fill(name, partial(near, name))


def copy_session(target: SliceTarget, *, slice_of: bool) -> None:
    """Devices, versions, the length of the capture, its problems, and the meaning of numbers. Also the mark of a slice,
    whose borders separate launches from their operations."""
    for name in _WHOLE:
        target.fill(name)
    target.fill("ANALYSIS_DETAILS", ALL, {"startTime": "0", "stopTime": "0"})
    facts = target.fill("META_DATA_EXPORT", f"name IN ({_MARKS})")
    if facts is not None and slice_of:
        target.execute(f"INSERT INTO {copied(facts)} (name, value) VALUES (?, ?)", (SLICE, "1"))
    target.fill("DIAGNOSTIC_EVENT", f"severity IN ({int(Severity.WARNING)}, {int(Severity.ERROR)})")
    texts = {name: text_sql(Role.ENUMERATION, quoted(name)) for name in ("name", "label")}
    columns = (ColumnSpec("id"), *(ColumnSpec(name, ColumnType.TEXT) for name in texts))
    for table in target.trace.ordinary_tables():
        # With new names one whose own name would be replaced stays away.
        shown = _ENUMERATION.fullmatch(table.name) and target.shown(Role.ENUMERATION, table.name)
        if shown == table.name and table.column("id"):
            target.copy(TableSpec(table.name, columns), table, changes=texts)


def copy_strings(target: SliceTarget) -> None:
    """The names that copied rows refer to."""
    target.execute("CREATE TEMP TABLE named (id INTEGER PRIMARY KEY)")
    for table in target.made.values():
        for name in filter(None, (column(table, each) for each in STRINGS)):
            target.execute(f"INSERT OR IGNORE INTO named SELECT {name} FROM {copied(table)} WHERE {name} IS NOT NULL")
    target.executemany("INSERT OR IGNORE INTO named VALUES (?)", [(number,) for number in python_names(target)])
    found = target.trace.table("StringIds")
    if found is None or not target.renames:
        # As the reader finds them: digits as text are not an id, though SQLite takes them for one in a comparison.
        target.fill("StringIds", "typeof(id) <> 'text' AND id IN (SELECT id FROM named)")
        return
    strings = target.create(table_spec("StringIds"), found)
    original, role = decoded_sql("n.id")  # each string once for each of its roles
    key, value = column(strings, "id"), column(strings, "value")
    target.execute(
        f"INSERT OR IGNORE INTO {copied(strings)} ({key}, {value}) SELECT n.id, named({role}, CAST(t.{value} AS BLOB))"
        f" FROM named AS n JOIN {source(strings)} AS t ON t.{key} = {original} ORDER BY n.id"
    )


MARGIN_NS = 1_000_000
"""What the host did just before the first operation and just after the last one belongs to them."""
PROGRAM_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "OSRT_API",
    "NVTX_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
)
"""Only a traced program leaves rows here. Scheduling and samples may be those of the whole machine."""
PROCESS_TREE_TABLES = (*PROGRAM_TABLES, "SCHED_EVENTS", "COMPOSITE_EVENTS")
"""The same of a capture whose scheduling and samples are those of the program's process tree alone."""


class SliceCut(Struct, frozen=True):
    """The rows about [start_ns, end_ns), on the trace's clock; all of them if both are None.

    It is one span, not several: time left out between two would look like idle time in the result.
    `owners` are the tables whose processes are the program's own; only those keep names and samples. `lean` leaves out
    call chains and the samples of threads that launch nothing. `rename` makes new names of those that are
    written; without one they stay, of paths the last part.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    lean: bool = False
    owners: tuple[str, ...] = PROGRAM_TABLES
    rename: Rename | None = None


def write_cut(trace: Trace, path: Path, cut: SliceCut) -> None:
    """Write the slice `cut` of an open trace into a new database at `path`.

    Tables and columns are those that the package reads, with their names in the trace; rows are whole. The environment,
    the command line, the host, programs that were not traced and names that nothing refers to are never copied. Raises
    InputError if the trace cannot be read, OutputError if the database cannot be written.
    """
    device = host = None
    if cut.start_ns is not None and cut.end_ns is not None:
        device = SliceSpan(cut.start_ns, cut.end_ns)
        host = SliceSpan(cut.start_ns - MARGIN_NS, cut.end_ns + MARGIN_NS)
    with target_of(trace, path, cut.rename) as target:
        copy_operations(target, device)
        copy_calls(target, host)
        copy_nvtx(target, host)
        copy_switches(target, host)
        copy_other_events(target, device, host)
        copy_referred(target, _FILES)
        find_own_processes(target, cut.owners)
        copy_samples(target, host, lean=cut.lean)
        if not cut.lean:
            copy_referred(target, _CHAINS)
        copy_people(target)
        copy_session(target, slice_of=cut.start_ns is not None)
        copy_strings(target)  # last, for only those in use are copied
