"""Numbers that nsys exports use, by name, as far as they matter. They are fixed: exports may lack every ENUM_ table."""

from __future__ import annotations

from enum import IntEnum


class CopyKind(IntEnum):
    """CUPTI_ACTIVITY_KIND_MEMCPY.copyKind."""

    UNKNOWN = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    HOST_TO_ARRAY = 3
    ARRAY_TO_HOST = 4
    ARRAY_TO_ARRAY = 5
    ARRAY_TO_DEVICE = 6
    DEVICE_TO_ARRAY = 7
    DEVICE_TO_DEVICE = 8
    HOST_TO_HOST = 9
    PEER_TO_PEER = 10
    UNIFIED_HOST_TO_DEVICE = 11
    UNIFIED_DEVICE_TO_HOST = 12
    UNIFIED_DEVICE_TO_DEVICE = 13
    MEMORY_DECOMPRESSION = 40
    """No number of CUPTI's: rows of CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS."""

    @property
    def label(self) -> str:
        """As nsys shows it: `Host-to-Device`."""
        return _COPY_LABELS[self]


_COPY_LABELS = {kind: kind.name.title().replace("Unified_", "Unified ").replace("_To_", "-to-") for kind in CopyKind}

MIGRATIONS = frozenset(
    {CopyKind.UNIFIED_HOST_TO_DEVICE, CopyKind.UNIFIED_DEVICE_TO_HOST, CopyKind.UNIFIED_DEVICE_TO_DEVICE}
)
"""Kinds of copies that unified memory makes by itself, without a launch."""


class Labelled(IntEnum):
    """Numbers that are shown by their names."""

    @property
    def label(self) -> str:
        """`device static`."""
        return self.name.lower().replace("_", " ")


class MemoryKind(Labelled):
    """srcKind, dstKind and memKind."""

    PAGEABLE = 0
    PINNED = 1
    DEVICE = 2
    ARRAY = 3
    MANAGED = 4
    DEVICE_STATIC = 5
    MANAGED_STATIC = 6
    UNKNOWN = 7


class MigrationCause(Labelled):
    """CUPTI_ACTIVITY_KIND_MEMCPY.migrationCause: why unified memory moved."""

    UNKNOWN = 0
    USER_PREFETCH = 1
    PAGE_FAULT = 2
    SPECULATIVE_PREFETCH = 3
    EVICTION = 4
    ACCESS_COUNTERS = 5


class FaultAccess(Labelled):
    """CUDA_UM_GPU_PAGE_FAULT_EVENTS.faultAccessType."""

    UNKNOWN = 0
    READ = 1
    WRITE = 2
    ATOMIC = 3
    PREFETCH = 4


class MemoryOperation(IntEnum):
    """CUDA_GPU_MEMORY_USAGE_EVENTS.memoryOperationType."""

    ALLOCATION = 0
    DEALLOCATION = 1


class StreamFlag(IntEnum):
    """TARGET_INFO_CUDA_STREAM.flag."""

    NON_BLOCKING = 2
    NULL = 3


class NvtxEvent(IntEnum):
    """NVTX_EVENTS.eventType."""

    MARK = 34
    PUSH_POP_RANGE = 59
    START_END_RANGE = 60
    PAYLOAD_PUSH_POP_RANGE = 70
    PAYLOAD_START_END_RANGE = 71
    DOMAIN_CREATE = 75


class OverheadType(IntEnum):
    """CUPTI_ACTIVITY_KIND_OVERHEAD.overheadType."""

    DRIVER_COMPILER = 2
    BUFFER_FLUSH = 3
    INSTRUMENTATION = 4
    RESOURCE = 5
    RUNTIME_MODULE_LOADING = 6
    LAZY_FUNCTION_LOADING = 7
    COMMAND_BUFFER_FULL = 8


class ThreadState(IntEnum):
    """COMPOSITE_EVENTS.threadState and SCHED_EVENTS.threadState."""

    RUNNING = 1
    INTERRUPTIBLE = 2
    UNINTERRUPTIBLE = 3


class Severity(IntEnum):
    """DIAGNOSTIC_EVENT.severity."""

    INFO = 1
    WARNING = 2
    ERROR = 3
    VERBOSE = 4


NO_EVENT = 0xFFFFFFFF
"""An eventId that means none."""
