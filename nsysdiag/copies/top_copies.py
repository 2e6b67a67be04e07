"""The kinds of copies that take most time: how many, how many bytes, how fast."""

from __future__ import annotations

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.copies.copies import copy_rows
from nsysdiag.copies.facts import TopCopy
from nsysdiag.events.device import DeviceTimeline

MOST = 5


def top_copies(device: DeviceTimeline, inside: BoolArray, most: int = MOST) -> list[TopCopy]:
    """The kinds of copies and sets with most time among the operations `inside` (a flag for each of the device's), at
    most `most`, the longest first; none where nothing was copied."""
    rows = copy_rows(device, inside)
    whole = sum(row.total_ns for row in rows)
    return [
        TopCopy(
            operation=row.operation,
            src=row.src,
            dst=row.dst,
            share=round(row.total_ns / whole, 6) if whole else 0.0,
            count=row.count,
            total_ns=row.total_ns,
            bytes=row.bytes,
            mean_bytes=row.bytes // row.count,
            bytes_per_second=row.bytes_per_second,
        )
        for row in rows[:most]
    ]
