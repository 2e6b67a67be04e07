"""The role of each name in a trace: every text column, and every column with ids of StringIds; and how kept names are
written.

All declared columns are listed by table; a missing one would leak names, so there is no default.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from nsysdiag.events.program_code import file_name
from nsysdiag.trace.diagnostics import without_private_parts


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
    """,
    Role.CALL: "CUDA_GRAPH_EVENTS CUDA_GRAPH_NODE_EVENTS",
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
}
"""Columns that hold ids of StringIds, by table."""

TEXTS: dict[str, dict[str, Role]] = {
    "StringIds": {"value": Role.STRING},
    "NVTX_EVENTS": {"text": Role.RANGE, "jsonText": Role.NONE},
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": {"name": Role.OWN},
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
