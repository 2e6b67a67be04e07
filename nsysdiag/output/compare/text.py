"""Two sides compared as text for the terminal: the verdict, why, and where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nsysdiag.output.compare import words
from nsysdiag.output.compare.rows import (
    changed_kernels,
    changed_signatures,
    flows,
    levels,
    split,
    title,
)
from nsysdiag.output.names import brief, clip, visible
from nsysdiag.output.terminal import grid, heading, indented, printed
from nsysdiag.output.view import Causes
from nsysdiag.units import format_bytes, format_ns, format_signed_ns, format_signed_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.model_compare import Comparison, DeviceComparison, SideTrace
    from nsysdiag.output.compare.words import Mark
    from nsysdiag.output.format import RenderOptions

MIN_WIDTH, MAX_WIDTH = 60, 160
TOP_STEPS, TOP_FLOWS, TOP_CAUSES, TOP_KERNELS, TOP_GAPS, TOP_FINDINGS, TOP_WARNINGS = 8, 4, 8, 4, 4, 5, 4
LABEL_ROOM, LEAST_BAR, MOST_BAR = 36, 10, 60
# What a table needs besides its bar or its names.
BESIDE_BAR, BESIDE_NAME = 60, 40
STYLES = {"better": "bold green", "worse": "bold red", "mixed": "bold yellow", "unknown": "yellow", "same": "cyan"}


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only where asked for."""
    width = max(MIN_WIDTH, min(options.width, MAX_WIDTH))
    causes = Causes(comparison.causes)
    several = len(comparison.devices) > 1
    blocks: list[RenderableType] = [_head(comparison), *(_verdict(comparison) if several else [])]
    for device in comparison.devices:
        blocks += _device(device, causes, width)
    notes = [Text(visible(note), "yellow") for note in comparison.notes]
    blocks += _list("What lowers the confidence", notes, len(notes))
    told = [Text(visible(line)) for line in words.warnings(comparison)]
    blocks += _list("Trace health", told, TOP_WARNINGS)
    origin = [Text(f"\n{visible(options.command)}", "dim")] if options.command else []
    return printed(Group(*blocks), origin, width, color=options.color)


def _head(comparison: Comparison) -> Text:
    files = f"{_side(comparison.before)} before, {_side(comparison.after)} after"
    return Text(visible(f"{comparison.tool.name} {comparison.tool.version} · {files}"))


def _side(traces: Sequence[SideTrace]) -> str:
    return f"{words.files_label(traces)} ({format_bytes(sum(trace.size_bytes for trace in traces))})"


def _verdict(comparison: Comparison) -> list[RenderableType]:
    mark = words.verdict_mark(comparison.verdict)
    return [Text(), _outcome(mark), indented(Text(visible(comparison.sentence), "bold"))]


def _outcome(mark: Mark) -> Text:
    return Text(f"{mark.icon} {mark.word}", STYLES[mark.tone])


