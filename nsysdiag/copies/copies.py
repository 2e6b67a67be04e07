"""Copies and sets by kind and by the memory on both sides, those that take most time, and all that the report says of
them."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.groups import group_durations, group_totals
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    coverage,
    intersect,
    nearest_before,
    subtract,
    union,
)
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.copies.facts import TopCopy
from nsysdiag.copies.rates import copy_rates, pinning, tiny_copies
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.memory import MemoryLimits
from nsysdiag.events.operations import Category, copy_name, memory_name
from nsysdiag.events.streams import Streams
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.memory.facts import ExposedCopies
from nsysdiag.report import Copies, CopyRow
from nsysdiag.trace.enums import MemoryKind

# Copies that nothing hides: what they are, and whether the order of streams forbade to overlap them with compute.

ORDERED = (None, False, True)
CALLS = (None, "async", "blocking", "graph")
_COPY_KINDS, _MEMORY = 64, 16
_SET = _COPY_KINDS - 1


def exposed_copies(
    device: DeviceTimeline, api_calls: ApiCalls, streams: Streams, inside: BoolArray, alone: Intervals
) -> list[ExposedCopies]:
    """Copies and sets by kind, host memory, order and call, most exposed time first. `alone` is the set of time in
    which nothing but copies and sets ran; rows without any of it are left out."""
    operations = device.operations
    copying = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    # Copies that began before the window reach into it: their time is the window's, though they are not counted.
    rows = np.flatnonzero(copying & device.running)
    spans = Intervals(operations.start[rows], operations.end[rows])
    touched = coverage(alone, spans) > 0
    rows, spans = rows[touched], spans[touched]
    code = _code(device, rows, ordered(device, streams, rows), _call(device, api_calls, rows))
    counted = inside[rows]
    groups = group_totals(code, np.where(counted, spans.end - spans.start, 0))
    count = np.bincount(code[counted], minlength=1 + int(code.max(initial=0)))
    left, found = alone, []
    for number, total in zip(groups.code.tolist(), groups.total.tolist(), strict=True):
        mine = intersect(left, union(spans[code == number]))
        left = subtract(left, mine)
        if len(mine):
            found.append(_exposed_row(number, int(count[number]), total, mine.total()))
    return sorted(found, key=lambda row: (-row.exposed_ns, row.operation, row.host_memory or "", row.call or ""))


def _code(device: DeviceTimeline, rows: IntArray, order: IntArray, call: IntArray) -> IntArray:
    """Kind, host memory, order and call of each copy as one number, which `_row` takes apart."""
    operations = device.operations
    is_set = operations.category[rows] == Category.MEMSET
    kind = np.where(is_set, _SET, np.clip(operations.copy_kind[rows] + 1, 0, _SET - 1))
    memory = np.zeros(len(rows), dtype=np.int64)
    for side in (operations.src_kind[rows], operations.dst_kind[rows]):
        host = ((side == MemoryKind.PAGEABLE) | (side == MemoryKind.PINNED)) & ~is_set
        memory[host] = side[host] + 1
    return ((kind * _MEMORY + memory) * len(ORDERED) + order) * len(CALLS) + call


def _exposed_row(code: int, count: int, total_ns: int, exposed_ns: int) -> ExposedCopies:
    rest, call = divmod(code, len(CALLS))
    rest, order = divmod(rest, len(ORDERED))
    kind, memory = divmod(rest, _MEMORY)
    return ExposedCopies(
        operation="memset" if kind == _SET else copy_name(kind - 1),
        host_memory=memory_name(memory - 1) if memory else None,
        ordered=ORDERED[order],
        call=CALLS[call],
        count=count,
        total_ns=total_ns,
        exposed_ns=exposed_ns,
    )


def ordered(device: DeviceTimeline, streams: Streams, rows: IntArray) -> IntArray:
    """For each copy an index into ORDERED: whether the streams order a neighbouring kernel before or after it.

    ```
    stream 1   [==A==)[copy)[==B==)            A or B on the copy's stream: it had to wait its turn
    stream 2          [copy)                   nothing but a missing event kept this one from running beside A
    ```

    The neighbouring kernels of a copy are the last one to end before its start and the first one to start after its
    end.
    """
    operations = device.operations
    compute = np.flatnonzero(
        device.running & ((operations.category == Category.KERNEL) | (operations.category == Category.GRAPH))
    )
    result = np.zeros(len(rows), dtype=np.int64)
    if len(compute) == 0 or len(rows) == 0:
        return result
    by_end = compute[np.argsort(operations.end[compute], kind="stable")]
    before = nearest_before(operations.end[by_end], operations.start[rows])
    after = np.searchsorted(operations.start[compute], operations.end[rows], side="left")
    has_after = after < len(compute)
    beside = (before >= 0) | has_after | (after > before + 1)  # or one that runs while the copy does
    previous, following = by_end[np.maximum(before, 0)], compute[np.minimum(after, len(compute) - 1)]
    bound = (before >= 0) & _in_order(device, streams, rows, previous)
    bound |= has_after & _in_order(device, streams, rows, following)
    result[beside] = 1
    result[bound] = 2
    result[operations.migration[rows]] = 0  # they are in no stream of the program
    return result


def _in_order(device: DeviceTimeline, streams: Streams, one: IntArray, other: IntArray) -> BoolArray:
    """Whether streams order two operations: one stream, or the legacy default stream and one that waits for it."""
    operations, code = device.operations, device.stream_code
    same: BoolArray = code[one] == code[other]
    context = operations.context[one] == operations.context[other]
    context &= operations.process[one] == operations.process[other]
    for first, second in ((one, other), (other, one)):
        same |= context & streams.null[code[first]] & ~streams.non_blocking[code[second]]
    return same


def _call(device: DeviceTimeline, api_calls: ApiCalls, rows: IntArray) -> IntArray:
    """An index into CALLS for each copy."""
    launch = device.launch[rows]
    if len(api_calls.rows) == 0:
        return np.zeros(len(rows), dtype=np.int64)
    kinds = [
        "graph" if "GraphLaunch" in name else "async" if "Async" in name else "blocking" for name in api_calls.names
    ]
    code = np.array([CALLS.index(kind) for kind in kinds], dtype=np.int64)
    return np.where(launch >= 0, code[api_calls.rows.name[launch]], 0)


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
