"""Operations on all devices: kernels, copies, sets and graph launches, one row each, in one table.

Kernels were launched in few shapes among many launches, so each launch holds a place in a table of shapes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.arrays.nesting import constant
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.trace.catalog import without_version
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.enums import MIGRATIONS, CopyKind, MemoryKind

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


SHAPE_COLUMNS = ("blocks", "threadsPerBlock", "registersPerThread", "sharedMemory")
# The most that CUDA allows of each: threads a block, registers a thread, bytes of shared memory a block.
_THREADS_BITS, _REGISTERS_BITS, _SHARED_BITS = 11, 8, 18
_BLOCKS_BITS = 63 - _THREADS_BITS - _REGISTERS_BITS - _SHARED_BITS
SAMPLE = 4096


class LaunchShapes(Rows, frozen=True):
    """One row for each shape: blocks of the grid, threads per block, registers per thread, and bytes of shared memory
    per block (static and dynamic)."""

    blocks: IntArray
    threads: IntArray
    registers: IntArray
    shared_memory: IntArray


def launch_shapes(kernels: Columns) -> tuple[LaunchShapes, IntArray]:
    """The shapes that occur, and each kernel's place among them: -1 if a number is missing or cannot be."""
    blocks, threads, registers, shared = (kernels.integers(name) for name in SHAPE_COLUMNS)
    # Almost always the blocks fit as they are; else their place among the numbers that occur does.
    grids, grid = (None, blocks) if blocks.max(initial=0) < 1 << _BLOCKS_BITS else _places(blocks)
    # One number for each shape: comparing numbers is faster than comparing rows.
    key = (grid << _THREADS_BITS) | threads
    key = (key << _REGISTERS_BITS) | registers
    key = (key << _SHARED_BITS) | shared
    known = blocks > 0
    for values, least, bits in (
        (threads, 1, _THREADS_BITS),
        (registers, 0, _REGISTERS_BITS),
        (shared, 0, _SHARED_BITS),
    ):
        known &= (values >= least) & (values < 1 << bits)
    if known.all():
        shapes, place = _places(key)
        place = place.astype(np.int32)
    else:
        place = np.full(len(key), -1, dtype=np.int32)
        shapes, place[known] = _places(key[known])
    return _unpacked(shapes, grids), place


def _unpacked(key: IntArray, grids: IntArray | None) -> LaunchShapes:
    rest = key >> _SHARED_BITS
    grid = rest >> (_REGISTERS_BITS + _THREADS_BITS)
    return LaunchShapes(
        blocks=grid if grids is None else grids[grid],
        threads=(rest >> _REGISTERS_BITS) & ((1 << _THREADS_BITS) - 1),
        registers=rest & ((1 << _REGISTERS_BITS) - 1),
        shared_memory=key & ((1 << _SHARED_BITS) - 1),
    )


