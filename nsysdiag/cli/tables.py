"""What `info` and `baseline list` show: the facts of a trace, baselines and their runs; and small tables as text,
Markdown and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.baselines import BaselineRun, folder_of, held_in, read_accepted, runs_in
from nsysdiag.ci.acceptances import today
from nsysdiag.messages import printable
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.report import Capability, Report
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


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns padded to their widest cell, a space of two between; names are made safe for a terminal."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{indent}{line.rstrip()}\n" for line in lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table; a pipe inside a cell is escaped."""
    cells = [[printable(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_json(value: object) -> str:
    """Indented JSON, keys sorted, one final newline: same value, same text."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


UNKNOWN = "–"
OF_ALL = ("name", "runs", "latest run", "accepted")
OF_RUNS = ("run", "added (UTC)", "trace", "step", "GPUs")
OF_ACCEPTED = ("accepted up to", "until", "state", "reason")


def all_listed(baselines: Path, names: Sequence[str]) -> str:
    """A row for each baseline."""
    rows = []
    for name in names:
        folder = folder_of(baselines, name)
        runs = runs_in(folder)
        open_ones = sum(each.until >= today() for each in read_accepted(folder))
        rows.append((name, f"{len(runs):,}", _added(runs[-1]) if runs else UNKNOWN, f"{open_ones:,}"))
    return aligned(OF_ALL, rows)


def one_listed(folder: Path) -> str:
    """A row for each run, the oldest first, and one for each accepted regression; and what cannot be read."""
    held, accepted = held_in(folder), read_accepted(folder)
    text = aligned(OF_RUNS, [_run(*each) for each in held.runs]) if held.runs else "No run.\n"
    text += "".join(f"Damaged: {printable(name)}\n" for name in held.damaged)
    if accepted:
        rows = [
            (
                each.expression.text,
                each.until.isoformat(),
                "accepted" if each.until >= today() else "expired",
                each.reason,
            )
            for each in accepted
        ]
        text += f"\n{aligned(OF_ACCEPTED, rows)}"
    return text


def _run(run: BaselineRun, report: Report) -> tuple[str, ...]:
    steps = [device.iterations.p50_ns for device in report.devices if device.iterations and device.iterations.steady]
    names = dict.fromkeys(device.name for device in report.devices)
    gpus = f"{len(report.devices)} × {', '.join(names)}"
    return run.path.name, _added(run), report.trace.file, format_ns(max(steps)) if steps else UNKNOWN, gpus


def _added(run: BaselineRun) -> str:
    return run.added.strftime("%Y-%m-%d %H:%M:%S") if run.added else UNKNOWN
