"""What is worth doing something about, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from msgspec import Struct

from nsysdiag.document import words
from nsysdiag.document.drawings import safe_color
from nsysdiag.document.view import SEVERITIES, Context, device_label, namesake
from nsysdiag.findings.show import anchors, blocks, finding_markdown, in_order, where
from nsysdiag.findings.words import takes, told
from nsysdiag.formats.html.section import View, report_section
from nsysdiag.formats.html.timeline_data import gap_key
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from nsysdiag.findings.facts import Finding
    from nsysdiag.formats.html.section import ReportSection


OPEN = 2
"""So many findings of high severity show their evidence at once; the others fold it, so that the timeline comes
sooner."""


class CardFact(Struct, frozen=True):
    """A fact on the card of a finding. `color` is the swatch before it, `anchor` the finding that it links to."""

    label: str
    text: str
    is_name: bool = False
    color: str | None = None
    anchor: str = ""


class FindingView(Struct, frozen=True):
    """One finding as drawn. `anchor` stays the same from report to report, like the finding's id. `color` is that of
    its cause, None if its title does not begin with it. `saves` is `of` a step or the judged time, empty if unknown.
    `share` is of the `whole`. `queries` hold a description of each row of the trace, and the SELECT that finds it. The
    timeline shows `gap`, or else `span` around its first row: `START-END` in ns. `folded`: its evidence opens on
    demand. `again`: a finding on another device, above, has the same advice."""

    finding: Finding
    anchor: str
    kind: str
    icon: str
    color: str | None
    saves: str
    of: str
    share: str
    whole: str
    facts: list[CardFact]
    queries: list[tuple[str, str]]
    markdown: Markup
    gap: str
    span: str
    folded: bool
    again: bool


def view(context: Context) -> View:
    """The findings; left out without a device."""
    findings = in_order(context.report)
    names = dict(zip(map(id, context.report.findings), anchors(context.report.findings), strict=True))
    return {
        "findings": [_draw(context, finding, findings, names) for finding in findings],
        "note": words.overlap_note(context.report.findings),
    }


def _draw(context: Context, finding: Finding, findings: list[Finding], names: dict[int, str]) -> FindingView:
    """One of the `findings`; `names` has the anchor of each by its identity."""
    # The finding of another device that is shown already and asks for the same.
    first = namesake(finding, findings)
    twin = first if first and first.advice == finding.advice else None
    cause = _cause(context, finding)
    titled = finding.title.startswith(cause.text)
    share, whole = takes(finding)
    facts = [
        CardFact("Where", _device(context, finding)),
        *([] if titled else [cause]),
        *(CardFact(fact.label, said, fact.is_name) for fact, said in told(finding, "card")),
        *([CardFact("Same as", f"on {twin.device}, above", anchor=names[id(twin)])] if twin else []),
    ]
    return FindingView(
        finding=finding,
        anchor=names[id(finding)],
        kind=finding.severity if finding.severity in SEVERITIES else "info",
        icon=words.SEVERITY_ICONS.get(finding.severity, "○"),
        color=cause.color if titled else None,
        saves=finding.saves.figure if finding.saves else "",
        of=finding.saves.of if finding.saves else "",
        share=share,
        whole=whole,
        facts=[each for each in facts if each.text],
        queries=[(f"{row.name}, {format_ns(row.ns)}", words.row_query(row)) for row in finding.rows],
        gap=_gap(context, finding),
        span=_span(context, finding),
        folded=twin is not None or not _is_open(finding, findings),
        again=twin is not None,
        markdown=escape(finding_markdown(context.report, finding)),  # its line ends are meant
    )


def _cause(context: Context, finding: Finding) -> CardFact:
    cause, known = context.causes[finding.cause], context.causes.knows(finding.cause)
    return CardFact("Cause", cause.title, color=safe_color(cause.color) if known else None)


def _is_open(finding: Finding, findings: list[Finding]) -> bool:
    """Is it the first of all, or one of the first of high severity?"""
    high = [each for each in findings if each.severity == "high"][:OPEN]
    return any(each is finding for each in high or findings[:1])


def _device(context: Context, finding: Finding) -> str:
    """Its devices; the only one of several with its name where that tells devices apart."""
    devices = context.report.devices
    if len(devices) < 2 or len(finding.devices) > 1:
        return where(finding, len(context.report.devices))
    same = len({device.name for device in devices}) == 1
    return f"on {finding.device if same else device_label(context.report, finding.device)}"


def _gap(context: Context, finding: Finding) -> str:
    """The longest gap of the finding's kind, empty where there is none or no timeline."""
    devices = [device for device in context.report.devices if device.key == finding.device]
    rows = [row for device in devices for row in device.signatures if row.id == finding.signature]
    return gap_key(context.report, finding.device, rows[0].representative_start_ns) if rows else ""


def _span(context: Context, finding: Finding) -> str:
    """The time of the row that shows the finding best, with as much again on either side."""
    if not finding.rows or not gap_key(context.report, finding.device, 0):
        return ""
    row = finding.rows[0]
    return f"{max(row.start_ns - row.ns, 0)}-{row.start_ns + 2 * max(row.ns, 1)}"


section: ReportSection = report_section(
    "findings",
    "Findings",
    lambda context: context.report.devices or context.report.findings,
    view,
    lambda context: blocks(context.report),
)
