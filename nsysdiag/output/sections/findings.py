"""What is worth doing something about, the worst first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from nsysdiag.output import words
from nsysdiag.output.figures import safe_color
from nsysdiag.output.markdown import finding_markdown
from nsysdiag.output.sections.section import Page, ReportSection, View
from nsysdiag.output.timeline.data import gap_key
from nsysdiag.output.view import SEVERITIES, by_rank, device_label
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.model import Finding


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding as drawn. `anchor` stays the same from report to report, as the finding's id does; `queries` say what
    a row of the trace is, and the SELECT that finds it. `gap` is what the timeline shows of it, else `span`, from its
    first row: `START-END` in ns."""

    finding: Finding
    anchor: str
    kind: str
    icon: str
    cause: str
    color: str | None
    device: str | None
    lost: str
    share: str
    ceiling: str | None
    confidence: str
    path: str
    where: str
    queries: list[tuple[str, str]]
    markdown: Markup
    gap: str
    span: str


def view(page: Page) -> View | None:
    """The findings; left out where there is no device to find anything about."""
    if not page.report.devices and not page.report.findings:
        return None
    anchors: set[str] = set()
    return {
        "findings": [_draw(page, finding, anchors) for finding in by_rank(page.report.findings)],
        "note": words.overlap_note(page.report.findings),
    }


def _draw(page: Page, finding: Finding, taken: set[str]) -> FindingView:
    cause = page.causes[finding.cause]
    several = len(page.report.devices) > 1
    return FindingView(
        finding=finding,
        anchor=_anchor(finding.id, taken),
        kind=finding.severity if finding.severity in SEVERITIES else "info",
        icon=words.SEVERITY_ICONS.get(finding.severity, "○"),
        cause=cause.title,
        color=safe_color(cause.color) if page.causes.knows(finding.cause) else None,
        device=device_label(page.report, finding.device) if several else None,
        lost=format_ns(finding.lost_ns) if finding.lost_ns else "",
        share=format_share(finding.lost_share, 1),
        ceiling=format_ns(finding.ceiling_ns) if finding.ceiling_ns > finding.lost_ns else None,
        confidence=f"{words.confidence_word(finding.confidence)} ({format_share(finding.confidence, 1)})",
        path=words.path_label(finding.nvtx),
        where=words.where_sentence(finding),
        queries=[(f"{row.name}, {format_ns(row.ns)}", words.row_query(row)) for row in finding.rows],
        gap=_gap(page, finding),
        span=_span(page, finding),
        markdown=escape(finding_markdown(page.report, finding)),  # its line ends are meant
    )


def _gap(page: Page, finding: Finding) -> str:
    """The longest gap of the finding's kind, empty where there is none or no timeline."""
    devices = [device for device in page.report.devices if device.key == finding.device]
    rows = [row for device in devices for row in device.signatures if row.id == finding.signature]
    return gap_key(page.report, finding.device, rows[0].representative_start_ns) if rows else ""


def _span(page: Page, finding: Finding) -> str:
    """The time of the row that shows the finding best, with as much again on either side."""
    if not finding.rows or not gap_key(page.report, finding.device, 0):
        return ""
    row = finding.rows[0]
    return f"{max(row.start_ns - row.ns, 0)}-{row.start_ns + 2 * max(row.ns, 1)}"


def _anchor(identifier: str, taken: set[str]) -> str:
    """The id as a fragment that no other finding has; ids come from the report, which may be anybody's file."""
    plain = "f-" + re.sub(r"[^A-Za-z0-9_-]+", "-", identifier.removeprefix("f-"))[:80]
    anchor, number = plain, 1
    while anchor in taken:
        number += 1
        anchor = f"{plain}-{number}"
    taken.add(anchor)
    return anchor


SECTION = ReportSection("findings", "Findings", view)
