"""The report as Markdown for a ticket: what a reviewer must see, in tables that GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.words import TITLE as TROUBLE_TITLE
from nsysdiag.diagnosis.words import holds_word, share_label, workload_sentence
from nsysdiag.document import words
from nsysdiag.document.code import call_site_label
from nsysdiag.document.context import Context
from nsysdiag.document.markdown import markdown_of
from nsysdiag.document.markup import MARKER, NAME_LIMIT, code, fenced, table, text
from nsysdiag.document.names import brief, clip
from nsysdiag.document.view import (
    Causes,
    by_length,
    by_rank,
    by_total,
    evidence,
    held,
    ledger_rows,
    missing,
    moved,
    slices_by_time,
    window_parts,
)
from nsysdiag.formats import sections
from nsysdiag.formats.finding_markdown import finding_block, source_line
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.ranks.show.markdown import rank_blocks
from nsysdiag.ranks.show.words import DEVICES_TITLE
from nsysdiag.units import format_count, format_ns, format_share
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap, Operation, Report, SignatureRow

TOP_GAPS, TOP_GAPS_OF_SEVERAL = 10, 5


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as Markdown, with a marker comment by which a later run finds its own file again."""
    blocks = [MARKER, f"# nsysdiag: {code(report.trace.file)}"]
    causes = Causes(report.causes)
    context = Context(report, causes)
    limit = TOP_GAPS if len(report.devices) == 1 else TOP_GAPS_OF_SEVERAL
    for device in report.devices:
        blocks += _device(device, causes)
        blocks += [line for show in sections.PER_DEVICE for line in markdown_of(show(device, context), 3)]
        blocks += _signatures(device, causes, limit)
        blocks += _gaps(device, causes, limit)
    if not report.devices:
        blocks += _no_devices(report)
    if report.ranks is not None:
        blocks += rank_blocks(report.ranks, causes, f"## {DEVICES_TITLE}")
    blocks += [line for show in sections.OPENING for line in markdown_of(show(context), 2)]
    blocks += _findings(report)
    blocks += [line for show in sections.CLOSING for line in markdown_of(show(context), 2)]
    blocks += _health(report)
    blocks.append(_footer(report, options))
    return ("\n\n".join(blocks) + "\n").encode()


def _device(device: DeviceReport, causes: Causes) -> list[str]:
    blocks = [
        f"## {text(device.name)} ({text(device.key)})",
        f"**{text(device.verdict.sentence)}**",
        text(f"Window: {words.window_sentence(device)}. {words.ops_sentence(device.ops)}."),
        _split(device),
    ]
    if device.idle_ns:
        blocks += [
            "### What the GPU waited for",
            _ledger(device, causes),
            text(words.coverage_sentence(device.coverage)),
        ]
    blocks += _roots(device, causes)
    drained = words.drained_sentence(device)
    blocks += [text(drained)] if drained else []
    blocks += [f"> {text(note)}" for note in device.notes]
    return [*blocks, *_trouble(device)]


def _trouble(device: DeviceReport) -> list[str]:
    found = device.trouble
    if found is None:
        return []
    rows = [
        [kind.title, holds_word(kind), share_label(kind), text(" ".join((*kind.evidence, *kind.advice)))]
        for kind in found.kinds
    ]
    return [
        f"### {TROUBLE_TITLE}",
        text(f"{found.sentence} {workload_sentence(found)}"),
        table(["Kind", "Holds", "Share", "Evidence, and what to do"], "llrl", rows),
    ]


def _split(device: DeviceReport) -> str:
    rows = [[part.label, format_ns(part.ns), format_share(part.ns, device.window_ns)] for part in window_parts(device)]
    rows.append(["**Window**", f"**{format_ns(device.window_ns)}**", ""])
    return table(["Part of the window", "Time", "Share"], "lrr", rows)


def _ledger(device: DeviceReport, causes: Causes) -> str:
    rows = [
        [
            text(row.cause.title),
            format_ns(row.ns),
            format_share(row.ns, device.idle_ns),
            format_share(row.ns, device.window_ns),
        ]
        for row in ledger_rows(device, causes)
        if row.ns
    ]
    return table(["Cause", "Time", "Of idle", "Of window"], "lrrr", rows)


def _roots(device: DeviceReport, causes: Causes) -> list[str]:
    rows = [
        [
            text(row.cause.title),
            format_ns(row.ns) if row.ns else "–",
            format_share(row.ns, device.idle_ns) if row.ns else "–",
            text(words.root_change(row)),
        ]
        for row in moved(device, causes)
    ]
    title = "### At the root: each wait counted as what the thread did that ended it"
    return [title, table(["Cause", "Time", "Of idle", ""], "lrrl", rows)] if rows else []


