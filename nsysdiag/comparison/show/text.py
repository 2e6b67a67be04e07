"""Two sides compared as text for the terminal: the verdict, why, and where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.rows import (
    changed_gap_groups,
    changed_kernels,
    flows,
    levels,
    lone_findings,
    split,
    title,
)
from nsysdiag.document.names import brief, clip, visible
from nsysdiag.document.terminal import grid, heading, indented, printed
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes, format_ns, format_signed_ns, format_signed_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import Comparison, DeviceComparison, SideTrace
    from nsysdiag.comparison.show.words import Mark
    from nsysdiag.formats.format import RenderOptions

MIN_WIDTH, MAX_WIDTH = 60, 160
TOP_STEPS, TOP_FLOWS, TOP_CAUSES, TOP_KERNELS, TOP_GAPS, TOP_FINDINGS, TOP_WARNINGS = 8, 4, 8, 4, 4, 5, 4
LABEL_ROOM, STATUS_ROOM, LEAST_ROOM, LEAST_BAR, MOST_BAR = 36, 12, 8, 10, 60
# What a table needs besides its bar, and the width from which on intervals are shown.
BESIDE_BAR, WITH_INTERVALS = 60, 96
STYLES = {"better": "bold green", "worse": "bold red", "mixed": "bold yellow", "unknown": "yellow", "same": "cyan"}


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only where asked for."""
    width = max(MIN_WIDTH, min(options.width, MAX_WIDTH))
    causes = Causes(comparison.causes)
    notes = [indented(Text(visible(note), "yellow")) for note in comparison.notes]
    blocks: list[RenderableType] = [_head(comparison)]
    if len(comparison.devices) == 1:
        blocks += [*_overview(comparison.devices[0]), *notes, *_why(comparison.devices[0], causes, width)]
        device = comparison.devices[0]
        blocks += [*_kernels(device, width), *_gaps(device, causes, width), *_findings(device, width)]
    else:
        outcome = _outcome(words.verdict_mark(comparison.verdict))
        blocks += [Text(), outcome, indented(Text(visible(comparison.sentence), "bold")), *notes]
        for device in comparison.devices:
            blocks += [*_overview(device), *_why(device, causes, width)]
        blocks.append(Text(f"\n{words.ELSEWHERE}", "dim"))
    warnings = [indented(Text(visible(line))) for line in words.warnings(comparison)]
    if warnings:
        blocks += [heading("Trace health"), *warnings[:TOP_WARNINGS], *_more(len(warnings) - TOP_WARNINGS)]
    origin = [Text(f"\n{visible(options.command)}", "dim")] if options.command else []
    return printed(Group(*blocks), origin, width, color=options.color)


def _head(comparison: Comparison) -> Text:
    files = f"{_side(comparison.before)} before, {_side(comparison.after)} after"
    return Text(visible(f"{comparison.tool.name} {comparison.tool.version} · {files}"))


def _side(traces: Sequence[SideTrace]) -> str:
    return f"{words.files_label(traces)} ({format_bytes(sum(trace.size_bytes for trace in traces))})"


def _outcome(mark: Mark) -> Text:
    return Text(f"{mark.icon} {mark.word}", STYLES[mark.tone])


def _overview(device: DeviceComparison) -> list[RenderableType]:
    """What became of a unit of work, and what that rests on."""
    facts = [words.length_sentence(device.length), words.unit_sentence(device.unit), words.noise_sentence(device)]
    return [
        heading(device.name_after, device.key),
        _outcome(words.verdict_mark(device.verdict)),
        indented(Text(visible(device.sentence), "bold")),
        *(indented(Text(visible(fact))) for fact in facts if fact),
        *(indented(Text(visible(note), "yellow")) for note in device.notes),
    ]