def _places(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, sorted, and each row's place among them. Where a sample of the rows holds almost all values,
    a search among few is several times faster than a sort of all rows."""
    if len(values) <= SAMPLE:
        return distinct(values)
    few = np.unique(values[:: len(values) // SAMPLE])
    if 2 * len(few) > SAMPLE:
        return distinct(values)
    missing = few[np.minimum(np.searchsorted(few, values), len(few) - 1)] != values
    if missing.any():
        few = np.union1d(few, values[missing])
    return few, np.searchsorted(few, values).astype(np.int64, copy=False)


class Category(IntEnum):
    """What an operation is; the order breaks no tie."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    GRAPH = 3


TABLES = {
    Category.KERNEL: "CUPTI_ACTIVITY_KIND_KERNEL",
    Category.MEMCPY: "CUPTI_ACTIVITY_KIND_MEMCPY",
    Category.MEMSET: "CUPTI_ACTIVITY_KIND_MEMSET",
    Category.GRAPH: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}
_DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"
_OTHER_WORK = {_DECOMPRESSION: Category.MEMCPY, "CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE": Category.GRAPH}
"""What CUPTI 12.8 added; work of tables that are not known at all counts as kernels without a name."""
SECOND_NS = 1_000_000_000
UNKNOWN_SESSION_FACTOR = 100
ON_DEVICES = (
    *(CopyKind.ARRAY_TO_ARRAY, CopyKind.ARRAY_TO_DEVICE, CopyKind.DEVICE_TO_ARRAY),
    *(CopyKind.DEVICE_TO_DEVICE, CopyKind.PEER_TO_PEER, CopyKind.UNIFIED_DEVICE_TO_DEVICE),
)
FROM_DEVICE = (*ON_DEVICES, CopyKind.DEVICE_TO_HOST, CopyKind.ARRAY_TO_HOST, CopyKind.UNIFIED_DEVICE_TO_HOST)
TO_DEVICE = (*ON_DEVICES, CopyKind.HOST_TO_DEVICE, CopyKind.HOST_TO_ARRAY, CopyKind.UNIFIED_HOST_TO_DEVICE)
"""Kinds of copies by the side that is memory of a device."""
FIRST_MIGRATION, LAST_MIGRATION = min(MIGRATIONS), max(MIGRATIONS)


class Operations(Rows, frozen=True):
    """Times in ns. `name` and `short_name` are string ids, -1 for none; `graph_node` is 0 or -1 outside graphs.
    `copy_kind`, `src_kind`, `dst_kind` are CUPTI's numbers, -1 for none. `graph` is the number of an instantiated graph
    that was recorded as a whole, else -1. `shape` is an index into the table of launch shapes, -1 for none. `copies` is
    how many copies of a batch a row stands for, at least 1."""

    start: IntArray
    end: IntArray
    process: IntArray
    device: IntArray
    context: IntArray
    stream: IntArray
    correlation: IntArray
    category: IntArray
    name: IntArray
    short_name: IntArray
    graph_node: IntArray
    copy_kind: IntArray
    src_kind: IntArray
    dst_kind: IntArray
    size: IntArray
    graph: IntArray
    shape: IntArray
    copies: IntArray

    @property
    def migration(self) -> BoolArray:
        """True for page migrations of unified memory, which have no launch."""
        return (self.copy_kind >= FIRST_MIGRATION) & (self.copy_kind <= LAST_MIGRATION)


_COMMON = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_SPECIAL: dict[Category, tuple[str, ...]] = {
    Category.KERNEL: ("demangledName", "shortName", "graphNodeId", *SHAPE_COLUMNS),
    Category.MEMCPY: ("graphNodeId", "copyKind", "srcKind", "dstKind", "bytes", "copyCount"),
    Category.MEMSET: ("graphNodeId", "memKind", "bytes"),
    Category.GRAPH: ("graphExecId",),
}


def table_of(operations: Operations, row: int) -> str:
    """The table that a row was read from; of work that is not known, that of kernels."""
    if operations.copy_kind[row] == CopyKind.MEMORY_DECOMPRESSION:
        return _DECOMPRESSION
    return TABLES[Category(int(operations.category[row]))]


def operation_columns(category: Category) -> tuple[str, ...]:
    """What is read of the table of a category."""
    return (*_COMMON, *_SPECIAL[category])


class RecordedOperations(Struct, frozen=True):
    """Every row of the four tables; `wrong` marks invalid ones. `shapes` are the kernel shapes that occur.
    `duration_ns` is the length of the capture (None: unknown), `latest_ns` the time after which no host row can end."""

    rows: Operations
    wrong: BoolArray
    shapes: LaunchShapes
    duration_ns: int | None
    latest_ns: int


def read_operations(trace: Trace) -> RecordedOperations:
    """Reads the four tables, and those with other work of devices."""
    read = {category: trace.read(TABLES[category], *operation_columns(category)) for category in Category}
    shapes, shape = launch_shapes(read[Category.KERNEL])
    parts = [
        _operations(category, columns, shape if category is Category.KERNEL else None, _SPECIAL[category])
        for category, columns in read.items()
    ]
    parts.extend(
        _other_work(spec.name, trace.read(spec.name, *_COMMON, "bytes", "copyCount")) for spec in trace.other_work
    )
    rows = Operations.concatenate(parts)
    duration = session_duration(trace)
    wrong = malformed(rows, duration)
    return RecordedOperations(rows, wrong, shapes, duration, latest_host_time(rows, wrong, duration))


def _other_work(table: str, columns: Columns) -> Operations:
    """Operations of a table that is not declared."""
    base = without_version(table)
    found = _operations(_OTHER_WORK.get(base, Category.KERNEL), columns, None, ("bytes", "copyCount"))
    kind = CopyKind.MEMORY_DECOMPRESSION if base == _DECOMPRESSION else -1
    return replace(found, copy_kind=np.full(len(columns), kind, np.int32))


def _operations(category: Category, columns: Columns, shape: IntArray | None, special: tuple[str, ...]) -> Operations:
    count = len(columns)
    none = constant(np.full(1, -1, np.int32), count)

    def column(name: str) -> IntArray:
        return columns[name] if name in special else none

    return Operations(
        start=columns["start"],
        end=columns["end"],
        process=columns["globalPid"],
        device=columns["deviceId"],
        context=columns["contextId"],
        stream=columns["streamId"],
        correlation=columns["correlationId"],
        category=constant(np.full(1, category, np.int32), count),
        name=column("demangledName"),
        short_name=column("shortName"),
        graph_node=column("graphNodeId"),
        copy_kind=column("copyKind"),
        src_kind=_on_device(column("srcKind"), column("copyKind"), FROM_DEVICE),
        dst_kind=column("memKind")
        if category is Category.MEMSET
        else _on_device(column("dstKind"), column("copyKind"), TO_DEVICE),
        size=column("bytes"),
        graph=column("graphExecId"),
        shape=none if shape is None else shape,
        copies=np.maximum(columns["copyCount"], 1) if "copyCount" in special else constant(np.ones(1, np.int64), count),
    )


def malformed(operations: Operations, duration_ns: int | None) -> BoolArray:
    """True where a row cannot be: no `0 < start <= end`, or an end after the session's (None: unknown)."""
    wrong = (operations.start <= 0) | (operations.end < operations.start)
    if duration_ns is not None:
        wrong |= operations.end > duration_ns
    return wrong


def latest_host_time(operations: Operations, wrong: BoolArray, duration_ns: int | None) -> int:
    """The time after which no host row can end, with room to spare: rows of the host may outlast the session a little.
    Where the trace does not say how long it is, far beyond the last operation that can be."""
    if duration_ns is not None:
        return duration_ns + max(duration_ns, SECOND_NS)
    last = int(operations.end[~wrong].max()) if not wrong.all() else 0
    return min(UNKNOWN_SESSION_FACTOR * max(last, SECOND_NS), int(np.iinfo(np.int64).max) // 2)


def session_duration(trace: Trace) -> int | None:
    """Length of the capture in ns (ANALYSIS_DETAILS.duration), None if the trace does not say."""
    durations = trace.read("ANALYSIS_DETAILS", "duration")["duration"]
    return int(durations.max()) if len(durations) and durations.max() > 0 else None


_KNOWN_MEMORY = frozenset(MemoryKind) - {MemoryKind.UNKNOWN}
_SHORT_SIDES = {"Host": "H", "Device": "D", "Array": "A", "Peer": "P"}


def _on_device(side: IntArray, kind: IntArray, device: tuple[CopyKind, ...]) -> IntArray:
    """The kind of memory of a side of copies, of which these kinds have it on a device: there it is not host memory,
    whatever the export says (0, pageable, where nothing was recorded)."""
    wrong = (side == MemoryKind.PAGEABLE) & np.isin(kind, device)
    return np.where(wrong, MemoryKind.DEVICE, side) if wrong.any() else side


def copy_name(kind: int) -> str:
    """The kind of a copy in the field's short form: `memcpy HtoD`, `unified memory DtoH`."""
    if kind == CopyKind.MEMORY_DECOMPRESSION:
        return "memory decompression"
    try:
        label = CopyKind(kind).label
    except ValueError:
        return f"memcpy kind {kind}"
    for side, letter in _SHORT_SIDES.items():
        label = label.replace(side, letter)
    label = label.replace("-", "")
    return label.replace("Unified", "unified memory") if kind in MIGRATIONS else f"memcpy {label}"


def memory_name(kind: int) -> str | None:
    """The kind of memory on a side of a copy: `pageable`; None if the export does not say."""
    return MemoryKind(kind).label if kind in _KNOWN_MEMORY else None
