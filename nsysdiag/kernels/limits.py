"""What each kernel name fills of the chip by the shapes in which it was launched. Also the order of kernels on streams,
and what limits a fix of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import GroupTotals, group_totals, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, common_ns, coverage, pieces, union
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpus import Gpu, SmLimits
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.events.rows import narrowed, picked
from nsysdiag.utilization.facts import KernelShape

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# How much of a GPU a kernel can fill by its launch shape: blocks per SM, waves, and their limit.
#
# The rules are those of NVIDIA's occupancy calculator: cuda_occupancy.h of the CUDA toolkit, and "Technical
# Specifications per Compute Capability" in the CUDA C++ Programming Guide. Of the blocks of one kernel an SM holds the
# fewest of
#
# * warps: the warps that an SM holds / the warps of a block, which are its threads / 32, rounded up;
# * blocks: the blocks that an SM holds;
# * registers: a warp takes 32 times those of a thread, rounded up to a multiple of 256. An SM holds as many warps as
#   fit, rounded down to a multiple of four, for its four partitions (two in 6.0). That many / the warps of a block;
# * shared memory: that of an SM / that of a block. A block's is static and dynamic together, rounded up to a multiple
#   of 128 bytes (256 before 8.0). From 8.0 on, the system reserves 1 KiB more.
#
# Properties of the chip that the export lacks do not limit. Shared memory is assumed to be the largest that the chip
# allows: a program that requests more L1 holds fewer blocks. Clusters are ignored.
#
#     capacity = blocks an SM x SMs                    4 SMs, 2 blocks each:   capacity 8
#     waves    = blocks of the grid / capacity         19 blocks:              2.375 waves, the last one of 3 blocks
#
#     SM 0  [0 1][0 1][0 .]     SMs with a block: 4/4, 4/4, 3/4 of them      sm_share       (1 + 1 + 3/4) / 3
#     SM 1  [0 1][0 1][0 .]     blocks held:      8/8, 8/8, 3/8              resident_share 19 / (3 x 8)
#     SM 2  [0 1][0 1][0 .]
#     SM 3  [0 1][0 1][. .]
#
# Waves are assumed to last equally long, and blocks to be distributed evenly, one to each SM before any gets a second.

REGISTER_UNIT, PARTITIONS = 256, 4
"""A warp gets registers in units of REGISTER_UNIT, and the warps of an SM are divided among PARTITIONS. Both are those
of cuda_occupancy.h; others would compute how many blocks an SM holds wrongly."""
TWO_PARTITIONS = (6, 0)
"""The compute capability whose SMs have two partitions instead of PARTITIONS, by cuda_occupancy.h."""
SHARED_UNIT, OLD_SHARED_UNIT, RESERVED_SHARED = 128, 256, 1024
"""A block gets shared memory in units of SHARED_UNIT bytes, before RESERVES_FROM of OLD_SHARED_UNIT. RESERVED_SHARED
are the bytes that the system takes for each block. All are those of cuda_occupancy.h."""
RESERVES_FROM = (8, 0)
"""The first compute capability with SHARED_UNIT and RESERVED_SHARED, by cuda_occupancy.h."""
LIMITS = ("warps", "blocks", "registers", "shared memory")
GRID = "grid too small"
MOST_SMS, MOST_WARPS = 1 << 16, 1 << 10
"""SMs of a GPU, and warps of an SM (MOST_WARPS): an export that says more describes what no chip has, and nothing is
computed from it. Chips have under 1,000 SMs of up to 64 warps, so nothing depends on these closely."""
_UNLIMITED = np.iinfo(np.int64).max


class Residency(Struct, frozen=True):
    """One element per shape. `blocks_per_sm` is 0 if a block does not fit: the export describes another chip. It is 0,
    too, if the limits of an SM or the registers of the shape are unknown. Values derived from it are then NaN. `limit`
    is the index in LIMITS of the lowest one, the first of equal ones."""

    blocks_per_sm: IntArray
    limit: IntArray
    capacity: IntArray
    waves: FloatArray
    sm_share: FloatArray
    resident_share: FloatArray


def residency(shapes: LaunchShapes, gpu: Gpu) -> Residency | None:
    """What each shape fills of the GPU; None if the export does not say how many SMs it has, or says what no chip
    has. If it does not say how many warps one holds, or what registers a shape takes, grids that leave SMs empty still
    show how many."""
    sms, warps = gpu.sm_count or 0, gpu.limits.warps
    if not 0 < sms <= MOST_SMS or not 0 <= warps <= MOST_WARPS:
        return None
    alone = _by_grid_alone(shapes, sms)
    if not warps:
        return alone
    # No kernel runs without registers: those of AMD's GPUs are not in traces of the PyTorch profiler.
    known, by_limits = shapes.registers > 0, _by_limits(shapes, gpu.limits, sms)
    pairs = zip(structs.astuple(by_limits), structs.astuple(alone), strict=True)
    return Residency(*(np.where(known, limited, of_grid) for limited, of_grid in pairs))


def _by_limits(shapes: LaunchShapes, limits: SmLimits, sms: int) -> Residency:
    """What the lowest of LIMITS leaves room for."""
    each = np.stack(_limits(shapes, limits))
    limit = each.argmin(axis=0)
    per_sm = each[limit, np.arange(len(shapes))]
    capacity = per_sm * sms
    fits = per_sm > 0
    room = np.where(fits, capacity, 1)
    full, tail = np.divmod(shapes.blocks, room)
    steps = full + (tail > 0)
    covered = full + np.minimum(tail, sms) / sms
    return Residency(
        blocks_per_sm=per_sm,
        limit=limit,
        capacity=capacity,
        waves=np.where(fits, shapes.blocks / room, np.nan),
        sm_share=np.where(fits, covered / steps, np.nan),
        resident_share=np.where(fits, shapes.blocks / room / steps, np.nan),
    )


def _by_grid_alone(shapes: LaunchShapes, sm_count: int) -> Residency:
    """What the number of SMs tells alone: a grid of fewer blocks leaves some of them empty."""
    nothing, unknown = np.zeros(len(shapes), dtype=np.int64), np.full(len(shapes), np.nan)
    small = shapes.blocks <= sm_count
    return Residency(
        blocks_per_sm=nothing,
        limit=nothing,
        capacity=np.where(small, sm_count, nothing),
        waves=unknown,
        sm_share=np.where(small, shapes.blocks / sm_count, np.nan),
        resident_share=unknown,
    )


def limit_name(found: Residency, shapes: LaunchShapes, shape: int) -> str | None:
    """What keeps a kernel of this shape from filling the chip further: its grid, if that ends first; None if the limits
    of the chip are unknown."""
    if shapes.blocks[shape] < found.capacity[shape]:
        return GRID
    return LIMITS[int(found.limit[shape])] if found.blocks_per_sm[shape] else None


def _limits(shapes: LaunchShapes, sm: SmLimits) -> tuple[IntArray, ...]:
    """The blocks that an SM holds by each of LIMITS."""
    warps = -(-shapes.threads // sm.threads_per_warp)
    by_blocks = np.full(len(shapes), sm.blocks or _UNLIMITED, dtype=np.int64)

    a_warp = _rounded_up(shapes.registers * sm.threads_per_warp, REGISTER_UNIT)
    partitions = 2 if sm.compute == TWO_PARTITIONS else PARTITIONS
    served = sm.registers // np.maximum(a_warp, 1) // partitions * partitions
    limited = (shapes.registers > 0) & (sm.registers > 0)
    by_registers = np.where(limited, served // warps, _UNLIMITED)

    newer = sm.compute >= RESERVES_FROM
    reserved = RESERVED_SHARED if newer else 0
    a_block = _rounded_up(shapes.shared_memory + reserved, SHARED_UNIT if newer else OLD_SHARED_UNIT)
    limited = (a_block > 0) & (sm.shared_memory > 0)
    by_shared_memory = np.where(limited, sm.shared_memory // np.maximum(a_block, 1), _UNLIMITED)

    return sm.warps // warps, by_blocks, by_registers, by_shared_memory


def _rounded_up(values: IntArray, unit: int) -> IntArray:
    return -(-values // unit) * unit


MOST_KERNELS = 200
"""Kernel names with rows on what they fill of the GPU, those with most time. More make reports larger. A round number:
nothing depends on it closely."""


def kernel_shapes(
    device: DeviceTimeline, inside: BoolArray, shapes: LaunchShapes, found: Residency | None, strings: Strings
) -> list[KernelShape]:
    """One row for each kernel name of those `inside` with a known shape, most time first, at most MOST_KERNELS."""
    operations = device.operations
    rows = picked((operations.category == Category.KERNEL) & inside & (operations.shape >= 0))
    names, name = distinct(operations.name[rows])
    pairs, pair = distinct(name * max(len(shapes), 1) + operations.shape[rows])
    totals = group_totals(pair, operations.end[rows] - operations.start[rows])
    owner, shape = np.divmod(pairs[totals.code], max(len(shapes), 1))
    spent = group_totals(owner, totals.total)
    chosen = spent.code[:MOST_KERNELS]
    short = np.zeros(len(names), dtype=np.int64)
    short[name] = operations.short_name[rows]
    texts, short_texts = strings.texts(names[chosen]), strings.texts(short[chosen])
    kernels = []
    for text, short_text, code in zip(texts, short_texts, chosen.tolist(), strict=True):
        mine = owner == code
        by_shape = GroupTotals(shape[mine], totals.count[mine], totals.total[mine])
        kernels.append(_kernel(text, short_text, by_shape, shapes, found))
    return kernels


def shape_of(
    device: DeviceTimeline, rows: IntArray, shapes: LaunchShapes, found: Residency | None, name: str
) -> KernelShape | None:
    """The same of the kernels at `rows` together; None if none of them has a known shape."""
    operations = device.operations
    shape = taken(operations.shape, rows)
    known = picked(shape >= 0)
    rows, shape = taken(rows, known), taken(shape, known)
    if len(rows) == 0:
        return None
    by_shape = group_totals(shape, operations.end[rows] - operations.start[rows])
    return _kernel(name, name, by_shape, shapes, found)


def _kernel(text: str, short: str, by_shape: GroupTotals, shapes: LaunchShapes, found: Residency | None) -> KernelShape:
    """One kernel name by its launches: a row of `by_shape` for each of its shapes, most time first."""
    first = int(by_shape.code[0])
    return KernelShape(
        name=text,
        short_name=short,
        count=int(by_shape.count.sum()),
        total_ns=int(by_shape.total.sum()),
        shapes=len(by_shape.code),
        blocks=_median(shapes.blocks[by_shape.code], by_shape.count),
        threads=int(shapes.threads[first]),
        registers=int(shapes.registers[first]),
        shared_bytes=int(shapes.shared_memory[first]),
        blocks_per_sm=None if found is None else int(found.blocks_per_sm[first]) or None,
        waves=None if found is None else _mean(found.waves, by_shape),
        sm_share=None if found is None else _mean(found.sm_share, by_shape),
        resident_share=None if found is None else _mean(found.resident_share, by_shape),
        limit=None if found is None else limit_name(found, shapes, first),
    )


def _median(values: IntArray, count: IntArray) -> int:
    """The lower median of values that occur so often."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(count[order])
    return int(values[order][np.searchsorted(2 * reached, reached[-1])])


