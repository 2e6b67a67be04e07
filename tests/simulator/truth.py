"""The true ledger of a device, from the simulation's own log.

Nothing here reads a trace. For every nanosecond that the device runs nothing inside its window the log says what held
the next operation back: what its thread was inside of until the launch call, what happened inside the launch call,
and after it the piece of waiting that the device model imposed. A capture that leaves evidence out turns what only
that evidence could show into `blocked` or `uncovered`. The root ledger is the same time by what ended the waits in it
(roots.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from tests.simulator.evidence import cause_of
from tests.simulator.roots import WAITS, Rooted, followed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulator.capture import Capture
    from tests.simulator.device import Gpu, Op
    from tests.simulator.host import Call

DeviceKey = frozenset[tuple[int, int]]
Interval = tuple[int, int]
Part = tuple[int, int, str]
_FLOOR_AT_MOST = 5_000
_START = attrgetter("start")
"""Rows are in the order of their starts."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the trace shows of the device: [start, end), kernel, graph, copy, set or migration, and its operation."""

    start: int
    end: int
    kind: str
    op: Op
    last: Op

    @property
    def communication(self) -> bool:
        return self.kind == "kernel" and self.op.name.startswith("nccl")

    def launch(self, capture: Capture) -> Call | None:
        call = self.op.call if self.kind != "migration" else None
        return call if call is not None and capture.api and call.recorded else None


@dataclass(slots=True)
class GapTruth:
    """One idle interval of the device and what held the next operation back; `roots` cover it too."""

    start: int
    end: int
    next_op: str
    ledger: Counter[str] = field(default_factory=Counter)
    roots: list[Rooted] = field(default_factory=list)

    @property
    def root_ledger(self) -> Counter[str]:
        return _summed((root.cause, root) for root in self.roots)

    @property
    def root_labels(self) -> dict[str, Counter[str]]:
        labelled = [root for root in self.roots if root.label]
        causes = sorted({root.cause for root in labelled})
        return {cause: _summed((root.label, root) for root in labelled if root.cause == cause) for cause in causes}


@dataclass(slots=True)
class DeviceTruth:
    """The true split of one device's window; `ledger` sums to idle, and so does `root_ledger`.

    `claimable` is the most that each cause may have in a root ledger: all the time that leads to it or passes by it.
    """

    key: DeviceKey
    window: Interval
    compute: int
    exposed_comm: int
    exposed_copy: int
    idle: int
    ledger: dict[str, int]
    gaps: list[GapTruth]

    @property
    def root_ledger(self) -> dict[str, int]:
        return dict(sum((gap.root_ledger for gap in self.gaps), Counter()))

    @property
    def root_labels(self) -> dict[str, dict[str, int]]:
        total: dict[str, Counter[str]] = {}
        for gap in self.gaps:
            for cause, labels in gap.root_labels.items():
                total.setdefault(cause, Counter()).update(labels)
        return {cause: dict(labels) for cause, labels in total.items()}

    @property
    def claimable(self) -> dict[str, int]:
        return dict(_summed((cause, root) for gap in self.gaps for root in gap.roots for cause in root.along))


