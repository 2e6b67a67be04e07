"""The new database of a slice: tables like those of the source, filled with chosen rows and declared columns only.

Also the pieces of SQL that choose them: tables and columns, spans of time, new values of columns."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.events.callchains import file_name
from nsysdiag.limits import TEXT_BYTES
from nsysdiag.messages import InputError, OutputError, printable
from nsysdiag.trace.capabilities import without_private_parts
from nsysdiag.trace.catalog import FoundColumn, FoundTable, quoted
from nsysdiag.trace.reader import to_integer
from nsysdiag.trace.tables import OPENACC_TABLES, OPENMP_TABLES, TABLES, ColumnSpec, ColumnType, TableSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsysdiag.trace.trace import Trace

# The role of each name in a trace: every text column, and every column with ids of StringIds; and how kept names are
# written.
#
# All declared columns are listed by table; a missing one would leak names, so there is no default.


class Role(IntEnum):
    """What a name is the name of."""

    OWN = 0  # a word that the rows are chosen by
    VERSION = 1  # what the exporter says of itself
    ENUMERATION = 2  # an enumeration of nsys, or one of its values
    GPU = 3  # the model of a GPU
    CHIP = 4  # the code name of a chip
    METRIC = 5  # a GPU metric
    METRICS = 6  # a set of GPU metrics
    ADDRESS = 7  # where a device sits on the bus
    API = 8  # a function of CUDA, the OS or a library of theirs
    CALL = 9  # a function of MPI or of CUDA graphs
    KERNEL = 10  # a kernel, in full
    SHORT_KERNEL = 11  # a kernel, the function alone
    RANGE = 12  # an NVTX range or mark
    DOMAIN = 13  # an NVTX domain
    SYMBOL = 14  # a native function
    MODULE = 15  # a library or program, by its path
    PYTHON_FUNCTION = 16  # a function of Python, angle brackets escaped
    PYTHON_FILE = 17  # a source file of Python, by its path
    THREAD = 18  # a thread
    PROCESS = 19  # a program, by its path
    FILE = 20  # a file, by its path
    MEMORY = 21  # an allocation
    MESSAGE = 22  # what nsys reported
    STRING = 23  # any of those that StringIds holds
    NONE = 24  # nothing that is read


Rename = Callable[[Role, str], str]
"""What a name becomes, given what it is used for."""

_BITS = 5
_HIGHEST = (1 << 63 - _BITS) - 1
_USES = {
    "StringIds": "value STRING",
    "CUPTI_ACTIVITY_KIND_KERNEL": "shortName SHORT_KERNEL, demangledName KERNEL, mangledName NONE",
    "CUPTI_ACTIVITY_KIND_RUNTIME CUPTI_ACTIVITY_KIND_OVERHEAD CUPTI_ACTIVITY_KIND_JIT OSRT_API": "nameId API",
    "CUBLAS_EVENTS CUDNN_EVENTS PROFILER_OVERHEAD PROFILER_WAITS": "nameId API",
    "CUDA_GRAPH_EVENTS CUDA_GRAPH_NODE_EVENTS": "nameId CALL",
    "MPI_COLLECTIVES_EVENTS MPI_P2P_EVENTS MPI_START_WAIT_EVENTS MPI_OTHER_EVENTS": "textId CALL",
    " ".join(OPENACC_TABLES): "nameId CALL, srcFile FILE",
    " ".join(OPENMP_TABLES): "nameId CALL",
    "PROFILER_FUNCTIONS CUDA_HOST_CALLBACK": "nameId SYMBOL",
    "OSRT_CALLCHAINS CUDA_CALLCHAINS SAMPLING_CALLCHAINS": "symbol SYMBOL, module MODULE",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "module MODULE",
    "NVTX_EVENTS": "text RANGE, textId RANGE, jsonText NONE, jsonTextId NONE",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "name OWN",
    "NVTX_EXPORT_TRANSLATION": "originalName OWN, sanitizedName OWN",
    "ThreadNames": "nameId THREAD",
    "PROCESSES": "name PROCESS",
    "OSRT_FILE_ACCESS_DESCRIPTORS": "filePath FILE",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "name MEMORY",
    "DIAGNOSTIC_EVENT": "text MESSAGE",
    "META_DATA_EXPORT": "name OWN, value VERSION",
    "TARGET_INFO_GPU_METRICS": "typeName METRICS, metricName METRIC",
    "TARGET_INFO_GPU": "name GPU, chipName CHIP, busLocation ADDRESS, uuid NONE",
    "TARGET_INFO_CUDA_GPU": "name GPU, pciBusId ADDRESS",
    "TARGET_INFO_CUDA_DEVICE": "uuid NONE",
}
ROLES: dict[str, dict[str, Role]] = {
    table: {column: Role[role] for column, role in (use.split() for use in uses.split(", "))}
    for tables, uses in _USES.items()
    for table in tables.split()
}
"""Columns that hold texts, or ids of StringIds, by table."""


def coded(role: Role, number: int) -> int:
    """The id by which a string goes that is in this role: the same string has several, one for each role."""
    return (number << _BITS) + role if 0 <= number <= _HIGHEST else -1


def coded_sql(role: Role, number: str) -> str:
    """The same in SQL; NULL without an id."""
    return f"CASE WHEN {number} BETWEEN 0 AND {_HIGHEST} THEN ({number} << {_BITS}) + {role:d} END"


def decoded_sql(number: str) -> tuple[str, str]:
    """The string's own id and the number of its role, in SQL."""
    return f"({number} >> {_BITS})", f"({number} & {(1 << _BITS) - 1})"


