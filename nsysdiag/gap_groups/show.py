"""Gaps that are the same place in the program, the longest ones, and all by length, for formats without a template of
their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.document import blocks as b
from nsysdiag.document import words
from nsysdiag.document.axis import EDGES as FINE_EDGES
from nsysdiag.document.axis import bound, edge_labels, panel
from nsysdiag.document.columns import COUNT, MOMENT, NAME, SHARE, STACK, TEXT, TIME, CellKind, share_of
from nsysdiag.document.drawings import Bar, Histogram, StackedBar, entry_of, stack
from nsysdiag.document.names import brief, call_site_label, clip
from nsysdiag.document.view import Causes, Context, by_length, by_time, by_total, evidence, flags, slices_by_time
from nsysdiag.document.view import share_of as some
from nsysdiag.saved import unpack
from nsysdiag.units import NS_PER, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from nsysdiag.report import DeviceReport, Gap, Operation, SignatureRow, Slice


# Gap groups and the longest gaps in the terminal: a few lines for each.

TOP_SLICES, LEAST_SLICE, MOST_HOP = 3, 100, 400


def group_entry(row: SignatureRow, causes: Causes) -> b.Entry:
    """Gaps that are the same place in the program: their time, what they waited for, between which operations."""
    return b.Entry(
        words.signature_sentence(row),
        [
            b.Paragraph(
                [entry_of(row.cause, causes), ": ", b.Name(row.previous_op), " → ", b.Name(row.next_op)], line=True
            ),
            b.Paragraph(words.lengths_sentence(row), "quiet"),
            *_lines(b.named("in ", words.path_label(row.nvtx))),
        ],
        mark=format_ns(row.total_ns),
    )


def gap_entries(gaps: list[Gap], causes: Causes) -> list[b.Entry]:
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


def _gap_entry(gap: Gap, first: Gap, causes: Causes) -> b.Entry:
    length, large = gap.end_ns - gap.start_ns, _large(gap)
    lines = []
    for part in large:
        share, why = format_share(part.ns, length), evidence(part, causes)
        lines.append(b.Paragraph([f"{share} ", entry_of(part.cause, causes), *b.named(": ", why)], line=True))
    lines = lines or [b.Paragraph("no cause")]
    if rest := slices_by_time(gap)[len(large) :]:
        time = format_ns(sum(part.ns for part in rest))
        lines.append(b.Paragraph(f"{words.counted(len(rest), 'other cause')}: {time}", "quiet"))
    same = b.Paragraph(f"like the one at {words.instant(first.start_ns)}", "quiet")
    return b.Entry(
        f"at {words.instant(gap.start_ns)}",
        [*lines, *_hops(gap), *_circumstances(gap)] if first is gap else [same],
        mark=format_ns(length),
        note=f"in {words.path_label(gap.nvtx)}" if gap.nvtx else "",
    )


def _hops(gap: Gap) -> list[b.Paragraph]:
    """Who ended the wait, a line a hop, and the root."""
    if gap.root is None or not gap.root.hops or len(gap.root.chain) < 2:
        return []
    *hops, root = gap.root.chain[1:]
    return [
        *(b.Paragraph(f"← {clip(hop, MOST_HOP)}", "quiet") for hop in hops),
        b.Paragraph([b.Name(root), f" ({words.root_sentence(gap)})"], "quiet", line=True),
    ]


def _circumstances(gap: Gap) -> list[b.Paragraph]:
    """The time of the gap, the thread that launched the operation that ended it, and the code."""
    before, after = (b.Name(operation_name(operation) or "nothing") for operation in (gap.previous_op, gap.next_op))
    facts = [f"launched by {words.short_thread_label(gap.thread)}"] if gap.thread else []
    return _lines(
        ["between ", before, " and ", after],
        b.named("", "; ".join([*facts, *flags(gap)])),
        b.named("code: ", call_site_label(gap.call_site)),
        b.named("open on other threads: ", words.path_label(gap.nvtx_elsewhere)),
    )


def _lines(*lines: list[b.Part]) -> list[b.Paragraph]:
    return [b.Paragraph(line, "quiet", line=True) for line in lines if line]


def operation_name(operation: Operation | None) -> str | None:
    """The operation before or after a gap; None for none."""
    return brief(operation.name) if operation else None


TOP, TOP_OF_SEVERAL = 10, 5
TERMINAL_GROUPS, TERMINAL_GAPS = 3, 5
"""So many of the only GPU; of one among several the terminal shows the first."""


def _gap_columns(causes: Causes) -> tuple[b.Column, ...]:
    return (
        b.Column("Length", TIME, lambda gap: gap.end_ns - gap.start_ns),
        b.Column("Start", MOMENT, "start_ns"),
        b.Column("Cause", TEXT, lambda gap: _main_cause(gap, causes)),
        b.Column("Evidence", TEXT, lambda gap: _why(gap, causes), length=600),
        b.Column("Before", NAME, lambda gap: operation_name(gap.previous_op)),
        b.Column("After", NAME, lambda gap: operation_name(gap.next_op)),
        b.Column("NVTX", NAME, lambda gap: words.path_label(gap.nvtx)),
        b.Column("NVTX of other threads", NAME, lambda gap: words.path_label(gap.nvtx_elsewhere)),
        b.Column("Code", NAME, lambda gap: call_site_label(gap.call_site), length=180),
    )


def _limit(context: Context) -> b.Limit:
    several = len(context.report.devices) > 1
    return b.Limit(page=0, ticket=TOP_OF_SEVERAL if several else TOP, summary=0, brief=0)


def _terminal(entries: list[b.Entry]) -> list[b.Entry]:
    """The entries in the terminal: after the first one only of a GPU that is alone."""
    later = b.Limit(page=0, ticket=0, brief=0)
    return [replace(entry, limit=later if at else b.TERMINAL) for at, entry in enumerate(entries)]


def groups(device: DeviceReport, context: Context) -> list[b.Block]:
    """The gap groups with most time; nothing if no gap repeats."""
    limit = _limit(context)
    rows = by_total(device.signatures)[: limit.ticket]
    if not any(row.count > 1 for row in rows):
        return []
    table = b.Table.of(
        "Gap groups: gaps between the same operations",
        (
            b.Column("Time", TIME, "total_ns"),
            b.Column("Of idle", SHARE, "share_of_idle"),
            b.Column("Gaps", COUNT, "count"),
            b.Column("p50", TIME, "median_ns"),
            b.Column("p95", TIME, "p95_ns"),
            b.Column("Max", TIME, "max_ns"),
            b.Column("Longest at", MOMENT, "representative_start_ns"),
            b.Column("An iteration", TIME, lambda row: row.per_iteration_ns or None),
            b.Column("Cause", TEXT, lambda row: context.causes.title(row.cause)),
            b.Column("Before", NAME, "previous_op"),
            b.Column("After", NAME, "next_op"),
            b.Column("NVTX", NAME, lambda row: words.path_label(row.nvtx)),
        ),
        rows,
        noun="kinds",
        order="with most time",
        total=len(device.signatures),
        limit=limit,
    )
    entries = [group_entry(row, context.causes) for row in rows[:TERMINAL_GROUPS]]
    return [b.Paragraph(f"{words.signatures_sentence(device)}.", limit=b.NOT_PAGE), table, *_terminal(entries)]


def groups_gist(device: DeviceReport) -> str:
    """How much of the idle time the groups hold, and what the largest costs."""
    largest = max(row.total_ns for row in device.signatures)
    return f"{words.signatures_sentence(device)}; the largest costs {format_ns(largest)}"


def gaps_gist(device: DeviceReport) -> str:
    """How many gaps there are, and how long the longest is."""
    longest = max(gap.end_ns - gap.start_ns for gap in device.gaps)
    return f"{words.counted(device.gap_count, 'gap')}, the longest {format_ns(longest)}"


def longest(device: DeviceReport, context: Context) -> list[b.Block]:
    """The longest gaps; columns that are empty for all of them are left out."""
    limit, gaps = _limit(context), by_length(device.gaps)
    rows = gaps[: limit.ticket]
    used = [each for each in _gap_columns(context.causes) if any(each.of(gap) is not None for gap in rows)]
    return [
        b.Table.of("One by one", used, rows, noun="gaps", total=device.gap_count, limit=limit),
        b.Paragraph(f"The longest of {words.counted(device.gap_count, 'gap')}.", limit=b.TERMINAL),
        *_terminal(gap_entries(gaps[:TERMINAL_GAPS], context.causes)),
    ]


def _main_cause(gap: Gap, causes: Causes) -> b.Cell | None:
    slices, length = slices_by_time(gap), gap.end_ns - gap.start_ns
    return b.Cell(causes.title(slices[0].cause), tag=format_share(slices[0].ns, length)) if slices else None


def _why(gap: Gap, causes: Causes) -> str:
    """The evidence for it, and what ended the wait."""
    why = "".join(evidence(each, causes) for each in slices_by_time(gap)[:1])
    if gap.root and gap.root.hops:
        return f"{why or '–'} ← {' ← '.join(gap.root.chain[1:])} ({words.root_sentence(gap)})"
    return why


# All gaps by length: is it a thousand small waits or one long one?

EDGES = tuple(NS_PER["us"] * 10**power for power in range(7))


def lengths(device: DeviceReport, context: Context) -> b.Section | None:
    """The gaps of each decade of lengths, from the shortest decade that has one to the longest; None if all gaps are
    of one decade."""
    rows = _decades(device, context.causes) if device.gaps_packed.count else []
    if not rows:
        return None
    columns = (
        b.Column("Length", TEXT, head=True),
        b.Column("Gaps", COUNT),
        b.Column("Time", TIME),
        b.Column("Of idle", share_of(device.idle_ns)),
        b.Column("Causes", STACK),
    )
    title = f"All {words.counted(device.gap_count, 'gap')}"
    note = "The bars divide the time by each gap’s largest cause."
    table = b.Table(title, columns, rows, note=note, sortable=False, limit=b.PAGE)
    label, count, total, *_more = max(rows, key=lambda row: row[2])
    gist = f"{format_share(total, device.idle_ns)} of the idle time in {words.counted(count, 'gap')} of {label}"
    return b.Section("gap-lengths", "Gaps by length", [gap_lengths([device], context.causes), table], gist)


def _decades(device: DeviceReport, causes: Causes) -> list[tuple[str, int, int, int, StackedBar | None]]:
    """The rows of the table; none if all gaps, at least one, are of one decade."""
    _starts, lengths, codes = unpack(device.gaps_packed)
    first, last = np.searchsorted(np.array(EDGES), [lengths.min(), lengths.max()], side="right").tolist()
    if first == last:
        return []
    ids, decades = device.gaps_packed.cause_ids, last + 1 - first
    key = (np.searchsorted(np.array(EDGES), lengths, side="right") - first) * len(ids) + codes
    count = np.bincount(key, minlength=decades * len(ids)).reshape(decades, -1)
    total = sum_of_each(key, lengths, decades * len(ids)).reshape(decades, -1)
    longest = int(total.sum(axis=1).max())
    rows: list[tuple[str, int, int, int, StackedBar | None]] = []
    for index, number, ns in zip(range(first, last + 1), count, total, strict=True):
        by_cause = by_time({ids[each]: int(ns[each]) for each in np.flatnonzero(number).tolist()})
        segments = stack((entry_of(cause, causes), part) for cause, part in by_cause)
        whole = int(ns.sum())
        bar = StackedBar("Causes of the gaps of this length", segments, whole, longest) if whole else None
        rows.append((_label(index), int(number.sum()), whole, whole, bar))
    return rows


def _tallies(devices: Iterable[DeviceReport]) -> dict[str, npt.NDArray[np.int64]]:
    """The number of gaps in each bin, and their ns, by dominant cause; the cause with the most time first."""
    tallies: dict[str, npt.NDArray[np.int64]] = {}
    for device in devices:
        _starts, lengths, causes = unpack(device.gaps_packed)
        place = np.maximum(np.searchsorted(np.array(FINE_EDGES), lengths, side="right") - 1, 0)
        bins, ids = len(FINE_EDGES), device.gaps_packed.cause_ids
        key = causes.astype(np.int64, copy=False) * bins + place
        number = np.bincount(key, minlength=len(ids) * bins).reshape(-1, bins)
        time = sum_of_each(key, lengths, number.size).reshape(-1, bins)
        for cause in np.flatnonzero(number.any(axis=1)).tolist():
            tallies.setdefault(ids[cause], np.zeros((2, bins), dtype=np.int64))[...] += (number[cause], time[cause])
    return dict(sorted(tallies.items(), key=lambda item: (-int(item[1][1].sum()), item[0])))


def gap_lengths(devices: Iterable[DeviceReport], causes: Causes) -> b.Chart:
    """The number of gaps, of which there is at least one, and their time in finer bins. Raises InputError if a saved
    report is damaged."""
    tallies = _tallies(devices)
    used = np.flatnonzero(sum(number for number, _time in tallies.values()))
    first, behind = int(used[0]), int(used[-1]) + 1
    edges = [*FINE_EDGES[first:behind], *(FINE_EDGES[behind : behind + 1] or [FINE_EDGES[-1]])]
    counts, times = (
        panel([_bar(tallies, row, at, kind, causes) for at in range(first, behind)], kind)
        for row, kind in enumerate((COUNT, TIME))
    )
    return b.Chart(
        Histogram({"Number of gaps": counts, "Idle time in them": times}, edge_labels(edges), "Length of the gap"),
        "Number of gaps, and idle time in them, by length",
        captions=["Each bar holds the gaps of one range of lengths, divided by each gap’s largest cause."],
        legend=times.legend,
    )


def _bar(tallies: dict[str, npt.NDArray[np.int64]], row: int, at: int, kind: CellKind, causes: Causes) -> Bar:
    """The gaps of one bin: their number or their time by cause."""
    values = {cause: int(tally[row, at]) for cause, tally in tallies.items()}
    parts = [some(cause, value, causes) for cause, value in values.items() if value]
    said = ", ".join(f"{part.label} {kind.show(part.ns)}" for part in parts)
    return Bar(_range(at), parts, f"{_range(at)}: {said or 'none'}")


def _range(at: int) -> str:
    return f"{bound(at)} to {bound(at + 1)}"


def _label(index: int) -> str:
    if index == 0:
        return f"under {_edge(0)}"
    if index == len(EDGES):
        return f"{_edge(-1)} and more"
    return f"{_edge(index - 1)} to {_edge(index)}"


def _edge(index: int) -> str:
    return format_ns(EDGES[index]).replace(".00", "").replace(".0", "")