def _mean(values: FloatArray, by_shape: GroupTotals) -> float | None:
    """Weighted by time, or by launches if they took none; None if a value is not known."""
    chosen = values[by_shape.code]
    weight = by_shape.total if by_shape.total.any() else by_shape.count
    mean = float(chosen @ weight / weight.sum())
    return None if np.isnan(mean) else round(mean, 6)


# What limits a fix: kernels of one stream run one after the other, and one thread calls CUDA. A fix of copies saves no
# more time than copies and their calls take.

REAL_WORK = 0.1
"""Of a device's kernel time: a thread that launches less takes no steps of its own."""


class InOrder(Struct, frozen=True):
    """Of the judged time: the kernel time `ns` that can only run one after the other, None for all of it. `one_thread`
    of the trace alone calls CUDA. `copying_ns` and `paging_ns` are the time that a fix of copies, or of migrations, can
    take away; None without any. For `sending_ns` the device is idle while a message is sent."""

    ns: int | None = None
    one_thread: bool = False
    copying_ns: int | None = None
    paging_ns: int | None = None
    sending_ns: int = 0

    @classmethod
    def of(cls, device: DeviceTimeline, calls: CallRows, parts: Intervals, sending_ns: int = 0) -> InOrder:
        """That of a device."""
        one_thread = len(calls) > 0 and bool((calls.thread == calls.thread[0]).all())
        copying, paging = (
            common_ns(each, parts) if len(each) else None for each in (_copying(device, calls), _paging(device))
        )
        return cls(in_order_ns(device, calls, parts), one_thread, copying, paging, sending_ns)


