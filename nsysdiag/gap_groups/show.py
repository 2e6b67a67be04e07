"""Gaps that are the same place in the program, and the longest ones, for formats without a template of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.blocks import Block, Cell, Column, Limit, Paragraph, Table
from nsysdiag.document.code import call_site_label
from nsysdiag.document.kinds import COUNT, MOMENT, NAME, SHARE, TEXT, TIME
from nsysdiag.document.names import brief
from nsysdiag.document.view import by_length, by_total, evidence, slices_by_time
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport, Gap, Operation, SignatureRow

TOP, TOP_OF_SEVERAL = 10, 5
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


def groups(device: DeviceReport, context: Context) -> list[Block]:
    """The kinds of gaps with most time; nothing where none of them comes again."""
    limit = _limit(context)
    rows = by_total(device.signatures)[: limit.ticket]
    if not any(row.count > 1 for row in rows):
        return []
    sentence = Paragraph(f"{words.signatures_sentence(device)}.", limit=limit)
    table = Table(
        "Gaps between the same operations",
        GROUPS,
        [_group(row, context.causes) for row in rows],
        noun="kinds",
        order="with most time",
        total=len(device.signatures),
        limit=limit,
    )
    return [sentence, table]


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
    limit = _limit(context)
    rows = [_gap(gap, context.causes) for gap in by_length(device.gaps)[: limit.ticket]]
    used = [at for at in range(len(GAPS)) if any(row[at] is not None for row in rows)]
    return [
        Table(
            "One by one",
            [GAPS[at] for at in used],
            [[row[at] for at in used] for row in rows],
            noun="gaps",
            total=device.gap_count,
            limit=limit,
        )
    ]


def _gap(gap: Gap, causes: Causes) -> tuple[object, ...]:
    length, slices = gap.end_ns - gap.start_ns, slices_by_time(gap)
    first = slices[0] if slices else None
    told = evidence(first, causes) if first else ""
    if gap.root and gap.root.hops:
        told = f"{told or '–'} ← {' ← '.join(gap.root.chain[1:])} ({words.root_sentence(gap)})"
    return (
        length,
        gap.start_ns,
        Cell(causes.title(first.cause), tag=format_share(first.ns, length)) if first else None,
        told or None,
        _operation(gap.previous_op),
        _operation(gap.next_op),
        words.path_label(gap.nvtx) or None,
        words.path_label(gap.nvtx_elsewhere) or None,
        call_site_label(gap.call_site) or None,
    )


def _operation(operation: Operation | None) -> str | None:
    return brief(operation.name) if operation else None