def _device(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    facts = [words.length_sentence(device.length), words.unit_sentence(device.unit), words.noise_sentence(device)]
    return [
        heading(device.name_after, device.key),
        _outcome(words.verdict_mark(device.verdict)),
        indented(Text(visible(device.sentence), "bold")),
        *(indented(Text(visible(fact))) for fact in facts if fact),
        *(indented(Text(visible(note), "yellow")) for note in device.notes),
        heading("From before to after"),
        indented(_waterfall(device, causes, width)),
        heading(words.RENAMING),
        indented(Text(visible(device.renaming.sentence), "bold")),
        *_flows(device, causes),
        heading("What changed", "time for a unit of work"),
        *_changes(device, causes, width),
        *_kernels(device, width),
        *_gaps(device, causes, width),
        *_findings(device),
    ]


def _waterfall(device: DeviceComparison, causes: Causes, width: int) -> Table:
    """A row for each step, drawn where it lies between the lengths."""
    steps = levels(device, TOP_STEPS)
    before, after = device.length.before_ns, device.length.after_ns
    room = max(LEAST_BAR, min(MOST_BAR, width - BESIDE_BAR))
    high = max(before, after, 1, *(step.to_ns for step in steps))
    table = grid("l", "r", "r", "l")
    table.add_row("Before", format_ns(before), "", _bar(0, before, high, room, "bold"))
    for step in steps:
        label = clip(title(step.id, causes), LABEL_ROOM) if step.id else words.smaller(step.count)
        share = format_signed_share(step.change_ns, before) if before else words.NOTHING
        style = "green" if step.change_ns < 0 else "red"
        bar = _bar(min(step.from_ns, step.to_ns), max(step.from_ns, step.to_ns), high, room, style)
        table.add_row(Text(label), format_signed_ns(step.change_ns), share, bar)
    table.add_row("After", format_ns(after), "", _bar(0, after, high, room, "bold"))
    return table


def _bar(low: int, high: int, whole: int, room: int, style: str) -> Text:
    start = min(room - 1, room * low // whole)
    end = max(start + 1, round(room * high / whole))
    return Text(" " * start + "█" * (end - start) if high > low else "", style)


def _flows(device: DeviceComparison, causes: Causes) -> list[RenderableType]:
    moved = flows(device)
    table = grid("r", "l")
    for move in moved[:TOP_FLOWS]:
        before = title(move.before, causes) if move.before is not None else words.NEW
        after = title(move.after, causes) if move.after is not None else words.GONE
        seen = f", {format_ns(move.seen_ns)} of it at the same place" if move.seen_ns else ""
        label = f"{clip(before, LABEL_ROOM)} → {clip(after, LABEL_ROOM)}{seen}"
        table.add_row(format_ns(move.ns), Text(visible(label)))
    return [indented(table), *_more(len(moved) - TOP_FLOWS)] if moved else []


def _changes(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    shown, tiny = split(device.ledger, device)
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    wide = width >= BESIDE_BAR + LABEL_ROOM
    table = grid("l", "r", "r", "r", *("r" if wide else ""), "l")
    names = ("", "before", "after", "change", *(("95% interval",) if wide else ()), "")
    table.add_row(*(Text(name, "dim") for name in names))
    for indent, row in (*(("", part) for part in parts), *(("  ", cause) for cause in shown[:TOP_CAUSES])):
        mark = words.change_mark(row.change.verdict)
        table.add_row(
            Text(indent + clip(title(row.id, causes), LABEL_ROOM if wide else LABEL_ROOM - 4)),
            format_ns(row.change.before_ns),
            format_ns(row.change.after_ns),
            format_signed_ns(row.change.change_ns),
            *((words.interval_ns(row.change),) if wide else ()),
            Text(f"{mark.icon} {mark.word}", STYLES[mark.tone].removeprefix("bold ")),
        )
    return [indented(table), *_more(len(tiny) + len(shown[TOP_CAUSES:]))]


def _kernels(device: DeviceComparison, width: int) -> list[RenderableType]:
    table = grid("r", "r", "r", "l", "l")
    found = changed_kernels(device)
    for row in found[:TOP_KERNELS]:
        mark = words.change_mark(row.change.verdict)
        status = "" if row.status == "both" else words.status_word(row.status)
        table.add_row(
            format_signed_ns(row.change.change_ns),
            format_ns(row.change.before_ns),
            format_ns(row.change.after_ns),
            Text(status or f"{mark.icon} {mark.word}", STYLES[mark.tone].removeprefix("bold ")),
            Text(clip(row.short_name, max(20, width - BESIDE_NAME))),
        )
    return _table("Kernels that changed", table, found, TOP_KERNELS)


def _gaps(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    table = grid("r", "l", "l")
    found = changed_signatures(device)
    room = max(12, (width - BESIDE_NAME) // 2)
    for row in found[:TOP_GAPS]:
        before, after = (title(cause, causes) if cause else "" for cause in (row.cause_before, row.cause_after))
        cause = f"{before} → {after}" if before and after and before != after else after or before
        table.add_row(
            format_signed_ns(row.after_ns - row.before_ns),
            Text(clip(words.status_word(row.status), 11)),
            Text(visible(clip(f"{clip(brief(row.previous_op), room)} → {clip(brief(row.next_op), room)}", width - 30))),
        )
        table.add_row("", "", Text(clip(cause, width - 30), "dim"))
    return _table("Recurring gaps that changed", table, found, TOP_GAPS)


def _findings(device: DeviceComparison) -> list[RenderableType]:
    table = grid("r", "l", "w")
    found = [row for row in device.findings if row.status != "both"]
    for row in found[:TOP_FINDINGS]:
        table.add_row(
            format_signed_ns(row.after_ns - row.before_ns),
            Text(clip(words.status_word(row.status), 12)),
            Text(visible(clip(row.title, 80))),
        )
    return _table("Findings of one side alone", table, found, TOP_FINDINGS)


def _table(name: str, table: Table, rows: Sequence[object], most: int) -> list[RenderableType]:
    return [heading(name), indented(table), *_more(len(rows) - most)] if rows else []


def _list(name: str, lines: Sequence[Text], most: int) -> list[RenderableType]:
    return [heading(name), *map(indented, lines[:most]), *_more(len(lines) - most)] if lines else []


def _more(count: int) -> list[RenderableType]:
    return [indented(Text(f"{count:,} more in the other formats", "dim"))] if count > 0 else []
