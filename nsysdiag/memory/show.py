"""Copies and sets by kind, what unified memory moved by itself, and the level of device memory over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document import blocks as b
from nsysdiag.document.columns import BAR, BYTES, COUNT, RATE, TEXT, TIME, columns, of_devices, part, part_of
from nsysdiag.document.drawings import Curve, CurveLayer, TimeSeries
from nsysdiag.document.packed import unpack_level
from nsysdiag.document.words import counted, instant
from nsysdiag.memory.facts import CopyRate, CopyRow, DeviceMemory, ExposedCopies, MigrationRow, PinningClass
from nsysdiag.memory.words import DRIVER_NOTE, copy_sentences, level_sentences, unified_sentences
from nsysdiag.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.report import DeviceReport


FEWEST_LEVELS = 3
NEAR = 2
"""The limit is drawn if the peak is at least this fraction of it."""


def memory_level(memory: DeviceMemory, hovers: int) -> Curve | None:
    """The level of device memory over time, with the limit unless it is far above; None if nothing was ever given
    out. Raises InputError if the report is damaged."""
    level = unpack_level(memory)
    peak = max(int(level.highest.max()), memory.peak_bytes)
    if peak <= 0:
        return None
    limit = memory.limit_bytes if memory.limit_bytes and memory.limit_bytes <= NEAR * peak else None
    top, edges, highest = max(peak, limit or 0), level.edges.tolist(), level.highest.tolist()
    return Curve(
        [
            CurveLayer("lowest to highest", "area", TimeSeries(edges, highest, level.lowest.tolist())),
            CurveLayer("highest", "line", TimeSeries(edges, highest)),
        ],
        "Device memory given out",
        BYTES,
        top,
        byte_levels(top),
        bottom="0",
        limit={f"limit {format_bytes(limit)}": limit} if limit else {},
        hovers=hovers,
    )


def byte_levels(top: int) -> dict[str, int]:
    """Three to six multiples of a power of two up to `top`, by their labels."""
    step = 1 << max((top // FEWEST_LEVELS).bit_length() - 1, 0)
    return {format_bytes(value): value for value in range(step, top + 1, step)}


MAX_HOVERS, MOST_LINES = 125, 2


def unified_memory(device: DeviceReport, _context: Context) -> b.Section | None:
    """None if nothing moved and no fault was seen."""
    found = device.unified_memory
    if found is None:
        return None
    fields = (
        b.Column("Total", TIME, "total_ns", strong=True),
        b.Column("Bar", BAR, part_of("total_ns", max((row.total_ns for row in found.rows), default=0))),
        b.Column("Count", COUNT, "count"),
        b.Column("Bytes", BYTES, "bytes"),
        b.Column("Mean size", BYTES, lambda row: part(row.bytes, row.count)),
        b.Column("Rate", RATE, "bytes_per_second"),
        b.Column("Direction", TEXT, "direction", head=True),
        b.Column("Cause", TEXT, "cause"),
    )
    return b.Section(
        "unified-memory",
        "Unified memory",
        [
            b.Lines(unified_sentences(device), b.Limit(summary=MOST_LINES, brief=0)),
            b.Table.of("Migrations of unified memory", fields, found.rows, note="By direction and cause."),
        ],
        f"{counted(sum(row.count for row in found.rows), 'migration')}, "
        f"{format_bytes(sum(row.bytes for row in found.rows))} in {format_ns(sum(row.total_ns for row in found.rows))}",
    )


def device_memory(device: DeviceReport, context: Context) -> b.Section | None:
    """None if no allocation on the device was captured."""
    memory = device.memory
    if memory is None:
        return None
    blocks: list[b.Block] = [b.FigureRow(memory_facts(memory)), b.Lines(level_sentences(device), b.NOT_BRIEF)]
    drawing = memory_level(memory, context.rows(MAX_HOVERS))
    if drawing is not None:
        span = f"{instant(memory.start_ns)} to {instant(memory.end_ns)}"
        peak = f"at most {format_bytes(memory.peak_bytes)}, at {instant(memory.peak_at_ns)}"
        label = f"Allocated device memory, from {span}: {peak}"
        blocks.append(b.Chart(drawing, label, captions=[f"From {span}. {DRIVER_NOTE}"]))
    gist = f"{format_bytes(memory.peak_bytes)} at the peak"
    length = f"{format_ns(memory.end_ns - memory.start_ns)} from {instant(memory.start_ns)}"
    scope = b.SectionScope("run", f"{length}: all that was captured of the memory of this device")
    return b.Section("device-memory", "Device memory", blocks, gist, scope)


def memory_facts(memory: DeviceMemory) -> list[b.Fact]:
    """The numbers of a device's memory with what they are."""
    churn, pools = memory.churn, memory.pools
    held = f"{format_bytes(sum(pool.reserved_bytes for pool in pools))} held"
    used = f"{format_bytes(sum(pool.used_bytes for pool in pools))} used"
    return [
        b.Fact("Limit", memory.limit_bytes, BYTES),
        b.Fact("Peak" + (", at least" if memory.at_least else ""), memory.peak_bytes, BYTES),
        b.Fact("Never used, at most", memory.headroom_bytes, BYTES),
        b.Fact("At the window's begin", memory.begin_bytes, BYTES),
        b.Fact("At its end", memory.end_bytes, BYTES),
        b.Fact("Managed memory, peak", memory.managed_peak_bytes, BYTES),
        b.Fact("Pinned host memory, peak", memory.pinned_peak_bytes, BYTES),
        b.Fact("Allocations and frees", f"{format_count(churn.allocations)} and {format_count(churn.frees)}"),
        b.Fact("Time in such calls", churn.call_ns, TIME),
        *([b.Fact("Pools of cudaMallocAsync, at most", f"{held}, {used}")] if pools else []),
        *([b.Fact("Frees of unknown memory", memory.unknown_frees, COUNT)] if memory.unknown_frees else []),
    ]


