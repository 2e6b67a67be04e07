"""The memory of a device over time: its level and peak, churn, pools, limits, and unified memory."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from nsysdiag.arrays.buckets import StepFunction, in_buckets
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, intersect, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes import memory_calls, start_up
from nsysdiag.config.settings import MemoryThresholds
from nsysdiag.events.calls import ApiCalls, named_like
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import pid_of, process_of
from nsysdiag.events.memory import GpuFaults, Memory, MemoryLimits, Migrations, Usage, belongs, of_processes
from nsysdiag.events.operations import copy_name
from nsysdiag.events.rows import Rows, combinations
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.ledger.ledger import packed
from nsysdiag.memory.copies import a_turn, rates_of
from nsysdiag.memory.facts import DeviceMemory, MemoryChurn, MemoryPool, MigrationRow, Thrashing, UnifiedMemory
from nsysdiag.record import records
from nsysdiag.trace.enums import FaultAccess, MemoryKind, MemoryOperation, MigrationCause

# Allocations and frees matched by process and address: how a device's memory rises and falls.

RESIDENT = (MemoryKind.DEVICE, MemoryKind.ARRAY, MemoryKind.DEVICE_STATIC)
MANAGED = (MemoryKind.MANAGED, MemoryKind.MANAGED_STATIC)
PINNED = (MemoryKind.PINNED,)
_TOO_LARGE = 1 << 50
"""No device has a pebibyte: such a row is malformed, and would make sums wrap around."""


class AllocationChanges(Rows, frozen=True):
    """Changes of memory in bytes, with times. `given` marks allocations, `implied` the end of memory that was never
    freed but whose address was allocated again; all other rows are frees. `unknown` marks frees without a recorded
    allocation: they change no level. `device` and `kind` are those of the allocation, if
    known."""

    time: IntArray
    size: IntArray
    process: IntArray
    device: IntArray
    kind: IntArray
    given: BoolArray
    unknown: BoolArray
    implied: BoolArray


def match(usage: Usage) -> AllocationChanges:
    """Every change, in any order.

    ```
    address 0x10   alloc 4   free        alloc 8    alloc 2   free   free
    change             +4      -4            +8     -8 +2      -2    unknown
    ```

    Rows of one address are sorted by time, then by correlation id; of equal ones the free is first.
    """
    known = (usage.address > 0) & np.isin(usage.operation, list(MemoryOperation)) & (usage.size < _TOO_LARGE)
    rows = usage.take(known)
    given = rows.operation == MemoryOperation.ALLOCATION
    order = np.lexsort((rows.size, given, rows.correlation, rows.time, rows.address, rows.process))
    rows, given = rows.take(order), given[order]
    follows = np.append(False, (np.diff(rows.address) == 0) & (np.diff(rows.process) == 0))[: len(rows)]
    open_before = np.append(False, given[:-1])[: len(rows)] & follows
    ended, begun, lost = (np.flatnonzero(each) for each in (open_before, given, ~given & ~open_before))
    source = np.concatenate((ended - 1, begun, lost))
    part = np.repeat(np.arange(3), (len(ended), len(begun), len(lost)))
    at_row = np.concatenate((ended, begun, lost))
    size = np.maximum(rows.size[source], 0)
    return AllocationChanges(
        time=rows.time[at_row],
        size=np.where(part == 1, size, -size),
        process=rows.process[source],
        device=rows.device[source],
        kind=rows.kind[source],
        given=part == 1,
        unknown=part == 2,
        implied=(part == 0) & given[at_row],
    )


def of_kind(changes: AllocationChanges, kinds: tuple[MemoryKind, ...]) -> AllocationChanges:
    """The changes of memory of these kinds."""
    return changes.take(np.isin(changes.kind, kinds))


def level(changes: AllocationChanges, low: int, high: int) -> StepFunction:
    """The bytes given out over [low, high), by the known changes: never below zero. Raises ValueError without time."""
    return levels(changes.time[~changes.unknown], changes.size[~changes.unknown], low, high)


def levels(time: IntArray, change: IntArray, low: int, high: int) -> StepFunction:
    """The running sum over [low, high) of changes in any order; those of one moment count together.

    ```
    changes        +4    +2-3     -1
    level      0   4     3        2
    ```
    """
    if high <= low:
        raise ValueError(f"no time between {low} and {high}")
    order = np.argsort(time, kind="stable")
    time, total = time[order], np.cumsum(change[order])
    last = np.append(time[1:] != time[:-1], True)[: len(time)]
    time, total = time[last], total[last]
    first = int(np.searchsorted(time, low, side="right"))
    behind = int(np.searchsorted(time, high, side="left"))
    base = int(total[first - 1]) if first else 0
    return StepFunction(
        np.append(np.int64(low), time[first:behind]), np.append(np.int64(base), total[first:behind]), high
    )


def at(steps: StepFunction, times: IntArray) -> IntArray:
    """The level at each time; before the first step it is that of the first."""
    index = np.searchsorted(steps.time, times, side="right") - 1
    return steps.level[np.maximum(index, 0)]


BUCKETS = 500
"""Buckets of the level of memory over time in a report. More make a report larger, fewer hide short changes. A round
number: nothing depends on it closely."""
MOST_POOLS = 20
"""Memory pools with rows in a report, those with most reserved bytes. More make reports larger. A round number: nothing
depends on it closely."""
LONGEST_NS = 1 << 53
"""A window so long (104 days) has neither a level of memory nor a queue depth."""


def device_memory(
    usage: Usage | None,
    device: DeviceTimeline,
    api_calls: ApiCalls,
    creates_context: BoolArray,
    window: AnalysisWindow,
    steady: Intervals | None,
    chip: MemoryLimits,
    allocation_idle_ns: int,
    limits: MemoryThresholds,
) -> DeviceMemory | None:
    """The memory of one device; None if the trace has no allocation or free of it. `creates_context` marks the calls
    that made a context; `steady` are the device's steady iterations; `allocation_idle_ns` is idle time lost to
    allocating."""
    if usage is None:
        return None
    ids = device.ids
    changes = match(usage.take(of_processes(usage.process, ids) | (usage.process <= 0)))
    mine = changes.take(belongs(changes.process, changes.device, ids))
    # What is known of no kind may well be of the device: only frees without an allocation lack theirs.
    resident = mine.take(np.isin(mine.kind, RESIDENT) | (mine.unknown & ~np.isin(mine.kind, (*MANAGED, *PINNED))))
    managed = of_kind(mine, MANAGED)
    bounds = _bounds(window, np.append(resident.time, managed.time))
    if len(resident) + len(managed) == 0 or bounds is None:
        return None
    steps = level(resident, *bounds)
    top, total = int(np.argmax(steps.level)), chip.total
    peak = int(steps.level[top])
    complete = not resident.unknown.any() and _sees_the_beginning(device, api_calls, creates_context)
    pools, unused = _pools(usage, ids)
    series = in_buckets(steps, BUCKETS)
    begin, end = at(steps, _borders(window, bounds)).tolist()
    return DeviceMemory(
        limit_bytes=total,
        peak_bytes=peak,
        peak_at_ns=int(steps.time[top]),
        begin_bytes=begin,
        end_bytes=end,
        managed_peak_bytes=int(level(managed, *bounds).level.max()),
        pinned_peak_bytes=int(level(of_kind(changes, PINNED), *bounds).level.max()),
        at_least=not complete,
        unknown_frees=int(np.count_nonzero(resident.unknown)),
        unknown_freed_bytes=-int(resident.size[resident.unknown].sum()),
        headroom_bytes=max(total - peak - unused, 0) if complete and total is not None else None,
        near_limit=total is not None and peak >= limits.near_limit * total,
        churn=_churn(mine, device, api_calls, window, steady, allocation_idle_ns),
        pools=pools[:MOST_POOLS],
        start_ns=bounds[0],
        end_ns=bounds[1],
        buckets=len(series.lowest),
        lowest=packed(series.lowest.astype("<i8")),
        highest=packed(series.highest.astype("<i8")),
    )


def _bounds(window: AnalysisWindow, times: IntArray) -> tuple[int, int] | None:
    """A narrowed window from its first part to its last; else from the first to the last event or operation. None if it
    is empty, or impossibly long."""
    span = window.parts if window.narrowed else window.whole
    low, high = (int(span.start[0]), int(span.end[-1])) if len(span) else (0, 0)
    if not window.narrowed and len(times):
        first, last = int(times.min()), int(times.max()) + 1
        low, high = (min(low, first), max(high, last)) if len(span) else (first, last)
    return (low, high) if 0 < high - low < LONGEST_NS else None


def _borders(window: AnalysisWindow, bounds: tuple[int, int]) -> IntArray:
    """The window's first and last moment."""
    parts = window.parts
    borders = (int(parts.start[0]), int(parts.end[-1]) - 1) if len(parts) else (bounds[0], bounds[1] - 1)
    return np.array(borders, dtype=np.int64)


