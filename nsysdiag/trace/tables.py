"""The nsys tables that are read: one declaration each, with columns, types, defaults and older names.

A NULL cell, and every row of a column that the export lacks, has the column's default. It depends on the role of the
column, so that absent data is never taken for a measurement:

=========== ======= ==========================================================================================
role        default why
=========== ======= ==========================================================================================
time        -1      no event has it, so `0 < start <= end` fails
identifier  -1      real ids, ordinals and thread ids are not negative (an eventId of 4294967295 means none to
                    CUDA and stays as it is); kinds and states too: 0 is one of them (pageable memory)
correlation 0       what nsys itself writes for an operation without an API call
quantity    0       adds nothing to a sum; counts, sizes, flags and return values
real        NaN     not measured
text        NULL    code -1
=========== ======= ==========================================================================================

Rows are meaningless without `required` columns: a table that lacks one counts as unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct


class ColumnType(StrEnum):
    """How a column is stored in an export, and read: whole numbers, float64 or Text; bytes as Text of hex digits."""

    INTEGER = "INTEGER"
    REAL = "REAL"
    TEXT = "TEXT"
    BLOB = "BLOB"


TEXTS = (ColumnType.TEXT, ColumnType.BLOB)
"""The types that are read as Text."""


_CODES = frozenset(
    {
        *("deviceId", "contextId", "greenContextId", "streamId", "correlationId", "graphExecId", "callchainId"),
        *("nameId", "textId", "shortName", "demangledName", "eventType", "eventClass", "domainId", "returnValue"),
        *("copyKind", "srcKind", "dstKind", "memKind", "cpu", "isSchedIn", "threadState", "metricId", "graphNodeId"),
    }
)
"""Columns that are looked up and compared, not used in arithmetic. They are stored as 32-bit integers if all values
fit, which saves half of the memory of a large trace."""


class ColumnSpec(Struct, frozen=True):
    """A column of a declared table. `default` stands for NULL (only of an INTEGER column). A BLOB
    reads as text of hexadecimal digits, two a byte.

    A column with `parts` is in no file: SQLite makes it of these columns as it reads, their product, or with `operator`
    "+" their sum. To read one such column costs a third of reading three. It is NULL where any part is.
    """

    name: str
    type: ColumnType = ColumnType.INTEGER
    default: int = -1
    required: bool = False
    older: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    operator: str = "*"

    @property
    def compact(self) -> bool:
        """Read as int32 where every value is within 2^30, with room for a small sum; else as int64, as all others."""
        return self.type is ColumnType.INTEGER and self.name in _CODES


_MOMENTS = {"SCHED_EVENTS": "start", "COMPOSITE_EVENTS": "start", "GPU_METRICS": "timestamp"}
_SPANS = frozenset(
    {
        *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
        *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
        *("OSRT_API", "NVTX_EVENTS", "CUBLAS_EVENTS", "CUDNN_EVENTS", "PROFILER_FUNCTIONS", "PROFILER_WAITS"),
    }
)
"""Tables of events that may be read for a part of the time alone."""


class TableSpec(Struct, frozen=True):
    """A table by its newest name. A table of this name (or an older one) without the column `identified_by` is a
    different table of another version of the export."""

    name: str
    columns: tuple[ColumnSpec, ...]
    older: tuple[str, ...] = ()
    identified_by: str | None = None

    @property
    def times(self) -> tuple[str, str] | None:
        """The columns of the start and the end of a row, the same one for moments. None if rows have no time, or depend
        on the rows before them."""
        if self.name in _MOMENTS:
            return _MOMENTS[self.name], _MOMENTS[self.name]
        return ("start", "end") if self.name in _SPANS else None

    def column(self, name: str) -> ColumnSpec:
        """The declaration of a column. Raises KeyError: asking for an undeclared one is a mistake in the
        code."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"column {name!r} of table {self.name} is not declared")


