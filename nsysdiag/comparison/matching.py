"""Rows of both sides in pairs: kernels, copies, collectives, findings, numbers of operations, and of launches
and utilization."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.facts import (
    Change,
    CollectiveChange,
    CopyChange,
    CountChange,
    FindingChange,
    KernelChange,
    MetricChange,
)
from nsysdiag.comparison.pairing import NOT_COMPARED
from nsysdiag.comparison.side import LENGTH, Capture, Quantity, holds, mean_count, mean_operations
from nsysdiag.comparison.waterfall import LEAST_CHANGE, UNKNOWN
from nsysdiag.diagnosis.facts import KERNELS as OF_KERNELS
from nsysdiag.findings.facts import Finding
from nsysdiag.kernels.facts import CollectiveKind, KernelRow
from nsysdiag.memory.facts import CopyRow
from nsysdiag.report import DeviceReport

BOTH, ADDED, GONE = "both", "added", "gone"
UNSEEN_BEFORE, UNSEEN_AFTER = "unrecorded_before", "unrecorded_after"
MOST_KERNELS, EDGES = 60, 2
LEAST_OF_PARTS = 0.1
"""Of the operations: parts of steps that differ by less hold other ends of them, not another workload."""
GRAPH = "graph"
Row = TypeVar("Row")


def status(before: object, after: object) -> str:
    """Whether a row is there on both sides, after alone or before alone."""
    return BOTH if before and after else ADDED if after else GONE


def seen_status(before: Sequence[Capture], after: Sequence[Capture], one: object, two: object) -> str:
    """The status of a row of kernels. One that a side has not is only not recorded if that side has graphs that were
    recorded as wholes: it may run in them."""
    if not two and in_wholes(after):
        return UNSEEN_AFTER
    return UNSEEN_BEFORE if not one and in_wholes(before) else status(one, two)


def in_wholes(side: Sequence[Capture]) -> bool:
    """Has a capture graphs that were recorded as wholes, without their kernels?"""
    return any(capture.device.ops.graph for capture in side)


def unjudged(change: Change) -> Change:
    """The change without a verdict."""
    return replace(change, low_ns=None, high_ns=None, verdict=UNKNOWN)


def kernel_times(before: Sequence[Capture], after: Sequence[Capture]) -> dict[Hashable, Quantity]:
    """The kernels, by name, whose times are known for each unit of work wherever they ran."""
    sides = [
        [{_kernel_key(row): f"kernel.{at}" for at, row in enumerate(capture.device.kernels)} for capture in side]
        for side in (before, after)
    ]
    found: dict[Hashable, Quantity] = {}
    for key in dict.fromkeys(key for side in sides for names in side for key in names):
        one, two = ([[names[key]] if key in names else [] for names in side] for side in sides)
        if all(holds(rows, side, complete=[True] * len(side)) for rows, side in ((one, before), (two, after))):
            found[key] = Quantity(one, two)
    return found


def kernel_changes(
    before: Sequence[Capture],
    after: Sequence[Capture],
    known: Mapping[Hashable, Change],
    plain: Callable[[int, int], Change],
) -> list[KernelChange]:
    """All kernels by name, those whose time changed most first. Of `known` ones the interval is known, the change of
    others is made by `plain`."""

    def rows(capture: Capture) -> Iterable[tuple[KernelRow, int, int, int]]:
        return ((row, row.count, row.total_ns, 0) for row in capture.device.kernels)

    left, right = _added(before, rows, _kernel_key), _added(after, rows, _kernel_key)
    wholes = in_wholes(before) or in_wholes(after)
    found = []
    for key in dict.fromkeys([*left, *right]):
        one, two = left.get(key, _RowSum()), right.get(key, _RowSum())
        row = two.row or one.row
        assert isinstance(row, KernelRow)
        counts = _count_per_unit(before, one.count), _count_per_unit(after, two.count)
        change = known.get(key) or plain(_per_unit(before, one.ns), _per_unit(after, two.ns))
        # Of a kernel that graphs may run, too, the time is known only if it runs as often outside of them.
        hidden = wholes and abs(counts[1] - counts[0]) > LEAST_CHANGE * max(counts)
        found.append(
            KernelChange(
                name=row.name,
                short_name=row.short_name,
                communication=row.communication,
                status=seen_status(before, after, one.row, two.row),
                count_before=counts[0],
                count_after=counts[1],
                mean_before_ns=one.ns // max(one.count, 1),
                mean_after_ns=two.ns // max(two.count, 1),
                change=unjudged(change) if hidden else change,
            )
        )
    found.sort(key=lambda each: (-abs(each.change.change_ns), -each.change.before_ns, each.name, each.communication))
    return found


class _RowSum(Struct):
    """Rows of one key over the captures of a side."""

    row: object = None
    count: int = 0
    ns: int = 0
    extra: int = 0


def _added(
    captures: Sequence[Capture],
    rows: Callable[[Capture], Iterable[tuple[Row, int, int, int]]],
    key: Callable[[Row], Hashable],
) -> dict[Hashable, _RowSum]:
    found: dict[Hashable, _RowSum] = {}
    for capture in captures:
        for row, count, ns, extra in rows(capture):
            mine = found.setdefault(key(row), _RowSum(row))
            mine.count, mine.ns, mine.extra = mine.count + count, mine.ns + ns, mine.extra + extra
    return found


def _kernel_key(row: KernelRow) -> tuple[str, bool]:
    return row.name, row.communication


def _per_unit(captures: Sequence[Capture], ns: int) -> int:
    return round(mean_count(captures, [ns]))


def _count_per_unit(captures: Sequence[Capture], count: int) -> float:
    return round(mean_count(captures, [count]), 3)


def copy_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[CopyChange]:
    """Copies and sets by operation and memory, those with most time first."""

    def rows(capture: Capture) -> Iterable[tuple[CopyRow, int, int, int]]:
        return ((row, row.count, row.total_ns, row.bytes) for row in capture.device.copies.rows)

    def key(row: CopyRow) -> Hashable:
        return row.operation, row.src, row.dst

    left, right = _added(before, rows, key), _added(after, rows, key)
    found = []
    for each in dict.fromkeys([*left, *right]):
        one, two = left.get(each, _RowSum()), right.get(each, _RowSum())
        row = one.row or two.row
        assert isinstance(row, CopyRow)
        found.append(
            CopyChange(
                operation=row.operation,
                src=row.src,
                dst=row.dst,
                count_before=_count_per_unit(before, one.count),
                count_after=_count_per_unit(after, two.count),
                bytes_before=_per_unit(before, one.extra),
                bytes_after=_per_unit(after, two.extra),
                before_ns=_per_unit(before, one.ns),
                after_ns=_per_unit(after, two.ns),
            )
        )
    return sorted(
        found, key=lambda row: (-max(row.before_ns, row.after_ns), row.operation, row.src or "", row.dst or "")
    )


def collective_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[CollectiveChange]:
    """Collectives by kind, those with most time first."""

    def rows(capture: Capture) -> Iterable[tuple[CollectiveKind, int, int, int]]:
        return ((row, row.count, row.total_ns, row.exposed_ns) for row in capture.device.communication.kinds)

    left, right = (_added(side, rows, lambda row: row.kind) for side in (before, after))
    found = []
    for kind in dict.fromkeys([*left, *right]):
        one, two = left.get(kind, _RowSum()), right.get(kind, _RowSum())
        found.append(
            CollectiveChange(
                kind=str(kind),
                count_before=_count_per_unit(before, one.count),
                count_after=_count_per_unit(after, two.count),
                before_ns=_per_unit(before, one.ns),
                after_ns=_per_unit(after, two.ns),
                exposed_before_ns=_per_unit(before, one.extra),
                exposed_after_ns=_per_unit(after, two.extra),
            )
        )
    return sorted(found, key=lambda row: (-max(row.before_ns, row.after_ns), row.kind))


def workload(before: Sequence[Capture], after: Sequence[Capture], *, part_of_step: bool = False) -> list[CountChange]:
    """Operations by kind, for a unit of work: other counts are another workload, or a fix that launches less. The first
    and the last unit of a side may have lost one each to their neighbours, and parts of steps begin anywhere."""
    entries = [sum(len(capture.table[LENGTH]) for capture in side) for side in (before, after)]
    share = LEAST_OF_PARTS if part_of_step else LEAST_CHANGE
    found = []
    for kind in ("kernel", "memcpy", "memset", GRAPH):
        one, two = (mean_operations(side, kind) for side in (before, after))
        if one or two:
            least = max(share * max(one, two), EDGES / min(entries) if min(entries) > 1 else 0.0)
            changed = abs(two - one) > least
            found.append(CountChange(id=kind, before=round(one, 3), after=round(two, 3), changed=changed))
    return found


def finding_changes(
    before: Sequence[Capture], after: Sequence[Capture], pooled: Collection[str] = ()
) -> list[FindingChange]:
    """Findings of the device by id, those that cost most first. Those of causes in `pooled` are not compared: one that
    is missing may be hidden by another capture. Nor are those of kernels that a side has not recorded."""
    left, right = _findings(before), _findings(after)
    found = []
    for key in dict.fromkeys([*left, *right]):
        one, two = left.get(key), right.get(key)
        shown = two or one
        assert shown is not None
        seen = seen_status(before, after, one, two) if shown[0].bottleneck in OF_KERNELS else status(one, two)
        found.append(
            FindingChange(
                id=key,
                title=shown[0].title,
                cause=shown[0].cause,
                status=NOT_COMPARED if shown[0].cause in pooled else seen,
                severity_before=one[0].severity if one else None,
                severity_after=two[0].severity if two else None,
                before_ns=round(one[1]) if one else 0,
                after_ns=round(two[1]) if two else 0,
            )
        )
    return sorted(found, key=lambda row: (-max(row.before_ns, row.after_ns), row.id))


def _findings(captures: Sequence[Capture]) -> dict[str, tuple[Finding, float]]:
    found: dict[str, tuple[Finding, float]] = {}
    units = sum(capture.units for capture in captures)
    for capture in captures:
        for finding in capture.report.findings:
            if finding.device == capture.device.key:
                known, ns = found.get(finding.id, (finding, 0.0))
                found[finding.id] = (known, ns + finding.lost_ns / units)
    return found


NS, SHARE, COUNT = "ns", "share", "count"
Read = Callable[[DeviceReport], float | None]


def launch_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[MetricChange]:
    """Launches: how many, how long, how far ahead of the device."""
    calls = [mean_count(side, [capture.device.launch.calls for capture in side]) for side in (before, after)]
    found = [
        MetricChange(
            id="calls", title="Launching calls", unit=COUNT, before=round(calls[0], 6), after=round(calls[1], 6)
        )
    ]
    rows: list[tuple[str, str, str, Read]] = [
        ("call_p50", "Launch call, median", NS, _median_call),
        ("interval_p50", "Time between launching calls, median", NS, lambda device: device.launch.median_interval_ns),
        ("kernel_p50", "Kernel, median", NS, lambda device: device.launch.median_kernel_ns),
        ("queue_delay_p50", "Time in the queue, median", NS, lambda device: device.launch.median_queue_delay_ns),
        ("found_idle", "Launches that found the device idle", SHARE, _found_idle),
        ("queue_depth_mean", "Operations that the host is ahead, mean", COUNT, _queue_depth),
    ]
    return found + [_metric(before, after, *row) for row in rows]


def utilization_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[MetricChange]:
    """What dashboards say, and what the GPU did."""
    rows: list[tuple[str, str, str, Read]] = [
        ("util_time_share", "Utilization by time", SHARE, lambda device: device.utilization.util_time_share),
        ("util_period_share", "Utilization by polling", SHARE, lambda device: device.utilization.util_period_share),
        ("busy", "Busy", SHARE, lambda device: device.busy_ns / device.window_ns),
        ("compute", "Computing", SHARE, lambda device: device.compute_ns / device.window_ns),
        ("sm_active", "SM activity", SHARE, lambda device: device.utilization.sm_active_share),
        ("overlapped_comm", "Communication overlapped by compute", SHARE, _overlapped),
        ("coverage", "Idle time with evidence", SHARE, lambda device: device.coverage),
    ]
    return [_metric(before, after, *row) for row in rows]


def _metric(
    before: Sequence[Capture], after: Sequence[Capture], id: str, title: str, unit: str, read: Read
) -> MetricChange:
    """The mean over the captures of each side; None where one of them cannot tell."""
    means: list[float | None] = []
    for side in (before, after):
        values = [read(capture.device) for capture in side]
        known = [value for value in values if value is not None]
        means.append(round(sum(known) / len(known), 6) if len(known) == len(values) else None)
    return MetricChange(id=id, title=title, unit=unit, before=means[0], after=means[1])


def _median_call(device: DeviceReport) -> int | None:
    return device.launch.call.p50_ns if device.launch.call is not None else None


def _found_idle(device: DeviceReport) -> float | None:
    launch = device.launch
    return launch.found_device_idle / launch.launched_ops if launch.launched_ops else None


def _queue_depth(device: DeviceReport) -> float | None:
    return device.launch.queue_depth.mean if device.launch.queue_depth is not None else None


def _overlapped(device: DeviceReport) -> float | None:
    total = device.overlapped_comm_ns + device.exposed_comm_ns
    return device.overlapped_comm_ns / total if total else None