def _sees_the_beginning(device: DeviceTimeline, calls: ApiCalls, creates_context: BoolArray) -> bool:
    """Whether every process that uses the device made its context in the trace: only then it shows all allocations."""
    making = named_like(calls.names, start_up.CONTEXT_INIT_CALLS)
    if len(calls.rows) == 0:
        return False
    begun = making[calls.rows.name] | creates_context
    pids = set(pid_of(process_of(calls.rows.thread[begun])).tolist())
    return {pid for pid, _ in device.ids} <= pids


def _churn(
    mine: AllocationChanges,
    device: DeviceTimeline,
    api_calls: ApiCalls,
    window: AnalysisWindow,
    steady: Intervals | None,
    idle_ns: int,
) -> MemoryChurn:
    rows = mine.take(np.isin(mine.kind, (*RESIDENT, *MANAGED)) & contains(window.parts, mine.time))
    given, freed = rows.take(rows.given), rows.take(~rows.given & ~rows.implied)
    calls, call_ns = _allocation_calls(device, api_calls, window)
    return MemoryChurn(
        allocations=len(given),
        frees=len(freed),
        allocated_bytes=int(given.size.sum()),
        freed_bytes=-int(freed.size.sum()),
        per_iteration=a_turn(np.append(given.time, freed.time), steady),
        calls=calls,
        call_ns=call_ns,
        idle_ns=idle_ns,
    )


