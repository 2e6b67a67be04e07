"""What the GPU's own counters measured: means, curves, and which ranges and kernels use the hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.counters.chart import Curve, draw_curve
from nsysdiag.counters.words import SHORT, TITLE, clock_facts, columns, counter_sentences, metric, rate, share, value
from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.counters.facts import Clocks, GpuMetric, GpuMetrics
    from nsysdiag.report import DeviceReport

CURVES = ("sm_active", "tensor_active", "dram_read", "dram_write")
MAX_SPOTS = 125


def view(context: Context, device: DeviceReport) -> View | None:
    """Left out where no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return None
    shown = columns(found)
    return {
        "found": found,
        "sentences": counter_sentences(device),
        "curves": _curves(found, context.rows(MAX_SPOTS)),
        "rows": [_row(row) for row in found.metrics],
        "columns": [SHORT[name] for name in shown],
        "ranges": [(row, [_mean(row.means, name) for name in shown]) for row in found.ranges],
        "kernels": [(row, [_mean(row.means, name) for name in shown]) for row in found.kernels],
        "clocks": _clocks(found.clocks),
    }


def _curves(found: GpuMetrics, most_spots: int) -> list[Curve]:
    rows = [row for name in CURVES if (row := metric(found, name)) is not None]
    return [draw_curve(found, row, most_spots) for row in rows]


def _row(row: GpuMetric) -> tuple[GpuMetric, list[tuple[float, str, str]]]:
    """A metric with the numbers of its cells: what to sort by, the text, and the bytes a second behind it."""
    means = (row.window, row.kernels, row.compute, row.gaps, row.lowest, row.highest)
    return row, [(-1.0 if mean is None else mean, value(row, mean), rate(row, mean)) for mean in means]


def _mean(means: dict[str, float | None], name: str) -> tuple[float, str]:
    mean = means.get(name)
    return (-1.0 if mean is None else mean), share(mean)


def _clocks(clocks: Clocks | None) -> str:
    if clocks is None:
        return ""
    low = format_share(clocks.low_ns, clocks.judged_ns)
    limit = format_share(clocks.limit, 1)
    return f"GPC clock while kernels ran: {clock_facts(clocks)}; below {limit} of it {low} of that time."


section = device_section("gpu-metrics", TITLE, view)
