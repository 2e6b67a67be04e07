"""Which kind of trouble a device is in: all kinds in the order of their repair, with the evidence for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.words import TITLE, holds_word, share_label, workload_sentence
from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, device_section

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


def view(_context: Context, device: DeviceReport) -> View | None:
    """Left out where nothing ran."""
    found = device.trouble
    if found is None:
        return None
    return {
        "sentence": found.sentence,
        "workload": workload_sentence(found),
        "kinds": [(kind, holds_word(kind), share_label(kind)) for kind in found.kinds],
        "first": found.id,
    }


section = device_section("trouble", TITLE, view)
