"""Two sides compared as Markdown for a ticket: tables of before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.rows import changed_gap_groups, changed_kernels, flows, lone_findings, split, title
from nsysdiag.document.markup import MARKER, code, table, text
from nsysdiag.document.names import brief
from nsysdiag.document.view import Causes
from nsysdiag.units import format_bytes, format_ns, format_signed_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import Change, Comparison, DeviceComparison, SideTrace
    from nsysdiag.comparison.show.words import Mark
    from nsysdiag.formats.format import RenderOptions

TOP_CAUSES, TOP_FLOWS, TOP_KERNELS, TOP_GAPS, TOP_FINDINGS, TOP_WARNINGS = 12, 6, 6, 6, 6, 6


def render(comparison: Comparison, options: RenderOptions) -> bytes:
    """The comparison as Markdown, with the marker by which a later run finds its own file again."""
    causes = Causes(comparison.causes)
    blocks = [MARKER, "# nsysdiag: before and after", _outcome(words.verdict_mark(comparison.verdict))]
    notes = [f"> {text(note)}" for note in comparison.notes]
    blocks += [f"**{text(comparison.sentence)}**", *notes]
    for device in comparison.devices:
        blocks += _device(device, causes, several=len(comparison.devices) > 1)
    blocks += [words.ELSEWHERE] if len(comparison.devices) > 1 else []
    warnings = [f"- {text(line)}" for line in words.warnings(comparison)[:TOP_WARNINGS]]
    blocks += ["## Trace health", "\n".join(warnings)] if warnings else []
    return ("\n\n".join([*blocks, _footer(comparison, options)]) + "\n").encode()


def _outcome(mark: Mark) -> str:
    return f"{text(mark.icon)} **{mark.word}**"


def _footer(comparison: Comparison, options: RenderOptions) -> str:
    command = [code(options.command, limit=500)] if options.command else []
    sides = [f"before {_side(comparison.before)}", f"after {_side(comparison.after)}"]
    tool = f"{comparison.tool.name} {text(comparison.tool.version)}"
    return "---\n\n" + " · ".join([tool, *sides, *command])


def _side(traces: Sequence[SideTrace]) -> str:
    files = [f"{code(trace.file)} ({format_bytes(trace.size_bytes)})" for trace in traces[: words.MOST_FILES]]
    more = len(traces) - words.MOST_FILES
    return ", ".join([*files, *([f"{more:,} more"] if more > 0 else [])])


def _device(device: DeviceComparison, causes: Causes, *, several: bool) -> list[str]:
    facts = [words.unit_sentence(device.unit), words.workload_sentence(device), words.noise_sentence(device)]
    blocks = [f"## {text(device.name_after)} ({text(device.key)})"]
    blocks += [_outcome(words.verdict_mark(device.verdict)), text(device.sentence)] if several else []
    return [
        *blocks,
        text(" ".join(fact for fact in facts if fact)),
        *(f"> {text(note)}" for note in device.notes),
        _changes(device, causes),
        f"**{text(device.renaming.sentence)}**",
        *_flows(device, causes),
        *([] if several else [*_kernels(device), *_gaps(device, causes), *_findings(device)]),
    ]


def _changes(device: DeviceComparison, causes: Causes) -> str:
    """Length, parts, and under the idle time its causes: each level adds up to the one above."""
    shown, tiny = split(device.ledger, device)
    rows = [["**Length**", *_numbers(device.length)]]
    rows += [
        [text(title(row.id, causes)), *_numbers(row.change)]
        for row in device.parts
        if row.change.before_ns or row.change.after_ns
    ]
    rows += [[f"… {text(title(row.id, causes))}", *_numbers(row.change)] for row in shown[:TOP_CAUSES]]
    rest = [*shown[TOP_CAUSES:], *tiny]
    if rest:
        before, after = (
            sum(times) for times in zip(*((r.change.before_ns, r.change.after_ns) for r in rest), strict=True)
        )
        rows.append(
            [f"… {len(rest):,} more", format_ns(before), format_ns(after), format_signed_ns(after - before), "", ""]
        )
    return table(["Time for a unit of work", "Before", "After", "Change", "95% interval", ""], "lrrrrl", rows)


def _numbers(change: Change) -> list[str]:
    mark = words.change_mark(change.verdict)
    return [
        format_ns(change.before_ns),
        format_ns(change.after_ns),
        words.change_label(change),
        words.interval_ns(change),
        _mark(mark),
    ]


def _flows(device: DeviceComparison, causes: Causes) -> list[str]:
    moved = flows(device)
    rows = [
        [
            text(title(move.before, causes)) if move.before is not None else "*new*",
            text(title(move.after, causes)) if move.after is not None else "*gone*",
            format_ns(move.ns),
            format_ns(move.seen_ns) if move.seen_ns else words.NOTHING,
        ]
        for move in moved[:TOP_FLOWS]
    ]
    if not rows:
        return []
    return [
        table(["Counted as before", "and after", "Time", "At the same place"], "llrr", rows),
        *_more(moved, TOP_FLOWS),
    ]


def _kernels(device: DeviceComparison) -> list[str]:
    found = changed_kernels(device)
    rows = [
        [
            code(row.short_name, in_table=True),
            f"{words.count_label(row.count_before)} × {format_ns(row.mean_before_ns)}" if row.count_before else "–",
            f"{words.count_label(row.count_after)} × {format_ns(row.mean_after_ns)}" if row.count_after else "–",
            words.change_label(row.change),
            _mark(words.change_mark(row.change.verdict)),
        ]
        for row in found[:TOP_KERNELS]
    ]
    if not rows:
        return []
    header = ["Kernel that changed", "Before", "After", "Change", ""]
    return [table(header, "lrrrl", rows), *_more(found, TOP_KERNELS)]


def _gaps(device: DeviceComparison, causes: Causes) -> list[str]:
    found = changed_gap_groups(device)
    rows = [
        [
            " → ".join(code(brief(each), in_table=True, limit=60) for each in (row.previous_op, row.next_op)),
            text(words.status_word(row.status)),
            " → ".join(
                text(title(each, causes)) for each in dict.fromkeys((row.cause_before, row.cause_after)) if each
            ),
            format_ns(row.change.before_ns),
            format_ns(row.change.after_ns),
            format_signed_ns(row.change.change_ns),
            _mark(words.change_mark(row.change.verdict)),
        ]
        for row in found[:TOP_GAPS]
    ]
    if not rows:
        return []
    header = ["Recurring gap that changed", "Side", "Cause", "Before", "After", "Change", ""]
    return [table(header, "lllrrrl", rows), *_more(found, TOP_GAPS)]


def _findings(device: DeviceComparison) -> list[str]:
    found = lone_findings(device)
    lines = [
        f"- {text(words.status_word(row.status))}: {text(row.title)}, {format_signed_ns(row.after_ns - row.before_ns)}"
        for row in found[:TOP_FINDINGS]
    ]
    return ["Findings of one side alone:", "\n".join(lines), *_more(found, TOP_FINDINGS)] if lines else []


def _mark(mark: Mark) -> str:
    return f"{text(mark.icon)} {mark.word}"


def _more(rows: Sequence[object], most: int) -> list[str]:
    return [f"{len(rows) - most:,} more in the other formats."] if len(rows) > most else []
