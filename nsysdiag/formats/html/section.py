"""Sections that the page draws with templates of their own: the ledger, gap groups, the longest gaps and findings.

A template gets records and what depends on the whole report; it words and colours them itself, with the filters and
the names of `page.environment`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from markupsafe import escape

from nsysdiag.document import drawings as d
from nsysdiag.document import view, words
from nsysdiag.document.axis import time_ticks
from nsysdiag.document.blocks import Block, Chart, Custom, Section
from nsysdiag.document.names import call_site_label, host_code_label
from nsysdiag.document.view import Causes, Context, by_length, follows_wakes, ledger_rows
from nsysdiag.findings import show as findings_show
from nsysdiag.findings.facts import Finding
from nsysdiag.formats.html.timeline_data import gap_key
from nsysdiag.gap_groups.show import gaps_gist, groups, groups_gist, longest
from nsysdiag.ledger import show as ledger
from nsysdiag.report import DeviceReport, Gap
from nsysdiag.units import format_ns

View = dict[str, Any]


def drawn_section(
    id: str, title: str, values: Callable[[], View], fallback: Sequence[Block] = (), **more: Any
) -> Section:
    """A section that the page draws by `templates/sections/ID.html`, of the `values` that are made once if it is drawn;
    other formats show the blocks of `fallback`. `more` are fields of the section."""
    return Section(id, title, [Custom(f"sections/{id}.html", cache(values), fallback)], **more)


# The idle ledger: what the device waited for, to the nanosecond.

DIVIDES = "How the idle time divides into causes"


def ledger_section(device: DeviceReport, context: Context) -> Section | None:
    """None without idle time."""
    if not device.idle_ns:
        return None
    values = partial(ledger_view, context, device)
    return drawn_section("ledger", "What the GPU waited for", values, ledger.blocks(device, context))


def ledger_view(context: Context, device: DeviceReport) -> View:
    """The ledger as rows and as one bar, and another one after wake-ups if these moved time."""
    rows, wakes = ledger_rows(device, context.causes), follows_wakes(device)
    cuts = {"By what the thread did": [row.ns for row in rows]}
    if wakes:
        cuts["By root cause"] = [row.root_ns for row in rows]
    bars = []
    for title, times in cuts.items():
        segments = d.stack((d.entry_of(row.cause.id, context.causes), ns) for row, ns in zip(rows, times, strict=True))
        label = f"{DIVIDES}, {title.lower()}" if len(cuts) > 1 else DIVIDES
        bars.append((title, d.StackedBar(label, segments, device.idle_ns)))
    return {
        "rows": rows,
        "places": {row.cause.id: place for place, row in enumerate(rows, start=1)},
        "longest": max((row.ns for row in rows), default=0),
        "charts": [Chart(d.Stacks(bars), DIVIDES)],
        "axis": time_ticks(device.idle_ns),
        "wakes": wakes,
        "moved": view.moved(device, context.causes),
        "behind": words.behind_sentences(device, context.report),
    }


# Gaps: the same place in the program added up, and the longest one by one, with the evidence for each.

MAX_SIGNATURES, MAX_GAPS = 50, 60


def recurring(device: DeviceReport, context: Context) -> Section | None:
    """None without gap groups."""
    if not device.signatures:
        return None
    values = partial(recurring_view, context, device)
    return drawn_section("signatures", "Gap groups", values, groups(device, context), gist=groups_gist(device))


def recurring_view(context: Context, device: DeviceReport) -> View:
    """The signatures with the most time."""
    rows = view.by_total(device.signatures)[: context.rows(MAX_SIGNATURES)]
    return {
        "rows": rows,
        "causes": context.causes,
        "has_code": any(call_site_label(row.call_site) or host_code_label(row.host_code) for row in rows),
        "iterates": any(row.per_iteration_ns for row in rows),
        "key": partial(gap_key, context.report, device.key),
    }


def longest_section(device: DeviceReport, context: Context) -> Section | None:
    """None without gaps."""
    if not device.gaps:
        return None
    values = partial(longest_view, context, device)
    return drawn_section("gaps", "Longest gaps", values, longest(device, context), gist=gaps_gist(device))


def longest_view(context: Context, device: DeviceReport) -> View:
    """The longest gaps that the report holds, as many as the page has room for, and how each divides."""
    gaps = by_length(device.gaps)[: context.shared_rows(MAX_GAPS)]
    bars = [
        (f"{format_ns(gap.end_ns - gap.start_ns)} at {words.instant(gap.start_ns)}", _divided(context.causes, gap))
        for gap in gaps
        if gap.slices
    ]
    return {
        "gaps": gaps,
        "charts": [Chart(d.Stacks(bars), "How each of the longest gaps divides into causes")] if bars else [],
        "causes": context.causes,
        "divided": partial(_divided, context.causes),
        "key": partial(gap_key, context.report, device.key),
    }


def _divided(causes: Causes, gap: Gap) -> d.StackedBar:
    segments = d.stack((d.entry_of(part.cause, causes), part.ns) for part in gap.slices)
    return d.StackedBar("How the gap divides into causes", segments, gap.end_ns - gap.start_ns)


# Findings: what is worth doing something about, the worst first.

OPEN = 2
"""So many findings of high severity show their evidence at once; the others fold it, so that the timeline comes
sooner."""


def findings_section(context: Context) -> Section | None:
    """None without devices and findings."""
    if not context.report.devices and not context.report.findings:
        return None
    return drawn_section("findings", "Findings", partial(findings_view, context), findings_show.blocks(context.report))


def findings_view(context: Context) -> View:
    """The findings; left out without a device."""
    report, findings = context.report, findings_show.in_order(context.report)
    names = dict(zip(map(id, report.findings), findings_show.anchors(report.findings), strict=True))
    return {
        "findings": [_draw_finding(context, finding, findings, names) for finding in findings],
        "note": words.overlap_note(report.findings),
    }


def _draw_finding(context: Context, finding: Finding, findings: list[Finding], names: dict[int, str]) -> View:
    """One of the `findings` as drawn; `names` has the anchor of each by its identity. An anchor stays the same from
    report to report, like the finding's id.

    `color` is that of its cause, empty if the report does not list it. It `takes` a share, of which time. The timeline
    shows `gap`, or else `span` around its first row: `START-END` in ns. `folded`: its evidence opens on demand. `twin`
    is a finding on another device, above, that has the same advice, by its device and anchor."""
    first = view.namesake(finding, findings)
    twin = first if first and first.advice == finding.advice else None
    cause = context.causes[finding.cause]
    return {
        "finding": finding,
        "anchor": names[id(finding)],
        "kind": finding.severity if finding.severity in view.SEVERITIES else "info",
        "cause": cause.title,
        "color": d.safe_color(cause.color) if context.causes.knows(finding.cause) else "",
        "takes": findings_show.takes(finding),
        "where": _device(context, finding),
        "facts": findings_show.told(finding, "card"),
        "gap": _gap_of(context, finding),
        "span": _span_of(context, finding),
        "folded": twin is not None or not _is_open(finding, findings),
        "twin": twin and (twin.device, names[id(twin)]),
        "markdown": escape(findings_show.finding_markdown(context.report, finding)),  # its line ends are meant
    }


def _is_open(finding: Finding, findings: list[Finding]) -> bool:
    """Is it the first of all, or one of the first of high severity?"""
    high = [each for each in findings if each.severity == "high"][:OPEN]
    return any(each is finding for each in high or findings[:1])


def _device(context: Context, finding: Finding) -> str:
    """Its devices; the only one of several with its name if that tells devices apart."""
    devices = context.report.devices
    if len(devices) < 2 or len(finding.devices) > 1:
        return findings_show.where(finding, len(devices))
    same = len({device.name for device in devices}) == 1
    return f"on {finding.device if same else view.device_label(context.report, finding.device)}"


def _gap_of(context: Context, finding: Finding) -> str:
    """The longest gap of the finding's kind, empty if there is none or no timeline."""
    devices = [device for device in context.report.devices if device.key == finding.device]
    rows = [row for device in devices for row in device.signatures if row.id == finding.signature]
    return gap_key(context.report, finding.device, rows[0].representative_start_ns) if rows else ""


def _span_of(context: Context, finding: Finding) -> str:
    """The time of the row that shows the finding best, with as much again on either side."""
    if not finding.rows or not gap_key(context.report, finding.device, 0):
        return ""
    row = finding.rows[0]
    return f"{max(row.start_ns - row.ns, 0)}-{row.start_ns + 2 * max(row.ns, 1)}"
