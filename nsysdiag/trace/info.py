"""The facts of a trace that need no analysis: versions, devices, tables, and the kinds of evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from nsysdiag.report import Capability
    from nsysdiag.trace.trace import Trace


TABLES_WITH_THREADS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API")
TABLES_WITH_PROCESSES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")
PROCESS_MASK = ~np.int64(0xFFFFFF)


class GpuFacts(Struct, frozen=True):
    """A GPU as the trace lists it; None where the export does not say."""

    name: str
    sm_count: int | None
    memory_bytes: int | None


class TraceFacts(Struct, frozen=True):
    """`recorder` is another program than nsys, None if it was that. `capture_ns` is None where the export does not say;
    processes and threads are those with events."""

    file: str
    size_bytes: int
    fingerprint: str
    recorder: str | None
    nsys_version: str | None
    schema_version: str | None
    capture_ns: int | None
    gpus: list[GpuFacts]
    processes: int
    threads: int
    tables: dict[str, int | str]
    capabilities: list[Capability]
    warnings: list[str]


def gather(trace: Trace) -> TraceFacts:
    """Read the few columns that the facts need."""
    threads = _distinct(trace, TABLES_WITH_THREADS, "globalTid")
    processes = np.union1d(threads & PROCESS_MASK, _distinct(trace, TABLES_WITH_PROCESSES, "globalPid"))
    durations = trace.read("ANALYSIS_DETAILS", "duration")["duration"]
    return TraceFacts(
        file=trace.file,
        size_bytes=trace.size_bytes,
        fingerprint=trace.fingerprint,
        recorder=trace.recorder,
        nsys_version=trace.nsys_version,
        schema_version=trace.schema_version,
        capture_ns=int(durations.max()) if len(durations) else None,
        gpus=_gpus(trace),
        processes=len(processes),
        threads=len(threads),
        tables={table: rows for table, rows in sorted(trace.tables().items()) if rows not in (0, "~0")},
        capabilities=trace.capabilities(),
        warnings=trace.warnings,
    )


def _distinct(trace: Trace, tables: tuple[str, ...], column: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The ids in a column over several tables; -1 is nsys's row without one."""
    ids = np.unique(np.concatenate([np.unique(trace.read(table, column)[column]) for table in tables]))
    return ids[ids > 0]


def _gpus(trace: Trace) -> list[GpuFacts]:
    table, sm_count, memory = "TARGET_INFO_GPU", "smCount", "totalMemory"
    if not trace.has(table):
        table, sm_count, memory = "TARGET_INFO_CUDA_GPU", "numMultiprocessors", "globalMemorySize"
    rows = trace.read(table, "name", sm_count, memory)
    names = [rows["name"].values[code] if code >= 0 else "unknown GPU" for code in rows["name"].codes.tolist()]
    counts, sizes = rows[sm_count].tolist(), rows[memory].tolist()
    return [GpuFacts(name, sms or None, size or None) for name, sms, size in zip(names, counts, sizes, strict=True)]
