"""Curves of the GPU's own counters for the timeline, where a report has any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsysdiag.document.names import clip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag.formats.html.timeline.blob import Blob, Place
    from nsysdiag.report import DeviceReport

MOST_CURVES, LONGEST_TITLE = 4, 40


def metric_curves(device: DeviceReport, blob: Blob) -> Iterator[tuple[dict[str, Any], Place]]:
    """Each curve's title, unit, time and number of buckets, and its values in the block: little-endian int16, -1 where
    nothing was sampled."""
    found = getattr(device, "gpu_metrics", None)
    if found is None:
        return
    drawn = [metric for metric in found.metrics if metric.series and metric.samples]
    for metric in drawn[:MOST_CURVES]:
        curve = {
            "title": clip(metric.title, LONGEST_TITLE),
            "share": metric.unit == "share",
            "start": found.start_ns,
            "end": found.end_ns,
            "buckets": found.buckets,
        }
        yield curve, blob.add_packed(metric.series, 2 * found.buckets)
