"""The summary that a person reads first, in the terminal or as a text file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nsysdiag.output import words
from nsysdiag.output.code import call_site_label
from nsysdiag.output.format import Format, RenderOptions
from nsysdiag.output.launch_words import launch_sentences
from nsysdiag.output.names import brief, clip, visible
from nsysdiag.output.ranks.text import rank_blocks
from nsysdiag.output.ranks.words import DEVICES_TITLE
from nsysdiag.output.terminal import grid as _grid
from nsysdiag.output.terminal import heading as _heading
from nsysdiag.output.terminal import indented as _indented
from nsysdiag.output.terminal import printed
from nsysdiag.output.view import (
    Causes,
    LedgerRow,
    by_length,
    by_rank,
    by_total,
    evidence,
    flags,
    held,
    ledger_rows,
    missing,
    moved,
    slices_by_time,
    window_parts,
)
from nsysdiag.units import format_bytes, format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.model import DeviceReport, Finding, Gap, Operation, Report, SignatureRow, Slice

TOP_GAPS, TOP_GAPS_OF_SEVERAL = 10, 3
TOP_SLICES = 3
TOP_LABELS = 3
TOP_SLOW = 3
MIN_WIDTH, MAX_WIDTH = 60, 160
BLOCKS = " ▏▎▍▌▋▊▉█"
SEVERITY_STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render(report: Report, options: RenderOptions) -> bytes:
    """The report as plain text of `options.width` columns, with colours only where asked for."""
    width = max(MIN_WIDTH, min(options.width, MAX_WIDTH))
    lines = (*_recapture(report), *_origin(options))
    return printed(_report(report, width), lines, width, color=options.color)


def _report(report: Report, width: int) -> Group:
    causes = Causes(report.causes)
    blocks: list[RenderableType] = [_head(report)]
    limit = TOP_GAPS if len(report.devices) == 1 else TOP_GAPS_OF_SEVERAL
    for device in report.devices:
        blocks += [*_device(device, causes, width), *_signatures(device, causes, width, limit // 2)]
        blocks += _gaps(device, causes, width, limit)
    if not report.devices:
        blocks += _no_devices(report)
    if report.ranks is not None:
        blocks += rank_blocks(report.ranks, causes, DEVICES_TITLE)
    return Group(*blocks, *_findings(report), *_health(report))


def _head(report: Report) -> Text:
    trace = report.trace
    facts = [trace.file, format_bytes(trace.size_bytes)]
    facts += [f"nsys {trace.nsys_version}"] if trace.nsys_version else []
    return Text(f"{report.tool.name} {visible(report.tool.version)} · " + " · ".join(visible(fact) for fact in facts))


def _device(device: DeviceReport, causes: Causes, width: int) -> list[RenderableType]:
    blocks: list[RenderableType] = [
        _heading(device.name, device.key),
        _indented(Text(visible(device.verdict.sentence), "bold cyan")),
        _indented(Text(visible(f"Window: {words.window_sentence(device)}."))),
        _indented(Text(visible(f"Ran: {words.ops_sentence(device.ops)}."))),
        *(_indented(Text(visible(note), "yellow")) for note in device.notes),
        Text(),
        _indented(_split(device, width)),
    ]
    if device.idle_ns:
        blocks += [_heading("What the GPU waited for"), _indented(_ledger(device, causes, width))]
        blocks += [_indented(Text(sentence)) for sentence in _below_ledger(device)]
        blocks += _roots(device, causes, width)
    return [*blocks, *_communication(device), *_iterations(device, causes), *_launches(device, causes)]


def _communication(device: DeviceReport) -> list[RenderableType]:
    """Kinds of collectives and of MPI calls that take over 1% of the window."""
    least, found = max(device.window_ns // 100, 1), device.communication
    lines = [words.kind_sentence(row) for row in found.kinds if row.exposed_ns + row.overlapped_ns >= least]
    lines += [words.mpi_sentence(row) for row in found.mpi if row.total_ns >= least]
    return [_heading("Communication"), *(_indented(Text(visible(line))) for line in lines)] if lines else []


def bar(part: int, whole: int, columns: int) -> str:
    """A horizontal bar to an eighth of a column; a part that is not zero always shows."""
    if whole <= 0 or part <= 0:
        return ""
    eighths = max(1, round(8 * columns * part / whole))
    full, rest = divmod(min(eighths, 8 * columns), 8)
    return BLOCKS[8] * full + (BLOCKS[rest] if rest else "")


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
    for row in ledger_rows(device, causes):
        if row.ns:
            _add_ledger_row(table, device, row, room)
    return table


def _add_ledger_row(table: Table, device: DeviceReport, row: LedgerRow, room: int) -> None:
    style = "dim" if row.cause.unresolved else ""
    table.add_row(
        Text(clip(row.cause.title, room), style),
        format_ns(row.ns),
        format_share(row.ns, device.idle_ns),
        format_share(row.ns, device.window_ns),
        Text(bar(row.ns, device.idle_ns, 10), "cyan"),
    )
    for label, ns in row.labels[:TOP_LABELS]:
        table.add_row(
            Text(f"  {clip(label, room - 2)}", "dim"),
            Text(format_ns(ns), "dim"),
            Text(format_share(ns, device.idle_ns), "dim"),
            Text(format_share(ns, device.window_ns), "dim"),
            "",
        )
    hidden = row.labels[TOP_LABELS:]
    if hidden:
        rest = sum(ns for _label, ns in hidden)
        table.add_row(Text(f"  {len(hidden)} more", "dim"), Text(format_ns(rest), "dim"), "", "", "")


def _below_ledger(device: DeviceReport) -> list[str]:
    lines = ["", words.coverage_sentence(device.coverage)]
    drained = words.drained_sentence(device)
    lines += [drained] if drained else []
    return lines


def _roots(device: DeviceReport, causes: Causes, width: int) -> list[RenderableType]:
    rows = moved(device, causes)
    if not rows:
        return []
    table = _grid("l", "r", "r", "l")
    for row in rows:
        change = clip(words.root_change(row), max(20, width - 62))
        title = clip(row.cause.title, min(44, width - 48))
        time, share = (format_ns(row.ns), format_share(row.ns, device.idle_ns)) if row.ns else ("–", "–")
        table.add_row(title, time, share, Text(change, "dim"))
    return [_heading("At the root", "each wait counted as what the thread did that ended it"), _indented(table)]


def _iterations(device: DeviceReport, causes: Causes) -> list[RenderableType]:
    found = device.iterations
    if found is None:
        return []
    lines = [words.iterations_sentence(found), *(words.slow_sentence(slow, causes) for slow in found.slow[:TOP_SLOW])]
    if found.slow[TOP_SLOW:]:
        lines.append(f"{words.counted(len(found.slow) - TOP_SLOW, 'more slow one')} in the other formats")
    return [_heading("Iterations"), *(_indented(Text(visible(line))) for line in lines)]


def _launches(device: DeviceReport, causes: Causes) -> list[RenderableType]:
    lines = launch_sentences(device, causes)
    return [_heading("Launches"), *(_indented(Text(visible(line))) for line in lines)] if lines else []


def _signatures(device: DeviceReport, causes: Causes, width: int, limit: int) -> list[RenderableType]:
    """The gaps that come again: only where some do."""
    rows = by_total(device.signatures)[:limit]
    if not any(row.count > 1 for row in rows):
        return []
    heading = _heading("Recurring gaps", words.signatures_sentence(device))
    return [heading, *(_signature(row, causes, width) for row in rows)]


def _signature(row: SignatureRow, causes: Causes, width: int) -> Group:
    head = Text.assemble((f"{format_ns(row.total_ns):>9}", "bold"), f"  {words.signature_sentence(row)}")
    what = Text(visible(causes.title(row.cause)), "cyan")
    between = Text(f": {words.between_label(row, width - 15 - len(what))}")
    lines = [Text.assemble(what, between), Text(words.lengths_sentence(row), "dim")]
    lines += [Text(clip(f"in {words.path_label(row.nvtx)}", width - 11), "dim")] if row.nvtx else []
    return Group(head, *(_indented(line, 11) for line in lines))


def _gaps(device: DeviceReport, causes: Causes, width: int, limit: int) -> list[RenderableType]:
    gaps = by_length(device.gaps)[:limit]
    if not gaps:
        return []
    heading = _heading("Largest gaps", f"{len(gaps)} of {format_count(device.gap_count)}")
    return [heading, *(_gap(gap, causes, width) for gap in gaps)]


def _gap(gap: Gap, causes: Causes, width: int) -> Group:
    head = Text.assemble((f"{format_ns(gap.end_ns - gap.start_ns):>9}", "bold"), f"  at {words.instant(gap.start_ns)}")
    if gap.nvtx:
        head.append(f"  in {clip(words.path_label(gap.nvtx), width - len(head) - 5)}", "dim")
    slices = slices_by_time(gap)
    lines = [_slice_line(gap, part, causes, width - 11) for part in slices[:TOP_SLICES]]
    if not slices:
        lines = [Text("no cause")]
    elif slices[TOP_SLICES:]:
        rest = format_ns(sum(part.ns for part in slices[TOP_SLICES:]))
        lines.append(Text(f"{rest} of {words.counted(len(slices) - TOP_SLICES, 'other cause')}", "dim"))
    context = [*_chain(gap, width - 11), *_context(gap, width - 11)]
    return Group(head, *(_indented(line, 11) for line in [*lines, *(Text(line, "dim") for line in context)]))


def _slice_line(gap: Gap, part: Slice, causes: Causes, room: int) -> Text:
    share = format_share(part.ns, gap.end_ns - gap.start_ns)
    line = Text.assemble(f"{share} ", (visible(causes.title(part.cause)), "cyan"))
    told = evidence(part, causes)
    if told:
        line.append(f": {clip(told, max(20, room - len(line) - 2))}")
    return line


def _chain(gap: Gap, room: int) -> list[str]:
    """Who ended the wait, a line a hop, and the root."""
    if gap.root is None or not gap.root.hops:
        return []
    *hops, root = gap.root.chain[1:]
    return [*(clip(f"← {hop}", 2 * room) for hop in hops), clip(f"{root} ({words.root_sentence(gap)})", room)]


def _context(gap: Gap, room: int) -> list[str]:
    """Where the gap lies and who launched the operation that ended it."""
    half = (room - 13) // 2
    lines = [f"between {_operation(gap.previous_op, half)} and {_operation(gap.next_op, half)}"]
    facts = [f"launched by {words.short_thread_label(gap.thread)}"] if gap.thread else []
    facts += flags(gap)
    lines += [clip("; ".join(facts), room)] if facts else []
    place = call_site_label(gap.call_site)
    lines += [clip(f"code: {place}", room)] if place else []
    elsewhere = words.path_label(gap.nvtx_elsewhere)
    return [*lines, clip(f"open on other threads: {elsewhere}", room)] if elsewhere else lines


def _operation(operation: Operation | None, room: int) -> str:
    return clip(brief(operation.name), room) if operation else "nothing"


def _findings(report: Report) -> list[RenderableType]:
    if not report.findings:
        return []
    several = len(report.devices) > 1
    note = words.overlap_note(report.findings)
    return [
        _heading("Findings"),
        *(_indented(_finding(finding, several)) for finding in by_rank(report.findings)),
        *([_indented(Text(note, "dim"))] if note else []),
    ]


def _finding(finding: Finding, several: bool) -> Group:
    icon = words.SEVERITY_ICONS.get(finding.severity, "○")
    head = Text.assemble(
        (f"{icon} {visible(finding.severity)}  ", SEVERITY_STYLES.get(finding.severity, "")),
        (visible(finding.title), "bold"),
    )
    facts = [f"lost {words.lost_sentence(finding)}", words.confidence_word(finding.confidence)]
    facts += [finding.device] if several else []
    facts += [words.where_sentence(finding)] if finding.gaps else []
    lines = [Text(visible(" · ".join(facts)))]
    lines += [Text(visible(words.chain_label(finding.chain[:-1])), "dim")] if finding.chain else []
    lines += [Text(visible(f"→ {advice}"), "green") for advice in finding.advice[:1]]
    lines += [Text(visible(words.row_label(row)), "dim") for row in finding.rows[:1]]
    return Group(head, *(_indented(line, 4) for line in lines))


def _health(report: Report) -> list[RenderableType]:
    absent = missing(report)
    lines = [f"not captured: {', '.join(absent)}"] if absent else []
    lines += [f"warning: {warning}" for warning in report.trace.warnings]
    if not lines:
        return []
    return [_heading("Trace health"), *(_indented(Text(visible(line))) for line in lines)]


def _no_devices(report: Report) -> list[RenderableType]:
    tables = held(report)
    lines = ["There is no idle time to explain."]
    lines += (
        ["The trace holds:", *(f"  {table}" for table in tables)]
        if tables
        else ["The trace holds no events of other kinds either."]
    )
    return [_heading(words.NO_GPU_WORK), *(_indented(Text(visible(line))) for line in lines)]


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


FORMAT = Format("txt", ".txt", "text summary", render, is_ours)
