"""Device memory over time: a chart of the level, and the numbers beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.memory.chart import draw_level
from nsysdiag.memory.markdown import memory_facts
from nsysdiag.memory.words import DRIVER_NOTE, level_sentences

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

MAX_SPOTS = 125


def view(context: Context, device: DeviceReport) -> View | None:
    """Left out where no allocation on the device was captured."""
    memory = device.memory
    if memory is None:
        return None
    return {
        "memory": memory,
        "sentences": level_sentences(device),
        "facts": memory_facts(memory),
        "chart": draw_level(memory, context.rows(MAX_SPOTS)),
        "note": DRIVER_NOTE,
    }


section = device_section("device-memory", "Device memory", view)