# The tables about copies and memory.


class _MemoryBucket(NamedTuple):
    """The level of a device's memory in one bucket of time."""

    start_ns: int
    end_ns: int
    lowest_bytes: int
    highest_bytes: int


def _levels(device: DeviceReport) -> Iterator[_MemoryBucket]:
    if device.memory is not None:
        level = unpack_level(device.memory)
        series = (level.edges[:-1], level.edges[1:], level.lowest, level.highest)
        yield from map(_MemoryBucket._make, zip(*(each.tolist() for each in series), strict=True))


_COPIES = "operation source_memory=src destination_memory=dst count total_ns bytes bytes_per_second"
_COPY_RATES = """
    direction count total_ns bytes large_count large_pageable best_bytes_per_second limit_bytes_per_second slow_ns
    exceeds_pcie_generation=exceeds_pcie peak_bytes_per_second peak refused
"""
_DEVICE_MEMORY = """
    limit_bytes peak_bytes peak_at_ns begin_bytes end_bytes managed_peak_bytes pinned_peak_bytes at_least unknown_frees
    headroom_bytes near_limit
    allocations=churn.allocations frees=churn.frees allocated_bytes=churn.allocated_bytes freed_bytes=churn.freed_bytes
    calls=churn.calls call_ns=churn.call_ns idle_ns=churn.idle_ns
"""
TABLES = (
    of_devices("copies", columns(CopyRow, _COPIES), "copies.rows"),
    of_devices("copy_rates", columns(CopyRate, _COPY_RATES), "copies.rates"),
    of_devices("pinning", columns(PinningClass), "copies.pinning.rows"),
    of_devices("exposed_copies", columns(ExposedCopies), "copies.exposed"),
    of_devices("migrations", columns(MigrationRow), "unified_memory.rows"),
    of_devices("device_memory", columns(DeviceMemory, _DEVICE_MEMORY), "memory"),
    of_devices("memory_level", columns(_MemoryBucket), _levels),
)


