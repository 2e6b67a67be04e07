"""The summary that a person reads first, in the terminal or as a text file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nsysdiag.document import words
from nsysdiag.document.blocks import Detail
from nsysdiag.document.context import Context
from nsysdiag.document.names import clip, visible
from nsysdiag.document.terminal import bar, printed
from nsysdiag.document.terminal import grid as _grid
from nsysdiag.document.terminal import heading as _heading
from nsysdiag.document.terminal import indented as _indented
from nsysdiag.document.text import text_of
from nsysdiag.document.view import Causes, LedgerRow, by_rank, held, ledger_rows, missing, moved, namesake, window_parts
from nsysdiag.formats import sections
from nsysdiag.formats.format import Format, RenderOptions
from nsysdiag.formats.text_gaps import gap_blocks, signature_blocks
from nsysdiag.ranks.show.text import rank_blocks
from nsysdiag.ranks.show.words import DEVICES_TITLE
from nsysdiag.units import format_bytes, format_ns, format_share
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Finding, Report

TOP_GAPS, TOP_SIGNATURES = 5, 3
TOP_FINDINGS = 6
TOP_LABELS = 3
LEAST_CAUSE = 1000
"""Causes with less than a thousandth of the idle time share a row."""
MIN_WIDTH, MAX_WIDTH = 60, 160
SEVERITY_STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as plain text of `options.width` columns, with colours only where asked for."""
    width = max(MIN_WIDTH, min(options.width, MAX_WIDTH))
    lines = (*_recapture(report), *_origin(options))
    return printed(_report(report, width), lines, width, color=options.color)


def _report(report: Report, width: int) -> Group:
    """What happened, who is late, what to do about it; then the details of each device."""
    causes = Causes(report.causes)
    context = Context(report, causes)
    several = len(report.devices) > 1
    blocks: list[RenderableType] = [_head(report)]
    for device in report.devices:
        blocks += _overview(device, width)
    if not report.devices:
        blocks += _no_devices(report)
    if report.ranks is not None:
        blocks += rank_blocks(report.ranks, causes, DEVICES_TITLE, brief=True)
    blocks += [line for show in sections.OPENING for line in text_of(show(context), Detail.SUMMARY, width)]
    blocks += _findings(report, width)
    for device in report.devices:
        if several:
            more = f"more of it: --device {device.key}, and the other formats"
            blocks += [_heading(f"Details of {device.key}", more), *_details(device, context, Detail.BRIEF, width)]
        else:
            blocks += _details(device, context, Detail.SUMMARY, width)
    blocks += [line for show in sections.CLOSING for line in text_of(show(context), Detail.SUMMARY, width)]
    return Group(*blocks, *_health(report))


def _head(report: Report) -> Text:
    trace = report.trace
    facts = [trace.file, format_bytes(trace.size_bytes)]
    facts += [f"nsys {trace.nsys_version}"] if trace.nsys_version else []
    return Text(f"{report.tool.name} {visible(report.tool.version)} · " + " · ".join(visible(fact) for fact in facts))


def _overview(device: DeviceReport, width: int) -> list[RenderableType]:
    return [
        _heading(device.name, device.key),
        _indented(Text(visible(device.verdict.sentence), "bold cyan")),
        _indented(Text(visible(f"Window: {words.window_sentence(device)}."))),
        _indented(Text(visible(f"Ran: {words.ops_sentence(device.ops)}."))),
        *(_indented(Text(visible(note), "yellow")) for note in device.notes),
        Text(),
        _indented(_split(device, width)),
    ]


def _details(device: DeviceReport, context: Context, detail: Detail, width: int) -> list[RenderableType]:
    """Details of a device; of one among several less, as all of them would not be read."""
    most_groups, most_gaps = (TOP_SIGNATURES, TOP_GAPS) if detail is Detail.SUMMARY else (1, 1)
    return [
        *_waited_for(device, context.causes, width),
        *(line for show in sections.PER_DEVICE for line in text_of(show(device, context), detail, width)),
        *signature_blocks(device, context.causes, width, most_groups),
        *gap_blocks(device, context.causes, width, most_gaps),
    ]


def _waited_for(device: DeviceReport, causes: Causes, width: int) -> list[RenderableType]:
    if not device.idle_ns:
        return []
    return [
        _heading("What the GPU waited for"),
        _indented(_ledger(device, causes, width)),
        *(_indented(Text(sentence)) for sentence in _below_ledger(device)),
        *_roots(device, causes, width),
    ]


def _split(device: DeviceReport, width: int) -> Table:
    table = _grid("l", "r", "r", "l")
    for part in window_parts(device):
        share = format_share(part.ns, device.window_ns)
        table.add_row(part.label, format_ns(part.ns), share, Text(bar(part.ns, device.window_ns, width - 52), "cyan"))
    return table


def _ledger(device: DeviceReport, causes: Causes, width: int) -> Table:
    room = min(44, width - 48)
    table = _grid("l", "r", "r", "r", "l")
    table.add_row(*(Text(title, "dim") for title in ("", "time", "of idle", "of window", "")))
    rows = [row for row in ledger_rows(device, causes) if row.ns]
    shown = [row for row in rows if row.ns * LEAST_CAUSE >= device.idle_ns]
    if len(rows) - len(shown) < 2:
        shown = rows
    for row in shown:
        _add_ledger_row(table, device, row, room)
    if rest := rows[len(shown) :]:
        _add_time(table, device, f"{len(rest)} smaller causes", sum(row.ns for row in rest))
    return table


