"""Copies that nothing hides: what they are, and whether the order of streams forbade to overlap them with compute."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.groups import group_totals
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
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, copy_name, memory_name
from nsysdiag.events.streams import Streams
from nsysdiag.memory.facts import ExposedCopies
from nsysdiag.trace.enums import MemoryKind

ORDERED = (None, False, True)
CALLS = (None, "async", "blocking", "graph")
_KINDS, _MEMORY = 64, 16
_SET = _KINDS - 1


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
            found.append(_row(number, int(count[number]), total, mine.total()))
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


def _row(code: int, count: int, total_ns: int, exposed_ns: int) -> ExposedCopies:
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
