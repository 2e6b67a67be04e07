"""The utilization of a device as Markdown: the sentences, and the kernels with most time by what they fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markup import code, table, text
from nsysdiag.units import format_count, format_ns
from nsysdiag.utilization.words import percent_of, utilization_sentences

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from nsysdiag.utilization.facts import KernelShape

TOP_KERNELS = 5


def utilization_blocks(device: DeviceReport) -> list[str]:
    """The heading with what is to be said; the kernels with most time, where their shapes tell what they fill."""
    lines = utilization_sentences(device)
    if not lines:
        return []
    rows = [_kernel(row) for row in device.utilization.kernels[:TOP_KERNELS] if row.sm_share is not None]
    header = ["Kernel", "Time", "Blocks", "Threads", "Waves", "SMs with work (estimated)", "Room filled", "Limited by"]
    shapes = [table(header, "lrrrrrrl", rows)] if rows else []
    return ["### Utilization", "\n".join(f"- {text(line)}" for line in lines), *shapes]


def _kernel(row: KernelShape) -> list[str]:
    return [
        code(row.short_name, in_table=True),
        format_ns(row.total_ns),
        format_count(row.blocks),
        format_count(row.threads),
        "–" if row.waves is None else f"{row.waves:,.2f}",
        percent_of(row.sm_share),
        percent_of(row.resident_share),
        text(row.limit or "–"),
    ]
