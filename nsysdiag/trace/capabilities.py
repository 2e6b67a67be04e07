"""Which kinds of evidence a trace holds, how to capture those that it lacks, and what else it says of itself."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.messages import printable
from nsysdiag.report import Capability
from nsysdiag.trace.enums import Severity
from nsysdiag.typed import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set
    from hashlib import _Hash
    from pathlib import Path

    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.format import InputFormat
    from nsysdiag.trace.trace import Trace


OS_RUNTIME, SCHEDULING, CPU_SAMPLES = "os-runtime", "scheduling", "cpu-samples"


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
    SCHEDULING: EvidenceKind(("SCHED_EVENTS",), "--cpuctxsw=process-tree"),
    CPU_SAMPLES: EvidenceKind(("COMPOSITE_EVENTS",), "--sample=process-tree"),
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
_OPTIONS = {
    "COLLECT_CUDA_TRACE": _EVENT_TYPES["cuda"],
    "COLLECT_NVTX_TRACE": ("nvtx",),
    "COLLECT_CPU_CTXSW_TRACE": (SCHEDULING,),
    "COLLECT_IP_BACKTRACE_SAMPLES": (CPU_SAMPLES,),
    "COLLECT_GPU_CTX_SW_TRACE": ("gpu-context-switch",),
    "COLLECT_GPU_MEMORY_USAGE": ("memory-usage",),
}
"""The evidence that each option brings which is `true`, by the last part of its name in the metadata."""
ASKED, NOT_ON_WINDOWS = "asked for at capture, and there was none", "nsys records no OS calls on Windows"
PERMITTED = "'nsys status --environment' says what to permit"
NEVER_NONE = frozenset((SCHEDULING, CPU_SAMPLES))
"""What there is of every program, unless the system does not permit that nsys records it."""
REFUSED = f"Scheduling or CPU samples were asked for at capture, and there were none: {PERMITTED}."
_SYSTEM = re.compile(r"OsDescription|SoftwarePlatform|DEVICE_TYPE|DeviceType")


class Captured(Struct, frozen=True):
    """How a trace was recorded, as far as it says: the kinds of evidence that nsys was asked to record, and whether the
    program ran on Windows. `rocm`: it used ROCm, which nsys cannot record."""

    asked: frozenset[str] = frozenset()
    windows: bool = False
    format: InputFormat | None = None
    rocm: bool = False

    @classmethod
    def of(cls, options: Iterable[tuple[str, str]], system: Iterable[tuple[str, str]]) -> Captured:
        """By the names and values of the options of the capture, and of what describes the system."""
        told = list(options)
        types = {value.lower() for name, value in told if name == "CAPTURE_EVENT_TYPE"}
        chosen = {name.rpartition(":")[2] for name, value in told if value.lower() == "true"}
        kinds = [*(_EVENT_TYPES.get(each, ()) for each in types), *(_OPTIONS.get(each, ()) for each in chosen)]
        asked = frozenset(itertools.chain(*kinds))
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
        if captured.format and captured.format.kinds is not None and name not in captured.format.kinds:
            option = None if captured.rocm else kind.recapture
            found.append(Capability(id=name, available=False, why=captured.format.lacks, recapture=option))
        elif there:
            counts = [_count(rows(table)) + (f" in {table}" if len(kind.tables) > 1 else "") for table in there]
            found.append(Capability(id=name, available=True, why=", ".join(counts)))
        else:
            reasons = "; ".join(reason for reason in map(missing, kind.tables) if reason is not None)
            no_use = _asked(name) if name in captured.asked else ""
            no_use = NOT_ON_WINDOWS if captured.windows and name == OS_RUNTIME else no_use
            why = "; ".join(filter(None, (no_use, reasons)))
            found.append(Capability(id=name, available=False, why=why, recapture=None if no_use else kind.recapture))
    return found


def _asked(name: str) -> str:
    return f"{ASKED}: {PERMITTED}" if name in NEVER_NONE else ASKED


def was_asked(capabilities: Iterable[Capability], kind: str) -> bool:
    """Whether a kind of evidence was asked for at capture, and there was none."""
    return any(each.id == kind and not each.available and each.recapture is None for each in capabilities)


def refused(capabilities: Iterable[Capability]) -> bool:
    """Whether scheduling or CPU samples were asked for, and there are none: the system did not permit it."""
    return any(was_asked(capabilities, kind) for kind in NEVER_NONE)


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


# What nsys itself reported, without paths and settings.

LIMIT = 20
LENGTH = 300
COLUMNS = ("severity", "text")
SEVERITIES = (Severity.WARNING, Severity.ERROR)
_LOSS = re.compile(
    r"\b(drop\w*|lost|loss|lose|fail\w*|unable|cannot|could not|incomplete\w*|overflow\w*|overrun\w*"
    r"|discard\w*|truncat\w*|missing|exceed\w*|skipp\w*|not supported|unsupported"
    r"|not (?:been )?(?:collected|recorded|traced)"
    r"|corrupt\w*|errors?|timed out)\b",
    re.IGNORECASE,
)
_DROPPED = re.compile(r"\b(drop\w*|lost|discard\w*|overflow\w*|overrun\w*|truncat\w*|incomplete\w*)\b", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")


def capture_warnings(events: Columns) -> list[Sentence]:
    """What the warnings and errors (DIAGNOSTIC_EVENT rows of SEVERITIES) say about lost or failed collection.

    Safe text. Repeated messages, numbers aside, are counted; errors come first; of more than LIMIT lines the last
    one counts the rest.
    """
    alike: dict[tuple[int, str], list[str]] = {}
    for severity, text in events.tuples("severity", "text"):
        if text is not None and tells_of_loss(text):
            message = without_private_parts(text)[:LENGTH]
            alike.setdefault((-severity, _NUMBERS.sub("#", message)), []).append(message)
    lines: list[Sentence] = []
    for (severity, _), messages in sorted(alike.items()):
        kind = "an error" if -severity == Severity.ERROR else "a warning"
        times = f" ({len(messages)} times)" if len(messages) > 1 else ""
        lines.append(
            say("nsys reported {} while capturing{}: {}", kind, times, typed.name(TextKind.MESSAGE, messages[0]))
        )
    if len(lines) > LIMIT:
        lines[LIMIT - 1 :] = [f"nsys reported {len(lines) - LIMIT + 1} more kinds of problems while capturing"]
    return lines


def tells_of_loss(text: str) -> bool:
    """Whether a message says that something was not collected."""
    return _LOSS.search(text) is not None


def tells_of_dropped(text: str) -> bool:
    """Whether a message says that events which had been collected are not in the trace."""
    return tells_of_loss(text) and _DROPPED.search(without_private_parts(text)) is not None


_PATH = re.compile(r"(?<![\w.)])(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}/)[^\s'\"<>|:;,]*")
_SETTING = re.compile(r"\b([A-Z_][A-Z0-9_]{2,})=\S+")


def without_private_parts(text: str) -> str:
    """One line without paths and without the values of environment variables."""
    text = _PATH.sub("<path>", " ".join(text.split()))
    return printable(_SETTING.sub(r"\1=<value>", text))


# What tells one file from another without reading all of it: its size, its time of change and its ends.

_MIB = 1 << 20


def add_ends(digest: _Hash, path: Path, size: int) -> None:
    """Add the first and the last MiB of the first `size` bytes of a file. Raises OSError."""
    with path.open("rb") as stream:
        digest.update(stream.read(_MIB))
        stream.seek(max(size - _MIB, 0))
        digest.update(stream.read(_MIB))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a whole file, as hex digits. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def has_changed(path: Path, size: int, modified_ns: int) -> bool:
    """Whether a file has another size or time of change than it had, or is gone."""
    try:
        now = path.stat()
    except OSError:
        return True
    return (now.st_size, now.st_mtime_ns) != (size, modified_ns)


# The facts of a trace that need no analysis: versions, devices, tables, and the kinds of evidence.

TABLES_WITH_THREADS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "OSRT_API")
TABLES_WITH_PROCESSES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")
PROCESS_MASK = ~np.int64(0xFFFFFF)


class GpuFacts(Struct, frozen=True):
    """A GPU as the trace lists it; None if the export does not say."""

    name: str
    sm_count: int | None
    memory_bytes: int | None


class TraceFacts(Struct, frozen=True):
    """`recorder` is another program than nsys, None if it was that. `capture_ns` is None if the export does not say;
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
    ids = distinct_values(np.concatenate([distinct_values(trace.read(table, column)[column]) for table in tables]))
    return ids[ids > 0]


def _gpus(trace: Trace) -> list[GpuFacts]:
    table, sm_count, memory = "TARGET_INFO_GPU", "smCount", "totalMemory"
    if not trace.has(table):
        table, sm_count, memory = "TARGET_INFO_CUDA_GPU", "numMultiprocessors", "globalMemorySize"
    return [
        GpuFacts("unknown GPU" if name is None else name, sms or None, size or None)
        for name, sms, size in trace.read(table, "name", sm_count, memory).tuples()
    ]
