"""The first sentence of a comparison, of a device and of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsysdiag.comparison.changes import IMPROVED, REGRESSED, SAME, UNKNOWN, outweighed
from nsysdiag.comparison.facts import Change, DeviceComparison, PartChange, Unit
from nsysdiag.comparison.units import ITERATIONS
from nsysdiag.units import format_ns, format_share, format_signed_ns, format_signed_share

MIXED = "mixed"
LEAST_STEP, MOST = 0.1, 0.5


def device_sentence(unit: Unit, length: Change, rows: Sequence[PartChange], titles: Mapping[str, str]) -> str:
    """What became of a unit of work, and which of its parts, `rows`, did most of it."""
    what = "An iteration" if unit.kind == ITERATIONS else "The same work"
    times = f"{what} takes {format_ns(length.after_ns)} instead of {format_ns(length.before_ns)}"
    share = format_signed_share(length.change_ns, length.before_ns)
    if outweighed(length):
        return f"{times}: {share}, {interval_text(length)}. Among several devices one may be so far off by chance."
    if length.verdict == SAME:
        return f"{what} takes {_same(length)}"
    if length.verdict == UNKNOWN:
        return f"{times}: whether that is more than chance cannot be told."
    return f"{times}: {share}, {interval_text(length)}{_most(length, rows, titles)}."


def _same(length: Change) -> str:
    seen = max(length.least_ns, (length.high_ns or 0) - length.change_ns, length.change_ns - (length.low_ns or 0))
    return (
        f"{format_ns(length.before_ns)} before and {format_ns(length.after_ns)} after: no difference that could be "
        f"told from chance. Less than {format_share(seen, length.before_ns)} would not be seen."
    )


def interval_text(change: Change) -> str:
    """The interval of a change as shares of the time before."""
    if change.low_ns is None or change.high_ns is None:
        return "no interval"
    low, high = (format_signed_share(ns, change.before_ns) for ns in (change.low_ns, change.high_ns))
    return f"95% interval {low} to {high}"


def _most(length: Change, rows: Sequence[PartChange], titles: Mapping[str, str]) -> str:
    """The parts that did most of it; only what is beyond chance itself."""
    certain = [row for row in rows if row.change.verdict == length.verdict]
    certain.sort(key=lambda row: (-abs(row.change.change_ns), row.id))
    large = [row for row in certain if abs(row.change.change_ns) >= LEAST_STEP * abs(length.change_ns)][:2]
    if not large:
        return ". No part of it is beyond chance by itself"
    parts = ", ".join(f"{titles.get(row.id, row.id)} {format_signed_ns(row.change.change_ns)}" for row in large)
    most = abs(sum(row.change.change_ns for row in large)) >= MOST * abs(length.change_ns)
    return f". {'Most of it' if most else 'Beyond chance in it'}: {parts}"


def overall(devices: Sequence[DeviceComparison]) -> tuple[str, str]:
    """The verdict over all devices and its sentence: that of the device whose length changed most."""
    verdicts = {device.verdict for device in devices}
    shown = max(devices, key=lambda device: abs(device.length.change_ns) / max(device.length.before_ns, 1))
    if {IMPROVED, REGRESSED} <= verdicts:
        better = [device.key for device in devices if device.verdict == IMPROVED]
        worse = [device.key for device in devices if device.verdict == REGRESSED]
        return MIXED, f"Better on {', '.join(better)}, worse on {', '.join(worse)}."
    verdict = next((each for each in (REGRESSED, IMPROVED, UNKNOWN) if each in verdicts), SAME)
    if verdict != SAME:
        shown = max(
            (device for device in devices if device.verdict == verdict),
            key=lambda device: abs(device.length.change_ns) / max(device.length.before_ns, 1),
        )
    where = f"{shown.key}: " if len(devices) > 1 else ""
    return verdict, f"{where}{shown.sentence}"
