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

import re
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


# The declarations, a table each: its name, its `|older` names, `?column` for `identified_by`; then its columns.
#
# ```
# name        an identifier or a time, -1 if unknown       name!              required
# name=0      a quantity, 0 if unknown                     name|older         with an older name
# name:text   likewise :real and :blob                     name=one*other     made of parts, 0 if unknown; or one+other
# ```

_OPERATION = "start! end! deviceId! contextId greenContextId streamId globalPid correlationId=0"
_CALL = "start! end! globalTid nameId eventClass"
_CHAIN = "id! symbol! stackDepth! module originalIP unwindMethod kernelMode=0 unresolved=0 specialEntry=0"
_MPI = "start! end globalTid textId"
_DECLARED = f"""
CUPTI_ACTIVITY_KIND_KERNEL {_OPERATION}
    shortName demangledName mangledName launchType graphNodeId graphId gridId
    gridX=0 gridY=0 gridZ=0 blockX=0 blockY=0 blockZ=0 registersPerThread=0 staticSharedMemory=0 dynamicSharedMemory=0
    sharedMemoryExecuted=0 localMemoryPerThread=0 localMemoryTotal=0 clusterX=0 clusterY=0 clusterZ=0
    blocks=gridX*gridY*gridZ threadsPerBlock=blockX*blockY*blockZ sharedMemory=staticSharedMemory+dynamicSharedMemory
CUPTI_ACTIVITY_KIND_MEMCPY {_OPERATION}
    copyKind srcKind dstKind migrationCause graphNodeId virtualAddress srcDeviceId srcContextId dstDeviceId dstContextId
    bytes=0 copyCount=0
CUPTI_ACTIVITY_KIND_MEMSET {_OPERATION} graphNodeId memKind bytes=0 value=0
CUPTI_ACTIVITY_KIND_GRAPH_TRACE {_OPERATION} graphId graphExecId
CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH {_OPERATION} graphNodeId graphId
CUPTI_ACTIVITY_KIND_RUNTIME {_CALL} callchainId correlationId=0 returnValue=0
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start! end! deviceId contextId greenContextId streamId globalPid
    syncType eventId eventSyncId correlationId=0
CUPTI_ACTIVITY_KIND_CUDA_EVENT eventId! deviceId contextId greenContextId streamId globalPid
    eventSyncId timestamp correlationId=0
CUPTI_ACTIVITY_KIND_OVERHEAD {_CALL} overheadType correlationId=0
CUPTI_ACTIVITY_KIND_JIT {_CALL} overheadType correlationId=0
CUDA_HOST_CALLBACK {_CALL} correlationId=0
CUBLAS_EVENTS {_CALL}
CUDNN_EVENTS {_CALL}
CUDA_GRAPH_EVENTS ?graphId {_CALL} graphId originalGraphId graphExecId
CUDA_GRAPH_NODE_EVENTS|CUDA_GRAPH_EVENTS ?graphNodeId {_CALL} graphNodeId originalGraphNodeId
CUDA_GPU_MEMORY_USAGE_EVENTS start! globalPid deviceId contextId address memKind memoryOperationType
    localMemoryPoolAddress bytes=0 correlationId=0 localMemoryPoolSize=0 localMemoryPoolUtilizedSize=0 name:text
CUDA_UM_CPU_PAGE_FAULT_EVENTS start! globalPid address CpuInstruction module
CUDA_UM_GPU_PAGE_FAULT_EVENTS start! end! globalPid deviceId address faultAccessType numberOfPageFaults=0
PROFILER_OVERHEAD {_CALL} overheadType returnValue=0
OSRT_API {_CALL} callchainId argumentsId returnValue=0 nestingLevel=0 correlationId=0
PROFILER_FUNCTIONS start! end! globalTid nameId returnValue=0
PROFILER_WAITS start! end! globalTid nameId returnValue=0
CUPTI_ACTIVITY_KIND_OPENACC_DATA start! end! globalTid nameId srcFile lineNo=0
CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH start! end! globalTid nameId srcFile lineNo=0
CUPTI_ACTIVITY_KIND_OPENACC_OTHER start! end! globalTid nameId srcFile lineNo=0
OPENMP_EVENT_KIND_PARALLEL {_CALL}
OPENMP_EVENT_KIND_WORKSHARE {_CALL}
OPENMP_EVENT_KIND_TASK {_CALL}
OPENMP_EVENT_KIND_MASTER {_CALL}
OPENMP_EVENT_KIND_CRITICAL_SECTION {_CALL}
OPENMP_EVENT_KIND_REDUCTION {_CALL}
OPENMP_EVENT_KIND_SYNC_REGION {_CALL}
OPENMP_EVENT_KIND_SYNC_REGION_WAIT {_CALL}
OPENMP_EVENT_KIND_MUTEX_WAIT {_CALL}
OSRT_CALLCHAINS {_CHAIN}
CUDA_CALLCHAINS {_CHAIN}
SAMPLING_CALLCHAINS {_CHAIN}
COMPOSITE_EVENTS id! start! cpu threadState globalTid cpuCycles=0
SCHED_EVENTS start! cpu globalTid threadState threadBlock isSchedIn=0!
OSRT_FILE_ACCESS_EVENTS fileAccessId! startedAt! endedAt! threadId eventType apiCallId bytesProcessed=0
OSRT_FILE_ACCESS_DESCRIPTORS fileAccessId! processId openedAt closedAt filePath:text
NVTX_EVENTS start! eventType! end globalTid endGlobalTid rangeId category textId domainId jsonTextId color eventId
    uint64Value=0 int64Value=0 uint32Value=0 int32Value=0 doubleValue:real floatValue:real
    text:text jsonText:text binaryData:blob
NVTX_PAYLOAD_SCHEMA_ENTRIES domainId! schemaId! offset=0 name:text!
NVTX_EXPORT_TRANSLATION originalName:text sanitizedName:text
MPI_COLLECTIVES_EVENTS {_MPI} commHandle rootRank requestHandle size=0 recvSize=0
MPI_P2P_EVENTS {_MPI} commHandle tag remoteRank requestHandle size=0
MPI_START_WAIT_EVENTS {_MPI} requestHandle
MPI_OTHER_EVENTS {_MPI}
MPI_RANKS globalTid! rank!
MPI_COMMUNICATORS size|localSize=0
GPU_CONTEXT_SWITCH_EVENTS|FECS_EVENTS timestamp! tag! vmId seqNo contextId globalPid gpuId
GPU_METRICS timestamp! metricId! typeId value:real
TARGET_INFO_GPU_METRICS metricId! typeId sourceId typeName:text metricName:text
TARGET_INFO_GPU vmId pwGpuId cuDevice isDiscrete=0 smCount=0 totalMemory=0 memoryBandwidth=0 clockRate=0 l2CacheSize=0
    maxWarpsPerSm=0 maxBlocksPerSm=0 maxThreadsPerBlock=0 maxRegistersPerSm=0 maxShmemPerSm=0 threadsPerWarp=0
    asyncEngines=0 computeMajor=0 computeMinor=0 name:text busLocation:text uuid:text chipName:text id|deviceId!
TARGET_INFO_CUDA_DEVICE cudaId! pid! gpuId numMultiprocessors=0 uuid:text
TARGET_INFO_CUDA_GPU deviceId! vmId pid numMultiprocessors=0 maxWarpsPerMultiprocessor=0 coreClockRate=0
    maxBlocksPerMultiprocessor=0 maxRegistersPerMultiprocessor=0 maxSharedMemoryPerMultiprocessor=0 numThreadsPerWarp=0
    globalMemoryBandwidth=0 globalMemorySize=0 computeCapabilityMajor=0 computeCapabilityMinor=0
    name:text pciBusId:text
TARGET_INFO_CUDA_STREAM streamId! hwId vmId processId contextId flag priority=0
TARGET_INFO_CUDA_NULL_STREAM streamId! hwId vmId processId deviceId contextId
TARGET_INFO_CUDA_CONTEXT_INFO contextId! nullStreamId hwId vmId processId deviceId parentContextId
    isGreenContext=0 numMultiprocessors=0
TARGET_INFO_WDDM_CONTEXTS context engineType nodeOrdinal
StringIds id! value:text!
ThreadNames nameId! globalTid! priority=0
PROCESSES globalPid! pid name:text
ANALYSIS_DETAILS duration! globalVid startTime stopTime
TARGET_INFO_SESSION_START_TIME utcEpochNs!
META_DATA_EXPORT|EXPORT_META_DATA name:text! value:text!
DIAGNOSTIC_EVENT severity! timestamp timestampType source globalPid text:text!
"""
"""All tables but those below. PROFILER_FUNCTIONS and PROFILER_WAITS are made of a trace of the PyTorch profiler: what
threads were in, and Python functions that wait."""
_COLUMN = re.compile(r"(?P<names>[\w|]+)(:(?P<type>\w+))?(=(?P<made>0|\w+(\*\w+)+|\w+(\+\w+)+))?(?P<required>!?)")