def _summed(parts: Iterable[tuple[str, Rooted]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, root in parts:
        total[name] += root.end - root.start
    return total


def rows_of(gpu: Gpu, capture: Capture) -> list[Row]:
    """The operations of a device as the capture shows them."""
    rows = [Row(op.start, op.end, op.kind, op, op) for op in gpu.ops if op.graph is None and op.recorded]
    for launch in gpu.graphs:
        if capture.graph_rows == "node":
            rows += [Row(op.start, op.end, op.kind, op, op) for op in launch.ops]
        elif capture.graph_rows == "graph":
            rows.append(Row(launch.ops[0].start, launch.ops[-1].end, "graph", launch.ops[0], launch.ops[-1]))
    if capture.lost:
        rows = [row for row in rows if not row.op.name.startswith(capture.lost)]
    return sorted(rows, key=lambda row: (row.start, row.end))


def device_truth(key: DeviceKey, gpu: Gpu, rows: list[Row], capture: Capture) -> DeviceTruth | None:
    """The truth about one device; None where it ran nothing."""
    if not rows:
        return None
    window = _window(rows, capture)
    inside = [row for row in rows if row.end > window[0] and row.start < window[1]]
    compute = _united(
        (row.start, row.end) for row in inside if row.kind in {"kernel", "graph"} and not row.communication
    )
    comm = _united((row.start, row.end) for row in inside if row.communication)
    busy = _clipped(_united((row.start, row.end) for row in inside), window)
    length = _total(_clipped(compute, window))
    with_comm = _total(_clipped(_united([*compute, *comm]), window))
    gaps = _explained(gpu, inside, busy, window, capture)
    ledger: Counter[str] = sum((gap.ledger for gap in gaps), Counter())
    idle = window[1] - window[0] - _total(busy)
    return DeviceTruth(key, window, length, with_comm - length, _total(busy) - with_comm, idle, dict(ledger), gaps)


def _window(rows: list[Row], capture: Capture) -> Interval:
    opening = [row for row in rows if row.launch(capture) is not None]
    opening = opening or [row for row in rows if row.kind != "migration"] or rows
    return min(row.start for row in opening), max(row.end for row in opening)


def _explained(gpu: Gpu, rows: list[Row], busy: list[Interval], window: Interval, capture: Capture) -> list[GapTruth]:
    hidden = _hidden_graphs(gpu, capture)
    gaps = []
    for start, end in _between(busy, window):
        row = _next_row(rows, end, capture)
        parts = _gap(start, end, row, rows, capture)
        if {cause for _, _, cause in parts} != {"dispatch"}:
            parts = _uncovered(parts, hidden, "graph_untraced")
        if capture.version >= (3, 28):
            waits = [part for part in parts if part[2] in ("sync", "blocking_copy")]
            others = [part for part in parts if part[2] not in ("sync", "blocking_copy")]
            parts = sorted(others + _uncovered(waits, _running_functions(gpu), "host_function"))
        ledger: Counter[str] = Counter()
        for part_start, part_end, cause in parts:
            ledger[cause] += part_end - part_start
        gaps.append(GapTruth(start, end, row.op.name, ledger, _roots(parts, _issuing(row, rows, capture), capture)))
    return gaps


def _next_row(rows: list[Row], time: int, capture: Capture) -> Row:
    def rank(row: Row) -> tuple[bool, int]:
        call = row.launch(capture)
        return call is None, call.start if call else 0

    first = bisect_left(rows, time, key=_START)
    return min(rows[first : bisect_right(rows, time, lo=first, key=_START)], key=rank)


def _gap(start: int, end: int, row: Row, rows: list[Row], capture: Capture) -> list[Part]:
    call = _issuing(row, rows, capture)
    if call is None and _before_the_capture(row, rows, capture):
        return _device_parts(start, start, end, row.op, capture)
    if call is None:
        return [(start, end, "dispatch" if end - start <= _FLOOR_AT_MOST else "launch_unknown")]
    parts = _host_parts(start, min(end, call.end), call, capture)
    issued = max(start, call.end)
    if issued >= end:
        return parts
    if row.kind == "migration":
        return [*parts, (issued, end, "unified_memory")]
    return [*parts, *_device_parts(start, issued, end, row.op, capture)]


def _issuing(row: Row, rows: list[Row], capture: Capture) -> Call | None:
    """The call that launched the operation, or, for a migration, the next operation that has one."""
    if row.kind != "migration":
        return row.launch(capture)
    first = bisect_left(rows, row.start, key=_START)
    launches = (rows[at].launch(capture) for at in range(first, len(rows)))
    return next((call for call in launches if call is not None), None)


def _roots(parts: list[Part], call: Call | None, capture: Capture) -> list[Rooted]:
    roots: list[Rooted] = []
    for start, end, cause in parts:
        if call is not None and cause in WAITS:
            roots += followed(call.owner, start, end, cause, capture)
        else:
            roots.append(Rooted(start, end, cause))
    return roots


def _before_the_capture(row: Row, rows: list[Row], capture: Capture) -> bool:
    """Whether the launch call was too early to be recorded: its process's recorded ones have larger ids."""
    launches = [
        other.launch(capture) for other in rows if other.op.stream.context.process is row.op.stream.context.process
    ]
    known = [call.correlation for call in launches if call is not None]
    return row.op.call is not None and bool(known) and row.op.call.correlation < min(known)


def _host_parts(start: int, end: int, call: Call, capture: Capture) -> list[Part]:
    spans = call.owner.spans
    first = bisect_right(spans, start, key=attrgetter("end"))
    spans = spans[first : bisect_left(spans, end, lo=first, key=attrgetter("start"))]
    return [(max(start, span.start), min(end, span.end), cause_of(span, call, capture)) for span in spans]


def _device_parts(gap: int, start: int, end: int, op: Op, capture: Capture) -> list[Part]:
    parts = []
    since, before = op.enqueued, "order"
    for until, reason in op.pieces:
        if max(start, since) < min(end, until):
            cause = _device_cause(reason, before, since, gap, capture)
            parts.append((max(start, since), min(end, until), cause))
        since, before = max(since, until), reason
    return parts


def _device_cause(reason: str, before: str, since: int, gap: int, capture: Capture) -> str:
    if reason == "turnaround":
        reason = "dispatch" if since <= gap else before
    if reason == "host_function" and capture.version < (3, 28):
        return "device_stall"
    if reason == "stream_wait" and not capture.sync_rows:
        return "device_stall"
    if reason == "gpu_context_switch" and not capture.context_switches:
        return "device_stall"
    return reason


def _hidden_graphs(gpu: Gpu, capture: Capture) -> list[Interval]:
    """Graph launches that leave no row run all the same: their time is the graph's, whatever the thread does."""
    if capture.graph_rows != "none":
        return []
    return _united((launch.call.start, launch.ops[-1].end) for launch in gpu.graphs)


def _running_functions(gpu: Gpu) -> list[Interval]:
    """When host functions run in its streams: a synchronization waits for them, not for the device."""
    return _united((op.start, op.end) for op in gpu.functions)


def _uncovered(parts: list[Part], hidden: list[Interval], named: str) -> list[Part]:
    """The parts with those inside `hidden` named so."""
    for span in hidden:
        covered = [(start, end, named) for start, end in _clipped([part[:2] for part in parts], span)]
        around = [(-1, span[0]), (span[1], 1 << 62)]
        rest = [
            (start, end, cause)
            for part_start, part_end, cause in parts
            for side in around
            for start, end in _clipped([(part_start, part_end)], side)
        ]
        parts = covered + rest
    return parts


def _united(intervals: Iterable[Interval]) -> list[Interval]:
    united: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def _clipped(intervals: list[Interval], window: Interval) -> list[Interval]:
    clipped = [(max(start, window[0]), min(end, window[1])) for start, end in intervals]
    return [(start, end) for start, end in clipped if start < end]


def _between(busy: list[Interval], window: Interval) -> list[Interval]:
    edges = [window[0], *(edge for interval in busy for edge in interval), window[1]]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _total(intervals: list[Interval]) -> int:
    return sum(end - start for start, end in intervals)
