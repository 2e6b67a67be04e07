"""What the trace holds, what could not be judged, and the capture that would tell."""

from __future__ import annotations

from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, report_section


def view(context: Context) -> View:
    """Evidence, warnings, tables and settings of the trace."""
    trace = context.report.trace
    return {
        "capabilities": sorted(trace.capabilities, key=lambda capability: capability.available),
        "missing": sum(not capability.available for capability in trace.capabilities),
        "warnings": trace.warnings,
        "not_recorded": context.report.not_recorded,
        "tables": sorted(trace.tables.items()),
        "settings": sorted(context.report.settings.items()),
        "recapture": context.report.recapture if context.report.devices else None,  # else the overview has it
    }


section = report_section("health", "Trace health", view)
