"""The report's tables as rows of plain values: the one source of CSV files and data frames.

Tables about devices begin with the device. The unit of a number is in the name of its column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.cost import rows as cost_rows
from nsysdiag.counters import rows as gpu_metric_rows
from nsysdiag.document.code import call_site_label, host_code_label, whole
from nsysdiag.document.columns import Column, Rows, of
from nsysdiag.document.view import Causes, by_length, by_time, ledger_rows, slices_by_time
from nsysdiag.document.words import chain_label, path_label, row_query
from nsysdiag.host import rows as host_rows
from nsysdiag.launches import rows as launch_rows
from nsysdiag.memory import rows as memory_rows
from nsysdiag.ranks.show.rows import RANK_COLUMNS, rank_rows
from nsysdiag.utilization import rows as utilization_rows

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, KernelRow, Report


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the report; each row that `rows` gives has a cell for each of `columns`."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Report], Rows]

    @property
    def header(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]


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
                gap.root.cause if gap.root else None,
                " ← ".join(gap.root.chain) if gap.root else None,
                gap.root.confidence if gap.root else None,
                call_site_label(gap.call_site, whole),
                path_label(gap.nvtx_elsewhere),
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
        for cause in sorted({*device.labels, *device.root_labels}):
            here, root = device.labels.get(cause, {}), device.root_labels.get(cause, {})
            for label in sorted({*here, *root}):
                yield (device.key, cause, label, here.get(label, 0), root.get(label, 0))


def _kernels(report: Report) -> Rows:
    return _kernel_rows((device, device.kernels) for device in report.devices)


def _communication(report: Report) -> Rows:
    return _kernel_rows((device, device.communication.kernels) for device in report.devices)


def _collectives(report: Report) -> Rows:
    for device in report.devices:
        for row in device.communication.kinds:
            yield (device.key, row.kind, row.count, row.total_ns, row.exposed_ns, row.overlapped_ns)


def _mpi(report: Report) -> Rows:
    for device in report.devices:
        for row in device.communication.mpi:
            yield (device.key, row.name, row.count, row.total_ns, row.idle_ns)


def _ranks(report: Report) -> Rows:
    if report.ranks is not None:
        yield from rank_rows(report.ranks)


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
                row.representative_index,
                row.p95_ns,
                row.per_iteration_ns,
                row.share_of_idle,
                call_site_label(row.call_site, whole),
                host_code_label(row.host_code, whole),
            )


def _iterations(report: Report) -> Rows:
    for device in report.devices:
        for row in device.iterations.rows if device.iterations else ():
            yield (
                device.key,
                row.index,
                row.start_ns,
                row.end_ns,
                row.end_ns - row.start_ns,
                row.compute_ns,
                row.exposed_comm_ns,
                row.exposed_copy_ns,
                sum(row.ledger.values()),
                ";".join(f"{cause}:{ns}" for cause, ns in by_time(row.ledger)),
                row.steady,
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
            finding.signature,
            finding.call,
            finding.gaps,
            chain_label(finding.chain),
            "; ".join(row_query(row) for row in finding.rows),
        )


_DURATIONS = of("integer", "count total_ns mean_ns median_ns min_ns max_ns")
_KERNEL_COLUMNS = (*of("text", "device short_name name"), *_DURATIONS, *of("truth", "communication"))
_TABLES = (
    Table(
        "gaps",
        (
            *of("text", "device"),
            *of("integer", "start_ns end_ns length_ns"),
            *of("text", "cause cause_title slices_ns evidence"),
            *of("integer or none", "process_id thread_id"),
            *of("text", "thread_name previous_op next_op nvtx"),
            *of("truth", "sync_drained"),
            *of("number", "confidence"),
            *of("text", "root_cause root_chain"),
            *of("number", "root_confidence"),
            *of("text", "call_site nvtx_elsewhere"),
        ),
        _gaps,
    ),
    Table(
        "devices",
        (
            *of("text", "device name"),
            *of("integer", "window_start_ns window_end_ns window_ns"),
            *of("integer", "busy_ns compute_ns exposed_comm_ns exposed_copy_ns idle_ns"),
            *of("number", "coverage"),
            *of("text", "verdict"),
            *of("integer", "gap_count kernels memcpys memsets graphs"),
        ),
        _devices,
    ),
    Table(
        "ledger",
        (
            *of("text", "device cause title"),
            *of("integer", "idle_ns root_idle_ns"),
            *of("number", "share_of_idle share_of_window"),
        ),
        _ledger,
    ),
    Table("labels", (*of("text", "device cause label"), *of("integer", "idle_ns root_idle_ns")), _labels),
    Table("kernels", _KERNEL_COLUMNS, _kernels),
    Table(
        "copies",
        (
            *of("text", "device operation source_memory destination_memory"),
            *of("integer", "count total_ns bytes"),
            *of("number", "bytes_per_second"),
        ),
        _copies,
    ),
    Table(
        "copy_rates",
        (
            *of("text", "device direction"),
            *of("integer", "count total_ns bytes large_count large_pageable"),
            *of("number", "best_bytes_per_second limit_bytes_per_second"),
            *of("integer or none", "slow_ns"),
            *of("integer", "exceeds_pcie_generation"),
        ),
        memory_rows.copy_rate_rows,
    ),
    Table(
        "pinning",
        (
            *of("text", "device direction"),
            *of("integer", "from_bytes pageable_count pageable_ns pageable_bytes pinned_count pinned_ns pinned_bytes"),
            *of("integer or none", "saving_ns"),
        ),
        memory_rows.pinning_rows,
    ),
    Table(
        "exposed_copies",
        (
            *of("text", "device operation host_memory"),
            *of("truth", "ordered"),
            *of("text", "call"),
            *of("integer", "count total_ns exposed_ns"),
        ),
        memory_rows.exposed_rows,
    ),
    Table(
        "migrations",
        (
            *of("text", "device direction cause"),
            *of("integer", "count bytes total_ns"),
            *of("number", "bytes_per_second"),
        ),
        memory_rows.migration_rows,
    ),
    Table(
        "device_memory",
        (
            *of("text", "device"),
            *of("integer or none", "limit_bytes"),
            *of("integer", "peak_bytes peak_at_ns begin_bytes end_bytes managed_peak_bytes pinned_peak_bytes"),
            *of("truth", "at_least"),
            *of("integer", "unknown_frees"),
            *of("integer or none", "headroom_bytes"),
            *of("truth", "near_limit"),
            *of("text", "growth"),
            *of("number", "growth_bytes_per_iteration"),
            *of("integer", "allocations frees allocated_bytes freed_bytes calls call_ns idle_ns"),
        ),
        memory_rows.memory_rows,
    ),
    Table(
        "memory_level",
        (*of("text", "device"), *of("integer", "start_ns end_ns lowest_bytes highest_bytes")),
        memory_rows.memory_level_rows,
    ),
    Table("communication", _KERNEL_COLUMNS, _communication),
    Table(
        "collectives",
        (*of("text", "device kind"), *of("integer", "count total_ns exposed_ns overlapped_ns")),
        _collectives,
    ),
    Table("mpi", (*of("text", "device name"), *of("integer", "count total_ns idle_ns")), _mpi),
    Table("ranks", RANK_COLUMNS, _ranks),
    Table(
        "signatures",
        (
            *of("text", "device id previous_op next_op nvtx cause"),
            *of("integer", "count total_ns median_ns max_ns representative_start_ns representative_index p95_ns"),
            *of("integer or none", "per_iteration_ns"),
            *of("number", "share_of_idle"),
            *of("text", "call_site host_code"),
        ),
        _signatures,
    ),
    Table(
        "iterations",
        (
            *of("text", "device"),
            *of("integer", "iteration start_ns end_ns length_ns"),
            *of("integer", "compute_ns exposed_comm_ns exposed_copy_ns idle_ns"),
            *of("text", "ledger_ns"),
            *of("truth", "steady"),
        ),
        _iterations,
    ),
    Table("api", (*of("text", "device name cause"), *_DURATIONS), _api),
    Table(
        "launches",
        (
            *of("text", "device what"),
            *of("integer", "count total_ns p5_ns p25_ns p50_ns p75_ns p95_ns p99_ns max_ns"),
        ),
        launch_rows.launch_rows,
    ),
    Table(
        "run_ahead",
        (
            *of("text", "device"),
            *of("integer", "start_ns end_ns lowest_depth"),
            *of("number", "mean_depth"),
            *of("integer", "highest_depth"),
        ),
        launch_rows.run_ahead_rows,
    ),
    Table(
        "collapses",
        (*of("text", "device call cause"), *of("integer", "count idle_ns median_depth")),
        launch_rows.collapse_rows,
    ),
    Table(
        "bubbles",
        (
            *of("text", "device"),
            *of("integer", "start_ns end_ns length_ns launches busy_ns idle_ns median_interval_ns median_work_ns"),
            *of("text", "nvtx"),
        ),
        launch_rows.bubble_rows,
    ),
    Table(
        "graphs",
        (
            *of("text", "device name"),
            *of("integer or none", "executable"),
            *of("integer", "launches"),
            *of("integer or none", "nodes"),
            *of("integer", "api_ns median_api_ns work_ns between_ns between_gaps"),
        ),
        launch_rows.graph_rows,
    ),
    Table("threads", host_rows.THREAD_COLUMNS, host_rows.thread_rows),
    Table("host_windows", host_rows.WINDOW_COLUMNS, host_rows.window_rows),
    Table(
        "cost",
        (
            *of("text", "device what finding currency"),
            *of("number", "gpu_hour_cost run_hours step hour run thousand_steps"),
        ),
        cost_rows.cost_rows,
    ),
    Table(
        "utilization",
        (
            *of("text", "device"),
            *of("number", "util_time_share util_period_share busy_share compute_share"),
            *of("number", "exposed_comm_share exposed_copy_share idle_share sm_active_share efficiency"),
            *of("number", "estimated_sm_active_share estimated_sm_active_at_most estimated_resident_share"),
            *of("number", "estimate_covered_share"),
            *of("text", "sm_source alerts sentence"),
        ),
        utilization_rows.utilization_rows,
    ),
    Table(
        "utilization_series",
        (*of("text", "device series"), *of("integer", "start_ns end_ns"), *of("number", "share")),
        utilization_rows.utilization_series_rows,
    ),
    Table(
        "kernel_shapes",
        (
            *of("text", "device short_name name"),
            *of("integer", "count total_ns shapes blocks threads registers shared_bytes"),
            *of("integer or none", "blocks_per_sm"),
            *of("number", "waves sm_share resident_share"),
            *of("text", "limit"),
        ),
        utilization_rows.kernel_shape_rows,
    ),
    Table(
        "gpu_metrics",
        (
            *of("text", "device metric title unit"),
            *of("number", "window_mean kernels_mean compute_mean gaps_mean idle_level lowest highest"),
            *of("integer", "samples gap_samples left_out capped"),
            *of("integer or none", "peak_bytes_per_second"),
            *of("text", "names"),
        ),
        gpu_metric_rows.metric_rows,
    ),
    Table(
        "gpu_metrics_by_name",
        (
            *of("text", "device what name"),
            *of("integer", "count time_ns samples"),
            *of("truth", "whole"),
            *of("text", "metric"),
            *of("number", "mean"),
        ),
        gpu_metric_rows.metric_rows_by_name,
    ),
    Table(
        "findings",
        (
            *of("text", "device id severity cause title"),
            *of("integer", "lost_ns"),
            *of("number", "lost_share"),
            *of("integer", "ceiling_ns"),
            *of("number", "confidence"),
            *of("text", "nvtx evidence advice signature call"),
            *of("integer", "gaps"),
            *of("text", "chain rows"),
        ),
        _findings,
    ),
)
BY_NAME = {table.name: table for table in _TABLES}
