"""Copies and memory sets by kind, and what keeps them from being hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.context import Context
from nsysdiag.document.figures import percent
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.memory.markdown import order_label
from nsysdiag.memory.words import copy_sentences, rate

if TYPE_CHECKING:
    from nsysdiag.report import CopyRow, DeviceReport


def view(_context: Context, device: DeviceReport) -> View | None:
    """The kinds with the most time first; left out where nothing was copied."""
    if not device.copies.rows:
        return None
    rows = sorted(device.copies.rows, key=lambda row: (-row.total_ns, row.operation, row.src or "", row.dst or ""))
    copies = device.copies
    return {
        "rows": [(row, _memory(row), percent(row.total_ns, rows[0].total_ns)) for row in rows],
        "sentences": copy_sentences(device),
        "rates": [(row, rate(row.best_bytes_per_second), rate(row.limit_bytes_per_second)) for row in copies.rates],
        "pinning": copies.pinning.rows if copies.pinning else [],
        "exposed": [(row, order_label(row.ordered)) for row in copies.exposed],
    }


def _memory(row: CopyRow) -> str:
    if row.src is None:
        return row.dst or "–"
    return f"{row.src} → {row.dst or 'unknown'}"


section = device_section("copies", "Copies and sets", view)