def _columns(
    required: str = "",
    identifiers: str = "",
    quantities: str = "",
    reals: str = "",
    texts: str = "",
    required_texts: str = "",
) -> tuple[ColumnSpec, ...]:
    """Columns by their role, names with blanks between: `required` times, ids and kinds; `identifiers`, ordinals and
    optional times, -1 if unknown; `quantities`, sizes and flags, 0 if unknown."""
    return (
        *(ColumnSpec(name, required=True) for name in required.split()),
        *(ColumnSpec(name) for name in identifiers.split()),
        *(ColumnSpec(name, default=0) for name in quantities.split()),
        *(ColumnSpec(name, ColumnType.REAL) for name in reals.split()),
        *(ColumnSpec(name, ColumnType.TEXT) for name in texts.split()),
        *(ColumnSpec(name, ColumnType.TEXT, required=True) for name in required_texts.split()),
    )


def _table(
    name: str,
    common: tuple[ColumnSpec, ...] = (),
    more: tuple[ColumnSpec, ...] = (),
    older: tuple[str, ...] = (),
    identified_by: str | None = None,
    **roles: str,
) -> TableSpec:
    """A table with `common` columns of several tables, and columns of its own by their roles."""
    return TableSpec(name, (*common, *_columns(**roles), *more), older, identified_by)


OPENACC_TABLES = tuple(f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}" for kind in ("DATA", "LAUNCH", "OTHER"))
_OPENMP = "PARALLEL WORKSHARE TASK MASTER CRITICAL_SECTION REDUCTION SYNC_REGION SYNC_REGION_WAIT MUTEX_WAIT"
OPENMP_TABLES = tuple(f"OPENMP_EVENT_KIND_{kind}" for kind in _OPENMP.split())
_DEVICE_OPERATION = _columns(
    "start end deviceId", "contextId greenContextId streamId globalPid", quantities="correlationId"
)
_HOST_CALL = _columns("start end", "globalTid nameId eventClass")
_CALLCHAIN = _columns("id symbol stackDepth", "module originalIP unwindMethod", "kernelMode unresolved specialEntry")
_MPI_CALL = _columns("start", "end globalTid textId")

_CUDA = (
    _table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        _DEVICE_OPERATION,
        identifiers="shortName demangledName mangledName launchType graphNodeId graphId gridId",
        quantities=(
            "gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory "
            "sharedMemoryExecuted localMemoryPerThread localMemoryTotal clusterX clusterY clusterZ"
        ),
        more=(
            ColumnSpec("blocks", default=0, parts=("gridX", "gridY", "gridZ")),
            ColumnSpec("threadsPerBlock", default=0, parts=("blockX", "blockY", "blockZ")),
            ColumnSpec("sharedMemory", default=0, parts=("staticSharedMemory", "dynamicSharedMemory"), operator="+"),
        ),
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        _DEVICE_OPERATION,
        identifiers=(
            "copyKind srcKind dstKind migrationCause graphNodeId virtualAddress srcDeviceId srcContextId dstDeviceId "
            "dstContextId"
        ),
        quantities="bytes copyCount",
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        _DEVICE_OPERATION,
        identifiers="graphNodeId memKind",
        quantities="bytes value",
    ),
    _table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _DEVICE_OPERATION, identifiers="graphId graphExecId"),
    _table("CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH", _DEVICE_OPERATION, identifiers="graphNodeId graphId"),
    _table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        _HOST_CALL,
        identifiers="callchainId",
        quantities="correlationId returnValue",
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        required="start end",
        identifiers="deviceId contextId greenContextId streamId globalPid syncType eventId eventSyncId",
        quantities="correlationId",
    ),
    _table(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        required="eventId",
        identifiers="deviceId contextId greenContextId streamId globalPid eventSyncId timestamp",
        quantities="correlationId",
    ),
    _table("CUPTI_ACTIVITY_KIND_OVERHEAD", _HOST_CALL, identifiers="overheadType", quantities="correlationId"),
    _table("CUPTI_ACTIVITY_KIND_JIT", _HOST_CALL, identifiers="overheadType", quantities="correlationId"),
    _table("CUDA_HOST_CALLBACK", _HOST_CALL, quantities="correlationId"),
    _table("CUBLAS_EVENTS", _HOST_CALL),
    _table("CUDNN_EVENTS", _HOST_CALL),
    _table("CUDA_GRAPH_EVENTS", _HOST_CALL, identifiers="graphId originalGraphId graphExecId", identified_by="graphId"),
    _table(
        "CUDA_GRAPH_NODE_EVENTS",
        _HOST_CALL,
        identifiers="graphNodeId originalGraphNodeId",
        older=("CUDA_GRAPH_EVENTS",),
        identified_by="graphNodeId",
    ),
    _table(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        required="start",
        identifiers="globalPid deviceId contextId address memKind memoryOperationType localMemoryPoolAddress",
        quantities="bytes correlationId localMemoryPoolSize localMemoryPoolUtilizedSize",
        texts="name",
    ),
    _table("CUDA_UM_CPU_PAGE_FAULT_EVENTS", required="start", identifiers="globalPid address CpuInstruction module"),
    _table(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        required="start end",
        identifiers="globalPid deviceId address faultAccessType",
        quantities="numberOfPageFaults",
    ),
)

