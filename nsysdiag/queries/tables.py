"""The tables of a report as SQL sees them: names, columns, units, and how they get into a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nsysdiag.formats.tables import BY_NAME
from nsysdiag.report import Report
from nsysdiag.time.facts import NAMED
from nsysdiag.trace.catalog import quoted

if TYPE_CHECKING:
    import pandas as pd

TIME = "time"
STEPS = "steps"
"""A view: the rows of `iterations` under the name that the report uses."""
TYPES = {"text": "TEXT", "integer": "INTEGER", "integer or none": "INTEGER", "number": "REAL", "truth": "INTEGER"}
ABOUT = {
    TIME: "every nanosecond of every device, one state, bottleneck and cause in each row",
    "gaps": "the longest idle gaps in full, with evidence (--gaps 0: all)",
    "devices": "each GPU: its window, and the time it computed, communicated, copied and idled",
    "ledger": "idle time by cause, before and after wake-ups were followed",
    "labels": "idle time by cause and what exactly was waited for",
    "time_sums": "time by state, bottleneck and cause, of the judged time and of each phase",
    "kernels": "kernels by name",
    "kernel_families": "kernels by family, over the judged time",
    "copies": "copies by direction and kind of memory",
    "copy_rates": "rates of copies by direction and size",
    "pinning": "copies of pageable memory, and the calls that made them",
    "exposed_copies": "what ran while copies were exposed",
    "migrations": "pages of unified memory that moved",
    "device_memory": "allocations of each device",
    "memory_level": "memory in use over time",
    "communication": "communication kernels by name",
    "bandwidth": "rates of copies and collectives, with the peak of what carries them",
    "collectives": "collectives by kind, with bandwidth",
    "mpi": "MPI calls",
    "ranks": "ranks of the job, when one trace has several",
    "signatures": "groups of gaps that have the same place and cause",
    "ranges": "NVTX paths: GPU time of what was launched in each, and idle time by cause",
    "stacks": "idle time by cause, ranges and call chain (the flame graph)",
    "critical_path": "the critical path of the judged steps, by work and cause",
    "critical_path_work": "work that is off the critical path",
    "phases": "phases of the run: start-up, steady phases, pauses and teardown",
    "iterations": "steps of each device",
    "serving": "steps of a server by phase: prefill, decode and mixed",
    "api": "CUDA API calls by name",
    "launches": "launches of each device: latency and rates",
    "queue_depth": "how many launches are queued, over time",
    "queue_drains": "calls that drained the queue",
    "launch_bound": "kernels that are shorter than their launch",
    "graphs": "CUDA graphs and their launches",
    "threads": "host threads, and what they did while the GPU was idle",
    "host_windows": "what host threads did in windows of time",
    "cost": "what lost time costs, when a price is given",
    "utilization": "how full the GPU is",
    "utilization_series": "the same over time",
    "kernel_shapes": "grids and blocks of kernels, and their occupancy",
    "gpu_metrics": "hardware metrics of the GPU, by what it did",
    "gpu_metrics_by_name": "hardware metrics of the GPU, by kernel",
    "findings": "findings: what to fix, and what it saves",
}
"""What each table holds."""
_INTEGERS = ("start_ns", "end_ns", "ns", "phase", "judged", "step", "thread")
_UNITS = (("_ns", "ns"), ("_bytes", "bytes"), ("_us", "µs"), ("_ms", "ms"), ("share", "0 to 1"), ("_w", "W"))


class SqlColumn(Struct, frozen=True):
    """A column: `unit` is empty where it has none."""

    name: str
    type: str
    unit: str


class SqlTable(Struct, frozen=True):
    """A table of the report, and what it holds."""

    name: str
    about: str
    columns: list[SqlColumn]


def sql_tables() -> list[SqlTable]:
    """All tables of a report, the table of time first."""
    time = [("device", "TEXT"), *((name, "INTEGER") for name in _INTEGERS)]
    time += [("phase_name", "TEXT"), *((name, "TEXT") for name in NAMED)]
    shown = {
        TIME: time,
        **{name: [(each.name, TYPES[each.kind]) for each in BY_NAME[name].columns] for name in BY_NAME},
    }
    return [
        SqlTable(name, ABOUT.get(name, ""), [SqlColumn(column, kind, unit_of(column)) for column, kind in columns])
        for name, columns in shown.items()
    ]


def unit_of(column: str) -> str:
    """The unit of a column by its name: `ns` of `idle_ns` and of `ns`."""
    return next((unit for ending, unit in _UNITS if f"_{column}".endswith(ending)), "")


def declare(connection: sqlite3.Connection) -> None:
    """Make the tables without rows, and the view of steps."""
    for table in sql_tables():
        columns = ", ".join(f"{quoted(each.name)} {each.type}" for each in table.columns)
        connection.execute(f"CREATE TABLE {quoted(table.name)} ({columns})")
    connection.execute(f"CREATE VIEW {STEPS} AS SELECT * FROM iterations")


def fill(connection: sqlite3.Connection, report: Report, used: dict[str, set[str]]) -> None:
    """Put the rows into the tables that are `used`, by name. Of the table of time, which may have millions of rows,
    only the columns that are used. Raises UsageError where the report has no table of time."""
    for name, columns in used.items():
        if name == TIME:
            frame, header = report.time, [each.name for each in sql_tables()[0].columns]
            _insert(connection, name, header, zip(*(_values(frame, each, columns) for each in header), strict=True))
        elif name in BY_NAME:
            _insert(connection, name, BY_NAME[name].header, BY_NAME[name].cells(report))


def _values(frame: pd.DataFrame, name: str, used: set[str]) -> Iterable[Any]:
    """The cells of a column as SQLite takes them: None for what is missing, and for all that is not used."""
    if name not in used:
        return [None] * len(frame)
    column = frame[name]
    if column.dtype == "category":
        texts = [*column.cat.categories, None]
        return (texts[code] for code in column.cat.codes.tolist())
    return column.astype(object).where(column.notna(), None).tolist()


def _insert(connection: sqlite3.Connection, table: str, header: list[str], rows: Iterable[Sequence[Any]]) -> None:
    names, marks = ", ".join(map(quoted, header)), ", ".join("?" * len(header))
    connection.executemany(f"INSERT INTO {quoted(table)} ({names}) VALUES ({marks})", rows)
