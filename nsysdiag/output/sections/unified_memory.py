"""What unified memory moved by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.output.figures import percent
from nsysdiag.output.memory_words import rate, unified_sentences
from nsysdiag.output.sections.section import DeviceSection, Page, View

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport


def view(_page: Page, device: DeviceReport) -> View | None:
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


SECTION = DeviceSection("unified-memory", "Unified memory", view)
