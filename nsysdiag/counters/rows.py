"""The tables about GPU metrics as rows of plain values: see `nsysdiag.formats.rows` for their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.columns import Rows

if TYPE_CHECKING:
    from nsysdiag.report import Report


def metric_rows(report: Report) -> Rows:
    """A row for each metric of each device."""
    for device in report.devices:
        for row in device.gpu_metrics.metrics if device.gpu_metrics else ():
            means = (row.window, row.kernels, row.compute, row.gaps, row.idle)
            counts = (row.samples, row.gap_samples, row.left_out, row.capped)
            name = " + ".join(row.names)
            yield (
                device.key,
                row.id,
                row.title,
                row.unit,
                *means,
                row.lowest,
                row.highest,
                *counts,
                row.peak_bytes_per_second,
                name,
            )


def metric_rows_by_name(report: Report) -> Rows:
    """A row for each metric of each range, kernel and iteration that the report lists."""
    for device in report.devices:
        found = device.gpu_metrics
        if found is None:
            continue
        for span in found.ranges:
            for metric, mean in sorted(span.means.items()):
                yield (device.key, "range", span.name, span.count, span.gpu_ns, span.samples, None, metric, mean)
        for row in found.kernels:
            for metric, mean in sorted(row.means.items()):
                yield (device.key, "kernel", row.name, row.count, row.gpu_ns, row.samples, row.whole, metric, mean)
        for each in found.iterations:
            for metric, mean in sorted(each.means.items()):
                yield (device.key, "iteration", str(each.index), 1, each.length_ns, each.samples, None, metric, mean)
