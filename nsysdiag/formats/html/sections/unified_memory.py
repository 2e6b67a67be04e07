"""What unified memory moved by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.document.figures import percent
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.memory.words import rate, unified_sentences

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


def view(_context: Context, device: DeviceReport) -> View | None:
    """Left out where nothing moved and no fault was seen."""
    found = device.unified_memory
    if found is None:
        return None
    most = max((row.total_ns for row in found.rows), default=0)
    return {
        "found": found,
        "sentences": unified_sentences(device),
        "rows": [(row, rate(row.bytes_per_second), percent(row.total_ns, most)) for row in found.rows],
    }


section = device_section("unified-memory", "Unified memory", view)