def _add_ledger_row(table: Table, device: DeviceReport, row: LedgerRow, room: int) -> None:
    style = "dim" if row.cause.unresolved else ""
    title, labels = row.cause.title, row.labels
    if len(labels) == 1 and labels[0][1] == row.ns and len(title) + len(labels[0][0]) + 2 <= room:
        title, labels = f"{title}: {labels[0][0]}", ()
    table.add_row(
        Text(clip(title, room), style),
        format_ns(row.ns),
        format_share(row.ns, device.idle_ns),
        format_share(row.ns, device.window_ns),
        Text(bar(row.ns, device.idle_ns, 10), "cyan"),
    )
    for label, ns in labels[:TOP_LABELS]:
        _add_time(table, device, f"  {clip(label, room - 2)}", ns)
    hidden = labels[TOP_LABELS:]
    if hidden:
        _add_time(table, device, f"  {len(hidden)} more", sum(ns for _label, ns in hidden))


def _add_time(table: Table, device: DeviceReport, title: str, ns: int) -> None:
    """A faint row without a bar."""
    cells = (title, format_ns(ns), format_share(ns, device.idle_ns), format_share(ns, device.window_ns), "")
    table.add_row(*(Text(cell, "dim") for cell in cells))


def _below_ledger(device: DeviceReport) -> list[str]:
    lines = ["", words.coverage_sentence(device.coverage)]
    drained = words.drained_sentence(device)
    lines += [drained] if drained else []
    return lines


def _roots(device: DeviceReport, causes: Causes, width: int) -> list[RenderableType]:
    rows = moved(device, causes)
    if not rows:
        return []
    table = _grid("l", "r", "r", "w")
    for row in rows:
        change = clip(words.root_change(row), 2 * max(20, width - 62))
        title = clip(row.cause.title, min(44, width - 48))
        table.add_row(title, format_ns(row.ns), format_share(row.ns, device.idle_ns), Text(change, "dim"))
    return [_heading("At the root", "each wait counted as what the thread did that ended it"), _indented(table)]


def _block(title: str, lines: list[str]) -> list[RenderableType]:
    return [_heading(title), *(_indented(Text(visible(line))) for line in lines)] if lines else []


def _findings(report: Report, width: int) -> list[RenderableType]:
    if not report.findings:
        return []
    several = len(report.devices) > 1
    shown = by_rank(report.findings)[:TOP_FINDINGS]
    rest = len(report.findings) - len(shown)
    notes = [f"{words.counted(rest, 'more finding')} in the other formats."] if rest else []
    note = words.overlap_note(report.findings)
    return [
        _heading("Findings"),
        *(_indented(_finding(finding, namesake(finding, shown), several, width)) for finding in shown),
        *(_indented(Text(line, "dim")) for line in [*notes, *([note] if note else [])]),
    ]


def _finding(finding: Finding, told: Finding | None, several: bool, width: int) -> Group:
    """One finding; `told` is the one on another device that has told the chain already."""
    icon = words.SEVERITY_ICONS.get(finding.severity, "○")
    head = Text.assemble(
        (f"{icon} {visible(finding.severity)}  ", SEVERITY_STYLES.get(finding.severity, "")),
        (visible(finding.title), "bold"),
    )
    facts = [f"lost {words.lost_sentence(finding)}", words.confidence_word(finding.confidence)]
    facts += [finding.device] if several else []
    facts += [words.where_sentence(finding)] if finding.gaps else []
    lines = [Text(visible(" · ".join(facts)))]
    steps = _steps(finding.chain[:-1], width - 6) if told is None else [f"as on {visible(told.device)}, above"]
    lines += [Text(line, "dim") for line in steps]
    if told is None or told.advice[:1] != finding.advice[:1]:
        lines += [Text(visible(f"Fix: {advice}"), "green") for advice in finding.advice[:1]]
    return Group(head, *(_indented(line, 4) for line in lines))


def _steps(chain: list[str], room: int) -> list[str]:
    """A chain from the root on; a step that does not fit behind the one before it begins a line."""
    lines: list[str] = []
    for step in chain:
        told = f"→ {visible(step)}" if lines else visible(step)
        if lines and len(lines[-1]) + 1 + len(told) <= room:
            lines[-1] += f" {told}"
        else:
            lines.append(told)
    return lines


def _health(report: Report) -> list[RenderableType]:
    absent = missing(report)
    lines = [f"not captured: {', '.join(absent)}"] if absent else []
    lines += [f"warning: {warning}" for warning in report.trace.warnings]
    lines += [words.not_recorded_sentence(report.not_recorded)] if report.not_recorded else []
    return _block("Trace health", lines)


def _no_devices(report: Report) -> list[RenderableType]:
    tables = held(report)
    lines = ["There is no idle time to explain."]
    lines += (
        ["The trace holds:", *(f"  {table}" for table in tables)]
        if tables
        else ["The trace holds no events of other kinds either."]
    )
    return _block(words.NO_GPU_WORK, lines)


def _recapture(report: Report) -> list[Text]:
    if not report.recapture:
        return []
    return [_heading("To resolve more, capture again with"), Text(f"  {visible(report.recapture)}")]


def _origin(options: RenderOptions) -> list[Text]:
    facts = [fact for fact in (options.source, options.command, options.created) if fact]
    return [Text(f"\n{visible(' · '.join(facts))}", "dim")] if facts else []


def is_ours(data: bytes) -> bool:
    """Does the first line begin with our name?"""
    return data.startswith(b"nsysdiag ")


FORMAT = Format("txt", ".txt", "text summary", render, is_ours, TEXT)
