"""Gaps that are the same place in the program, and the longest ones, for formats without a template of their own."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.document import words
from nsysdiag.document.blocks import NOT_PAGE, TERMINAL, Block, Cell, Column, Entry, Limit, Paragraph, Section, Table
from nsysdiag.document.code import call_site_label
from nsysdiag.document.figures import Stack, stack
from nsysdiag.document.kinds import COUNT, MOMENT, NAME, SHARE, STACK, TEXT, TIME, share_of
from nsysdiag.document.view import by_length, by_time, by_total, evidence, slices_by_time
from nsysdiag.gap_groups.entries import gap_entries, group_entry, operation_name
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport, Gap, SignatureRow

TOP, TOP_OF_SEVERAL = 10, 5
TERMINAL_GROUPS, TERMINAL_GAPS = 3, 5
"""So many of the only GPU; of one among several the terminal shows the first."""
MAX_RANGES, SHOWN_AT_FIRST, MOST_CAUSES = 50, 20, 4
GROUPS = (
    Column("Time", TIME),
    Column("Of idle", SHARE),
    Column("Gaps", COUNT),
    Column("p50", TIME),
    Column("p95", TIME),
    Column("Max", TIME),
    Column("Longest at", MOMENT),
    Column("An iteration", TIME),
    Column("Cause", TEXT),
    *(Column(title, NAME) for title in ("Before", "After", "NVTX")),
)
GAPS = (
    Column("Length", TIME),
    Column("Start", MOMENT),
    Column("Cause", TEXT),
    Column("Evidence", TEXT, length=600),
    *(Column(title, NAME) for title in ("Before", "After", "NVTX", "NVTX of other threads")),
    Column("Code", NAME, length=180),
)


def _limit(context: Context) -> Limit:
    several = len(context.report.devices) > 1
    return Limit(page=0, ticket=TOP_OF_SEVERAL if several else TOP, summary=0, brief=0)


def _terminal(entries: list[Entry]) -> list[Entry]:
    """The entries in the terminal: after the first one only of a GPU that is alone."""
    later = Limit(page=0, ticket=0, brief=0)
    return [replace(entry, limit=later if at else TERMINAL) for at, entry in enumerate(entries)]


def groups(device: DeviceReport, context: Context) -> list[Block]:
    """The gap groups with most time; nothing if no gap repeats."""
    limit = _limit(context)
    rows = by_total(device.signatures)[: limit.ticket]
    if not any(row.count > 1 for row in rows):
        return []
    table = Table(
        "Gap groups: gaps between the same operations",
        GROUPS,
        [_group(row, context.causes) for row in rows],
        noun="kinds",
        order="with most time",
        total=len(device.signatures),
        limit=limit,
    )
    entries = [group_entry(row, context.causes) for row in rows[:TERMINAL_GROUPS]]
    return [Paragraph(f"{words.signatures_sentence(device)}.", limit=NOT_PAGE), table, *_terminal(entries)]


def _group(row: SignatureRow, causes: Causes) -> tuple[object, ...]:
    return (
        row.total_ns,
        row.share_of_idle,
        row.count,
        row.median_ns,
        row.p95_ns,
        row.max_ns,
        row.representative_start_ns,
        row.per_iteration_ns or None,
        causes.title(row.cause),
        row.previous_op,
        row.next_op,
        words.path_label(row.nvtx) or None,
    )


def longest(device: DeviceReport, context: Context) -> list[Block]:
    """The longest gaps; columns that are empty for all of them are left out."""
    limit, gaps = _limit(context), by_length(device.gaps)
    rows = [_gap(gap, context.causes) for gap in gaps[: limit.ticket]]
    used = [at for at in range(len(GAPS)) if any(row[at] is not None for row in rows)]
    return [
        Table(
            "One by one",
            [GAPS[at] for at in used],
            [[row[at] for at in used] for row in rows],
            noun="gaps",
            total=device.gap_count,
            limit=limit,
        ),
        Paragraph(f"The longest of {words.counted(device.gap_count, 'gap')}.", limit=TERMINAL),
        *_terminal(gap_entries(gaps[:TERMINAL_GAPS], context.causes)),
    ]


def _gap(gap: Gap, causes: Causes) -> tuple[object, ...]:
    length, slices = gap.end_ns - gap.start_ns, slices_by_time(gap)
    first = slices[0] if slices else None
    why = evidence(first, causes) if first else ""
    if gap.root and gap.root.hops:
        why = f"{why or '–'} ← {' ← '.join(gap.root.chain[1:])} ({words.root_sentence(gap)})"
    return (
        length,
        gap.start_ns,
        Cell(causes.title(first.cause), tag=format_share(first.ns, length)) if first else None,
        why or None,
        operation_name(gap.previous_op),
        operation_name(gap.next_op),
        words.path_label(gap.nvtx) or None,
        words.path_label(gap.nvtx_elsewhere) or None,
        call_site_label(gap.call_site) or None,
    )


def ranges(device: DeviceReport, context: Context) -> Section | None:
    """The NVTX ranges open on the launching thread during gaps, by the idle time of the gap groups inside; None if no
    group is inside a range."""
    paths: dict[tuple[str, ...], list[SignatureRow]] = defaultdict(list)
    for row in device.signatures:
        paths[tuple(row.nvtx)].append(row)
    if not any(paths):
        return None
    rows = [_range(path, inside, context.causes) for path, inside in paths.items()]
    rows.sort(key=lambda row: (-row[0], str(row[-1])))
    columns = (
        Column("Idle inside", TIME, strong=True),
        Column("Of idle", share_of(device.idle_ns)),
        Column("Gaps", COUNT),
        Column("Causes", STACK),
        Column("Ranges", NAME, head=True, length=110),
    )
    covered = format_share(sum(row[0] for row in rows), device.idle_ns)
    recurring = words.counted(len(device.signatures), "gap group")
    note = (
        f"Of the {recurring} above, which hold {covered} of the idle time. "
        "Each gap counts in one row, by the main cause of its group."
    )
    table = Table(
        "Idle time by the ranges that were open on the launching thread",
        columns,
        rows,
        note=note,
        noun="paths",
        order="with most time",
        first=SHOWN_AT_FIRST,
        limit=replace(_limit(context), page=context.rows(MAX_RANGES)),
    )
    return Section("nvtx", "NVTX ranges", [table])


def _range(path: tuple[str, ...], inside: list[SignatureRow], causes: Causes) -> tuple[int, int, int, Stack, object]:
    times: dict[str, int] = defaultdict(int)
    for row in inside:
        times[row.cause] += row.total_ns
    total, longest = sum(times.values()), by_time(times)
    segments = stack((causes.title(cause), ns, causes[cause].color, "") for cause, ns in longest)
    said = ", ".join(causes.title(cause) for cause, _ns in longest[:MOST_CAUSES])
    bar = Stack("Causes of the idle time inside", segments, total, said=said)
    name = words.path_label(list(path)) or Cell("outside all ranges", TEXT)
    return total, total, sum(row.count for row in inside), bar, name
