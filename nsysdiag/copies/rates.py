"""How fast copies run, against what their direction has shown and what the chip allows; pageable against pinned."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.memory.facts import CopyRate, Pinning, PinningClass, TinyCopies
from nsysdiag.trace.enums import CopyKind, MemoryKind

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
PCIE_BYTES_PER_SECOND = {1: 4.0e9, 2: 8.0e9, 3: 15.754e9, 4: 31.508e9, 5: 63.015e9, 6: 128e9}
"""What 16 lanes carry one way at most, by generation: encoding counted, packets not."""
SIZE_STEP_BITS = 4  # a class of sizes ends at sixteen times its beginning
PERCENTILE = 95


def copy_rates(
    device: DeviceTimeline, inside: BoolArray, bandwidth: int | None, limits: MemoryThresholds
) -> list[CopyRate]:
    """One row for each direction that occurs inside the window, most time first. `bandwidth` is that of the device's
    memory in bytes a second, None where it is unknown."""
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
    )


def is_pageable(device: DeviceTimeline) -> BoolArray:
    """True for the operations with pageable host memory on either side."""
    source, destination = device.operations.src_kind, device.operations.dst_kind
    either: BoolArray = (source == MemoryKind.PAGEABLE) | (destination == MemoryKind.PAGEABLE)
    return either


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
    table = np.zeros((3, (63 // SIZE_STEP_BITS + 1) * 4), dtype=np.int64)
    for at, values in enumerate((np.ones_like(size), length, size)):
        np.add.at(table[at], code, values)
    classes = [_class(int(at), table) for at in np.flatnonzero(table[0].reshape(-1, 2).any(axis=1)).tolist()]
    classes.sort(key=lambda each: (-each.pageable_ns, each.direction, each.from_bytes))
    compared = [each for each in classes if each.saving_ns is not None]
    return Pinning(
        pageable_count=sum(each.pageable_count for each in classes),
        pageable_ns=sum(each.pageable_ns for each in classes),
        pageable_bytes=sum(each.pageable_bytes for each in classes),
        pinned_count=sum(each.pinned_count for each in classes),
        pinned_ns=sum(each.pinned_ns for each in classes),
        pinned_bytes=sum(each.pinned_bytes for each in classes),
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
        direction=HOST_DIRECTIONS[back],
        from_bytes=1 << (SIZE_STEP_BITS * step) if step else 0,
        pageable_count=pageable[0],
        pageable_ns=pageable[1],
        pageable_bytes=pageable[2],
        pinned_count=pinned[0],
        pinned_ns=pinned[1],
        pinned_bytes=pinned[2],
        saving_ns=saving,
    )


# Copies so small that each costs the host more than it moves.


def tiny_copies(
    device: DeviceTimeline, api_calls: ApiCalls, inside: BoolArray, steady: Intervals | None, below: int
) -> TinyCopies | None:
    """The copies of 1 to `below` - 1 bytes inside the window that no graph launched and no page fault caused; None
    where there are none. `steady` are the steady iterations."""
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
