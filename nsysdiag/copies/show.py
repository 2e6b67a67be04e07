"""Copies and memory sets by kind, and what keeps them from being hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import PAGE, TICKET, Column, Details, Limit, Lines, Section, Table
from nsysdiag.document.kinds import BAR, BYTES, COUNT, RATE, SHARE, TEXT, TIME, part
from nsysdiag.document.words import counted
from nsysdiag.memory.words import copy_sentences
from nsysdiag.units import format_bytes, format_ns

if TYPE_CHECKING:
    from nsysdiag.copies.facts import Copies, CopyRow
    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport

MOST_LINES, TOP_ROWS = 3, 5
KINDS = (
    Column("Total", TIME, strong=True),
    Column("Bar", BAR),
    Column("Count", COUNT),
    Column("Bytes", BYTES),
    Column("Rate", RATE),
    Column("Operation", TEXT, head=True),
    Column("Memory", TEXT),
)
EXPOSED = (
    Column("Exposed", TIME, strong=True),
    Column("Total", TIME),
    Column("Count", COUNT),
    Column("Operation", TEXT, head=True),
    Column("Host memory", TEXT),
    Column("Call", TEXT),
    Column("Stream", TEXT),
)
RATES = (
    Column("Direction", TEXT, head=True),
    Column("Count", COUNT),
    Column("Bytes", BYTES),
    Column("Time", TIME),
    Column("Large", COUNT),
    Column("Reached", RATE),
    Column("Limit", RATE),
    Column("Below half of it", SHARE),
)
PINNING = (
    Column("Direction", TEXT, head=True),
    Column("From", BYTES),
    Column("Pageable", COUNT),
    Column("Bytes", BYTES),
    Column("Time", TIME),
    Column("Pinned", COUNT),
    Column("Bytes", BYTES),
    Column("Time", TIME),
    Column("Saves at most", TIME),
)


def section(device: DeviceReport, _context: Context) -> Section | None:
    """None where nothing was copied."""
    copies = device.copies
    if not copies.rows:
        return None
    top = Limit(ticket=TOP_ROWS, summary=0, brief=0)
    exposed = f"{format_ns(device.exposed_copy_ns)} of it ran with no compute or communication at the same time."
    return Section(
        "copies",
        "Copies and sets",
        [
            Table("Inside the window", KINDS, _kinds(copies.rows), note=f"Summed over streams; {exposed}", limit=top),
            Lines(copy_sentences(device, brief=True), Limit(page=0, ticket=0, summary=MOST_LINES, brief=0)),
            Lines(copy_sentences(device), TICKET),
            Table(
                "Exposed copies",
                EXPOSED,
                [
                    (
                        row.exposed_ns,
                        row.total_ns,
                        row.count,
                        row.operation,
                        row.host_memory or None,
                        row.call or None,
                        order_label(row.ordered),
                    )
                    for row in copies.exposed
                ],
                note="Nothing else ran at the same time. Operations of one stream cannot overlap. No trace shows "
                "whether the kernels need the copied data.",
                noun="kinds",
                limit=top,
            ),
            Details("Rates by direction, and pageable against pinned memory", _rates(copies), PAGE),
        ],
        f"{counted(sum(row.count for row in copies.rows), 'operation')}, "
        f"{format_bytes(sum(row.bytes for row in copies.rows))}; {format_ns(device.exposed_copy_ns)} exposed",
    )


def _kinds(rows: list[CopyRow]) -> list[tuple[object, ...]]:
    ordered = sorted(rows, key=lambda row: (-row.total_ns, row.operation, row.src or "", row.dst or ""))
    return [
        (
            row.total_ns,
            part(row.total_ns, ordered[0].total_ns),
            row.count,
            row.bytes,
            row.bytes_per_second or None,
            row.operation,
            f"{row.src} → {row.dst or 'unknown'}" if row.src is not None else row.dst,
        )
        for row in ordered
    ]


def order_label(ordered: bool | None) -> str | None:
    """On whose stream a copy stands."""
    if ordered is None:
        return None
    return "that of the neighbouring kernels" if ordered else "a separate one"


def _rates(copies: Copies) -> list[Table]:
    rates = [
        (
            *(row.direction, row.count, row.bytes, row.total_ns, row.large_count),
            *(row.best_bytes_per_second, row.limit_bytes_per_second),
            None if row.slow_ns is None else part(row.slow_ns, row.total_ns),
        )
        for row in copies.rates
    ]
    pinning = [
        (
            *(row.direction, row.from_bytes, row.pageable_count, row.pageable_bytes, row.pageable_ns),
            *(row.pinned_count, row.pinned_bytes, row.pinned_ns, row.saving_ns),
        )
        for row in (copies.pinning.rows if copies.pinning else [])
    ]
    return [
        Table(
            "Rates",
            RATES,
            rates,
            note="Limit: the rate that large copies of a direction reached (95th percentile); for copies on the "
            "device, half of the chip’s memory bandwidth. The trace does not show what the link could carry.",
            sortable=False,
            limit=PAGE,
        ),
        Table(
            "Pageable copies compared with pinned ones",
            PINNING,
            pinning,
            note="By direction and size: the most that pinning can save. A dash: no comparable pinned copies.",
            sortable=False,
            limit=PAGE,
        ),
    ]
