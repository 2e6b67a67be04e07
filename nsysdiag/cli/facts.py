"""The facts of a trace that `info` shows: what kind of file it is and what it can tell, unanalysed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nsysdiag.model import Capability
    from nsysdiag.trace.trace import Trace

TABLES_WITH_THREADS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API")
TABLES_WITH_PROCESSES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")
PROCESS_MASK = ~np.int64(0xFFFFFF)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the trace lists it; None where the export does not say."""

    name: str
    sm_count: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """`capture_ns` is None where the export does not say; processes and threads are those with events."""

    file: str
    size_bytes: int
    fingerprint: str
    nsys_version: str | None
    schema_version: str | None
    capture_ns: int | None
    gpus: list[Gpu]
    processes: int
    threads: int
    tables: dict[str, int | str]
    capabilities: list[Capability]
    warnings: list[str]


def gather(trace: Trace) -> Facts:
    """Read the few columns that the facts need."""
    threads = _distinct(trace, TABLES_WITH_THREADS, "globalTid")
    processes = np.union1d(threads & PROCESS_MASK, _distinct(trace, TABLES_WITH_PROCESSES, "globalPid"))
    return Facts(
        file=trace.file,
        size_bytes=trace.size_bytes,
        fingerprint=trace.fingerprint,
        nsys_version=trace.nsys_version,
        schema_version=trace.schema_version,
        capture_ns=_capture_ns(trace),
        gpus=_gpus(trace),
        processes=len(processes),
        threads=len(threads),
        tables={table: rows for table, rows in sorted(trace.tables().items()) if rows not in (0, "~0")},
        capabilities=trace.capabilities(),
        warnings=list(trace.warnings),
    )


def _distinct(trace: Trace, tables: tuple[str, ...], column: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The ids in a column over several tables; -1 is nsys's row without one."""
    ids = np.unique(np.concatenate([np.unique(trace.read(table, column)[column]) for table in tables]))
    return ids[ids > 0]


def _capture_ns(trace: Trace) -> int | None:
    durations = trace.read("ANALYSIS_DETAILS", "duration")["duration"]
    return int(durations.max()) if len(durations) else None


def _gpus(trace: Trace) -> list[Gpu]:
    if trace.has("TARGET_INFO_GPU"):
        return _gpus_of(trace, "TARGET_INFO_GPU", "smCount", "totalMemory")
    return _gpus_of(trace, "TARGET_INFO_CUDA_GPU", "numMultiprocessors", "globalMemorySize")


def _gpus_of(trace: Trace, table: str, sm_count: str, memory: str) -> list[Gpu]:
    rows = trace.read(table, "name", sm_count, memory)
    names = [rows["name"].values[code] if code >= 0 else "unknown GPU" for code in rows["name"].codes.tolist()]
    counts, sizes = rows[sm_count].tolist(), rows[memory].tolist()
    return [Gpu(name, sms or None, size or None) for name, sms, size in zip(names, counts, sizes, strict=True)]
