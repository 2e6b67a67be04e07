"""The slow truth about a device: paint every nanosecond, and look for neighbours one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nsysdiag.events.capture import MOST_BEFORE
from tests.ledger.arbitrary import Call, Op, Rows, Thread

BoolArray = npt.NDArray[np.bool_]
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Painted:
    """One device: its window, the four-way split, and its idle intervals."""

    window: Interval
    compute: int
    exposed_comm: int
    exposed_copy: int
    gaps: list[Interval]

    @property
    def idle(self) -> int:
        return sum(end - start for start, end in self.gaps)


def ops_by_device(rows: Rows) -> dict[frozenset[tuple[int, int]], list[Op]]:
    """The operations of each device by the (pid, ordinal) pairs that mean it, malformed ones too."""
    groups: dict[tuple[int, ...], list[Op]] = {}
    for op in rows.ops:
        key = (op.pid, op.device) if rows.sharing == "apart" else (op.device,)
        groups.setdefault(key, []).append(op)
    return {frozenset((op.pid, op.device) for op in ops): ops for ops in groups.values()}


def well_formed(op: Op, rows: Rows) -> bool:
    return 0 < op.start <= op.end <= rows.duration


def running(ops: list[Op], rows: Rows) -> list[Op]:
    """Those that make a device busy."""
    return [op for op in ops if well_formed(op, rows) and op.end > op.start]


def paint(ops: list[Op], parts: list[Interval] | None = None) -> Painted | None:
    """The picture of one device from its running operations, inside `parts` of the window; None where nothing ran."""
    bounding = [op for op in ops if op.kind != "migration"] or ops
    if not bounding:
        return None
    low, high = min(op.start for op in bounding), max(op.end for op in bounding)
    inside = np.zeros(high - low, np.bool_)
    for start, end in [(low, high)] if parts is None else parts:
        inside[max(start - low, 0) : max(end - low, 0)] = True
    compute = _painted([op for op in ops if op.kind in ("kernel", "node", "graph")], low, high) & inside
    comm = _painted([op for op in ops if op.kind == "nccl"], low, high) & inside
    busy = _painted(ops, low, high) & inside
    idle = inside & ~busy
    edges = np.flatnonzero(np.diff(np.concatenate(([False], idle, [False])).astype(np.int8))) + low
    return Painted(
        window=(low, high),
        compute=int(compute.sum()),
        exposed_comm=int((comm & ~compute).sum()),
        exposed_copy=int((busy & ~comm & ~compute).sum()),
        gaps=list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)),
    )


def paint_from(ops: list[Op], begin: int | None) -> Painted | None:
    """The picture from `begin` on, all of it for None. The device must begin to work there, after little other work."""
    whole = paint(ops)
    if whole is None or begin is None or begin == whole.window[0]:
        return whole
    low, high = whole.window
    busy = _painted(ops, low, high)
    assert busy[begin - low]
    assert not busy[begin - low - 1]
    assert busy[: begin - low].sum() <= MOST_BEFORE * busy.sum()
    painted = paint(ops, [(begin, high)])
    return painted and replace(painted, window=(begin, high))


def _painted(ops: list[Op], low: int, high: int) -> BoolArray:
    cells = np.zeros(high - low, np.bool_)
    for op in ops:
        cells[max(op.start - low, 0) : max(op.end - low, 0)] = True
    return cells


def launches(op: Op, calls: list[Call]) -> list[Call]:
    """The call that launched an operation: the outermost of its process with its id; several where they are alike."""
    correlation = 0 if op.kind == "migration" else op.correlation
    same = [
        call
        for call in calls
        if call.thread[0] == op.pid and call.correlation == correlation > 0 and 0 <= call.start <= call.end
    ]
    outermost = min(((call.start, -call.end) for call in same), default=None)
    return [call for call in same if (call.start, -call.end) == outermost]


Rank = tuple[bool, int, int, int]


def rank(op: Op, calls: list[Call]) -> Rank:
    """Which of the operations that start together is the next one: the one with the lowest rank."""
    found = launches(op, calls)
    where = (0, 0) if op.kind == "migration" else (op.correlation, op.stream)
    return not found, found[0].start if found else 0, *where


def next_ops(ops: list[Op], gap_end: int, calls: list[Call]) -> list[Op]:
    """The operation that ends a gap; several where nothing tells them apart."""
    starting = [op for op in ops if op.start == gap_end]
    best = min(rank(op, calls) for op in starting)
    return [op for op in starting if rank(op, calls) == best]


def previous_ops(ops: list[Op], gap_start: int) -> list[Op]:
    """The operation before a gap: of those that end there the one that started first."""
    ending = [op for op in ops if op.end == gap_start]
    return [op for op in ending if op.start == min(other.start for other in ending)]


def launching_threads(ops: list[Op], gap_end: int, calls: list[Call]) -> set[Thread | None]:
    """The thread that launched what the gap waited for, migrations looked through; None where nobody did."""
    after = [op for op in ops if op.start >= gap_end and op.kind != "migration"]
    if not after:
        return {None}
    first = min((op.start, rank(op, calls)) for op in after)
    targets = [op for op in after if (op.start, rank(op, calls)) == first]
    return {call.thread for op in targets for call in launches(op, calls)} or {None}