def _copying(device: DeviceTimeline, calls: CallRows) -> Intervals:
    """The set of time in which copies and sets run, or the calls that launched them hold a thread. Once none of that
    takes any time, nothing else is sooner by more than the part of this set before it.

    ```
    thread  [launch][cudaMemcpy ...........][host code ...]
    gpu             [==kernel====)[= copy =)
    set             [=======================)
    ```
    """
    operations = device.operations
    mine = np.isin(operations.category, (Category.MEMCPY, Category.MEMSET)) & ~operations.migration & device.running
    launched = device.launch[mine & (device.launch >= 0)]
    ran = Intervals(operations.start[mine], operations.end[mine])
    return union(ran, Intervals(calls.start[launched], calls.end[launched]))


def _paging(device: DeviceTimeline) -> Intervals:
    """The set of time in which pages move, and in each kernel all from its first page to its last one: it may wait for
    pages all the time between."""
    operations = device.operations
    moves = union(Intervals(operations.start, operations.end)[operations.migration])
    if not len(moves):
        return moves
    kernels = np.flatnonzero(device.running & (operations.category == Category.KERNEL))
    kernel, moved = pieces(moves, Intervals(operations.start[kernels], operations.end[kernels]))
    if not len(kernel):
        return moves
    first, last = np.full(len(kernels), np.iinfo(np.int64).max), np.zeros(len(kernels), dtype=np.int64)
    np.minimum.at(first, kernel, moved.start)
    np.maximum.at(last, kernel, moved.end)
    return union(moves, Intervals(first, last)[last > 0])