_PATH = re.compile(r"/|[A-Za-z]:[\\/]|\\\\|~[\\/]|\.{1,2}[\\/]")
_TELLING = (
    (re.compile(r".*[\\/]((?:site|dist)-packages|lib-dynload)[\\/]"), r"/\1/"),
    (re.compile(r".*[\\/]lib(?:64)?[\\/](python\d[\d.]*)[\\/]"), r"/lib/\1/"),
    (re.compile(r"(?:/usr)?/lib(?:32|64)?/"), "/lib/"),
)
"""Folders by which code of libraries is known from the program's own, and what of them is kept."""


def without_folders(role: Role, text: str) -> str:
    """A name as it is written if names stay."""
    if role is Role.STRING:
        return short_path(text)
    if role in (Role.PROCESS, Role.FILE):
        return file_name(text)
    return without_private_parts(text) if role is Role.MESSAGE else text


def short_path(text: str) -> str:
    """A path as its last part, `/home/ann/run/train.py` as `train.py`; below a folder of installed libraries with that
    folder, `/usr/lib/x86_64-linux-gnu/libz.so` as `/lib/libz.so`. Other text is unchanged."""
    if not _PATH.match(text):
        return text
    last = file_name(text)
    for folder, kept in _TELLING:
        if match := folder.match(text):
            return match.expand(kept) + last
    return last


PLAIN = frozenset({
    "arrayOrUnionDetail", "cacheConfig", "clusterSchedulingPolicy", "constantMemory", "constantMemorySize",
    "deprecatedSrcId", "deprecatedSyncType", "flags", "idx", "l2CacheSize", "maxActiveClusters", "maxBlockDimX",
    "maxBlockDimY", "maxBlockDimZ", "maxBlocksPerMultiprocessor", "maxGridDimX", "maxGridDimY", "maxGridDimZ",
    "maxIPC", "maxPotentialClusterSize", "maxRegistersPerBlock", "maxRegistersPerMultiprocessor",
    "maxSharedMemoryPerBlock", "maxSharedMemoryPerMultiprocessor", "maxShmemPerBlock", "maxShmemPerBlockOptin",
    "maxThreadsPerBlock", "numMemcpyEngines", "numThreadsPerWarp", "numTpcs", "qmdBulkReleaseDone",
    "qmdLastCtaDone", "qmdPreexitDone", "sharedMemoryLimitConfig", "sharedMemoryRequestedPercentage", "smMajor",
    "smMinor", "tensorSizeMinusOneElements", "thumbCode", "type",
})  # fmt: skip


SOURCE = "source"
"""The schema under which the trace is attached to the new database."""
ALL, NONE = "1", "0"
_BEGINS = ("start", "startedAt", "timestamp")
_ENDS = ("end", "endedAt")


class SliceSpan(Struct, frozen=True):
    """[low, high) in ns."""

    low: int
    high: int

    def wider(self, low: int, high: int) -> SliceSpan:
        """The span that reaches at least from `low` to `high` as well."""
        return SliceSpan(min(self.low, low), max(self.high, high))


def column(table: FoundTable, *names: str) -> str | None:
    """The first of these columns that the table has, quoted."""
    found = table.column(*names)
    return None if found is None else quoted(found.name)


def beginning(table: FoundTable) -> str | None:
    """The column that says when a row begins, quoted; None if rows have no time."""
    return column(table, *_BEGINS)


