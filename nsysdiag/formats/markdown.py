"""The report as Markdown for a ticket: what a reviewer must see, in tables that GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.context import Context
from nsysdiag.document.markdown import markdown_of
from nsysdiag.document.markup import MARKER, code, fenced, table, text
from nsysdiag.document.view import (
    Causes,
    by_rank,
    held,
    ledger_rows,
    missing,
    moved,
    window_parts,
)
from nsysdiag.formats import sections
from nsysdiag.formats.finding_markdown import finding_block, source_line
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.ranks.show.markdown import rank_blocks
from nsysdiag.ranks.show.words import DEVICES_TITLE
from nsysdiag.units import format_ns, format_share
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as Markdown, with a marker comment by which a later run finds its own file again."""
    blocks = [MARKER, f"# nsysdiag: {code(report.trace.file)}"]
    causes = Causes(report.causes)
    context = Context(report, causes)
    for device in report.devices:
        blocks += _device(device, causes)
        blocks += [line for show in sections.PER_DEVICE for line in markdown_of(show(device, context), 3)]
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
    return blocks


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
    if report.not_recorded:
        blocks.append(f"- {text(words.not_recorded_sentence(report.not_recorded))}")
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