def _why(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    """The way from before to after, and whether idle time only changed its name."""
    return [
        heading("From before to after"),
        indented(_waterfall(device, causes, width)),
        heading(words.RENAMING),
        indented(Text(visible(device.renaming.sentence), "bold")),
        *_flows(device, causes, width),
        *_changes(device, causes, width),
    ]


def _waterfall(device: DeviceComparison, causes: Causes, width: int) -> Table:
    """A row for each step, drawn where it lies between the lengths."""
    steps = levels(device, TOP_STEPS)
    before, after = device.length.before_ns, device.length.after_ns
    room = max(LEAST_BAR, min(MOST_BAR, width - BESIDE_BAR))
    high = max(before, after, 1, *(step.to_ns for step in steps))
    rows = [[Text("Before"), Text(format_ns(before)), Text(), _bar(0, before, high, room, "bold")]]
    for step in steps:
        label = title(step.id, causes) if step.id else words.smaller(step.count)
        share = format_signed_share(step.change_ns, before) if before else words.NOTHING
        style = "green" if step.change_ns < 0 else "red"
        bar = _bar(min(step.from_ns, step.to_ns), max(step.from_ns, step.to_ns), high, room, style)
        rows.append([Text(visible(label)), Text(format_signed_ns(step.change_ns)), Text(share), bar])
    rows.append([Text("After"), Text(format_ns(after)), Text(), _bar(0, after, high, room, "bold")])
    return _fitted("lrrl", rows, 0, width)


def _bar(low: int, high: int, whole: int, room: int, style: str) -> Text:
    start = max(0, min(room - 1, room * low // whole))  # steps of a damaged comparison lead below 0
    end = max(start + 1, round(room * high / whole))
    return Text(" " * start + "█" * (end - start) if high > low else "", style)


def _flows(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    moved = flows(device)
    rows = []
    for move in moved[:TOP_FLOWS]:
        before = title(move.before, causes) if move.before is not None else words.NEW
        after = title(move.after, causes) if move.after is not None else words.GONE
        seen = f" ({format_ns(move.seen_ns)} of it at the same place)" if move.seen_ns else ""
        label = f"{clip(before, LABEL_ROOM)} → {clip(after, LABEL_ROOM)}{seen}"
        rows.append([Text(format_ns(move.ns)), Text(label)])
    return [indented(_fitted("rl", rows, 1, width)), *_more(len(moved) - TOP_FLOWS)] if rows else []


def _changes(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    """The parts, and under the idle time its causes."""
    shown, tiny = split(device.ledger, device)
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    if not (parts or shown):
        return []
    wide = width >= WITH_INTERVALS
    names = ("", "before", "after", "change", *(("95% interval",) if wide else ()), "")
    rows = [[Text(name, "dim") for name in names]]
    for indent, row in (*(("", part) for part in parts), *(("  ", cause) for cause in shown[:TOP_CAUSES])):
        change = row.change
        times = [format_ns(change.before_ns), format_ns(change.after_ns), format_signed_ns(change.change_ns)]
        times += [words.interval_ns(change)] if wide else []
        label = indent + clip(title(row.id, causes), LABEL_ROOM)
        rows.append([Text(label), *map(Text, times), _judged(words.change_mark(change.verdict))])
    table = _fitted("l" + "r" * (len(names) - 2) + "l", rows, 0, width)
    head = heading("What changed", "time for a unit of work")
    return [head, indented(table), *_more(len(tiny) + len(shown[TOP_CAUSES:]))]


def _kernels(device: DeviceComparison, width: int) -> list[RenderableType]:
    found = changed_kernels(device)
    rows = [
        [
            Text(format_signed_ns(row.change.change_ns)),
            Text(format_ns(row.change.before_ns)),
            Text(format_ns(row.change.after_ns)),
            _judged(words.change_mark(row.change.verdict)) if row.status == "both" else _status(row.status),
            Text(visible(row.short_name)),
        ]
        for row in found[:TOP_KERNELS]
    ]
    return _block("Kernels that changed", _fitted("rrrll", rows, 4, width), found, TOP_KERNELS)


def _gaps(device: DeviceComparison, causes: Causes, width: int) -> list[RenderableType]:
    found = changed_gap_groups(device)
    rows = []
    for row in found[:TOP_GAPS]:
        change = format_signed_ns(row.change.change_ns)
        judged = words.change_mark(row.change.verdict)
        between = " → ".join(clip(brief(each), LABEL_ROOM) for each in (row.previous_op, row.next_op))
        ids = dict.fromkeys(each for each in (row.cause_before, row.cause_after) if each)
        names = " → ".join(clip(title(each, causes), LABEL_ROOM) for each in ids)
        rows.append([Text(change), _status(row.status), Text(between)])
        rows.append([Text(), _judged(judged), Text(names, "dim")])
    return _block("Recurring gaps that changed", _fitted("rll", rows, 2, width), found, TOP_GAPS)


def _findings(device: DeviceComparison, width: int) -> list[RenderableType]:
    found = lone_findings(device)
    rows = [
        [Text(format_signed_ns(row.after_ns - row.before_ns)), _status(row.status), Text(visible(row.title))]
        for row in found[:TOP_FINDINGS]
    ]
    return _block("Findings of one side alone", _fitted("rll", rows, 2, width), found, TOP_FINDINGS)


def _judged(mark: Mark) -> Text:
    return Text(f"{mark.icon} {mark.word}", STYLES[mark.tone].removeprefix("bold "))


def _status(status: str) -> Text:
    return Text(clip(words.status_word(status), STATUS_ROOM))


def _fitted(justify: str, rows: Sequence[Sequence[Text]], at: int, width: int) -> Table:
    """A table of which column `at` is cut to the room that the others leave: numbers stay whole."""
    others = [max((row[column].cell_len for row in rows), default=0) for column in range(len(justify)) if column != at]
    room = max(LEAST_ROOM, width - 2 - sum(others) - 2 * len(justify))
    table = grid(*justify)
    for row in rows:
        cut = Text(clip(row[at].plain, room), row[at].style)
        table.add_row(*(cut if column == at else cell for column, cell in enumerate(row)))
    return table


def _block(name: str, table: Table, rows: Sequence[object], most: int) -> list[RenderableType]:
    return [heading(name), indented(table), *_more(len(rows) - most)] if rows else []


def _more(count: int) -> list[RenderableType]:
    return [indented(Text(f"{count:,} more in the other formats", "dim"))] if count > 0 else []
