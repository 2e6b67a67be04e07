"""Gap groups and the longest gaps in the terminal: a few lines for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.blocks import Entry, Name, Paragraph, Part, named
from nsysdiag.document.code import call_site_label
from nsysdiag.document.figures import safe_color
from nsysdiag.document.names import brief, clip
from nsysdiag.document.view import evidence, flags, slices_by_time
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.view import Causes
    from nsysdiag.report import Gap, Operation, SignatureRow, Slice

TOP_SLICES, LEAST_SLICE, MOST_HOP = 3, 100, 400


def group_entry(row: SignatureRow, causes: Causes) -> Entry:
    """Gaps that are the same place in the program: their time, what they waited for, between which operations."""
    return Entry(
        words.signature_sentence(row),
        [
            Paragraph([_key(row.cause, causes), ": ", Name(row.previous_op), " → ", Name(row.next_op)], line=True),
            Paragraph(words.lengths_sentence(row), "quiet"),
            *_lines(named("in ", words.path_label(row.nvtx))),
        ],
        mark=format_ns(row.total_ns),
    )


def _key(cause: str, causes: Causes) -> LegendEntry:
    return LegendEntry(causes.title(cause), "", safe_color(causes[cause].color))


def gap_entries(gaps: list[Gap], causes: Causes) -> list[Entry]:
    """One that is like an earlier one in all but its times takes two lines."""
    first: dict[tuple[str, ...], Gap] = {}
    return [_gap_entry(gap, first.setdefault(_likeness(gap), gap), causes) for gap in gaps]


def _likeness(gap: Gap) -> tuple[str, ...]:
    """The details of a gap without its times."""
    names = [operation_name(operation) or "" for operation in (gap.previous_op, gap.next_op)]
    threads = [hop.how + words.thread_label(hop.thread) for hop in gap.root.hops] if gap.root else []
    threads += [words.thread_label(gap.thread), gap.root.cause if gap.root else ""]
    site = [gap.drained_by or "", call_site_label(gap.call_site), words.path_label(gap.nvtx_elsewhere)]
    return (*names, *threads, *site, *(part.cause for part in _large(gap)))


def _large(gap: Gap) -> list[Slice]:
    """The slices that are worth a line each: the longest, and those with a hundredth of the gap."""
    slices = slices_by_time(gap)
    least = (gap.end_ns - gap.start_ns) / LEAST_SLICE
    return [part for at, part in enumerate(slices[:TOP_SLICES]) if not at or part.ns >= least]


def _gap_entry(gap: Gap, first: Gap, causes: Causes) -> Entry:
    length, large = gap.end_ns - gap.start_ns, _large(gap)
    lines = []
    for part in large:
        share, why = format_share(part.ns, length), evidence(part, causes)
        lines.append(Paragraph([f"{share} ", _key(part.cause, causes), *named(": ", why)], line=True))
    lines = lines or [Paragraph("no cause")]
    if rest := slices_by_time(gap)[len(large) :]:
        time = format_ns(sum(part.ns for part in rest))
        lines.append(Paragraph(f"{words.counted(len(rest), 'other cause')}: {time}", "quiet"))
    same = Paragraph(f"like the one at {words.instant(first.start_ns)}", "quiet")
    return Entry(
        f"at {words.instant(gap.start_ns)}",
        [*lines, *_hops(gap), *_circumstances(gap)] if first is gap else [same],
        mark=format_ns(length),
        note=f"in {words.path_label(gap.nvtx)}" if gap.nvtx else "",
    )


def _hops(gap: Gap) -> list[Paragraph]:
    """Who ended the wait, a line a hop, and the root."""
    if gap.root is None or not gap.root.hops or len(gap.root.chain) < 2:
        return []
    *hops, root = gap.root.chain[1:]
    return [
        *(Paragraph(f"← {clip(hop, MOST_HOP)}", "quiet") for hop in hops),
        Paragraph([Name(root), f" ({words.root_sentence(gap)})"], "quiet", line=True),
    ]


def _circumstances(gap: Gap) -> list[Paragraph]:
    """The time of the gap, the thread that launched the operation that ended it, and the code."""
    before, after = (Name(operation_name(operation) or "nothing") for operation in (gap.previous_op, gap.next_op))
    facts = [f"launched by {words.short_thread_label(gap.thread)}"] if gap.thread else []
    return _lines(
        ["between ", before, " and ", after],
        named("", "; ".join([*facts, *flags(gap)])),
        named("code: ", call_site_label(gap.call_site)),
        named("open on other threads: ", words.path_label(gap.nvtx_elsewhere)),
    )


def _lines(*lines: list[Part]) -> list[Paragraph]:
    return [Paragraph(line, "quiet", line=True) for line in lines if line]


def operation_name(operation: Operation | None) -> str | None:
    """The operation before or after a gap; None for none."""
    return brief(operation.name) if operation else None
