"""Pieces of SQL: tables and columns of the trace and of the new database, spans of time, new values of columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from nsysdiag.events.callchains import file_name
from nsysdiag.limits import TEXT_BYTES
from nsysdiag.trace.capabilities import without_private_parts
from nsysdiag.trace.catalog import FoundColumn, FoundTable, quoted
from nsysdiag.trace.tables import OPENACC_TABLES, OPENMP_TABLES

# The role of each name in a trace: every text column, and every column with ids of StringIds; and how kept names are
# written.
#
# All declared columns are listed by table; a missing one would leak names, so there is no default.


class Role(StrEnum):
    """What a name is the name of."""

    OWN = "a word that the rows are chosen by"
    VERSION = "what the exporter says of itself"
    ENUMERATION = "an enumeration of nsys, or one of its values"
    GPU = "the model of a GPU"
    CHIP = "the code name of a chip"
    METRIC = "a GPU metric"
    METRICS = "a set of GPU metrics"
    ADDRESS = "where a device sits on the bus"
    API = "a function of CUDA, the OS or a library of theirs"
    CALL = "a function of MPI or of CUDA graphs"
    KERNEL = "a kernel, in full"
    SHORT_KERNEL = "a kernel, the function alone"
    RANGE = "an NVTX range or mark"
    DOMAIN = "an NVTX domain"
    SYMBOL = "a native function"
    MODULE = "a library or program, by its path"
    PYTHON_FUNCTION = "a function of Python, angle brackets escaped"
    PYTHON_FILE = "a source file of Python, by its path"
    THREAD = "a thread"
    PROCESS = "a program, by its path"
    FILE = "a file, by its path"
    MEMORY = "an allocation"
    MESSAGE = "what nsys reported"
    STRING = "any of those that StringIds holds"
    NONE = "nothing that is read"


Rename = Callable[[Role, str], str]
"""What a name becomes, given what it is used for."""

_ROLES = list(Role)
_NUMBER = {role: number for number, role in enumerate(_ROLES)}
_BITS = 5
_HIGHEST = (1 << 63 - _BITS) - 1
_CALLCHAIN = {"symbol": Role.SYMBOL, "module": Role.MODULE}
_NAMED = {
    Role.API: """
        CUPTI_ACTIVITY_KIND_RUNTIME CUPTI_ACTIVITY_KIND_OVERHEAD CUBLAS_EVENTS CUDNN_EVENTS PROFILER_OVERHEAD OSRT_API
        PROFILER_WAITS CUPTI_ACTIVITY_KIND_JIT
    """,
    Role.CALL: "CUDA_GRAPH_EVENTS CUDA_GRAPH_NODE_EVENTS",
    Role.SYMBOL: "PROFILER_FUNCTIONS CUDA_HOST_CALLBACK",
    Role.THREAD: "ThreadNames",
}
_MPI = "MPI_COLLECTIVES_EVENTS MPI_P2P_EVENTS MPI_START_WAIT_EVENTS MPI_OTHER_EVENTS"

REFERENCES: dict[str, dict[str, Role]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {
        "shortName": Role.SHORT_KERNEL,
        "demangledName": Role.KERNEL,
        "mangledName": Role.NONE,
    },
    "NVTX_EVENTS": {"textId": Role.RANGE, "jsonTextId": Role.NONE},
    "OSRT_CALLCHAINS": _CALLCHAIN,
    "CUDA_CALLCHAINS": _CALLCHAIN,
    "SAMPLING_CALLCHAINS": _CALLCHAIN,
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": {"module": Role.MODULE},
    **{table: {"nameId": role} for role, tables in _NAMED.items() for table in tables.split()},
    **{table: {"textId": Role.CALL} for table in _MPI.split()},
    **{table: {"nameId": Role.CALL, "srcFile": Role.FILE} for table in OPENACC_TABLES},
    **{table: {"nameId": Role.CALL} for table in OPENMP_TABLES},
}
"""Columns that hold ids of StringIds, by table."""

TEXTS: dict[str, dict[str, Role]] = {
    "StringIds": {"value": Role.STRING},
    "NVTX_EVENTS": {"text": Role.RANGE, "jsonText": Role.NONE},
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": {"name": Role.OWN},
    "NVTX_EXPORT_TRANSLATION": {"originalName": Role.OWN, "sanitizedName": Role.OWN},
    "PROCESSES": {"name": Role.PROCESS},
    "OSRT_FILE_ACCESS_DESCRIPTORS": {"filePath": Role.FILE},
    "CUDA_GPU_MEMORY_USAGE_EVENTS": {"name": Role.MEMORY},
    "DIAGNOSTIC_EVENT": {"text": Role.MESSAGE},
    "META_DATA_EXPORT": {"name": Role.OWN, "value": Role.VERSION},
    "TARGET_INFO_GPU_METRICS": {"typeName": Role.METRICS, "metricName": Role.METRIC},
    "TARGET_INFO_GPU": {"name": Role.GPU, "chipName": Role.CHIP, "busLocation": Role.ADDRESS, "uuid": Role.NONE},
    "TARGET_INFO_CUDA_GPU": {"name": Role.GPU, "pciBusId": Role.ADDRESS},
    "TARGET_INFO_CUDA_DEVICE": {"uuid": Role.NONE},
}
"""Columns that hold texts, by table."""


def coded(role: Role, number: int) -> int:
    """The id by which a string goes that is in this role: the same string has several, one for each role."""
    return (number << _BITS) + _NUMBER[role] if 0 <= number <= _HIGHEST else -1


def coded_sql(role: Role, number: str) -> str:
    """The same in SQL; NULL without an id."""
    return f"CASE WHEN {number} BETWEEN 0 AND {_HIGHEST} THEN ({number} << {_BITS}) + {_NUMBER[role]} END"


def decoded_sql(number: str) -> tuple[str, str]:
    """The string's own id and the number of its role, in SQL."""
    return f"({number} >> {_BITS})", f"({number} & {(1 << _BITS) - 1})"


