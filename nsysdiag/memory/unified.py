"""Migrations of unified memory, their causes, and pages that moved back and forth."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, intersect, union
from nsysdiag.events.memory import GpuFaults, Memory, Migrations, belongs, of_processes
from nsysdiag.events.operations import copy_name
from nsysdiag.events.rows import distinct
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.memory.facts import MigrationRow, Thrashing, UnifiedMemory
from nsysdiag.trace.enums import FaultAccess, MigrationCause

_CAUSES = 64
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
    return UnifiedMemory(
        count=len(moved),
        bytes=int(moved.size.sum()),
        total_ns=int((moved.end - moved.start).sum()),
        rows=_rows(moved),
        thrashing=_thrashing(moved, moves),
        cpu_faults=cpu_faults,
        gpu_fault_groups=None if groups is None else len(groups),
        gpu_faults=None if groups is None else int(groups.faults.sum()),
        gpu_fault_ns=None if groups is None else _open_ns(groups, window),
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
    kinds, kind = distinct(moved.kind)
    code = kind * _CAUSES + np.clip(moved.cause, 0, _CAUSES - 1)
    codes, place = distinct(code)
    sums = np.zeros((3, len(codes)), dtype=np.int64)
    for at, values in enumerate((np.ones_like(code), moved.size, moved.end - moved.start)):
        np.add.at(sums[at], place, values)
    rows = [
        MigrationRow(
            direction=copy_name(int(kinds[number // _CAUSES])).removeprefix("unified memory "),
            cause=_label(MigrationCause, number % _CAUSES),
            count=count,
            bytes=size,
            total_ns=ns,
            bytes_per_second=size / ns * 1e9 if ns else None,
        )
        for number, (count, size, ns) in zip(codes.tolist(), sums.T.tolist(), strict=True)
    ]
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


def _open_ns(groups: GpuFaults, window: AnalysisWindow) -> int:
    spans = union(Intervals(groups.start, groups.end))
    return intersect(spans, window.parts).total() if window.narrowed else spans.total()


def _access(groups: GpuFaults) -> dict[str, int]:
    """Groups by the kind of access, most first."""
    values, place = distinct(groups.access)
    named: dict[str, int] = {}
    for value, count in zip(values.tolist(), np.bincount(place, minlength=1).tolist(), strict=False):
        label = _label(FaultAccess, value)
        named[label] = named.get(label, 0) + count
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))
