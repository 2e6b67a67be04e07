"""Sections that the page draws with templates of their own: the ledger, gap groups, the longest gaps and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from markupsafe import escape
from msgspec import Struct

from nsysdiag.document import drawings as d
from nsysdiag.document import view, words
from nsysdiag.document.axis import time_ticks
from nsysdiag.document.blocks import Block, Chart, Custom, Section
from nsysdiag.document.names import call_site_label, host_code_label
from nsysdiag.document.svg import percent
from nsysdiag.document.view import Causes, Context, LedgerRow, by_length, follows_wakes, ledger_rows
from nsysdiag.findings import show as findings_show
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.show import anchors, finding_markdown, in_order, takes, told, where
from nsysdiag.formats.html.timeline_data import gap_key
from nsysdiag.gap_groups.show import gaps_gist, groups, groups_gist, longest
from nsysdiag.ledger import show as ledger
from nsysdiag.report import DeviceReport, Gap, Operation
from nsysdiag.units import format_ns, format_share

View = dict[str, Any]


def drawn_section(
    id: str, title: str, values: Callable[[], View], fallback: Sequence[Block] = (), **more: Any
) -> Section:
    """A section that the page draws by `templates/sections/ID.html`, of the `values` that are made once if it is drawn;
    other formats show the blocks of `fallback`. `more` are fields of the section."""
    return Section(id, title, [Custom(f"sections/{id}.html", cache(values), fallback)], **more)


# The idle ledger: what the device waited for, to the nanosecond.

MAX_LABELS = 6
DIVIDES = "How the idle time divides into causes"


def _charts(context: Context, device: DeviceReport) -> list[Chart]:
    """The ledger as one bar, and another one after wake-ups if these moved time."""
    rows = ledger_rows(device, context.causes)
    cuts = {"By what the thread did": [row.ns for row in rows]}
    if follows_wakes(device):
        cuts["By root cause"] = [row.root_ns for row in rows]
    bars = []
    for title, times in cuts.items():
        segments = d.stack((d.entry_of(row.cause.id, context.causes), ns) for row, ns in zip(rows, times, strict=True))
        label = f"{DIVIDES}, {title.lower()}" if len(cuts) > 1 else DIVIDES
        bars.append((title, d.StackedBar(label, segments, device.idle_ns)))
    return [Chart(d.Stacks(bars), DIVIDES)]


def ledger_view(context: Context, device: DeviceReport) -> View:
    """The ledger as rows and as one bar."""
    rows = ledger_rows(device, context.causes)
    roots = view.moved(device, context.causes)
    places = {row.cause.id: place for place, row in enumerate(rows, start=1)}
    longest = max((row.ns for row in rows), default=0)
    return {
        "rows": [_draw_row(row, longest) for row in rows],
        "charts": _charts(context, device),
        "axis": time_ticks(device.idle_ns),
        "wakes": follows_wakes(device),
        "moved": [(row, d.safe_color(row.cause.color), words.root_kinds(row), places[row.cause.id]) for row in roots],
        "root_places": {row.cause.id for row in roots},
        "coverage": words.coverage_sentence(device.coverage),
        "drained": " ".join(words.behind_sentences(device, context.report)),
    }


def _draw_row(row: LedgerRow, longest: int) -> View:
    """A cause as drawn; `bar` is its share of the longest one."""
    hidden = row.labels[MAX_LABELS:]
    return {
        "row": row,
        "color": d.safe_color(row.cause.color),
        "bar": percent(row.ns, longest),
        "labels": row.labels[:MAX_LABELS],
        "more": len(hidden),
        "more_ns": sum(ns for _label, ns in hidden),
    }


def ledger_section(device: DeviceReport, context: Context) -> Section | None:
    """None without idle time."""
    if not device.idle_ns:
        return None
    values = partial(ledger_view, context, device)
    return drawn_section("ledger", "What the GPU waited for", values, ledger.blocks(device, context))


# Gaps: the same place in the program added up, and the longest one by one, with the evidence for each.

MAX_SIGNATURES, MAX_GAPS = 50, 60
SHOWN_AT_FIRST = 20


def recurring_view(context: Context, device: DeviceReport) -> View:
    """The signatures with the most time."""
    rows = view.by_total(device.signatures)[: context.rows(MAX_SIGNATURES)]
    drawn = [
        (
            row,
            context.causes.title(row.cause),
            d.safe_color(context.causes[row.cause].color),
            words.path_label(row.nvtx),
        )
        for row in rows
    ]
    code = {row.id: (call_site_label(row.call_site), host_code_label(row.host_code)) for row in rows}
    return {
        "rows": drawn,
        "all": len(device.signatures),
        "code": code if any(map(any, code.values())) else {},
        "iterates": any(row.per_iteration_ns for row in rows),
        "sentence": words.signatures_sentence(device),
        "links": {row.id: gap_key(context.report, device.key, row.representative_start_ns) for row in rows},
    }


def recurring(device: DeviceReport, context: Context) -> Section | None:
    """None without gap groups."""
    if not device.signatures:
        return None
    values = partial(recurring_view, context, device)
    return drawn_section("signatures", "Gap groups", values, groups(device, context), gist=groups_gist(device))


def _gap_charts(context: Context, device: DeviceReport) -> list[Chart]:
    """How each of the longest gaps divides, as in the rows of the table."""
    rows = [
        (f"{format_ns(gap.end_ns - gap.start_ns)} at {words.instant(gap.start_ns)}", _divided(gap, context.causes))
        for gap in _longest(context, device)
        if gap.slices
    ]
    return [Chart(d.Stacks(rows), "How each of the longest gaps divides into causes")] if rows else []


def _longest(context: Context, device: DeviceReport) -> list[Gap]:
    return by_length(device.gaps)[: context.shared_rows(MAX_GAPS)]


def _divided(gap: Gap, causes: Causes) -> d.StackedBar:
    segments = d.stack((d.entry_of(part.cause, causes), part.ns) for part in gap.slices)
    return d.StackedBar("How the gap divides into causes", segments, gap.end_ns - gap.start_ns)


def longest_view(context: Context, device: DeviceReport) -> View:
    """The longest gaps that the report holds, as many as the page has room for."""
    gaps = _longest(context, device)
    rows = [_drawn_gap(gap, gap_key(context.report, device.key, gap.start_ns), context.causes) for gap in gaps]
    return {
        "gaps": rows,
        "charts": _gap_charts(context, device),
        "held": len(device.gaps),
        "first": SHOWN_AT_FIRST,
        "flagged": any(gap.sync_drained for gap in gaps),
    }


def _drawn_gap(gap: Gap, key: str, causes: Causes) -> View:
    """A gap as drawn; `slices` has the longest first, `divided` the order of the report."""
    length = gap.end_ns - gap.start_ns
    return {
        "gap": gap,
        "length": length,
        "slices": [
            {
                "slice": part,
                "title": causes.title(part.cause),
                "color": d.safe_color(causes[part.cause].color),
                "share": format_share(part.ns, length),
                "evidence": view.evidence(part, causes),
            }
            for part in view.slices_by_time(gap)
        ],
        "divided": _divided(gap, causes),
        "thread": words.thread_label(gap.thread) if gap.thread else "",
        "short_thread": words.short_thread_label(gap.thread) if gap.thread else "",
        "path": words.path_label(gap.nvtx),
        "flags": view.flags(gap),
        "before": _when(gap.previous_op),
        "after": _when(gap.next_op),
        "root": gap.root,
        "sure": words.root_sentence(gap),
        "code": call_site_label(gap.call_site),
        "elsewhere": words.path_label(gap.nvtx_elsewhere),
        "key": key,
    }


def _when(operation: Operation | None) -> str:
    if operation is None:
        return ""
    length = format_ns(operation.end_ns - operation.start_ns)
    return f"{operation.category}, {length} on stream {operation.stream}"


def longest_section(device: DeviceReport, context: Context) -> Section | None:
    """None without gaps."""
    if not device.gaps:
        return None
    values = partial(longest_view, context, device)
    return drawn_section("gaps", "Longest gaps", values, longest(device, context), gist=gaps_gist(device))


# Findings: what is worth doing something about, the worst first.


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


def findings_view(context: Context) -> View:
    """The findings; left out without a device."""
    findings = in_order(context.report)
    names = dict(zip(map(id, context.report.findings), anchors(context.report.findings), strict=True))
    return {
        "findings": [_draw_finding(context, finding, findings, names) for finding in findings],
        "note": words.overlap_note(context.report.findings),
    }


def _draw_finding(context: Context, finding: Finding, findings: list[Finding], names: dict[int, str]) -> View:
    """One of the `findings` as drawn; `names` has the anchor of each by its identity. An anchor stays the same from
    report to report, like the finding's id.

    `color` is that of its cause, None if its title does not begin with it. `saves` is `of` a step or the judged time,
    empty if unknown. `queries` hold a description of each row of the trace, and the SELECT that finds it. The timeline
    shows `gap`, or else `span` around its first row: `START-END` in ns. `folded`: its evidence opens on demand.
    `again`: a finding on another device, above, has the same advice."""
    first = view.namesake(finding, findings)
    twin = first if first and first.advice == finding.advice else None
    known, color = context.causes[finding.cause], None
    if context.causes.knows(finding.cause):
        color = d.safe_color(known.color)
    titled = finding.title.startswith(known.title)
    share, whole = takes(finding)
    facts = [
        CardFact("Where", _device(context, finding)),
        *([] if titled else [CardFact("Cause", known.title, color=color)]),
        *(CardFact(fact.label, said, fact.is_name) for fact, said in told(finding, "card")),
        *([CardFact("Same as", f"on {twin.device}, above", anchor=names[id(twin)])] if twin else []),
    ]
    return {
        "finding": finding,
        "anchor": names[id(finding)],
        "kind": finding.severity if finding.severity in view.SEVERITIES else "info",
        "icon": words.SEVERITY_ICONS.get(finding.severity, "○"),
        "color": color if titled else None,
        "saves": finding.saves.figure if finding.saves else "",
        "of": finding.saves.of if finding.saves else "",
        "share": share,
        "whole": whole,
        "facts": [each for each in facts if each.text],
        "queries": [(f"{row.name}, {format_ns(row.ns)}", words.row_query(row)) for row in finding.rows],
        "gap": _gap_of(context, finding),
        "span": _span_of(context, finding),
        "folded": twin is not None or not _is_open(finding, findings),
        "again": twin is not None,
        "markdown": escape(finding_markdown(context.report, finding)),  # its line ends are meant
    }


def _is_open(finding: Finding, findings: list[Finding]) -> bool:
    """Is it the first of all, or one of the first of high severity?"""
    high = [each for each in findings if each.severity == "high"][:OPEN]
    return any(each is finding for each in high or findings[:1])


def _device(context: Context, finding: Finding) -> str:
    """Its devices; the only one of several with its name if that tells devices apart."""
    devices = context.report.devices
    if len(devices) < 2 or len(finding.devices) > 1:
        return where(finding, len(context.report.devices))
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


def findings_section(context: Context) -> Section | None:
    """None without devices and findings."""
    if not context.report.devices and not context.report.findings:
        return None
    return drawn_section("findings", "Findings", partial(findings_view, context), findings_show.blocks(context.report))
