"""The tables about GPU metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.counters.facts import GpuMetric
from nsysdiag.document.columns import RecordColumn, columns, of_devices

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


class _Mean(NamedTuple):
    """The mean of one metric over the ranges or kernels of a name, or over an iteration."""

    what: str
    name: str
    instances: int
    time_ns: int
    samples: int
    whole: bool | None
    metric: str
    mean: float | None


def _means(device: DeviceReport) -> Iterator[_Mean]:
    """Those of each range, kernel and iteration that the report lists."""
    found = device.gpu_metrics
    if found is None:
        return
    for span in found.ranges:
        for metric, mean in sorted(span.means.items()):
            yield _Mean("range", span.name, span.count, span.gpu_ns, span.samples, None, metric, mean)
    for row in found.kernels:
        for metric, mean in sorted(row.means.items()):
            yield _Mean("kernel", row.name, row.count, row.gpu_ns, row.samples, row.whole, metric, mean)
    for each in found.iterations:
        for metric, mean in sorted(each.means.items()):
            yield _Mean("iteration", str(each.index), 1, each.length_ns, each.samples, None, metric, mean)


_METRICS = """
    metric=id title unit window_mean=window kernels_mean=kernels compute_mean=compute gaps_mean=gaps idle_level=idle
    lowest highest samples gap_samples left_out capped peak_bytes_per_second
"""
TABLES = (
    of_devices(
        "gpu_metrics",
        (
            *columns(GpuMetric, _METRICS),
            RecordColumn[GpuMetric]("names", "text", lambda row: " + ".join(row.names)),
        ),
        lambda device: device.gpu_metrics.metrics if device.gpu_metrics else (),
    ),
    of_devices(
        "gpu_metrics_by_name", columns(_Mean, "what name count=instances time_ns samples whole metric mean"), _means
    ),
)
