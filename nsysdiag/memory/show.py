"""What unified memory moved by itself, and the level of device memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import NOT_BRIEF, Block, Chart, Column, Fact, Facts, Limit, Lines, Section, Table
from nsysdiag.document.kinds import BAR, BYTES, COUNT, RATE, TEXT, TIME, part
from nsysdiag.document.words import instant
from nsysdiag.memory.chart import draw_level
from nsysdiag.memory.words import DRIVER_NOTE, growth_label, level_sentences, unified_sentences
from nsysdiag.units import format_bytes, format_count

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.memory.facts import DeviceMemory
    from nsysdiag.report import DeviceReport

MAX_SPOTS, MOST_LINES = 125, 2
MIGRATIONS = (
    Column("Total", TIME, strong=True),
    Column("Bar", BAR),
    Column("Count", COUNT),
    Column("Bytes", BYTES),
    Column("Mean size", BYTES),
    Column("Rate", RATE),
    Column("Direction", TEXT, head=True),
    Column("Cause", TEXT),
)


def unified_memory(device: DeviceReport, _context: Context) -> Section | None:
    """None where nothing moved and no fault was seen."""
    found = device.unified_memory
    if found is None:
        return None
    most = max((row.total_ns for row in found.rows), default=0)
    rows = [
        (
            row.total_ns,
            part(row.total_ns, most),
            row.count,
            row.bytes,
            part(row.bytes, row.count),
            row.bytes_per_second,
            row.direction,
            row.cause,
        )
        for row in found.rows
    ]
    return Section(
        "unified-memory",
        "Unified memory",
        [
            Lines(unified_sentences(device), Limit(summary=MOST_LINES, brief=0)),
            Table("Migrations of unified memory", MIGRATIONS, rows, note="By direction and cause."),
        ],
    )


def device_memory(device: DeviceReport, context: Context) -> Section | None:
    """None where no allocation on the device was captured."""
    memory = device.memory
    if memory is None:
        return None
    blocks: list[Block] = [Facts(memory_facts(memory)), Lines(level_sentences(device), NOT_BRIEF)]
    drawing = draw_level(memory, context.rows(MAX_SPOTS))
    if drawing is not None:
        span = f"{instant(memory.start_ns)} to {instant(memory.end_ns)}"
        peak = f"at most {format_bytes(memory.peak_bytes)}, at {instant(memory.peak_at_ns)}"
        label = f"Allocated device memory, from {span}: {peak}"
        blocks.append(Chart(drawing, label, captions=[f"From {span}. {DRIVER_NOTE}"]))
    return Section("device-memory", "Device memory", blocks)


def memory_facts(memory: DeviceMemory) -> list[Fact]:
    """The numbers of a device's memory with what they are."""
    churn, pools = memory.churn, memory.pools
    held = f"{format_bytes(sum(pool.reserved_bytes for pool in pools))} held"
    used = f"{format_bytes(sum(pool.used_bytes for pool in pools))} used"
    return [
        Fact("Limit", memory.limit_bytes, BYTES),
        Fact("Peak" + (", at least" if memory.at_least else ""), memory.peak_bytes, BYTES),
        Fact("Never used, at most", memory.headroom_bytes, BYTES),
        Fact("At the window's begin", memory.begin_bytes, BYTES),
        Fact("At its end", memory.end_bytes, BYTES),
        Fact("Managed memory, peak", memory.managed_peak_bytes, BYTES),
        Fact("Pinned host memory, peak", memory.pinned_peak_bytes, BYTES),
        Fact("Over the iterations", growth_label(memory.growth)),
        Fact("Allocations and frees", f"{format_count(churn.allocations)} and {format_count(churn.frees)}"),
        Fact("Time in such calls", churn.call_ns, TIME),
        *([Fact("Pools of cudaMallocAsync, at most", f"{held}, {used}")] if pools else []),
        *([Fact("Frees of unknown memory", memory.unknown_frees, COUNT)] if memory.unknown_frees else []),
    ]