def touching(table: FoundTable, span: SliceSpan | None, *, still_open: bool = False) -> str:
    """Rows that overlap the span or begin in it; with `still_open` a row without an end never ends. All rows if the
    span is None or rows have no time."""
    begin, end = beginning(table), column(table, *_ENDS)
    if span is None or begin is None:
        return ALL
    inside = f"{begin} >= {span.low} AND {begin} < {span.high}"
    if end is None:
        return f"({inside})"
    never = f" OR {end} IS NULL" if still_open else ""
    return f"({begin} < {span.high} AND ({begin} >= {span.low} OR {end} > {span.low}{never}))"


Where = str | Callable[[FoundTable], str]
"""A condition on rows of the source in SQL, or what makes one for its table."""


def keys_of(table: FoundTable) -> list[FoundColumn]:
    """The columns of the primary key, in its order."""
    return sorted((there for there in table.columns.values() if there.key), key=lambda there: there.key)


def source(table: FoundTable) -> str:
    """A table of the trace in SQL."""
    return f"{SOURCE}.{quoted(table.name)}"


def copied(table: FoundTable) -> str:
    """A table of the new database in SQL."""
    return f"main.{quoted(table.name)}"


def text_sql(role: Role, name: str) -> str:
    """The new text in SQL, given the column with the old one."""
    if role is Role.NONE:
        return "NULL"
    return f"substr({name}, 1, {TEXT_BYTES})" if role is Role.OWN else f"named({role:d}, CAST({name} AS BLOB))"


def whole_sql(name: str) -> str:
    """The value of a column as the integer that the reader takes it for; NULL if it stands for none. No other text
    is copied."""
    return f"CASE WHEN typeof({name}) IN ('integer', 'null') THEN {name} ELSE whole({name}) END"


# The database itself.

_NO_INTEGER = 1 << 64
_UNWRITABLE = ("disk is full", "disk i/o error")


@contextmanager
def target_of(trace: Trace, path: Path, rename: Rename | None = None) -> Iterator[SliceTarget]:
    """A new database at `path`, which must not exist, with the trace attached to it read-only.

    Nothing is ever deleted or changed in it, so that its pages hold only the requested rows. Raises InputError if the
    trace cannot be read, OutputError if the database cannot be written.
    """
    with closing(_new(path)) as connection:
        try:
            connection.execute(f"ATTACH ? AS {SOURCE}", (trace.uri,))
            connection.execute("BEGIN")
            yield SliceTarget(connection, trace, rename)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if any(sign in str(error).lower() for sign in _UNWRITABLE):
                raise _unwritable(error) from error
            raise InputError(f"'{trace.file}' cannot be read, it may be corrupt: {printable(error)}") from error