def _allocation_calls(device: DeviceTimeline, calls: ApiCalls, window: AnalysisWindow) -> tuple[int, int]:
    """The outermost calls that begin inside the window and allocate or free: how many, and their time."""
    of_memory = named_like(calls.names, memory_calls.MEMORY_ALLOCATION_CALLS)
    if not of_memory.any():
        return 0, 0
    rows = calls.rows
    mine = np.flatnonzero(of_memory[rows.name])
    mine = mine[of_processes(rows.thread[mine], device.ids) & contains(window.parts, rows.start[mine])]
    spans = Intervals(rows.start[mine], rows.end[mine])
    outer = outermost(spans, rows.thread[mine])
    return int(np.count_nonzero(outer)), spans[outer].total()


def _pools(usage: Usage, ids: list[tuple[int, int]]) -> tuple[list[MemoryPool], int]:
    """The pools of the device, largest first, and how many bytes they held at most that were not in use."""
    rows = usage.take((usage.pool >= 0) & belongs(usage.process, usage.device, ids))
    if len(rows) == 0:
        return [], 0
    code, (processes, _) = combinations(rows.process, rows.pool)
    most = np.zeros((3, len(processes)), dtype=np.int64)
    for place, values in enumerate((rows.reserved, rows.used, np.maximum(rows.reserved - rows.used, 0))):
        np.maximum.at(most[place], code, values)
    pools = records(
        MemoryPool, pid=pid_of(processes), reserved_bytes=most[0], used_bytes=most[1], events=np.bincount(code)
    )
    return sorted(pools, key=lambda each: (-each.reserved_bytes, each.pid)), int(most[2].sum())


# Migrations of unified memory, their causes, and pages that moved back and forth.

_CAUSES = 64
"""Numbers of causes of migration that are distinguished; larger ones are one row. CUPTI has six, up to 5
(MigrationCause), so nothing depends on it closely."""
PREFETCHED = (MigrationCause.USER_PREFETCH,)
"""What the driver prefetches by itself, it does at faults."""


