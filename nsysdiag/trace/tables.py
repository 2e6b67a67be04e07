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


def _required(*names: str) -> tuple[ColumnSpec, ...]:
    """Times, ids and kinds without which a row means nothing."""
    return tuple(ColumnSpec(name, required=True) for name in names)


def _identifiers(*names: str) -> tuple[ColumnSpec, ...]:
    """Ids, ordinals, kinds and optional times: unknown is -1."""
    return tuple(ColumnSpec(name) for name in names)


def _quantities(*names: str) -> tuple[ColumnSpec, ...]:
    """Counts, sizes, flags and return values: unknown is 0."""
    return tuple(ColumnSpec(name, default=0) for name in names)


def _reals(*names: str) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name, ColumnType.REAL) for name in names)


def _texts(*names: str, required: bool = False) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name, ColumnType.TEXT, required=required) for name in names)


_CORRELATION = _quantities("correlationId")
_DEVICE_OPERATION = (
    *_required("start", "end", "deviceId"),
    *_identifiers("contextId", "greenContextId", "streamId", "globalPid"),
    *_CORRELATION,
)
_HOST_CALL = (*_required("start", "end"), *_identifiers("globalTid", "nameId", "eventClass"))
_CALLCHAIN = (
    *_required("id", "symbol", "stackDepth"),
    *_identifiers("module", "originalIP", "unwindMethod"),
    *_quantities("kernelMode", "unresolved", "specialEntry"),
)
_MPI_CALL = (*_required("start"), *_identifiers("end", "globalTid", "textId"))

_CUDA = (
    TableSpec(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        (
            *_DEVICE_OPERATION,
            *_identifiers("shortName", "demangledName", "mangledName", "launchType"),
            *_identifiers("graphNodeId", "graphId", "gridId"),
            *_quantities("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread"),
            *_quantities("staticSharedMemory", "dynamicSharedMemory", "sharedMemoryExecuted"),
            ColumnSpec("blocks", default=0, parts=("gridX", "gridY", "gridZ")),
            ColumnSpec("threadsPerBlock", default=0, parts=("blockX", "blockY", "blockZ")),
            ColumnSpec("sharedMemory", default=0, parts=("staticSharedMemory", "dynamicSharedMemory"), operator="+"),
            *_quantities("localMemoryPerThread", "localMemoryTotal", "clusterX", "clusterY", "clusterZ"),
        ),
    ),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        (
            *_DEVICE_OPERATION,
            *_quantities("bytes", "copyCount"),
            *_identifiers("copyKind", "srcKind", "dstKind", "migrationCause", "graphNodeId", "virtualAddress"),
            *_identifiers("srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId"),
        ),
    ),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        (*_DEVICE_OPERATION, *_quantities("bytes", "value"), *_identifiers("graphNodeId", "memKind")),
    ),
    TableSpec("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (*_DEVICE_OPERATION, *_identifiers("graphId", "graphExecId"))),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        (*_HOST_CALL, *_CORRELATION, *_quantities("returnValue"), *_identifiers("callchainId")),
    ),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        (
            *_required("start", "end"),
            *_identifiers("deviceId", "contextId", "greenContextId", "streamId", "globalPid"),
            *_CORRELATION,
            *_identifiers("syncType", "eventId", "eventSyncId"),
        ),
    ),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        (
            *_required("eventId"),
            *_identifiers("deviceId", "contextId", "greenContextId", "streamId", "globalPid"),
            *_CORRELATION,
            *_identifiers("eventSyncId", "timestamp"),
        ),
    ),
    TableSpec(
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        (*_HOST_CALL, *_CORRELATION, *_identifiers("overheadType")),
    ),
    TableSpec("CUBLAS_EVENTS", _HOST_CALL),
    TableSpec("CUDNN_EVENTS", _HOST_CALL),
    TableSpec(
        "CUDA_GRAPH_EVENTS",
        (*_HOST_CALL, *_identifiers("graphId", "originalGraphId", "graphExecId")),
        identified_by="graphId",
    ),
    TableSpec(
        "CUDA_GRAPH_NODE_EVENTS",
        (*_HOST_CALL, *_identifiers("graphNodeId", "originalGraphNodeId")),
        older=("CUDA_GRAPH_EVENTS",),
        identified_by="graphNodeId",
    ),
    TableSpec(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        (
            *_required("start"),
            *_identifiers("globalPid", "deviceId", "contextId", "address", "memKind", "memoryOperationType"),
            *_identifiers("localMemoryPoolAddress"),
            *_quantities("bytes", "correlationId", "localMemoryPoolSize", "localMemoryPoolUtilizedSize"),
            *_texts("name"),
        ),
    ),
    TableSpec(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        (*_required("start"), *_identifiers("globalPid", "address", "CpuInstruction", "module")),
    ),
    TableSpec(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        (
            *_required("start", "end"),
            *_identifiers("globalPid", "deviceId", "address", "faultAccessType"),
            *_quantities("numberOfPageFaults"),
        ),
    ),
)

