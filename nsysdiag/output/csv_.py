"""The report's tables as CSV (RFC 4180, UTF-8): plain numbers, the unit in the name of the column.

Every table begins with the device. Text that a spreadsheet would take for a formula gets a leading apostrophe.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from nsysdiag.output.format import Format, RenderOptions
from nsysdiag.output.names import visible
from nsysdiag.output.view import Causes, by_length, ledger_rows, slices_by_time
from nsysdiag.output.words import path_label

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.model import DeviceReport, KernelRow, Report

Cell = str | int | float | bool | None
Rows = Iterator[tuple[Cell, ...]]

# Full-width forms and white space in front do not stop every spreadsheet from seeing a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def _devices(report: Report) -> Rows:
    for device in report.devices:
        ops = device.ops
        yield (
            device.key,
            device.name,
            device.window.start_ns,
            device.window.end_ns,
            device.window_ns,
            device.busy_ns,
            device.compute_ns,
            device.exposed_comm_ns,
            device.exposed_copy_ns,
            device.idle_ns,
            device.coverage,
            device.verdict.id,
            device.gap_count,
            ops.kernel,
            ops.memcpy,
            ops.memset,
            ops.graph,
        )


def _gaps(report: Report) -> Rows:
    causes = Causes(report.causes)
    for device in report.devices:
        for gap in by_length(device.gaps):
            slices = slices_by_time(gap)
            thread, before, after = gap.thread, gap.previous_op, gap.next_op
            yield (
                device.key,
                gap.start_ns,
                gap.end_ns,
                gap.end_ns - gap.start_ns,
                slices[0].cause if slices else None,
                causes.title(slices[0].cause) if slices else None,
                ";".join(f"{part.cause}:{part.ns}" for part in slices),
                "; ".join(part.evidence for part in slices if part.evidence),
                thread.pid if thread else None,
                thread.tid if thread else None,
                thread.name if thread else None,
                before.name if before else None,
                after.name if after else None,
                path_label(gap.nvtx),
                gap.sync_drained,
                gap.confidence,
            )


def _ledger(report: Report) -> Rows:
    causes = Causes(report.causes)
    for device in report.devices:
        for row in ledger_rows(device, causes):
            yield (
                device.key,
                row.cause.id,
                row.cause.title,
                row.ns,
                row.root_ns,
                _share(row.ns, device.idle_ns),
                _share(row.ns, device.window_ns),
            )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _labels(report: Report) -> Rows:
    for device in report.devices:
        for cause, labels in sorted(device.labels.items()):
            yield from ((device.key, cause, label, ns) for label, ns in sorted(labels.items()))


def _kernels(report: Report) -> Rows:
    return _kernel_rows((device, device.kernels) for device in report.devices)


def _communication(report: Report) -> Rows:
    return _kernel_rows((device, device.communication.kernels) for device in report.devices)


def _kernel_rows(groups: Iterable[tuple[DeviceReport, list[KernelRow]]]) -> Rows:
    for device, rows in groups:
        for row in rows:
            yield (
                device.key,
                row.short_name,
                row.name,
                row.count,
                row.total_ns,
                row.mean_ns,
                row.median_ns,
                row.min_ns,
                row.max_ns,
                row.communication,
            )


def _copies(report: Report) -> Rows:
    for device in report.devices:
        for row in device.copies.rows:
            yield (
                device.key,
                row.operation,
                row.src,
                row.dst,
                row.count,
                row.total_ns,
                row.bytes,
                row.bytes_per_second,
            )


def _signatures(report: Report) -> Rows:
    for device in report.devices:
        for row in device.signatures:
            yield (
                device.key,
                row.id,
                row.previous_op,
                row.next_op,
                path_label(row.nvtx),
                row.cause,
                row.count,
                row.total_ns,
                row.median_ns,
                row.max_ns,
                row.representative_start_ns,
            )


def _api(report: Report) -> Rows:
    for device in report.devices:
        for row in device.launch.api:
            yield (
                device.key,
                row.name,
                row.cause,
                row.count,
                row.total_ns,
                row.mean_ns,
                row.median_ns,
                row.min_ns,
                row.max_ns,
            )


def _findings(report: Report) -> Rows:
    for finding in report.findings:
        yield (
            finding.device,
            finding.id,
            finding.severity,
            finding.cause,
            finding.title,
            finding.lost_ns,
            finding.lost_share,
            finding.ceiling_ns,
            finding.confidence,
            path_label(finding.nvtx),
            "; ".join(finding.evidence),
            "; ".join(finding.advice),
        )


_KERNEL_HEADER = "device,short_name,name,count,total_ns,mean_ns,median_ns,min_ns,max_ns,communication"
_TABLES: dict[str, tuple[str, Callable[[Report], Rows]]] = {
    "gaps": (
        "device,start_ns,end_ns,length_ns,cause,cause_title,slices_ns,evidence,process_id,thread_id,thread_name,"
        "previous_op,next_op,nvtx,sync_drained,confidence",
        _gaps,
    ),
    "devices": (
        "device,name,window_start_ns,window_end_ns,window_ns,busy_ns,compute_ns,exposed_comm_ns,exposed_copy_ns,"
        "idle_ns,coverage,verdict,gap_count,kernels,memcpys,memsets,graphs",
        _devices,
    ),
    "ledger": ("device,cause,title,idle_ns,root_idle_ns,share_of_idle,share_of_window", _ledger),
    "labels": ("device,cause,label,idle_ns", _labels),
    "kernels": (_KERNEL_HEADER, _kernels),
    "copies": (
        "device,operation,source_memory,destination_memory,count,total_ns,bytes,bytes_per_second",
        _copies,
    ),
    "communication": (_KERNEL_HEADER, _communication),
    "signatures": (
        "device,id,previous_op,next_op,nvtx,cause,count,total_ns,median_ns,max_ns,representative_start_ns",
        _signatures,
    ),
    "api": ("device,name,cause,count,total_ns,mean_ns,median_ns,min_ns,max_ns", _api),
    "findings": (
        "device,id,severity,cause,title,lost_ns,lost_share,ceiling_ns,confidence,nvtx,evidence,advice",
        _findings,
    ),
}
MAIN_TABLE = "gaps"
TABLES = tuple(table for table in _TABLES if table != MAIN_TABLE)


def render(report: Report, _options: RenderOptions) -> bytes:
    """The gaps table: one row a gap, the longest of each device first."""
    return _table(MAIN_TABLE, report)


def tables(report: Report) -> dict[str, bytes]:
    """Every table by name; `gaps` is the one that `render` gives."""
    return {name: _table(name, report) for name in _TABLES}


def table_path(path: Path, table: str) -> Path:
    """Where a table other than the gaps lies beside `x.csv`: `x.TABLE.csv`."""
    return path.with_name(f"{path.stem}.{table}{path.suffix}")


def is_ours(data: bytes) -> bool:
    """Is the first row exactly the header of one of our tables?"""
    first = data.split(b"\r\n", 1)[0]
    return any(first == header.encode() for header, _rows in _TABLES.values())


def _table(name: str, report: Report) -> bytes:
    header, rows = _TABLES[name]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header.split(","))
    writer.writerows([_cell(value) for value in row] for row in rows(report))
    return buffer.getvalue().encode()


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    return str(value)


def _text(value: str) -> str:
    risky = value.lstrip(" ").startswith(FORMULA_STARTS)
    return ("'" if risky else "") + visible(value)


FORMAT = Format("csv", ".csv", "CSV, the gaps and beside them one file for every other table", render, is_ours)
