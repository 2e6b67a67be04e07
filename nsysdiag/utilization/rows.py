"""The tables about utilization as rows of plain values: see `nsysdiag.formats.rows` for their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysdiag.report import Report

Row = tuple[str | int | float | bool | None, ...]


def utilization_rows(report: Report) -> Iterator[Row]:
    """A row for each device."""
    for device in report.devices:
        found, estimate = device.utilization, device.utilization.estimate
        yield (
            device.key,
            found.util_time_share,
            found.util_period_share,
            found.busy_share,
            found.compute_share,
            found.exposed_comm_share,
            found.exposed_copy_share,
            found.idle_share,
            found.sm_active_share,
            found.efficiency,
            estimate.sm_active_share,
            estimate.sm_active_at_most,
            estimate.resident_share,
            estimate.covered_share,
            found.sm_source,
            ";".join(alert.id for alert in found.alerts),
            found.sentence,
        )


def utilization_series_rows(report: Report) -> Iterator[Row]:
    """A row for each step of both series that lies in the window."""
    for device in report.devices:
        found = device.utilization
        for name, series in (("by_time", found.by_time), ("by_period", found.by_period)):
            for at, share in enumerate(series.values if series else ()):
                if series is not None and share is not None:
                    start = series.start_ns + at * series.step_ns
                    yield (device.key, name, start, min(start + series.step_ns, device.window.end_ns), share)


def kernel_shape_rows(report: Report) -> Iterator[Row]:
    """A row for each kernel name that the report lists with a shape."""
    for device in report.devices:
        for row in device.utilization.kernels:
            shape = (row.blocks, row.threads, row.registers, row.shared_bytes, row.blocks_per_sm)
            filled = (row.waves, row.sm_share, row.resident_share, row.limit)
            yield (device.key, row.short_name, row.name, row.count, row.total_ns, row.shapes, *shape, *filled)
