"""Copies and memory in Markdown: the sentences, and tables where there is something in them to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markup import table, text
from nsysdiag.memory.words import DRIVER_NOTE, TITLE, exposed_label, growth_label, memory_sentences, rate
from nsysdiag.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.memory.facts import DeviceMemory
    from nsysdiag.report import DeviceReport

TOP_EXPOSED = 5


def memory_blocks(device: DeviceReport) -> list[str]:
    """What stands out, then exposed copies, migrations and device memory; nothing where nothing stands out."""
    lines = memory_sentences(device)
    if not lines:
        return []
    blocks = [f"### {TITLE}", "\n".join(f"- {text(line)}" for line in lines)]
    blocks += _exposed(device) + _migrations(device)
    return blocks + (_memory(device.memory) if device.memory else [])


def _exposed(device: DeviceReport) -> list[str]:
    rows = [
        [text(exposed_label(row)), format_count(row.count), format_ns(row.exposed_ns), order_label(row.ordered)]
        for row in device.copies.exposed[:TOP_EXPOSED]
    ]
    header = ["Exposed copies", "Count", "Exposed", "Stream"]
    return [table(header, "lrrl", rows)] if len(rows) > 1 else []


def order_label(ordered: bool | None) -> str:
    """On whose stream a copy stands."""
    if ordered is None:
        return "–"
    return "that of the kernels beside it" if ordered else "one of its own"


def _migrations(device: DeviceReport) -> list[str]:
    rows = [
        [
            text(row.direction),
            text(row.cause),
            format_count(row.count),
            format_bytes(row.bytes),
            format_ns(row.total_ns),
            rate(row.bytes_per_second),
        ]
        for row in (device.unified_memory.rows if device.unified_memory else [])
    ]
    header = ["Unified memory", "Cause", "Migrations", "Bytes", "Time", "Rate"]
    return [table(header, "llrrrr", rows)] if rows else []


def _memory(memory: DeviceMemory) -> list[str]:
    rows = [[text(label), text(value)] for label, value in memory_facts(memory)]
    return [table(["Device memory", ""], "lr", rows), text(DRIVER_NOTE)]


def memory_facts(memory: DeviceMemory) -> list[tuple[str, str]]:
    """The numbers of a device's memory with what they are."""
    churn, pools = memory.churn, memory.pools
    held = f"{format_bytes(sum(pool.reserved_bytes for pool in pools))} held"
    used = f"{format_bytes(sum(pool.used_bytes for pool in pools))} used"
    return [
        ("Limit", "–" if memory.limit_bytes is None else format_bytes(memory.limit_bytes)),
        ("Peak" + (", at least" if memory.at_least else ""), format_bytes(memory.peak_bytes)),
        ("Never used, at most", "–" if memory.headroom_bytes is None else format_bytes(memory.headroom_bytes)),
        ("At the window's begin", format_bytes(memory.begin_bytes)),
        ("At its end", format_bytes(memory.end_bytes)),
        ("Managed memory, peak", format_bytes(memory.managed_peak_bytes)),
        ("Pinned host memory, peak", format_bytes(memory.pinned_peak_bytes)),
        ("Over the iterations", growth_label(memory.growth)),
        ("Allocations and frees", f"{format_count(churn.allocations)} and {format_count(churn.frees)}"),
        ("Time in such calls", format_ns(churn.call_ns)),
        *([("Pools of cudaMallocAsync, at most", f"{held}, {used}")] if pools else []),
        *([("Frees of unknown memory", format_count(memory.unknown_frees))] if memory.unknown_frees else []),
    ]