# Copies and memory sets by kind, and what keeps them from being hidden.

MOST_COPY_LINES, TOP_ROWS = 3, 5
EXPOSED = (
    b.Column("Exposed", TIME, "exposed_ns", strong=True),
    b.Column("Total", TIME, "total_ns"),
    b.Column("Count", COUNT, "count"),
    b.Column("Operation", TEXT, "operation", head=True),
    b.Column("Host memory", TEXT, "host_memory"),
    b.Column("Call", TEXT, "call"),
    b.Column("Stream", TEXT, lambda row: order_label(row.ordered)),
)
PINNING = (
    b.Column("Direction", TEXT, "direction", head=True),
    b.Column("From", BYTES, "from_bytes"),
    b.Column("Pageable", COUNT, "pageable_count"),
    b.Column("Bytes", BYTES, "pageable_bytes"),
    b.Column("Time", TIME, "pageable_ns"),
    b.Column("Pinned", COUNT, "pinned_count"),
    b.Column("Bytes", BYTES, "pinned_bytes"),
    b.Column("Time", TIME, "pinned_ns"),
    b.Column("Saves at most", TIME, "saving_ns"),
)


def copy_section(device: DeviceReport, _context: Context) -> b.Section | None:
    """None if nothing was copied."""
    copies = device.copies
    if not copies.rows:
        return None
    top = b.Limit(ticket=TOP_ROWS, summary=0, brief=0)
    exposed = f"{format_ns(device.exposed_copy_ns)} of it ran with no compute or communication at the same time."
    note = "By direction and size: the most that pinning can save. A dash: no comparable pinned copies."
    classes = copies.pinning.rows if copies.pinning else ()
    pinned = b.Table.of(
        "Pageable copies compared with pinned ones", PINNING, classes, note=note, sortable=False, limit=b.PAGE
    )
    return b.Section(
        "copies",
        "Copies and sets",
        [
            _kinds(copies.rows, f"Summed over streams; {exposed}", top),
            b.Lines(copy_sentences(device, brief=True), b.Limit(page=0, ticket=0, summary=MOST_COPY_LINES, brief=0)),
            b.Lines(copy_sentences(device), b.TICKET),
            b.Table.of(
                "Exposed copies",
                EXPOSED,
                copies.exposed,
                note="Nothing else ran at the same time. Operations of one stream cannot overlap. No trace shows "
                "whether the kernels need the copied data.",
                noun="kinds",
                limit=top,
            ),
            b.Details("Pageable against pinned memory", [pinned], b.PAGE),
        ],
        f"{counted(sum(row.count for row in copies.rows), 'operation')}, "
        f"{format_bytes(sum(row.bytes for row in copies.rows))}; {format_ns(device.exposed_copy_ns)} exposed",
    )


def _kinds(rows: list[CopyRow], note: str, limit: b.Limit) -> b.Table:
    ordered = sorted(rows, key=lambda row: (-row.total_ns, row.operation, row.src or "", row.dst or ""))
    fields = (
        b.Column("Total", TIME, "total_ns", strong=True),
        b.Column("Bar", BAR, part_of("total_ns", ordered[0].total_ns)),
        b.Column("Count", COUNT, lambda row: row.copies or row.count),
        b.Column("Bytes", BYTES, "bytes"),
        b.Column("Rate", RATE, lambda row: row.bytes_per_second or None),
        b.Column("Operation", TEXT, "operation", head=True),
        b.Column("Memory", TEXT, lambda row: f"{row.src} → {row.dst or 'unknown'}" if row.src is not None else row.dst),
    )
    return b.Table.of("Inside the window", fields, ordered, note=note, limit=limit)


def order_label(ordered: bool | None) -> str | None:
    """On whose stream a copy stands."""
    if ordered is None:
        return None
    return "that of the neighbouring kernels" if ordered else "a separate one"