def _column(word: str) -> ColumnSpec:
    found = _COLUMN.fullmatch(word)
    assert found is not None, word
    name, *older = found["names"].split("|")
    parts = re.split(r"[*+]", found["made"] or "")
    return ColumnSpec(
        name,
        ColumnType((found["type"] or "integer").upper()),
        default=-1 if found["made"] is None else 0,
        required=bool(found["required"]),
        older=tuple(older),
        parts=tuple(parts) if len(parts) > 1 else (),
        operator="+" if "+" in word else "*",
    )


def _table(declared: str) -> TableSpec:
    names, *words = declared.split()
    name, *older = names.split("|")
    identified = words.pop(0)[1:] if words[0].startswith("?") else None
    return TableSpec(name, tuple(map(_column, words)), tuple(older), identified)


TABLES: dict[str, TableSpec] = {each.name: each for each in map(_table, re.split(r"\n(?! )", _DECLARED.strip()))}
"""Every declared table by its canonical name."""
OPENACC_TABLES = tuple(name for name in TABLES if name.startswith("CUPTI_ACTIVITY_KIND_OPENACC_"))
OPENMP_TABLES = tuple(name for name in TABLES if name.startswith("OPENMP_EVENT_KIND_"))
CAPTURE_OPTIONS, SYSTEM = map(
    _table, ("META_DATA_CAPTURE name:text value:text", "TARGET_INFO_SYSTEM_ENV name:text value:text")
)
"""What nsys was asked to record, and on what. Not among TABLES: they hold environment variables and names of hosts."""


def work_spec(name: str) -> TableSpec:
    """A table of device work that is not declared: what every operation has, its bytes, and how many it stands for."""
    declared = f"{_OPERATION} bytes|sourceBytes=0 copyCount|NumberOfOperations=0"
    return TableSpec(name, tuple(map(_column, declared.split())))


def payload_spec(name: str, fields: Sequence[str]) -> TableSpec:
    """A table with the payloads of one schema of NVTX, and those of its fields that are read."""
    return TableSpec(name, (ColumnSpec("eventId", required=True), *(ColumnSpec(each, default=0) for each in fields)))


def table_spec(name: str) -> TableSpec:
    """The declaration of a table. Raises KeyError: asking for an undeclared one is a mistake in the code."""
    if name not in TABLES:
        raise KeyError(f"table {name!r} is not declared")
    return TABLES[name]
