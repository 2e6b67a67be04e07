"""Whose rows they are: the processes of the captured program, and the threads of it that occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.events.program_code import file_name
from nsysdiag.share.slice.operations import CALLS, PROCESS_MASK
from nsysdiag.share.slice.sql import Span, column, copied, source, touching, whole_sql
from nsysdiag.trace.connect import decode
from nsysdiag.trace.tables import table_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.share.slice.target import Target

_OWNERS = ("globalTid", "globalPid")
_CHAINS = {
    "OSRT_CALLCHAINS": ("OSRT_API", "callchainId"),
    "CUDA_CALLCHAINS": (CALLS, "callchainId"),
    "SAMPLING_CALLCHAINS": ("COMPOSITE_EVENTS", "id"),
}


def find_own_processes(target: Target, owners: Sequence[str]) -> None:
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


def _processes(target: Target, name: str) -> set[int]:
    """The processes of the copied rows of a table; the idle loop is none."""
    table = target.made.get(name)
    owner = column(table, *_OWNERS) if table else None
    if table is None or owner is None:
        return set()
    found = target.execute(f"SELECT DISTINCT {owner} & {PROCESS_MASK} FROM {copied(table)} WHERE {owner} IS NOT NULL")
    return {process for (process,) in found if process}


def _process_names(target: Target) -> dict[int, str]:
    table = target.trace.table("PROCESSES")
    if table is None or column(table, "name") is None:
        return {}
    process = whole_sql("globalPid")
    rows = target.execute(f"SELECT {process}, CAST(name AS BLOB) FROM {source(table)} WHERE name IS NOT NULL")
    return {process: file_name(decode(name)) for process, name in rows if process is not None}


def copy_samples(target: Target, host: Span | None, *, lean: bool) -> None:
    """CPU samples of the program's own processes; where the slice is `lean`, of threads that made CUDA calls."""
    found = target.trace.table("COMPOSITE_EVENTS")
    if found is None:
        return
    owner = column(found, "globalTid")
    mine = f"t.{owner} & {PROCESS_MASK} IN (SELECT process FROM own)" if owner else "0"
    calls = target.made.get(CALLS)
    if lean and owner and calls is not None:
        mine = f"t.{owner} IN (SELECT DISTINCT globalTid FROM {copied(calls)})"
    target.fill(table_spec("COMPOSITE_EVENTS"), f"{touching(found, host)} AND {mine}")


def copy_call_chains(target: Target) -> None:
    """The call chains of the calls and samples that were copied."""
    for name, (owner, number) in _CHAINS.items():
        found, rows = target.trace.table(name), target.made.get(owner)
        key = column(rows, number) if rows else None
        if found is not None and rows is not None and key is not None:
            target.fill(table_spec(name), f"id IN (SELECT {key} FROM {copied(rows)} WHERE {key} > 0)")


def copy_people(target: Target) -> None:
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
        table_spec("ThreadNames"),
        f"globalTid IN (SELECT thread FROM occurring) AND globalTid & {PROCESS_MASK} IN (SELECT process FROM people)",
    )
    target.fill(table_spec("PROCESSES"), "globalPid IN (SELECT process FROM people)")
