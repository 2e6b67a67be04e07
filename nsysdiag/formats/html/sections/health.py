"""What the trace holds, what could not be judged, and the capture that would tell."""

from __future__ import annotations

from nsysdiag.formats.html.sections.section import Page, ReportSection, View


def view(page: Page) -> View:
    """Evidence, warnings, tables and settings of the trace."""
    trace = page.report.trace
    return {
        "capabilities": sorted(trace.capabilities, key=lambda capability: capability.available),
        "missing": sum(not capability.available for capability in trace.capabilities),
        "warnings": trace.warnings,
        "untold": page.report.untold,
        "tables": sorted(trace.tables.items()),
        "settings": sorted(page.report.settings.items()),
        "recapture": page.report.recapture if page.report.devices else None,  # else the overview has it
    }


SECTION = ReportSection("health", "Trace health", view)
