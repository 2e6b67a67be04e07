"""Operations on all devices: kernels, copies, sets and graph launches, one row each, in one table.

Kernels were launched in few shapes among many launches, so each launch holds a place in a table of shapes."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import Rows, combinations
from nsysdiag.trace.catalog import without_version
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.enums import MIGRATIONS, CopyKind, MemoryKind

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


SHAPE_COLUMNS = ("blocks", "threadsPerBlock", "registersPerThread", "sharedMemory")
_POSSIBLE = ((1, 1 << 63), (1, 1 << 11), (0, 1 << 8), (0, 1 << 18))
"""The least of each, and more than the most that CUDA allows: blocks, threads a block, registers a thread, bytes of
shared memory a block."""


class LaunchShapes(Rows, frozen=True):
    """One row for each shape: blocks of the grid, threads per block, registers per thread, and bytes of shared memory
    per block (static and dynamic)."""

    blocks: IntArray
    threads: IntArray
    registers: IntArray
    shared_memory: IntArray


def launch_shapes(kernels: Columns) -> tuple[LaunchShapes, IntArray]:
    """The shapes that occur, and each kernel's place among them: -1 if a number is missing or cannot be."""
    numbers = [kernels.integers(name) for name in SHAPE_COLUMNS]
    limits = zip(numbers, _POSSIBLE, strict=True)
    known = np.logical_and.reduce([(values >= least) & (values < limit) for values, (least, limit) in limits])
    numbers = numbers if known.all() else [values[known] for values in numbers]
    code, shapes = combinations(*numbers)
    place = np.full(len(known), -1, dtype=np.int32)
    place[known] = code
    return LaunchShapes(*shapes), place


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
"""The least that, in ns, host rows may end after the session, and the shortest length of a session that is assumed.
Sessions shorter than this would leave them little room."""
UNKNOWN_SESSION_FACTOR = 100
"""If the trace does not say how long it is: host rows that end so many times later than the last operation are damage.
If too small, real rows of a host that works on without the GPU are left out. A round number."""
ON_DEVICES = (
    *(CopyKind.ARRAY_TO_ARRAY, CopyKind.ARRAY_TO_DEVICE, CopyKind.DEVICE_TO_ARRAY),
    *(CopyKind.DEVICE_TO_DEVICE, CopyKind.PEER_TO_PEER, CopyKind.UNIFIED_DEVICE_TO_DEVICE),
)
FROM_DEVICE = (*ON_DEVICES, CopyKind.DEVICE_TO_HOST, CopyKind.ARRAY_TO_HOST, CopyKind.UNIFIED_DEVICE_TO_HOST)
TO_DEVICE = (*ON_DEVICES, CopyKind.HOST_TO_DEVICE, CopyKind.HOST_TO_ARRAY, CopyKind.UNIFIED_HOST_TO_DEVICE)
"""Kinds of copies by the side that is memory of a device."""
FIRST_MIGRATION, LAST_MIGRATION = min(MIGRATIONS), max(MIGRATIONS)


class Operations(Rows, frozen=True, dict=True):
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

    @cached_property
    def migration(self) -> BoolArray:
        """True for page migrations of unified memory, which have no launch."""
        found = (self.copy_kind >= FIRST_MIGRATION) & (self.copy_kind <= LAST_MIGRATION)
        return found if found.any() else constant(np.zeros(1, dtype=np.bool_), len(found))


def _columns(declared: str) -> dict[str, str]:
    """The column of each field, of the same name unless it is given."""
    pairs = (word.partition("=") for word in declared.split())
    return {field: column or field for field, _, column in pairs}


_COMMON = _columns(
    "start end process=globalPid device=deviceId context=contextId stream=streamId correlation=correlationId"
)
_SPECIAL = {
    Category.KERNEL: _columns("name=demangledName short_name=shortName graph_node=graphNodeId"),
    Category.MEMCPY: _columns(
        "graph_node=graphNodeId copy_kind=copyKind src_kind=srcKind dst_kind=dstKind size=bytes copies=copyCount"
    ),
    Category.MEMSET: _columns("graph_node=graphNodeId dst_kind=memKind size=bytes"),
    Category.GRAPH: _columns("graph=graphExecId"),
}
_OTHER = _columns("size=bytes copies=copyCount")
"""Of tables that are not declared."""


def table_of(operations: Operations, row: int) -> str:
    """The table that a row was read from; of work that is not known, that of kernels."""
    if operations.copy_kind[row] == CopyKind.MEMORY_DECOMPRESSION:
        return _DECOMPRESSION
    return TABLES[Category(int(operations.category[row]))]


def operation_columns(category: Category) -> tuple[str, ...]:
    """What is read of the table of a category."""
    shape = SHAPE_COLUMNS if category is Category.KERNEL else ()
    return (*_COMMON.values(), *_SPECIAL[category].values(), *shape)


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
    parts = [_operations(category, columns, _SPECIAL[category]) for category, columns in read.items()]
    parts[0] = replace(parts[0], shape=shape)
    other = (*_COMMON.values(), *_OTHER.values())
    parts += [_other_work(spec.name, trace.read(spec.name, *other)) for spec in trace.other_work]
    rows = Operations.joined(parts)
    duration = session_duration(trace)
    wrong = malformed(rows, duration)
    return RecordedOperations(rows, wrong, shapes, duration, latest_host_time(rows, wrong, duration))


def _other_work(table: str, columns: Columns) -> Operations:
    """Operations of a table that is not declared."""
    base = without_version(table)
    found = _operations(_OTHER_WORK.get(base, Category.KERNEL), columns, _OTHER)
    kind = CopyKind.MEMORY_DECOMPRESSION if base == _DECOMPRESSION else -1
    return replace(found, copy_kind=np.full(len(columns), kind, np.int32))


def _operations(category: Category, columns: Columns, special: dict[str, str]) -> Operations:
    """The rows of a table, whose columns are those of all tables and these."""
    count = len(columns)
    found = dict.fromkeys(Operations.__struct_fields__, constant(np.full(1, -1, np.int32), count))
    found |= {field: columns[name] for field, name in (_COMMON | special).items()}
    found["category"] = constant(np.full(1, category, np.int32), count)
    found["copies"] = np.maximum(found["copies"], 1) if "copies" in special else constant(np.ones(1, np.int64), count)
    for side, device in (("src_kind", FROM_DEVICE), ("dst_kind", TO_DEVICE)) if category is Category.MEMCPY else ():
        found[side] = _on_device(found[side], found["copy_kind"], device)
    return Operations(**found)


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
