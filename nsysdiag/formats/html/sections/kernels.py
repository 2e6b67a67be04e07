"""The kernels by the time that they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.axis import EDGES, count_levels, time_label
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.context import Context
from nsysdiag.document.figures import percent
from nsysdiag.document.histogram import Column, draw_columns, ticks
from nsysdiag.document.view import Share
from nsysdiag.document.words import counted
from nsysdiag.formats.html.interactive.histograms import Panel, histogram_figure
from nsysdiag.formats.html.sections.section import View, device_section

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Distribution, KernelRow

MAX_ROWS = 100
FIRST_EDGE = 100
"""Where the first bin of a distribution ends, in ns."""
KERNELS = LegendEntry("Kernels", "compute", "")


def view(context: Context, device: DeviceReport) -> View | None:
    """The kernels with the most time, summed over streams."""
    rows = rows_view(context, device.kernels)
    return rows if rows is None else rows | _durations(device.launch.kernel)


def _durations(found: Distribution | None) -> View:
    """How long single kernels ran, still and as a figure; without the chart where the report does not say."""
    if found is None or not any(count for _start, count in found.bins):
        return {"durations": None, "chart": None, "figure": None}
    starts = [start for start, _count in found.bins]
    behind = next((edge for edge in EDGES if edge > max(starts[-1], FIRST_EDGE - 1)), starts[-1])
    edges = [*starts, behind]
    told = [
        f"{counted(count, 'kernel')}, {time_label(start)} to {time_label(end)}"
        for (start, count), end in zip(found.bins, edges[1:], strict=True)
    ]
    columns = [
        Column([Share("compute", "Kernels", count, "compute", "")] if count else [], said)
        for (_start, count), said in zip(found.bins, told, strict=True)
    ]
    counts = [count for _start, count in found.bins]
    panel = Panel("Number of kernels", [counts], count_levels(max(counts)))
    return {
        "durations": found,
        "chart": draw_columns(columns, count_levels),
        "edges": ticks(edges),
        "figure": histogram_figure([panel], [KERNELS], [told], ticks(edges)),
    }


def rows_view(context: Context, kernels: list[KernelRow]) -> View | None:
    """The rows with the most time, each with a bar against the longest; None where there are none."""
    if not kernels:
        return None
    rows = sorted(kernels, key=lambda row: (-row.total_ns, row.name))
    drawn = [(row, percent(row.total_ns, rows[0].total_ns)) for row in rows[: context.rows(MAX_ROWS)]]
    return {"rows": drawn, "all": len(kernels), "total_ns": sum(row.total_ns for row in kernels)}


section = device_section("kernels", "Kernels", view)