_HOST = (
    _table("PROFILER_OVERHEAD", _HOST_CALL, identifiers="overheadType", quantities="returnValue"),
    _table(
        "OSRT_API",
        _HOST_CALL,
        identifiers="callchainId argumentsId",
        quantities="returnValue nestingLevel correlationId",
    ),
    # Made of a trace of the PyTorch profiler: what threads were in, and functions of Python that wait.
    _table("PROFILER_FUNCTIONS", required="start end", identifiers="globalTid nameId", quantities="returnValue"),
    _table("PROFILER_WAITS", required="start end", identifiers="globalTid nameId", quantities="returnValue"),
    *(
        _table(name, required="start end", identifiers="globalTid nameId srcFile", quantities="lineNo")
        for name in OPENACC_TABLES
    ),
    *(_table(name, _HOST_CALL) for name in OPENMP_TABLES),
    _table("OSRT_CALLCHAINS", _CALLCHAIN),
    _table("CUDA_CALLCHAINS", _CALLCHAIN),
    _table("SAMPLING_CALLCHAINS", _CALLCHAIN),
    _table("COMPOSITE_EVENTS", required="id start", identifiers="cpu threadState globalTid", quantities="cpuCycles"),
    _table(
        "SCHED_EVENTS",
        required="start",
        identifiers="cpu globalTid threadState threadBlock",
        more=(ColumnSpec("isSchedIn", default=0, required=True),),
    ),
    _table(
        "OSRT_FILE_ACCESS_EVENTS",
        required="fileAccessId startedAt endedAt",
        identifiers="threadId eventType apiCallId",
        quantities="bytesProcessed",
    ),
    _table(
        "OSRT_FILE_ACCESS_DESCRIPTORS",
        required="fileAccessId",
        identifiers="processId openedAt closedAt",
        texts="filePath",
    ),
    _table(
        "NVTX_EVENTS",
        required="start eventType",
        identifiers="end globalTid endGlobalTid rangeId category textId domainId jsonTextId color eventId",
        quantities="uint64Value int64Value uint32Value int32Value",
        reals="doubleValue floatValue",
        texts="text jsonText",
        more=(ColumnSpec("binaryData", ColumnType.BLOB),),
    ),
    _table("NVTX_PAYLOAD_SCHEMA_ENTRIES", required="domainId schemaId", quantities="offset", required_texts="name"),
    _table("NVTX_EXPORT_TRANSLATION", texts="originalName sanitizedName"),
    _table(
        "MPI_COLLECTIVES_EVENTS",
        _MPI_CALL,
        identifiers="commHandle rootRank requestHandle",
        quantities="size recvSize",
    ),
    _table("MPI_P2P_EVENTS", _MPI_CALL, identifiers="commHandle tag remoteRank requestHandle", quantities="size"),
    _table("MPI_START_WAIT_EVENTS", _MPI_CALL, identifiers="requestHandle"),
    _table("MPI_OTHER_EVENTS", _MPI_CALL),
    _table("MPI_RANKS", required="globalTid rank"),
    _table("MPI_COMMUNICATORS", more=(ColumnSpec("size", default=0, older=("localSize",)),)),
)

