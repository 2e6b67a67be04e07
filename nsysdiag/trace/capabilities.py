"""Which kinds of evidence a trace holds, and how to capture those that it lacks."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.report import Capability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set


OS_RUNTIME = "os-runtime"


class EvidenceKind(Struct, frozen=True):
    """A kind of evidence: the tables that may carry it, and the option of `nsys profile` that brings it."""

    tables: tuple[str, ...]
    recapture: str | None


KINDS: dict[str, EvidenceKind] = {
    "kernels": EvidenceKind(("CUPTI_ACTIVITY_KIND_KERNEL",), "--trace=cuda"),
    "copies": EvidenceKind(("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"), "--trace=cuda"),
    "cuda-api": EvidenceKind(("CUPTI_ACTIVITY_KIND_RUNTIME",), "--trace=cuda"),
    "synchronization": EvidenceKind(("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",), "--trace=cuda"),
    OS_RUNTIME: EvidenceKind(("OSRT_API",), "--trace=osrt"),
    "scheduling": EvidenceKind(("SCHED_EVENTS",), "--cpuctxsw=process-tree"),
    "cpu-samples": EvidenceKind(("COMPOSITE_EVENTS",), "--sample=process-tree"),
    "nvtx": EvidenceKind(("NVTX_EVENTS",), "--trace=nvtx"),
    "cuda-graphs": EvidenceKind(
        ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GRAPH_NODE_EVENTS"), "--cuda-graph-trace=node"
    ),
    "cuda-events": EvidenceKind(("CUPTI_ACTIVITY_KIND_CUDA_EVENT",), "--cuda-event-trace=true"),
    "cuda-libraries": EvidenceKind(("CUBLAS_EVENTS", "CUDNN_EVENTS"), "--trace=cublas,cudnn"),
    "mpi": EvidenceKind(
        ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
        "--trace=mpi",
    ),
    "overhead": EvidenceKind(("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"), None),
    "gpu-metrics": EvidenceKind(("GPU_METRICS",), "--gpu-metrics-devices=all"),
    "gpu-context-switch": EvidenceKind(("GPU_CONTEXT_SWITCH_EVENTS",), "--gpuctxsw=true"),
    "unified-memory": EvidenceKind(
        ("CUDA_UM_CPU_PAGE_FAULT_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS"),
        "--cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true",
    ),
    "memory-usage": EvidenceKind(("CUDA_GPU_MEMORY_USAGE_EVENTS",), "--cuda-memory-usage=true"),
    "device-map": EvidenceKind(("TARGET_INFO_CUDA_DEVICE",), None),
    "diagnostics": EvidenceKind(("DIAGNOSTIC_EVENT",), None),
}
"""Every kind of evidence by its id."""


_EVENT_TYPES = {
    "cuda": ("kernels", "copies", "cuda-api", "synchronization"),
    "osruntime": (OS_RUNTIME,),
    "nvtxevents": ("nvtx",),
    "mpi": ("mpi",),
}
"""The evidence that each type of events brings which nsys was asked to record, by its name in the metadata."""
ASKED, NOT_ON_WINDOWS = "asked for at capture, and there was none", "nsys records no OS calls on Windows"
NO_USE = (ASKED, NOT_ON_WINDOWS)
"""How the reasons begin for which another capture brings no more."""
_SYSTEM = re.compile(r"OsDescription|SoftwarePlatform|DEVICE_TYPE|DeviceType")


class Captured(Struct, frozen=True):
    """How a trace was recorded, as far as it says: the kinds of evidence that nsys was asked to record, and whether the
    program ran on Windows."""

    asked: frozenset[str] = frozenset()
    windows: bool = False

    @classmethod
    def of(cls, options: Iterable[tuple[str, str]], system: Iterable[tuple[str, str]]) -> Captured:
        """By the names and values of the options of the capture, and of what describes the system."""
        told = list(options)
        types = {value.lower() for name, value in told if name == "CAPTURE_EVENT_TYPE"}
        types |= {"cuda" for name, value in told if name.endswith("COLLECT_CUDA_TRACE") and value.lower() == "true"}
        asked = frozenset(kind for each in types for kind in _EVENT_TYPES.get(each, ()))
        described = [value for name, value in (*told, *system) if _SYSTEM.fullmatch(name)]
        return cls(asked, any("windows" in value.lower() for value in described))


def capabilities(
    missing: Callable[[str], str | None], rows: Callable[[str], int | str], captured: Captured | None = None
) -> list[Capability]:
    """One record for each kind. `missing` says why a table has no rows (None: it has), `rows` how many it has. What was
    asked for, or cannot be recorded, has no option that brings it."""
    found, captured = [], captured or Captured()
    for name, kind in KINDS.items():
        there = [table for table in kind.tables if missing(table) is None]
        if there:
            counts = [_count(rows(table)) + (f" in {table}" if len(kind.tables) > 1 else "") for table in there]
            found.append(Capability(id=name, available=True, why=", ".join(counts)))
        else:
            reasons = "; ".join(reason for reason in map(missing, kind.tables) if reason is not None)
            no_use = ASKED if name in captured.asked else ""
            no_use = NOT_ON_WINDOWS if captured.windows and name == OS_RUNTIME else no_use
            why = "; ".join(filter(None, (no_use, reasons)))
            found.append(Capability(id=name, available=False, why=why, recapture=None if no_use else kind.recapture))
    return found


def was_asked(capabilities: Iterable[Capability], kind: str) -> bool:
    """Whether a kind of evidence was asked for at capture, and there was none."""
    return any(each.id == kind and not each.available and each.why.startswith(ASKED) for each in capabilities)


def _count(rows: int | str) -> str:
    if isinstance(rows, int):
        return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"
    return f"about {int(rows.removeprefix('~')):,} rows"


def recapture_command(
    missing: Set[str], more: Sequence[str] = (), output: str = "trace", *, os_calls: bool = True
) -> str | None:
    """One `nsys profile` line that writes to `output`. It records CUDA, NVTX, the OS runtime (if `os_calls`) and the
    `missing` kinds of evidence (their ids), with `more` options. None if no option of nsys records any of them.
    The last words stand for the user's program."""
    options = [option for name, kind in KINDS.items() if name in missing for option in (kind.recapture or "").split()]
    if not options:
        return None
    traced = [option.removeprefix("--trace=").split(",") for option in options if option.startswith("--trace=")]
    others = [option for option in options if not option.startswith("--trace=")]
    trace = ",".join(dict.fromkeys(["cuda", "nvtx", *(["osrt"] if os_calls else []), *itertools.chain(*traced)]))
    return " ".join(
        ["nsys profile", f"--trace={trace}", *dict.fromkeys(others), *more, f"--output={output}", "PROGRAM"]
    )
