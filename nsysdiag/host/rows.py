"""The tables about the host as rows of plain values: see `nsysdiag.formats.rows` for their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.columns import Rows, of
from nsysdiag.host.words import role

if TYPE_CHECKING:
    from nsysdiag.host.facts import HostThread
    from nsysdiag.report import Report

THREAD_COLUMNS = (
    *of("integer", "process_id thread_id"),
    *of("text", "thread_name process role launches"),
    *of("integer or none", "on_cpu_ns off_cpu_ns unknown_ns preempted_ns preemptions on_cpu_estimate_ns"),
    *of("integer or none", "switches voluntary involuntary cpus migrations"),
    *of("integer or none", "worst_stall_ns worst_stall_start_ns"),
    *of("text", "worst_stall_in"),
    *of("truth", "worst_stall_preempted"),
    *of("integer", "api_calls sync_calls"),
    *of("integer or none", "api_ns sync_ns os_ns"),
    *of("number", "on_cpu_share"),
)
WINDOW_COLUMNS = (
    *of("integer", "start_ns end_ns"),
    *of("integer or none", "switches"),
    *of("integer", "sync_calls"),
    *of("integer or none", "sync_p50_ns sync_p99_ns"),
    *of("integer", "sync_total_ns"),
    *of("number", "launches_per_second kernels_per_second busy_share off_cpu_share preempted_share crowded_share"),
    *of("integer or none", "sync_late_p50_ns"),
)


def thread_rows(report: Report) -> Rows:
    """A row for each thread that the report lists."""
    host = report.host
    for row in host.threads if host else ():
        length = host.end_ns - host.start_ns if host else 0
        yield (
            row.pid,
            row.tid,
            row.name,
            row.process,
            role(row),
            ";".join(f"{device}:{count}" for device, count in sorted(row.launches.items())),
            *(row.on_cpu_ns, row.off_cpu_ns, row.unknown_ns, row.preempted_ns, row.preemptions),
            row.on_cpu_estimate_ns,
            *(row.switches, row.voluntary, row.involuntary, row.cpus, row.migrations),
            *_stall(row),
            *(row.api_calls, row.sync_calls, row.api_ns, row.sync_ns, row.os_ns),
            None if row.on_cpu_ns is None else row.on_cpu_ns / length,
        )


def _stall(row: HostThread) -> tuple[int | None, int | None, str | None, bool | None]:
    stall = row.worst_stall
    return (stall.ns, stall.start_ns, stall.what, stall.preempted) if stall else (None, None, None, None)


def window_rows(report: Report) -> Rows:
    """A row for each window of time."""
    for row in report.host.windows if report.host else ():
        yield (
            *(row.start_ns, row.end_ns, row.switches),
            *(row.sync_calls, row.sync_p50_ns, row.sync_p99_ns, row.sync_total_ns),
            *(row.launches_per_second, row.kernels_per_second),
            *(row.busy_share, row.off_cpu_share, row.preempted_share, row.crowded_share),
            row.sync_late_p50_ns,
        )
