"""The tables about launches as rows of plain values: see `nsysdiag.formats.rows` for their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nsysdiag.document.packed import unpack_series
from nsysdiag.document.words import path_label

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Distribution, Report

Row = tuple[str | int | float | bool | None, ...]
DISTRIBUTIONS = {
    "kernel": "Kernel",
    "call": "Launch call of a kernel",
    "interval": "From one launch to the next",
    "to_start": "From the call to the start of a kernel",
    "queue_delay": "In the queue",
}
"""What the distributions of a device are of, by the name of the field."""


def distributions(device: DeviceReport) -> list[tuple[str, Distribution]]:
    """Those that the device has, by the name of the field."""
    found = [(name, getattr(device.launch, name)) for name in DISTRIBUTIONS]
    return [(name, each) for name, each in found if each is not None]


def launch_rows(report: Report) -> Iterator[Row]:
    """A row for each distribution."""
    for device in report.devices:
        for name, each in distributions(device):
            percentiles = (each.p5_ns, each.p25_ns, each.p50_ns, each.p75_ns, each.p95_ns, each.p99_ns)
            yield (device.key, name, each.count, each.total_ns, *percentiles, each.max_ns)


def run_ahead_rows(report: Report) -> Iterator[Row]:
    """A row for each bucket of time."""
    for device in report.devices:
        ahead = device.launch.run_ahead
        if ahead is not None:
            series = unpack_series(ahead)
            columns = (series.edges[:-1], series.edges[1:], series.lowest, series.mean, series.highest)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                yield (device.key, *row)


def collapse_rows(report: Report) -> Iterator[Row]:
    """A row for each call, or kind of host code, that let a queue run dry."""
    for device in report.devices:
        for row in device.launch.run_ahead.collapses if device.launch.run_ahead else ():
            yield (device.key, row.call, row.cause, row.count, row.idle_ns, row.median_depth)


def bubble_rows(report: Report) -> Iterator[Row]:
    """A row for each bubble that the report lists."""
    for device in report.devices:
        for row in device.launch.bubbles.rows if device.launch.bubbles else ():
            times = (row.start_ns, row.end_ns, row.end_ns - row.start_ns)
            medians = (row.median_interval_ns, row.median_work_ns)
            yield (device.key, *times, row.launches, row.busy_ns, row.idle_ns, *medians, path_label(row.nvtx))


def graph_rows(report: Report) -> Iterator[Row]:
    """A row for each graph that the report lists."""
    for device in report.devices:
        for row in device.launch.graphs.rows if device.launch.graphs else ():
            yield (
                device.key,
                row.name,
                row.executable,
                row.launches,
                row.nodes,
                row.api_ns,
                row.median_api_ns,
                row.work_ns,
                row.between_ns,
                row.between_gaps,
            )
