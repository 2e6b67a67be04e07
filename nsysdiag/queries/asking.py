"""One SELECT over the tables of a report and of its trace, in a database that can only be read."""

from __future__ import annotations

import difflib
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nsysdiag.formats.tables import BY_NAME
from nsysdiag.limits import CELL_BYTES
from nsysdiag.messages import InputError, UsageError, printable
from nsysdiag.pipeline.loading import analyze
from nsysdiag.report import Report
from nsysdiag.saved import is_saved_report
from nsysdiag.shortage import is_shortage
from nsysdiag.time.facts import NAMED
from nsysdiag.trace.catalog import quoted
from nsysdiag.trace.trace import open_trace

if TYPE_CHECKING:
    import pandas as pd

    from nsysdiag.config.settings import Settings


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
    """A column: `unit` is empty if it has none."""

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
    only the columns that are used. Raises UsageError if the report has no table of time."""
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


MAIN, TRACE = "main", "trace"
"""The databases of a connection: the tables of the report, and those of the trace."""
MOST_ROWS = 1_000
"""So many rows are given unless another limit is asked for."""
_ALLOWED = {
    getattr(sqlite3, name): name for name in ("SQLITE_SELECT", "SQLITE_READ", "SQLITE_FUNCTION", "SQLITE_RECURSIVE")
}
_QUOTES = str.maketrans("", "", "\"'`[]")
_INSTRUCTIONS = 50_000
"""Instructions of SQLite between two looks at signals: about a millisecond."""
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")
"""Errors of SQLite that are due to the file."""
_MISSING = re.compile(r"no such (table|column): (.+)")
_NEAR = 3


class Answer(Struct, frozen=True):
    """The rows of a query. `truncated`: there are more than the limit."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool


class Used:
    """What a statement reads of the tables of the report: columns by table. It refuses all that is not reading."""

    def __init__(self) -> None:
        self.columns: dict[str, set[str]] = defaultdict(set)

    def authorize(self, action: int, one: str | None, two: str | None, database: str | None, _by: str | None) -> int:
        """What SQLite asks before it reads or does anything."""
        if action not in _ALLOWED:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and database == MAIN and one is not None:
            self.columns[one].add(two or "")
        return sqlite3.SQLITE_OK

    def of(self, connection: sqlite3.Connection, sql: str) -> dict[str, set[str]]:
        """The columns that the statement reads, by table. Versions of SQLite do not ask for a table of which only rows
        are counted, but the plan opens it: by its first page."""
        connection.set_authorizer(self.authorize)
        plan = connection.execute(f"EXPLAIN {sql}").fetchall()
        connection.set_authorizer(None)
        names = dict(connection.execute(f"SELECT rootpage, name FROM {MAIN}.sqlite_master WHERE type = 'table'"))
        for _, opcode, _, page, database, *_ in plan:
            if opcode == "OpenRead" and database == 0 and page in names:
                self.columns.setdefault(names[page], set())
        return {name: columns for name, columns in self.columns.items() if name == TIME or name in BY_NAME}


def ask(
    trace: str | os.PathLike[str] | None, sql: str, report: Callable[[], Report], limit: int | None = MOST_ROWS
) -> Answer:
    """The answer to one SELECT. `trace` is the file whose own tables can be read too, None for none. `report` is called
    when a table of it is used: a query about the trace alone needs no analysis.

    Raises UsageError for SQL that is wrong or would do anything but read, InputError for a trace that is damaged.
    """
    with _opened(trace) as connection, _said_plainly(connection):
        if trace is not None:
            _refuse_hidden(connection, sql)
        used = Used()
        if needed := used.of(connection, sql):
            fill(connection, report(), needed)
        connection.execute("PRAGMA query_only=1")
        connection.set_authorizer(used.authorize)
        return _answer(connection, sql, limit)


def query_trace(trace: str | os.PathLike[str], sql: str, settings: Settings | None = None) -> pd.DataFrame:
    """The answer to one SELECT over a trace or a saved report, as `nsysdiag sql` gives it, without a limit: `time`, the
    tables of `frames(report)`, and those of the trace itself. It is analyzed only when a table of its report is used.

    Raises UsageError for SQL that is wrong or would do anything but read, InputError for a trace that cannot be read.
    """
    path = Path(os.fsdecode(trace))
    return answer_frame(None if is_saved_report(path) else path, sql, lambda: analyze(path, settings))


def answer_frame(trace: Path | None, sql: str, report: Callable[[], Report]) -> pd.DataFrame:
    """The whole answer as a data frame."""
    import pandas as pd

    answer = ask(trace, sql, report, limit=None)
    return pd.DataFrame(answer.rows, columns=pd.Index(answer.columns))