_DEVICE = (
    _table(
        "GPU_CONTEXT_SWITCH_EVENTS",
        required="timestamp tag",
        identifiers="vmId seqNo contextId globalPid gpuId",
        older=("FECS_EVENTS",),
    ),
    _table("GPU_METRICS", required="timestamp metricId", identifiers="typeId", reals="value"),
    _table("TARGET_INFO_GPU_METRICS", required="metricId", identifiers="typeId sourceId", texts="typeName metricName"),
    _table(
        "TARGET_INFO_GPU",
        identifiers="vmId pwGpuId cuDevice",
        quantities=(
            "isDiscrete smCount totalMemory memoryBandwidth clockRate l2CacheSize maxWarpsPerSm maxBlocksPerSm "
            "maxThreadsPerBlock maxRegistersPerSm maxShmemPerSm threadsPerWarp asyncEngines computeMajor computeMinor"
        ),
        texts="name busLocation uuid chipName",
        more=(ColumnSpec("id", required=True, older=("deviceId",)),),
    ),
    _table(
        "TARGET_INFO_CUDA_DEVICE",
        required="cudaId pid",
        identifiers="gpuId",
        quantities="numMultiprocessors",
        texts="uuid",
    ),
    _table(
        "TARGET_INFO_CUDA_GPU",
        required="deviceId",
        identifiers="vmId pid",
        quantities=(
            "numMultiprocessors maxWarpsPerMultiprocessor coreClockRate maxBlocksPerMultiprocessor "
            "maxRegistersPerMultiprocessor maxSharedMemoryPerMultiprocessor numThreadsPerWarp globalMemoryBandwidth "
            "globalMemorySize computeCapabilityMajor computeCapabilityMinor"
        ),
        texts="name pciBusId",
    ),
    _table(
        "TARGET_INFO_CUDA_STREAM",
        required="streamId",
        identifiers="hwId vmId processId contextId flag",
        quantities="priority",
    ),
    _table("TARGET_INFO_CUDA_NULL_STREAM", required="streamId", identifiers="hwId vmId processId deviceId contextId"),
    _table(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        required="contextId",
        identifiers="nullStreamId hwId vmId processId deviceId parentContextId",
        quantities="isGreenContext numMultiprocessors",
    ),
    _table("TARGET_INFO_WDDM_CONTEXTS", identifiers="context engineType nodeOrdinal"),
)

_SESSION = (
    _table("StringIds", required="id", required_texts="value"),
    _table("ThreadNames", required="nameId globalTid", quantities="priority"),
    _table("PROCESSES", required="globalPid", identifiers="pid", texts="name"),
    _table("ANALYSIS_DETAILS", required="duration", identifiers="globalVid startTime stopTime"),
    _table("TARGET_INFO_SESSION_START_TIME", required="utcEpochNs"),
    _table("META_DATA_EXPORT", required_texts="name value", older=("EXPORT_META_DATA",)),
    _table(
        "DIAGNOSTIC_EVENT",
        required="severity",
        identifiers="timestamp timestampType source globalPid",
        required_texts="text",
    ),
)


def work_spec(name: str) -> TableSpec:
    """A table of device work that is not declared: what every operation has, its bytes, and how many it stands for."""
    more = (
        ColumnSpec("bytes", default=0, older=("sourceBytes",)),
        ColumnSpec("copyCount", default=0, older=("NumberOfOperations",)),
    )
    return TableSpec(name, (*_DEVICE_OPERATION, *more))


def payload_spec(name: str, fields: Sequence[str]) -> TableSpec:
    """A table with the payloads of one schema of NVTX, and those of its fields that are read."""
    return TableSpec(name, _columns("eventId", quantities=" ".join(fields)))


CAPTURE_OPTIONS = TableSpec("META_DATA_CAPTURE", _columns(texts="name value"))
SYSTEM = TableSpec("TARGET_INFO_SYSTEM_ENV", _columns(texts="name value"))
"""What nsys was asked to record, and on what. Not among TABLES: they hold environment variables and names of hosts."""

TABLES: dict[str, TableSpec] = {table.name: table for table in (*_CUDA, *_HOST, *_DEVICE, *_SESSION)}
"""Every declared table by its canonical name."""


def table_spec(name: str) -> TableSpec:
    """The declaration of a table. Raises KeyError: asking for an undeclared one is a mistake in the code."""
    if name not in TABLES:
        raise KeyError(f"table {name!r} is not declared")
    return TABLES[name]