def _signatures(device: DeviceReport, causes: Causes, limit: int) -> list[str]:
    """The gaps that come again: only where some do."""
    chosen = by_total(device.signatures)[:limit]
    if not any(row.count > 1 for row in chosen):
        return []
    header = ["Time", "Of idle", "Gaps", "p50", "p95", "Max", "Longest at", "An iteration"]
    header += ["Cause", "Before", "After", "NVTX"]
    rows = [_signature(row, causes) for row in chosen]
    return ["### Recurring gaps", text(f"{words.signatures_sentence(device)}."), table(header, "rrrrrrrrllll", rows)]


def _signature(row: SignatureRow, causes: Causes) -> list[str]:
    return [
        format_ns(row.total_ns),
        format_share(row.share_of_idle, 1),
        format_count(row.count),
        format_ns(row.median_ns),
        format_ns(row.p95_ns),
        format_ns(row.max_ns),
        words.instant(row.representative_start_ns),
        format_ns(row.per_iteration_ns) if row.per_iteration_ns else "–",
        text(causes.title(row.cause)),
        code(row.previous_op, in_table=True),
        code(row.next_op, in_table=True),
        code(words.path_label(row.nvtx), in_table=True),
    ]


def _gaps(device: DeviceReport, causes: Causes, limit: int) -> list[str]:
    gaps = by_length(device.gaps)[:limit]
    if not gaps:
        return []
    rows = [_gap(gap, causes) for gap in gaps]
    header = ["Length", "Start", "Cause", "Evidence", "Before", "After", "NVTX"]
    places = [call_site_label(gap.call_site) for gap in gaps]
    if any(places):
        header.append("Code")
        rows = [
            [*row, code(place, in_table=True, limit=2 * NAME_LIMIT)] for row, place in zip(rows, places, strict=True)
        ]
    title = f"### The longest {len(rows)} of {words.counted(device.gap_count, 'gap')}"
    return [title, table(header, "rr" + "l" * (len(header) - 2), rows)]


def _gap(gap: Gap, causes: Causes) -> list[str]:
    length = gap.end_ns - gap.start_ns
    slices = slices_by_time(gap)
    cause = told = "–"
    if slices:
        cause = f"{text(causes.title(slices[0].cause))} ({format_share(slices[0].ns, length)})"
        told = text(clip(evidence(slices[0], causes), 160)) or "–"
    if gap.root and gap.root.hops:
        chain = " ← ".join(gap.root.chain[1:])
        told += text(f" ← {clip(chain, 300)} ({words.root_sentence(gap)})")
    path = code(words.path_label(gap.nvtx), in_table=True)
    if gap.nvtx_elsewhere:
        path += f" and on other threads {code(words.path_label(gap.nvtx_elsewhere), in_table=True)}"
    before, after = _operation(gap.previous_op), _operation(gap.next_op)
    return [format_ns(length), words.instant(gap.start_ns), cause, told, before, after, path]


def _operation(operation: Operation | None) -> str:
    return code(brief(operation.name), in_table=True) if operation else "–"


def _no_devices(report: Report) -> list[str]:
    tables = [f"- {text(line)}" for line in held(report)]
    holds = ["It holds:", "\n".join(tables)] if tables else ["It holds no events of other kinds either."]
    return [f"**{words.NO_GPU_WORK}.** There is no idle time to explain.", *holds]


def _findings(report: Report) -> list[str]:
    if not report.findings:
        return []
    note = words.overlap_note(report.findings)
    findings = [finding_block(report, finding) for finding in by_rank(report.findings)]
    return ["## Findings", *findings, *([text(note)] if note else [])]


def _health(report: Report) -> list[str]:
    blocks = [f"- {text(warning)}" for warning in report.trace.warnings]
    absent = missing(report)
    if absent:
        blocks.insert(0, f"- Not captured: {text(', '.join(absent))}.")
    if report.untold:
        blocks.append(f"- {text(words.not_recorded_sentence(report.untold))}")
    health = ["## Trace health", "\n".join(blocks)] if blocks else []
    if report.recapture:
        health += ["To resolve more, capture again with", fenced(report.recapture, "sh")]
    return health


def _footer(report: Report, options: RenderOptions) -> str:
    extra = [code(options.command, limit=500)] if options.command else []
    extra += [text(options.created)] if options.created else []
    return "---\n\n" + " · ".join([source_line(report), *extra])


def is_ours(data: bytes) -> bool:
    """Does the document begin with our marker?"""
    return data.lstrip().startswith(MARKER.encode())


FORMAT = Format("md", ".md", "Markdown for tickets", render, is_ours, TEXT)
