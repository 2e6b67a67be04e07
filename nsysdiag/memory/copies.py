"""Copies and sets by kind and by the memory on both sides, those that take most time, and all that the report says of
them."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import group_totals, sum_of_each
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    common_ns,
    contains,
    coverage,
    intersect,
    nearest_before,
    subtract,
    union,
)
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.memory import MemoryLimits
from nsysdiag.events.operations import Category, copy_name, memory_name
from nsysdiag.events.rows import Streams, combinations
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.memory.facts import Copies, CopyRate, CopyRow, ExposedCopies, Pinning, PinningClass, TinyCopies, TopCopy
from nsysdiag.peaks import PCIE_BYTES_PER_SECOND, Peak, host_link_of, memory_of, peer_link_of
from nsysdiag.record import records
from nsysdiag.trace.enums import CopyKind, MemoryKind
from nsysdiag.units import format_bytes

# Copies and sets by kind and by the memory on both sides, those that take most time, and all that the report says of
# them.

# How fast copies run, against what their direction has shown and what the chip allows; pageable against pinned.

DIRECTIONS: dict[str, tuple[CopyKind, ...]] = {
    "HtoD": (CopyKind.HOST_TO_DEVICE, CopyKind.HOST_TO_ARRAY),
    "DtoH": (CopyKind.DEVICE_TO_HOST, CopyKind.ARRAY_TO_HOST),
    "DtoD": (
        CopyKind.DEVICE_TO_DEVICE,
        CopyKind.ARRAY_TO_ARRAY,
        CopyKind.ARRAY_TO_DEVICE,
        CopyKind.DEVICE_TO_ARRAY,
    ),
    "PtoP": (CopyKind.PEER_TO_PEER,),
}
HOST_DIRECTIONS = ("HtoD", "DtoH")
HALF = "half the memory bandwidth"
SIZE_STEP_BITS = 4
"""Bits of a size for each class of sizes: a class ends at sixteen times its beginning. Smaller classes have fewer
pinned copies to compare pageable ones with; in larger ones, rates differ by size."""
PERCENTILE = 95
"""Percentile of the rates of large copies that a link is said to reach. With 100, a single copy would be the rate; with
less, slower copies lower it, and fewer of them count as slow."""
PINNING_SUMS = tuple(f"{which}_{what}" for which in ("pageable", "pinned") for what in ("count", "ns", "bytes"))


def copy_rates(
    device: DeviceTimeline, inside: BoolArray, bandwidth: int | None, limits: MemoryThresholds
) -> list[CopyRate]:
    """One row for each direction that occurs inside the window, most time first. `bandwidth` is that of the device's
    memory in bytes a second, None if it is unknown."""
    copies = np.flatnonzero(device.operations.category == Category.MEMCPY)
    rows = [_rate(device, copies, inside, name, kinds, bandwidth, limits) for name, kinds in DIRECTIONS.items()]
    return sorted((row for row in rows if row is not None), key=lambda row: (-row.total_ns, row.direction))


def _rate(
    device: DeviceTimeline,
    copies: IntArray,
    inside: BoolArray,
    name: str,
    kinds: tuple[CopyKind, ...],
    bandwidth: int | None,
    limits: MemoryThresholds,
) -> CopyRate | None:
    operations = device.operations
    every = copies[np.isin(operations.copy_kind[copies], kinds)]
    mine = every[inside[every]]
    if len(mine) == 0:
        return None
    length, size = operations.end - operations.start, operations.size
    large = every[(size[every] >= limits.large_copy) & (length[every] > 0)]
    rates = np.sort(size[large] / length[large] * 1e9)
    best = float(rates[(PERCENTILE * len(rates) + 99) // 100 - 1]) if len(rates) else None
    limit = bandwidth / 2 if bandwidth and name == "DtoD" else None
    peak = Peak(limit, HALF) if limit else _link(device.gpu.name, name)
    possible, slow = limit or best, None
    if possible is not None:
        slow = int(length[mine][size[mine] * 1e9 < limits.slow_copy * possible * length[mine]].sum())
    exceeded = [
        generation
        for generation, most in PCIE_BYTES_PER_SECOND.items()
        if best is not None and best > most and name in HOST_DIRECTIONS
    ]
    return CopyRate(
        direction=name,
        count=len(mine),
        total_ns=int(length[mine].sum()),
        bytes=int(size[mine].sum()),
        large_count=len(large),
        large_pageable=int(np.count_nonzero(is_pageable(device)[large])),
        best_bytes_per_second=best,
        limit_bytes_per_second=limit,
        slow_ns=slow,
        exceeds_pcie=max(exceeded, default=0),
        peak_bytes_per_second=peak.rate if peak else None,
        peak=peak.what if peak else "",
        refused=_refused(best, peak),
    )


def _link(gpu: str, direction: str) -> Peak | None:
    """What the link of a direction carries at most, as published for the GPU; None if it is not known."""
    if direction in HOST_DIRECTIONS:
        return host_link_of(gpu)
    if direction == "DtoD" and (memory := memory_of(gpu)) is not None:
        return Peak(memory / 2, HALF)
    return peer_link_of(gpu) if direction == "PtoP" else None


def _refused(best: float | None, peak: Peak | None) -> str:
    """Why a rate is not a share of the peak; empty if it is one, or there is none."""
    if best is None or peak is None or best <= peak.rate:
        return ""
    more = f"{format_bytes(best)}/s is more than {peak.what} ({format_bytes(peak.rate)}/s)"
    return f"no share: {more}"


def is_pageable(device: DeviceTimeline) -> BoolArray:
    """True for the operations with pageable host memory on either side."""
    source, destination = device.operations.src_kind, device.operations.dst_kind
    return (source == MemoryKind.PAGEABLE) | (destination == MemoryKind.PAGEABLE)


def pinning(device: DeviceTimeline, inside: BoolArray) -> Pinning | None:
    """Pageable copies between host and device compared with pinned ones, by direction and size; None if none is
    pageable."""
    operations = device.operations
    kind = operations.copy_kind
    if not (operations.category == Category.MEMCPY).any():
        return None
    to_device = np.isin(kind, DIRECTIONS["HtoD"])
    chosen = inside & (to_device | np.isin(kind, DIRECTIONS["DtoH"])) & (operations.category == Category.MEMCPY)
    pageable = is_pageable(device)
    pinned = (operations.src_kind == MemoryKind.PINNED) | (operations.dst_kind == MemoryKind.PINNED)
    rows = np.flatnonzero(chosen & (pageable | pinned))
    if not pageable[rows].any():
        return None
    size, length = operations.size[rows], operations.end[rows] - operations.start[rows]
    step = np.clip(size_class(size), 0, 63 // SIZE_STEP_BITS)
    code = ((step * 2) + ~to_device[rows]) * 2 + pageable[rows]
    codes = (63 // SIZE_STEP_BITS + 1) * 4
    table = np.stack([sum_of_each(code, values, codes) for values in (np.ones_like(size), length, size)])
    classes = [_class(int(at), table) for at in np.flatnonzero(table[0].reshape(-1, 2).any(axis=1)).tolist()]
    classes.sort(key=lambda each: (-each.pageable_ns, each.direction, each.from_bytes))
    compared = [each for each in classes if each.saving_ns is not None]
    return Pinning(
        **{name: sum(getattr(each, name) for each in classes) for name in PINNING_SUMS},
        compared_ns=sum(each.pageable_ns for each in compared),
        saving_ns=sum(each.saving_ns or 0 for each in compared) if compared else None,
        rows=classes,
    )


def size_class(size: IntArray) -> IntArray:
    """0 for sizes 0 to 15, 1 for 16 to 255, and so on."""
    edges = np.int64(1) << np.arange(SIZE_STEP_BITS, 63, SIZE_STEP_BITS, dtype=np.int64)
    return np.searchsorted(edges, size, side="right").astype(np.int64)


def _class(pair: int, table: IntArray) -> PinningClass:
    """A direction and size class by its number, from counts, times and bytes of (pinned, pageable) pairs."""
    pinned, pageable = table[:, 2 * pair].tolist(), table[:, 2 * pair + 1].tolist()
    step, back = divmod(pair, 2)
    saving = None
    if all((*pageable[1:], *pinned[1:])):  # time x (1 - rate / rate), in whole numbers
        saving = max(pageable[1] - pageable[2] * pinned[1] // pinned[2], 0)
    return PinningClass(
        **dict(zip(PINNING_SUMS, (*pageable, *pinned), strict=True)),
        direction=HOST_DIRECTIONS[back],
        from_bytes=1 << (SIZE_STEP_BITS * step) if step else 0,
        saving_ns=saving,
    )


# Copies so small that each costs the host more than it moves.


def tiny_copies(
    device: DeviceTimeline, api_calls: ApiCalls, inside: BoolArray, steady: Intervals | None, below: int
) -> TinyCopies | None:
    """The copies of 1 to `below` - 1 bytes inside the window that no graph launched and no page fault caused; None
    if there are none. `steady` are the steady iterations."""
    operations = device.operations
    tiny = (operations.category == Category.MEMCPY) & (operations.graph_node <= 0) & ~operations.migration
    rows = np.flatnonzero(tiny & inside & (operations.size > 0) & (operations.size < below))
    if len(rows) == 0:
        return None
    calls, start = api_calls.rows, operations.start[rows]
    launched = rows[device.launch[rows] >= 0]
    # The call returns only when the copy is done: a synchronous one, or with pageable memory.
    blocks = np.array(["Async" not in name for name in api_calls.names], dtype=np.bool_)
    waits = blocks[calls.name[device.launch[launched]]] | is_pageable(device)[launched]
    return TinyCopies(
        below_bytes=below,
        count=len(rows),
        bytes=int(operations.size[rows].sum()),
        total_ns=int((operations.end[rows] - start).sum()),
        called=int(np.count_nonzero(~waits)),
        call_ns=_call_ns(calls, device.launch[launched[~waits]]),
        blocking=int(np.count_nonzero(waits)),
        blocking_ns=_call_ns(calls, device.launch[launched[waits]]),
        launches=int(np.count_nonzero(inside & (device.launch >= 0))),
        per_iteration=a_turn(start, steady),
    )


def _call_ns(calls: CallRows, rows: IntArray) -> int:
    """The time of these calls, each counted once."""
    called = np.zeros(len(calls), dtype=np.bool_)
    called[rows] = True
    return int((calls.end[called] - calls.start[called]).sum())


def a_turn(times: IntArray, steady: Intervals | None) -> float | None:
    """How many of the times fall into a steady iteration on average; None without any."""
    if steady is None or len(steady) == 0:
        return None
    return round(int(np.count_nonzero(contains(steady, times))) / len(steady), 3)


# Copies that nothing hides: what they are, and whether the order of streams forbade to overlap them with compute.

ORDERED = (None, False, True)
CALLS = (None, "async", "blocking", "graph")


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
    host = (MemoryKind.PAGEABLE, MemoryKind.PINNED)
    sides = (operations.src_kind[rows], operations.dst_kind[rows])
    memory = np.where(np.isin(sides[1], host), sides[1], np.where(np.isin(sides[0], host), sides[0], NO_MEMORY))
    memory[operations.category[rows] == Category.MEMSET] = NO_MEMORY
    order, call = ordered(device, streams, rows), _call(device, api_calls, rows)
    code, keys = combinations(_kinds(device, rows), memory, order, call)
    counted = inside[rows]
    groups = group_totals(code, np.where(counted, spans.end - spans.start, 0))
    count = np.bincount(code[counted], minlength=len(keys[0]))
    left, found = alone, []
    for number, total in zip(groups.code.tolist(), groups.total.tolist(), strict=True):
        mine = intersect(left, union(spans[code == number]))
        left = subtract(left, mine)
        if len(mine):
            kind, host_memory, order_of, call_of = (int(key[number]) for key in keys)
            row = ExposedCopies(
                operation=_operation(kind),
                host_memory=None if host_memory == NO_MEMORY else memory_name(host_memory),
                ordered=ORDERED[order_of],
                call=CALLS[call_of],
                count=int(count[number]),
                total_ns=total,
                exposed_ns=mine.total(),
            )
            found.append(row)
    return sorted(found, key=lambda row: (-row.exposed_ns, row.operation, row.host_memory or "", row.call or ""))


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


SET, MOST_KINDS, MOST_MEMORY, NO_MEMORY = 63, 61, 14, -2
"""The kind of sets, behind those of copies; the largest numbers that are distinguished."""
MOST = 5
"""Kinds of copies that `top_copies` returns unless it is asked for another number."""


def _kinds(device: DeviceTimeline, rows: IntArray) -> IntArray:
    """The kind of each of these copies and sets."""
    operations = device.operations
    kinds: IntArray = np.clip(operations.copy_kind[rows].astype(np.int64), -1, MOST_KINDS)
    return np.where(operations.category[rows] == Category.MEMSET, SET, kinds)


def _operation(kind: int) -> str:
    return "memset" if kind == SET else copy_name(kind)


def _sorts(device: DeviceTimeline, rows: IntArray) -> tuple[IntArray, list[IntArray]]:
    """A code for the kind, source and destination of each of these copies and sets, and what the codes stand for."""
    sides = (np.clip(each[rows], -1, MOST_MEMORY) for each in (device.operations.src_kind, device.operations.dst_kind))
    return combinations(_kinds(device, rows), *sides)


def copy_rows(device: DeviceTimeline, inside: BoolArray) -> list[CopyRow]:
    """One row for each (operation, source memory, destination memory) inside the window, largest total first."""
    operations = device.operations
    chosen = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    rows = np.flatnonzero(chosen & inside)
    length, (code, keys) = (operations.end - operations.start)[rows], _sorts(device, rows)
    groups = group_totals(code, length)
    size, copies = (
        sum_of_each(code, each, len(keys[0]))[groups.code]
        for each in (np.maximum(operations.size[rows], 0), operations.copies[rows])
    )
    kind, source, destination = (key[groups.code].tolist() for key in keys)
    return records(
        CopyRow,
        operation=list(map(_operation, kind)),
        src=list(map(memory_name, source)),
        dst=list(map(memory_name, destination)),
        count=groups.count,
        total_ns=groups.total,
        bytes=size,
        bytes_per_second=rates_of(size, groups.total),
        copies=copies,
    )


def rates_of(size: IntArray, ns: IntArray) -> list[float | None]:
    """Bytes a second; None for what took no time."""
    return [each / time * 1e9 if time else None for each, time in zip(size.tolist(), ns.tolist(), strict=True)]


def longest_kind(device: DeviceTimeline, rows: IntArray, time: Intervals) -> IntArray:
    """Those of the copies and sets `rows` that are of the kind that runs for most of `time`, a set."""
    code, operations = _sorts(device, rows)[0], device.operations
    spans = Intervals(operations.start[rows], operations.end[rows])
    ns = {each: common_ns(union(spans[code == each]), time) for each in distinct_values(code).tolist()}
    return rows[code == max(ns, key=lambda each: ns[each], default=-1)]


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
            mean_bytes=row.bytes // max(row.copies, row.count),
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
