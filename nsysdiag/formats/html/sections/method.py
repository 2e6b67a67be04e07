"""How the numbers are made."""

from __future__ import annotations

from nsysdiag.document.context import Context
from nsysdiag.document.words import METHOD, calibration_sentence
from nsysdiag.formats.html.sections.section import View, report_section


def view(context: Context) -> View | None:
    """The method in a paragraph, and the thresholds of each device; left out where there is no device."""
    devices = context.report.devices
    if not devices:
        return None
    return {
        "method": METHOD,
        "thresholds": [(device.name, device.key, calibration_sentence(device)) for device in devices],
    }


section = report_section("method", "Method", view)