def in_order_ns(device: DeviceTimeline, calls: CallRows, parts: Intervals) -> int | None:
    """The kernel time in `parts` of the stream with most of it. Several threads may have a pace of their own, and any
    of them may take the steps: then that of the thread of which it is least. None if all kernels are in one stream.

    ```
    stream 1   [==A==)  [==A==)         kernels run for 17, and those of one stream for 14: if all start as soon as
    stream 2      [=B=)    [=B=)        they can, this time takes 14
    ```
    """
    operations = device.operations
    kernels = device.running & ~device.communication & ~operations.migration
    rows = np.flatnonzero(kernels & np.isin(operations.category, (Category.KERNEL, Category.GRAPH)))
    launch, streams = device.launch[rows], len(device.stream_code) and int(device.stream_code.max()) + 1
    code, threads = np.zeros(len(rows), dtype=np.int64), len(calls.threads) + 1  # one more: not launched by any of them
    known = picked(launch >= 0)
    code[known] = taken(calls.thread_place, launch[known]) + 1
    lanes, lane = distinct(joint(code, device.stream_code[rows], streams))
    if len(lanes) < 2:
        return None
    ns = _ns_of_lanes(Intervals(operations.start[rows], operations.end[rows]), lane, len(lanes), parts)
    longest, whole = np.zeros(threads, np.int64), np.bincount(lanes // streams, ns, threads)
    np.maximum.at(longest, lanes // streams, ns)
    return int(longest[whole >= min(REAL_WORK * whole.sum(), whole.max())].min())


def _ns_of_lanes(spans: Intervals, lane: IntArray, count: int, parts: Intervals) -> IntArray:
    """How much of `parts` the spans of each lane cover together. Those of most lanes do not overlap, and need no
    union."""
    order = np.argsort(narrowed(lane), kind="stable")
    lane, spans = lane[order], spans[order]
    ns = sum_of_each(lane, coverage(parts, spans), count)
    meet = (lane[1:] == lane[:-1]) & (spans.start[1:] < spans.end[:-1])
    for each in distinct_values(lane[1:][meet]).tolist():
        first, behind = np.searchsorted(lane, (each, each + 1))
        ns[each] = common_ns(union(spans[first:behind]), parts)
    return ns
