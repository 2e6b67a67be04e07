"""Copies and sets by kind and by the memory on both sides, those that take most time, and all that the report says of
them."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.groups import group_durations
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.copies.facts import TopCopy
from nsysdiag.copies.overlap import exposed_copies
from nsysdiag.copies.rates import copy_rates, pinning
from nsysdiag.copies.tiny import tiny_copies
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.memory import MemoryLimits
from nsysdiag.events.operations import Category, copy_name, memory_name
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import Copies, CopyRow

_SIDES = 16  # room for a memory kind from -1 to 14
_KINDS = 64
MOST = 5


def copy_rows(device: DeviceTimeline, inside: BoolArray) -> list[CopyRow]:
    """One row for each (operation, source memory, destination memory) inside the window, largest total first."""
    operations = device.operations
    chosen = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    rows = np.flatnonzero(chosen & inside)
    copies, code = operations.take(rows), _codes(device, rows)
    groups = group_durations(code, copies.end - copies.start)
    size = np.zeros(_KINDS * _SIDES * _SIDES, dtype=np.int64)
    np.add.at(size, code, np.maximum(copies.size, 0))
    return [
        _row(number, int(groups.count[at]), int(groups.total[at]), int(size[number]))
        for at, number in enumerate(groups.code.tolist())
    ]


def _codes(device: DeviceTimeline, rows: IntArray) -> IntArray:
    """A number for the operation, source and destination of each of these copies and sets."""
    copies = device.operations.take(rows)
    kind = np.where(copies.category == Category.MEMSET, _KINDS - 1, np.clip(copies.copy_kind + 1, 0, _KINDS - 2))
    source, destination = (np.clip(side + 1, 0, _SIDES - 1) for side in (copies.src_kind, copies.dst_kind))
    code: IntArray = (kind * _SIDES + source) * _SIDES + destination
    return code


def longest_kind(device: DeviceTimeline, rows: IntArray, time: Intervals) -> IntArray:
    """Those of the copies and sets `rows` that are of the kind that runs for most of `time`, a set."""
    code, operations = _codes(device, rows), device.operations
    spans = Intervals(operations.start[rows], operations.end[rows])
    ns = {each: intersect(union(spans[code == each]), time).total() for each in np.unique(code).tolist()}
    most: IntArray = rows[code == max(ns, key=lambda each: ns[each], default=-1)]
    return most


def _row(code: int, count: int, total_ns: int, size: int) -> CopyRow:
    """The copies of one code: operation, source and destination as `copy_rows` packs them."""
    kind, source, destination = code // (_SIDES * _SIDES), code // _SIDES % _SIDES - 1, code % _SIDES - 1
    is_set = kind == _KINDS - 1
    return CopyRow(
        operation="memset" if is_set else copy_name(kind - 1),
        src=memory_name(source),
        dst=memory_name(destination),
        count=count,
        total_ns=total_ns,
        bytes=size,
        bytes_per_second=size / total_ns * 1e9 if total_ns else None,
    )


def top_copies(device: DeviceTimeline, inside: BoolArray, most: int = MOST) -> list[TopCopy]:
    """The kinds of copies and sets with most time among the operations `inside` (a flag for each operation), at most
    `most`, longest first."""
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


def copy_report(
    device: DeviceTimeline,
    activity: DeviceActivity,
    inside: BoolArray,
    split: WindowSplit,
    steady: Intervals | None,
    chip: MemoryLimits,
    limits: MemoryThresholds,
) -> Copies:
    """Copies and sets of the operations that `inside` marks."""
    rows = copy_rows(device, inside)
    return Copies(
        rows=rows,
        total_ns=sum(row.total_ns for row in rows),
        bytes=sum(row.bytes for row in rows),
        exposed_ns=split.exposed_copy_ns,
        rates=copy_rates(device, inside, chip.bandwidth, limits),
        pinning=pinning(device, inside),
        exposed=exposed_copies(device, activity.api_calls, activity.streams, inside, split.parts[2]),
        tiny=tiny_copies(device, activity.api_calls, inside, steady, limits.tiny_copy),
    )