def unified_memory(
    memory: Memory, ids: list[tuple[int, int]], window: AnalysisWindow, duration_ns: int | None, moves: int
) -> UnifiedMemory | None:
    """Migrations and page faults of the device with these (process id, number), all of them, or those that begin inside
    a narrowed window; None if there are neither. Invalid rows are left out, as for operations."""
    moved = _moved(memory, ids, window, duration_ns)
    groups = memory.gpu_faults
    if groups is not None:
        groups = groups.take(belongs(groups.process, groups.device, ids) & _inside(window, groups.start))
    cpu, cpu_faults = memory.cpu_faults, None
    if cpu is not None:
        cpu_faults = int(np.count_nonzero(of_processes(cpu.process, ids) & _inside(window, cpu.time)))
    if not moved and not cpu_faults and not groups:
        return None
    opened = Intervals.empty() if groups is None else union(Intervals(groups.start, groups.end))
    opened = intersect(opened, window.parts) if window.narrowed else opened
    return UnifiedMemory(
        count=len(moved),
        bytes=int(moved.size.sum()),
        total_ns=int((moved.end - moved.start).sum()),
        rows=_rows(moved),
        thrashing=_thrashing(moved, moves),
        cpu_faults=cpu_faults,
        gpu_fault_groups=None if groups is None else len(groups),
        gpu_faults=None if groups is None else int(groups.faults.sum()),
        gpu_fault_ns=None if groups is None else opened.total(),
        gpu_fault_access={} if groups is None else _access(groups),
    )


def _inside(window: AnalysisWindow, times: IntArray) -> BoolArray:
    if not window.narrowed:
        return np.ones(len(times), dtype=np.bool_)
    return contains(window.parts, times)


def demand_migrations(memory: Memory, ids: list[tuple[int, int]]) -> Intervals:
    """The time in which pages moved to or from a device because something touched them, as a set: what was prefetched
    holds up no kernel. `ids` are the processes' numbers of the device."""
    rows = memory.migrations
    if rows is None:
        return Intervals.empty()
    mine = belongs(rows.process, rows.device, ids) & ~np.isin(rows.cause, PREFETCHED)
    return union(Intervals(rows.start, rows.end)[mine])


def _moved(memory: Memory, ids: list[tuple[int, int]], window: AnalysisWindow, duration_ns: int | None) -> Migrations:
    rows = memory.migrations or Migrations.empty()
    valid = (rows.start > 0) & (rows.end >= rows.start) & belongs(rows.process, rows.device, ids)
    if duration_ns is not None:
        valid &= rows.end <= duration_ns
    return rows.take(valid & _inside(window, rows.start))


def _rows(moved: Migrations) -> list[MigrationRow]:
    """One row for each direction and cause, most bytes first."""
    code, (kinds, causes) = combinations(moved.kind, np.clip(moved.cause, 0, _CAUSES - 1))
    size, ns = (sum_of_each(code, values, len(kinds)) for values in (moved.size, moved.end - moved.start))
    rows = records(
        MigrationRow,
        direction=[copy_name(each).removeprefix("unified memory ") for each in kinds.tolist()],
        cause=[_label(MigrationCause, each) for each in causes.tolist()],
        count=np.bincount(code, minlength=len(kinds)),
        bytes=size,
        total_ns=ns,
        bytes_per_second=rates_of(size, ns),
    )
    return sorted(rows, key=lambda row: (-row.bytes, row.direction, row.cause))


def _label(kinds: type[MigrationCause] | type[FaultAccess], number: int) -> str:
    known: dict[int, IntEnum] = {int(kind): kind for kind in kinds}
    return kinds(number).label if number in known else "unknown"


def _thrashing(moved: Migrations, moves: int) -> Thrashing | None:
    """Blocks that moved so many times, each time in another direction than before.

    ```
    block at 0x7f..0   HtoD  DtoH  HtoD  HtoD      three moves: the last one goes where the block went before
    ```
    """
    known = moved.take(moved.address >= 0)
    if len(known) == 0:
        return None
    order = np.lexsort((known.kind, known.end, known.start, known.address, known.process))
    known = known.take(order)
    opens = np.append(True, (np.diff(known.address) != 0) | (np.diff(known.process) != 0))
    turns = opens.copy()
    turns[1:] |= known.kind[1:] != known.kind[:-1]
    begin = np.flatnonzero(opens)
    often = np.add.reduceat(turns.astype(np.int64), begin) >= moves
    count = np.diff(np.append(begin, len(known)))
    return Thrashing(
        moves=moves,
        blocks=int(np.count_nonzero(often)),
        migrations=int(count[often].sum()),
        bytes=int(np.add.reduceat(known.size, begin)[often].sum()),
    )


def _access(groups: GpuFaults) -> dict[str, int]:
    """Groups by the kind of access, most first."""
    values, place = distinct(groups.access)
    named: dict[str, int] = {}
    for value, count in zip(values.tolist(), np.bincount(place, minlength=1).tolist(), strict=False):
        label = _label(FaultAccess, value)
        named[label] = named.get(label, 0) + count
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))