def number_of(role: Role) -> int:
    """The number of a role in SQL."""
    return _NUMBER[role]


def role_of(number: int) -> Role:
    """The role with this number."""
    return _ROLES[number]


_PATH = re.compile(r"/|[A-Za-z]:[\\/]|\\\\|~[\\/]|\.{1,2}[\\/]")
_TELLING = (
    (re.compile(r".*[\\/]((?:site|dist)-packages|lib-dynload)[\\/]"), r"/\1/"),
    (re.compile(r".*[\\/]lib(?:64)?[\\/](python\d[\d.]*)[\\/]"), r"/lib/\1/"),
    (re.compile(r"(?:/usr)?/lib(?:32|64)?/"), "/lib/"),
)
"""Folders by which code of libraries is known from the program's own, and what of them is kept."""


def without_folders(role: Role, text: str) -> str:
    """A name as it is written where names stay."""
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
    """The column that says when a row begins, quoted; None where rows have no time."""
    return column(table, *_BEGINS)


def touching(table: FoundTable, span: SliceSpan | None, *, still_open: bool = False) -> str:
    """Rows that overlap the span or begin in it; with `still_open` a row without an end never ends. All rows where the
    span is None or rows have no time."""
    begin, end = beginning(table), column(table, *_ENDS)
    if span is None or begin is None:
        return ALL
    inside = f"{begin} >= {span.low} AND {begin} < {span.high}"
    if end is None:
        return f"({inside})"
    never = f" OR {end} IS NULL" if still_open else ""
    return f"({begin} < {span.high} AND ({begin} >= {span.low} OR {end} > {span.low}{never}))"


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
    return f"substr({name}, 1, {TEXT_BYTES})" if role is Role.OWN else f"named({number_of(role)}, CAST({name} AS BLOB))"


def whole_sql(name: str) -> str:
    """The value of a column as the integer that the reader takes it for; NULL where it stands for none. No other text
    is copied."""
    return f"CASE WHEN typeof({name}) IN ('integer', 'null') THEN {name} ELSE whole({name}) END"
