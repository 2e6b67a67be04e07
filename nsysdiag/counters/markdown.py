"""The GPU's own counters in Markdown: sentences, the means, the kernels with most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.counters.words import SHORT, TITLE, columns, counter_sentences, share, value
from nsysdiag.document.markup import code, table, text
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from nsysdiag.counters.facts import GpuMetrics
    from nsysdiag.report import DeviceReport

TOP_KERNELS = 5


def counter_blocks(device: DeviceReport) -> list[str]:
    """Nothing where no GPU metrics were captured."""
    found = device.gpu_metrics
    if found is None:
        return []
    lines = [f"- {text(line)}" for line in counter_sentences(device)]
    rows = [
        [text(row.title), *(value(row, mean) for mean in (row.window, row.kernels, row.gaps))] for row in found.metrics
    ]
    means = table(["Metric", "Window", "While kernels ran", "In gaps"], "lrrr", rows)
    return [f"### {TITLE}", *(["\n".join(lines)] if lines else []), means, *_kernels(found)]


def _kernels(found: GpuMetrics) -> list[str]:
    shown = columns(found)
    if not shown or not found.kernels:
        return []
    rows = [
        [code(row.short_name, in_table=True), format_ns(row.gpu_ns), *(share(row.means.get(name)) for name in shown)]
        for row in found.kernels[:TOP_KERNELS]
    ]
    return [table(["Kernel", "Time", *(SHORT[name] for name in shown)], "lr" + "r" * len(shown), rows)]