_HOST = (
    TableSpec("PROFILER_OVERHEAD", (*_HOST_CALL, *_identifiers("overheadType"), *_quantities("returnValue"))),
    TableSpec(
        "OSRT_API",
        (
            *_HOST_CALL,
            *_quantities("returnValue", "nestingLevel", "correlationId"),
            *_identifiers("callchainId", "argumentsId"),
        ),
    ),
    # Made of a trace of the PyTorch profiler: what threads were in, and functions of Python that wait.
    *(
        TableSpec(name, (*_required("start", "end"), *_identifiers("globalTid", "nameId"), *_quantities("returnValue")))
        for name in ("PROFILER_FUNCTIONS", "PROFILER_WAITS")
    ),
    TableSpec("OSRT_CALLCHAINS", _CALLCHAIN),
    TableSpec("CUDA_CALLCHAINS", _CALLCHAIN),
    TableSpec("SAMPLING_CALLCHAINS", _CALLCHAIN),
    TableSpec(
        "COMPOSITE_EVENTS",
        (
            *_required("id", "start"),
            *_identifiers("cpu", "threadState", "globalTid"),
            *_quantities("cpuCycles"),
        ),
    ),
    TableSpec(
        "SCHED_EVENTS",
        (
            *_required("start"),
            ColumnSpec("isSchedIn", default=0, required=True),
            *_identifiers("cpu", "globalTid", "threadState", "threadBlock"),
        ),
    ),
    TableSpec(
        "OSRT_FILE_ACCESS_EVENTS",
        (
            *_required("fileAccessId", "startedAt", "endedAt"),
            *_identifiers("threadId", "eventType", "apiCallId"),
            *_quantities("bytesProcessed"),
        ),
    ),
    TableSpec(
        "OSRT_FILE_ACCESS_DESCRIPTORS",
        (*_required("fileAccessId"), *_identifiers("processId", "openedAt", "closedAt"), *_texts("filePath")),
    ),
    TableSpec(
        "NVTX_EVENTS",
        (
            *_required("start", "eventType"),
            *_identifiers("end", "globalTid", "endGlobalTid", "rangeId", "category", "textId", "domainId"),
            *_identifiers("jsonTextId", "color"),
            *_quantities("uint64Value", "int64Value", "uint32Value", "int32Value"),
            *_reals("doubleValue", "floatValue"),
            *_texts("text", "jsonText"),
            ColumnSpec("binaryData", ColumnType.BLOB),
        ),
    ),
    TableSpec(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES",
        (*_required("domainId", "schemaId"), *_quantities("offset"), *_texts("name", required=True)),
    ),
    TableSpec(
        "MPI_COLLECTIVES_EVENTS",
        (
            *_MPI_CALL,
            *_identifiers("commHandle", "rootRank", "requestHandle"),
            *_quantities("size", "recvSize"),
        ),
    ),
    TableSpec(
        "MPI_P2P_EVENTS",
        (*_MPI_CALL, *_identifiers("commHandle", "tag", "remoteRank", "requestHandle"), *_quantities("size")),
    ),
    TableSpec("MPI_START_WAIT_EVENTS", (*_MPI_CALL, *_identifiers("requestHandle"))),
    TableSpec("MPI_OTHER_EVENTS", _MPI_CALL),
    TableSpec("MPI_RANKS", _required("globalTid", "rank")),
    TableSpec("MPI_COMMUNICATORS", (ColumnSpec("size", default=0, older=("localSize",)),)),
)

_CONTEXT_SWITCH = (
    *_required("timestamp", "tag"),
    *_identifiers("vmId", "seqNo", "contextId", "globalPid", "gpuId"),
)

