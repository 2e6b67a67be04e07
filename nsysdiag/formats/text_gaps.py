"""The gaps in the text summary: those that come again, and the longest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from nsysdiag.document import words
from nsysdiag.document.code import call_site_label
from nsysdiag.document.names import brief, clip, visible
from nsysdiag.document.terminal import heading, indented
from nsysdiag.document.view import Causes, by_length, by_total, evidence, flags, slices_by_time
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Gap, Operation, SignatureRow, Slice

TOP_SLICES, LEAST_SLICE = 3, 100


def signature_blocks(device: DeviceReport, causes: Causes, width: int, limit: int) -> list[RenderableType]:
    """The gaps that come again: only where some do."""
    rows = by_total(device.signatures)[:limit]
    if not any(row.count > 1 for row in rows):
        return []
    title = heading("Recurring gaps", words.signatures_sentence(device))
    return [title, *(_signature(row, causes, width) for row in rows)]


def _signature(row: SignatureRow, causes: Causes, width: int) -> Group:
    head = Text.assemble((f"{format_ns(row.total_ns):>9}", "bold"), f"  {words.signature_sentence(row)}")
    what = Text(visible(causes.title(row.cause)), "cyan")
    between = Text(f": {words.between_label(row, width - 15 - len(what))}")
    lines = [Text.assemble(what, between), Text(words.lengths_sentence(row), "dim")]
    lines += [Text(clip(f"in {words.path_label(row.nvtx)}", width - 11), "dim")] if row.nvtx else []
    return Group(head, *(indented(line, 11) for line in lines))


def gap_blocks(device: DeviceReport, causes: Causes, width: int, limit: int) -> list[RenderableType]:
    """The longest gaps; one that is like an earlier one in all but its times takes two lines."""
    gaps = by_length(device.gaps)[:limit]
    if not gaps:
        return []
    first: dict[tuple[str, ...], Gap] = {}
    blocks = [_gap(gap, first.setdefault(_likeness(gap), gap), causes, width) for gap in gaps]
    return [heading("Largest gaps", f"{len(gaps)} of {format_count(device.gap_count)}"), *blocks]


def _likeness(gap: Gap) -> tuple[str, ...]:
    """What the details of a gap say beside times."""
    names = [brief(operation.name) if operation else "" for operation in (gap.previous_op, gap.next_op)]
    threads = [hop.how + words.thread_label(hop.thread) for hop in gap.root.hops] if gap.root else []
    threads += [words.thread_label(gap.thread), gap.root.cause if gap.root else ""]
    site = [gap.drained_by or "", call_site_label(gap.call_site), words.path_label(gap.nvtx_elsewhere)]
    return (*names, *threads, *site, *(part.cause for part in _large(gap)))


def _large(gap: Gap) -> list[Slice]:
    """The slices that are worth a line each: the longest, and those with a hundredth of the gap."""
    slices = slices_by_time(gap)
    least = (gap.end_ns - gap.start_ns) / LEAST_SLICE
    return [part for at, part in enumerate(slices[:TOP_SLICES]) if not at or part.ns >= least]


def _gap(gap: Gap, first: Gap, causes: Causes, width: int) -> Group:
    head = Text.assemble((f"{format_ns(gap.end_ns - gap.start_ns):>9}", "bold"), f"  at {words.instant(gap.start_ns)}")
    if gap.nvtx:
        head.append(f"  in {clip(words.path_label(gap.nvtx), width - len(head) - 5)}", "dim")
    if first is not gap:
        return Group(head, indented(Text(f"like the one at {words.instant(first.start_ns)}", "dim"), 11))
    large = _large(gap)
    lines = [_slice_line(gap, part, causes, width - 11) for part in large] or [Text("no cause")]
    if rest := slices_by_time(gap)[len(large) :]:
        time = format_ns(sum(part.ns for part in rest))
        lines.append(Text(f"{words.counted(len(rest), 'other cause')}: {time}", "dim"))
    context = [*_chain(gap, width - 11), *_context(gap, width - 11)]
    return Group(head, *(indented(line, 11) for line in [*lines, *(Text(line, "dim") for line in context)]))


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