def _new(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rwc", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unwritable(error) from error
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    # An export has dozens of tables with a few rows each, and a table takes a page at least.
    for pragma in ("page_size=1024", "trusted_schema=0", "temp_store=MEMORY", "synchronous=OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA journal_mode=OFF").fetchall()  # a private file: after a failure it is removed
    return connection


def _unwritable(error: sqlite3.Error) -> OutputError:
    return OutputError(f"cannot write a part of the trace: {printable(error)}", hint="make room for temporary files")


class SliceTarget:
    """Tables are made by `create` and filled by `fill`; `execute` and `executemany` are for temporary tables and
    queries.

    With `rename`, names are replaced by role. As a string may have several roles, ids of strings are `coded` by
    role."""

    def __init__(self, connection: sqlite3.Connection, trace: Trace, rename: Rename | None) -> None:
        self._connection = connection
        self.trace = trace
        self.renames: bool = rename is not None
        change = rename or without_folders
        self.shown: Rename = change
        """What a name becomes, by its role."""

        def named(number: int, value: object) -> str | None:
            return change(Role(number), trace.text(value)) if isinstance(value, bytes) else None

        def whole(value: object) -> int | None:
            found = to_integer(value, _NO_INTEGER)
            return None if found == _NO_INTEGER else found

        connection.create_function("named", 2, named, deterministic=True)
        connection.create_function("whole", 1, whole, deterministic=True)
        self.specs: dict[str, TableSpec] = TABLES | {spec.name: spec for spec in trace.other_work}
        self.made: dict[str, FoundTable] = {}
        """The tables that were made, by their canonical names: their names and columns are those of the source."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement."""
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """One statement for each of the rows."""
        self._connection.executemany(sql, rows)

    def function(self, name: str, change: Callable[[bytes], bytes | None]) -> None:
        """Make a change of bytes known to SQL."""

        def changed(value: object) -> bytes | None:
            return change(value) if isinstance(value, bytes) else None

        self._connection.create_function(name, 1, changed, deterministic=True)

    def create(self, spec: TableSpec, found: FoundTable) -> FoundTable:
        """Make a table like one of the source. Columns that are neither declared nor plain stay away."""
        # The source may be a copy of files that tell no keys.
        info = self.execute("SELECT lower(name), pk FROM pragma_table_info(?, ?)", (found.name, SOURCE))
        keys: dict[str, int] = dict(info.fetchall())
        types = {there.name: ColumnType.INTEGER for there in found.columns.values() if there.name in PLAIN}
        for column in spec.columns:
            if there := found.column(column.name, *column.older):
                types[there.name] = column.type
        key = {name: keys.get(there.name.lower(), 0) for name, there in found.columns.items()}
        kept = {name: replace(there, key=key[name]) for name, there in found.columns.items() if there.name in types}
        partial = any(key[name] for name in found.columns.keys() - kept.keys())  # a part of a key is none
        if partial or not self._whole_keys(FoundTable(found.name, kept, found.rowid)):
            kept = {name: replace(there, key=0) for name, there in kept.items()}
        table = FoundTable(found.name, kept, found.rowid)
        self._create(table, types)
        self.made[spec.name] = table
        return table

    def _whole_keys(self, table: FoundTable) -> bool:
        """Whether all keys are integers. Others may be equal once they are, and a rowid takes no text or fraction."""
        other = " OR ".join(f"typeof({quoted(there.name)}) <> 'integer'" for there in keys_of(table))
        return not other or not self.execute(f"SELECT 1 FROM {source(table)} WHERE {other} LIMIT 1").fetchone()

    def _create(self, table: FoundTable, types: Mapping[str, ColumnType]) -> None:
        # Not the source's own SQL: comments and defaults in it may be private.
        keys = keys_of(table)
        lines = [f"{quoted(there.name)} {types[there.name]}" for there in table.columns.values()]
        lines += [f"PRIMARY KEY ({', '.join(quoted(there.name) for there in keys)})"] if keys else []
        ending = " WITHOUT ROWID" if keys and table.rowid is None else ""
        self.execute(f"CREATE TABLE main.{quoted(table.name)} ({', '.join(lines)}){ending}")

    def fill(self, name: str, where: Where = ALL, changes: Mapping[str, str] | None = None) -> FoundTable | None:
        """Create a declared table if needed, and copy the rows for which the condition is true, in order.

        `changes` maps a column's canonical name to the SQL of its new value; names are always changed. Returns None if
        the source has no such table.
        """
        found = self.trace.table(name)
        return None if found is None else self.copy(self.specs[name], found, where, changes)

    def copy(
        self, spec: TableSpec, found: FoundTable, where: Where = ALL, changes: Mapping[str, str] | None = None
    ) -> FoundTable:
        """The same of a table of the source that `spec` describes."""
        table = self.made.get(spec.name) or self.create(spec, found)
        values = {quoted(there.name): whole_sql(quoted(there.name)) for there in table.columns.values()}
        for declared in spec.columns:
            if there := table.column(declared.name, *declared.older):
                name = quoted(there.name)
                values[name] = (changes or {}).get(declared.name) or self._value(spec, declared, name)
        names, sources = (", ".join(part) for part in (values, values.values()))
        order = table.rowid or ", ".join(quoted(there.name) for there in keys_of(table)) or "1"
        condition = where(found) if callable(where) else where
        self.execute(
            f"INSERT INTO main.{quoted(table.name)} ({names}) SELECT {sources} FROM {source(table)} AS t"
            f" WHERE {condition} ORDER BY {order}"
        )
        return table

    def _value(self, spec: TableSpec, declared: ColumnSpec, name: str) -> str:
        """What is copied into a column, in SQL."""
        role = ROLES.get(spec.name, {}).get(declared.name)
        if declared.type is ColumnType.TEXT:
            return text_sql(ROLES[spec.name][declared.name], name)
        if declared.type is ColumnType.BLOB:
            return "NULL"
        if declared.type is ColumnType.REAL:
            return f"CASE WHEN typeof({name}) NOT IN ('text', 'blob') THEN {name} END"
        return whole_sql(name) if role is None else self.reference(role, name)

    def reference(self, role: Role, name: str) -> str:
        """The new id of a string in SQL, given the column with its old one."""
        number = whole_sql(name)
        if not self.renames:
            return number
        return "NULL" if role is Role.NONE else coded_sql(role, number)