def _answer(connection: sqlite3.Connection, sql: str, limit: int | None) -> Answer:
    cursor = connection.execute(sql)
    if cursor.description is None:
        raise _not_reading()
    rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    shown = rows if limit is None else rows[:limit]
    return Answer([each[0] for each in cursor.description], [_plain(row) for row in shown], len(rows) > len(shown))


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Blobs as hexadecimal digits."""
    return tuple(each.hex() if isinstance(each, bytes) else each for each in row)


@contextmanager
def _opened(trace: str | os.PathLike[str] | None) -> Iterator[sqlite3.Connection]:
    """A database in memory with the tables of reports, still empty, and the trace with it."""
    with closing(sqlite3.connect(":memory:", uri=True, isolation_level=None)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
        connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        connection.execute("PRAGMA trusted_schema=0")
        connection.set_progress_handler(lambda: 0, _INSTRUCTIONS)  # lets a signal end a long query
        declare(connection)
        if trace is None:
            yield connection
            return
        with open_trace(trace) as opened:
            connection.execute(f"ATTACH ? AS {TRACE}", (opened.uri,))
            yield connection


def _hidden(connection: sqlite3.Connection) -> frozenset[str]:
    """What of the trace is not an ordinary table: its definition could hold anything."""
    rows = connection.execute(
        f"SELECT name FROM {TRACE}.sqlite_master WHERE type = 'view' OR (type = 'table' AND sql LIKE 'create virtual%')"
    )
    return frozenset(str(name).lower() for (name,) in rows)


def _refuse_hidden(connection: sqlite3.Connection, sql: str) -> None:
    """Raise UsageError if the SQL names a view or a virtual table of the trace. SQLite would run a part of it before
    it asks whether it may be read."""
    said = sql.lower().translate(_QUOTES)
    for name in _hidden(connection):
        if re.search(rf"(?<!\w){re.escape(name.translate(_QUOTES))}(?!\w)", said):
            raise _not_reading()


def _not_reading() -> UsageError:
    return UsageError("only SELECT is possible, from ordinary tables", hint="nothing of the trace can be changed")


def trace_columns(trace: str | os.PathLike[str]) -> dict[str, list[tuple[str, str]]]:
    """The columns of each ordinary table of a trace that holds rows: names, and types as declared."""
    with _opened(trace) as connection:
        hidden = _hidden(connection)
        names = connection.execute(f"SELECT name FROM {TRACE}.sqlite_master WHERE type = 'table' ORDER BY name")
        ordinary = [name for (name,) in names.fetchall() if name.lower() not in hidden]
        return {
            name: [(row[1], row[2]) for row in connection.execute(f"PRAGMA {TRACE}.table_info({quoted(name)})")]
            for name in ordinary
            if connection.execute(f"SELECT 1 FROM {TRACE}.{quoted(name)} LIMIT 1").fetchone()
        }


@contextmanager
def _said_plainly(connection: sqlite3.Connection) -> Iterator[None]:
    """Errors of SQLite as errors for the user."""
    try:
        yield
    except sqlite3.Error as error:
        if is_shortage(error):
            raise
        if getattr(error, "sqlite_errorname", "") in DAMAGED:
            raise InputError(f"the trace is damaged: {printable(error)}", hint="export it again") from error
        raise _usage_error(connection, error) from error


def _usage_error(connection: sqlite3.Connection, error: sqlite3.Error) -> UsageError:
    text = str(error)
    if getattr(error, "sqlite_errorname", "") == "SQLITE_AUTH":
        return _not_reading()
    missing = _MISSING.match(text)
    near = _near(connection, missing[1], missing[2]) if missing else []
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return UsageError(
        f"this SQL cannot be run: {text}", hint=f"{hint}nsysdiag sql TRACE --schema lists tables and columns"
    )


def _near(connection: sqlite3.Connection, kind: str, name: str) -> list[str]:
    """Names of tables or columns that the misspelt one may mean."""
    connection.set_authorizer(None)
    wanted = name.rpartition(".")[2].lower()
    known = [each.name for each in sql_tables()]
    if kind == "column":
        known = [column.name for each in sql_tables() for column in each.columns]
    elif any(row[1] == TRACE for row in connection.execute("PRAGMA database_list")):
        known += [row[0] for row in connection.execute(f"SELECT name FROM {TRACE}.sqlite_master WHERE type='table'")]
    lower = {each.lower(): each for each in known}
    return [lower[each] for each in difflib.get_close_matches(wanted, lower, _NEAR, 0.6)]