_DEVICE = (
    TableSpec("GPU_CONTEXT_SWITCH_EVENTS", _CONTEXT_SWITCH, older=("FECS_EVENTS",)),
    TableSpec("GPU_METRICS", (*_required("timestamp", "metricId"), *_identifiers("typeId"), *_reals("value"))),
    TableSpec(
        "TARGET_INFO_GPU_METRICS",
        (*_required("metricId"), *_identifiers("typeId", "sourceId"), *_texts("typeName", "metricName")),
    ),
    TableSpec(
        "TARGET_INFO_GPU",
        (
            ColumnSpec("id", required=True, older=("deviceId",)),
            *_identifiers("vmId", "pwGpuId", "cuDevice"),
            *_quantities("isDiscrete", "smCount", "totalMemory", "memoryBandwidth", "clockRate", "l2CacheSize"),
            *_quantities("maxWarpsPerSm", "maxBlocksPerSm", "maxThreadsPerBlock", "maxRegistersPerSm"),
            *_quantities("maxShmemPerSm", "threadsPerWarp", "asyncEngines", "computeMajor", "computeMinor"),
            *_texts("name", "busLocation", "uuid", "chipName"),
        ),
    ),
    TableSpec(
        "TARGET_INFO_CUDA_DEVICE",
        (
            *_required("cudaId", "pid"),
            *_identifiers("gpuId"),
            *_quantities("numMultiprocessors"),
            *_texts("uuid"),
        ),
    ),
    TableSpec(
        "TARGET_INFO_CUDA_GPU",
        (
            *_required("deviceId"),
            *_identifiers("vmId", "pid"),
            *_quantities("numMultiprocessors", "maxWarpsPerMultiprocessor", "coreClockRate"),
            *_quantities("maxBlocksPerMultiprocessor", "maxRegistersPerMultiprocessor"),
            *_quantities("maxSharedMemoryPerMultiprocessor", "numThreadsPerWarp"),
            *_quantities("globalMemoryBandwidth", "globalMemorySize"),
            *_quantities("computeCapabilityMajor", "computeCapabilityMinor"),
            *_texts("name", "pciBusId"),
        ),
    ),
    TableSpec(
        "TARGET_INFO_CUDA_STREAM",
        (
            *_required("streamId"),
            *_identifiers("hwId", "vmId", "processId", "contextId", "flag"),
            *_quantities("priority"),
        ),
    ),
    TableSpec(
        "TARGET_INFO_CUDA_NULL_STREAM",
        (*_required("streamId"), *_identifiers("hwId", "vmId", "processId", "deviceId", "contextId")),
    ),
    TableSpec(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        (
            *_required("contextId"),
            *_identifiers("nullStreamId", "hwId", "vmId", "processId", "deviceId", "parentContextId"),
            *_quantities("isGreenContext", "numMultiprocessors"),
        ),
    ),
    TableSpec("TARGET_INFO_WDDM_CONTEXTS", (*_identifiers("context", "engineType", "nodeOrdinal"),)),
)

_SESSION = (
    TableSpec("StringIds", (*_required("id"), *_texts("value", required=True))),
    TableSpec("ThreadNames", (*_required("nameId", "globalTid"), *_quantities("priority"))),
    TableSpec("PROCESSES", (*_required("globalPid"), *_identifiers("pid"), *_texts("name"))),
    TableSpec(
        "ANALYSIS_DETAILS",
        (*_required("duration"), *_identifiers("globalVid", "startTime", "stopTime")),
    ),
    TableSpec("TARGET_INFO_SESSION_START_TIME", _required("utcEpochNs")),
    TableSpec("META_DATA_EXPORT", _texts("name", "value", required=True), older=("EXPORT_META_DATA",)),
    TableSpec(
        "DIAGNOSTIC_EVENT",
        (
            *_required("severity"),
            *_identifiers("timestamp", "timestampType", "source", "globalPid"),
            *_texts("text", required=True),
        ),
    ),
)


def work_spec(name: str) -> TableSpec:
    """A table of device work that is not declared: what every operation has, and its bytes."""
    return TableSpec(name, (*_DEVICE_OPERATION, ColumnSpec("bytes", default=0, older=("sourceBytes",))))


CAPTURE_OPTIONS = TableSpec("META_DATA_CAPTURE", _texts("name", "value"))
SYSTEM = TableSpec("TARGET_INFO_SYSTEM_ENV", _texts("name", "value"))
"""What nsys was asked to record, and on what. Not among TABLES: they hold environment variables and names of hosts."""

TABLES: dict[str, TableSpec] = {table.name: table for table in (*_CUDA, *_HOST, *_DEVICE, *_SESSION)}
"""Every declared table by its canonical name."""


def table_spec(name: str) -> TableSpec:
    """The declaration of a table. Raises KeyError: asking for an undeclared one is a mistake in the code."""
    if name not in TABLES:
        raise KeyError(f"table {name!r} is not declared")
    return TABLES[name]
