"""The tables of an nsys SQLite export as text, by export schema version.

One line a table. A column is `name`, then `?` where it may be NULL, `:text` where it is not an integer, and `@since`
or `@since-until` where only some schema versions have it (`until` is the first version without it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMAS = {
    "2020": None,
    "2.9.1": "2022.2.1.31",
    "3.13.2": "2024.5.1.113",
    "3.17.2": "2025.1.1.65",
    "3.24.8": "2025.6.1.190",
    "3.28.1": "2026.4.1.0",
}
"""Export schema versions that can be written, and the nsys version of each; "2020" has no version table."""

_TABLES = """
StringIds: id value:text
META_DATA_EXPORT@3.4.0: name:text value?:text
EXPORT_META_DATA@2.9.1-3.4.0: name:text value?:text
ANALYSIS_DETAILS@2.9.1: globalVid duration startTime stopTime
TARGET_INFO_SESSION_START_TIME@2.9.1: utcEpochNs utcTime?:text localTime?:text
DIAGNOSTIC_EVENT@3.13.2: timestamp timestampType source severity text:text globalPid?
PROCESSES@2.9.1: globalPid? pid? name?:text
ThreadNames: nameId priority? globalTid?
TARGET_INFO_GPU: vmId id name?:text busLocation?:text isDiscrete? l2CacheSize? totalMemory? memoryBandwidth? clockRate? smCount? uuid?:text chipName?:text cuDevice? maxWarpsPerSm? threadsPerWarp?
TARGET_INFO_CUDA_DEVICE@3.17.1: gpuId cudaId pid uuid?:text@3.24.7 numMultiprocessors?@3.24.7
TARGET_INFO_CUDA_CONTEXT_INFO@3.7.2: nullStreamId hwId vmId processId deviceId contextId parentContextId? isGreenContext?
TARGET_INFO_CUDA_NULL_STREAM@0-3.7.2: streamId hwId vmId processId deviceId contextId
TARGET_INFO_CUDA_STREAM: streamId hwId vmId processId contextId priority flag
CUPTI_ACTIVITY_KIND_KERNEL: start end deviceId contextId greenContextId?@3.7.2 streamId correlationId? globalPid? demangledName shortName mangledName?@2.9.1 launchType? cacheConfig? registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted? graphNodeId? sharedMemoryLimitConfig? graphId?@3.24.0 clusterX?@3.24.0 clusterY?@3.24.0 clusterZ?@3.24.0
CUPTI_ACTIVITY_KIND_MEMCPY: start end deviceId contextId greenContextId?@3.7.2 streamId correlationId? globalPid? bytes copyKind deprecatedSrcId? srcKind? dstKind? srcDeviceId? srcContextId? dstDeviceId? dstContextId? migrationCause? graphNodeId? virtualAddress?@2.9.1 copyCount?@3.17.2
CUPTI_ACTIVITY_KIND_MEMSET: start end deviceId contextId greenContextId?@3.7.2 streamId correlationId? globalPid? value bytes graphNodeId? memKind?
CUPTI_ACTIVITY_KIND_GRAPH_TRACE@3.7.2: start end deviceId contextId greenContextId? streamId correlationId? globalPid? graphId graphExecId
CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH@3.28.1: start end deviceId contextId greenContextId? streamId correlationId? globalPid? graphNodeId? graphId?
CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS@3.28.1: start end eventClass deviceId contextId streamId correlationId? globalPid? ChannelID sourceBytes NumberOfOperations
CUPTI_ACTIVITY_KIND_JIT@3.28.1: start end eventClass globalTid? correlationId? nameId? overheadType jitEntryType jitOperationType deviceId? jitOperationCorrelationId? cacheSize? cachePath?:text
CUDA_HOST_CALLBACK@3.28.1: start end eventClass globalTid? correlationId? nameId?
CUPTI_ACTIVITY_KIND_RUNTIME: start end eventClass globalTid? correlationId? nameId returnValue callchainId?
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: start end deviceId contextId greenContextId?@3.7.2 streamId correlationId? globalPid? deprecatedSyncType?@3.17.1 syncType eventId eventSyncId?@3.17.1
CUPTI_ACTIVITY_KIND_CUDA_EVENT@2.9.1: timestamp?@3.24.8 deviceId contextId greenContextId?@3.7.2 streamId correlationId? globalPid? eventId eventSyncId?@3.17.2
CUPTI_ACTIVITY_KIND_OVERHEAD@3.24.0: start end eventClass globalTid? correlationId? nameId overheadType
CUDA_GPU_MEMORY_USAGE_EVENTS@2.9.1: start globalPid? deviceId contextId? address pc? bytes memKind memoryOperationType name?:text correlationId? localMemoryPoolAddress?@3.0.0 localMemoryPoolReleaseThreshold?@3.0.0 localMemoryPoolSize?@3.0.0 localMemoryPoolUtilizedSize?@3.0.0
CUDA_UM_CPU_PAGE_FAULT_EVENTS@2.9.1: start globalPid? address originalFaultPc? CpuInstruction module? unresolvedFaultPc?
CUDA_UM_GPU_PAGE_FAULT_EVENTS@2.9.1: start end globalPid? deviceId address numberOfPageFaults faultAccessType
PROFILER_OVERHEAD: start end globalTid? correlationId?@0-2.9.1 nameId returnValue@0-3.24.0 overheadType@3.24.0
OSRT_API: start end eventClass globalTid? correlationId?@0-2.9.1 nameId returnValue nestingLevel? callchainId argumentsId?@3.23.3
OSRT_FILE_ACCESS_EVENTS@3.23.3: fileAccessId threadId startedAt endedAt eventType? apiCallId? bytesProcessed?
OSRT_FILE_ACCESS_DESCRIPTORS@3.23.3: fileAccessId processId? openedAt? closedAt? filePath?:text
OSRT_CALLCHAINS: id symbol module kernelMode? thumbCode? unresolved? specialEntry? originalIP? unwindMethod? stackDepth
CUDA_CALLCHAINS@2.9.1: id symbol module unresolved? originalIP? stackDepth
SCHED_EVENTS: start cpu isSchedIn globalTid? threadState?@3.13.2 threadBlock?@3.13.2
COMPOSITE_EVENTS: id start cpu? threadState? globalTid? cpuCycles
SAMPLING_CALLCHAINS: id symbol module kernelMode? thumbCode? unresolved? specialEntry? originalIP? unwindMethod? stackDepth
NVTX_EVENTS: start end? eventType rangeId? category? color? text?:text globalTid? endGlobalTid? textId? domainId? uint64Value? int64Value? doubleValue? uint32Value? int32Value? floatValue? jsonTextId? jsonText?:text binaryData?:text@3.16.1 eventId?@3.28.1
NVTX_EXPORT_TRANSLATION@3.28.1: originalName:text sanitizedName:text
NVTX_PAYLOAD_SCHEMA_ENTRIES@3.16.1: domainId schemaId idx flags? type? name?:text description?:text arrayOrUnionDetail? offset?
CUPTI_ACTIVITY_KIND_OPENACC_DATA@2.9.1: start end nameId? globalTid? eventKind? DeviceType? lineNo? cuDeviceId? cuContextId? cuStreamId? srcFile? funcName? bytes? varName?
CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH@2.9.1: start end nameId? globalTid? eventKind? DeviceType? lineNo? cuDeviceId? cuContextId? cuStreamId? srcFile? funcName? numGangs? numWorkers? vectorLength? kernelName?
CUPTI_ACTIVITY_KIND_OPENACC_OTHER@2.9.1: start end nameId? globalTid? eventKind? DeviceType? lineNo? cuDeviceId? cuContextId? cuStreamId? srcFile? funcName?
OPENMP_EVENT_KIND_PARALLEL@2.9.1: start end eventClass globalTid? correlationId? nameId eventKind? parallelId? parentTaskId?
OPENMP_EVENT_KIND_WORKSHARE@2.9.1: start end eventClass globalTid? correlationId? nameId eventKind? parallelId? taskId? kind?
MPI_OTHER_EVENTS@2.9.1: start end? globalTid? textId?
MPI_P2P_EVENTS@3.7.2: start end? globalTid? textId? commHandle? tag? remoteRank? size? requestHandle?
MPI_START_WAIT_EVENTS@3.7.2: start end? globalTid? textId? requestHandle?
MPI_RANKS@3.7.2: globalTid rank
CUBLAS_EVENTS@2.9.1: start end eventClass globalTid? nameId
CUDNN_EVENTS@2.9.1: start end eventClass globalTid? nameId
CUDA_GRAPH_NODE_EVENTS@3.16.1: start end eventClass globalTid? nameId graphNodeId originalGraphNodeId?
GPU_CONTEXT_SWITCH_EVENTS@3.7.2: tag vmId seqNo contextId timestamp globalPid? gpuId?
FECS_EVENTS@0-3.7.2: tag vmId seqNo contextId timestamp globalPid? gpuId?
GPU_METRICS@3.7.2: timestamp typeId metricId value?
TARGET_INFO_GPU_METRICS@3.7.2: typeId sourceId typeName:text metricId metricName:text
"""  # noqa: E501

ENUMS: dict[str, tuple[tuple[int, str, str], ...]] = {
    "ENUM_CUDA_MEMCPY_OPER": (
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"),
        (12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"),
    ),
    "ENUM_CUDA_MEM_KIND": (
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
    ),
    "ENUM_CUPTI_SYNC_TYPE": (
        (1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        (2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait event"),
        (3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        (4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    ),
    "ENUM_GPU_CTX_SWITCH": (
        (0, "SOF", "SO"),
        (1, "REQ_BY_HOST", "Request by host"),
        (7, "SAVE_END", "Save end"),
        (8, "RESTORE_START", "Restore start"),
        (9, "CONTEXT_START", "Context start"),
    ),
    "ENUM_NSYS_EVENT_CLASS": (
        (0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        (27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OS runtime"),
    ),
    "ENUM_SAMPLING_THREAD_STATE": ((0, "Unknown", "Unknown"), (1, "Running", "Running")),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one table in one schema version."""

    name: str
    nullable: bool
    text: bool

    @property
    def declaration(self) -> str:
        kind = "TEXT" if self.text else "INTEGER"
        return f'"{self.name}" {kind}' + ("" if self.nullable else " NOT NULL")

    @property
    def default(self) -> int | str | None:
        """What a row holds where nobody gave a value."""
        if self.nullable:
            return None
        return "" if self.text else 0


@cache
def tables(schema: str) -> Mapping[str, tuple[Column, ...]]:
    """Every table of a schema version with its columns in order. The same for all who ask: nobody changes it."""
    version = _version(schema)
    found = {}
    for line in _TABLES.strip().splitlines():
        head, _, columns = line.partition(": ")
        table, exists = _dated(head, version)
        if exists:
            found[table] = tuple(_columns(columns, version))
    return found


def _columns(text: str, version: tuple[int, ...]) -> list[Column]:
    found = []
    for item in text.split():
        declared, exists = _dated(item, version)
        if exists:
            name, _, kind = declared.partition(":")
            found.append(Column(name.rstrip("?"), name.endswith("?"), kind == "text"))
    return found


def _dated(item: str, version: tuple[int, ...]) -> tuple[str, bool]:
    name, _, dates = item.partition("@")
    since, _, until = dates.partition("-")
    return name, _version(since or "0") <= version and (not until or version < _version(until))


def _version(text: str) -> tuple[int, ...]:
    return (0,) if text == "2020" else tuple(int(part) for part in text.split("."))
