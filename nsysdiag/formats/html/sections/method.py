"""How the numbers are made."""

from __future__ import annotations

from nsysdiag.document.words import METHOD, calibration_sentence
from nsysdiag.formats.html.sections.section import Page, ReportSection, View


def view(page: Page) -> View | None:
    """The method in a paragraph, and the thresholds of each device; left out where there is no device."""
    devices = page.report.devices
    if not devices:
        return None
    return {
        "method": METHOD,
        "thresholds": [(device.name, device.key, calibration_sentence(device)) for device in devices],
    }


SECTION = ReportSection("method", "Method", view)
