"""Rows of both sides in pairs: kernels, copies, collectives, findings, gap groups, numbers of operations, and figures
of launches and utilization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison import facts
from nsysdiag.comparison.sides import LENGTH, Capture, Columns, holds, mean_count, mean_operations
from nsysdiag.comparison.significance import LEAST_CHANGE
from nsysdiag.diagnosis.facts import KERNELS as OF_KERNELS
from nsysdiag.fields import value_at
from nsysdiag.findings.facts import Finding
from nsysdiag.gap_groups.groups import MOST
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.report import DeviceReport, SignatureRow

MOST_KERNELS, MOST_GROUPS, EDGES = 60, 60, 2
LEAST_OF_PARTS = 0.1
"""Of the operations: parts of steps that differ by less hold other ends of them, not another workload."""
GRAPH = "graph"
Plain = Callable[[int, int], facts.Change]
"""Makes the change of a time of which only both means are known."""


def status(before: object, after: object) -> str:
    """Whether a row is there on both sides, after alone or before alone."""
    return facts.BOTH if before and after else facts.ADDED if after else facts.GONE


def seen_status(before: Sequence[Capture], after: Sequence[Capture], one: object, two: object) -> str:
    """The status of a row of kernels. One that a side lacks is only not recorded if that side has graphs that were
    recorded as wholes: it may run in them."""
    if not two and in_wholes(after):
        return facts.UNSEEN_AFTER
    return facts.UNSEEN_BEFORE if not one and in_wholes(before) else status(one, two)


def in_wholes(side: Sequence[Capture]) -> bool:
    """Has a capture graphs that were recorded as wholes, without their kernels?"""
    return any(capture.device.ops.graph for capture in side)


def unjudged(change: facts.Change) -> facts.Change:
    """The change without a verdict."""
    return replace(change, low_ns=None, high_ns=None, verdict=facts.UNKNOWN)


class _RowSum(Struct):
    """Rows of one key over the captures of a side, which hold so many `units` of work; `extra` are bytes or exposed
    ns. `row` is the first of them, None if there is none."""

    units: float
    row: object = None
    count: int = 0
    ns: int = 0
    extra: int = 0

    def per_unit(self) -> tuple[float, int, int]:
        """Count, ns and extra for a unit of work."""
        return round(self.count / self.units, 3), round(self.ns / self.units), round(self.extra / self.units)


Added = tuple[Any, object, int, int, int]
"""The key of a row, the row, and what is added up of it: count, ns and extra."""


def _joined(
    before: Sequence[Capture], after: Sequence[Capture], rows: Callable[[DeviceReport], Iterable[Added]]
) -> dict[Any, tuple[_RowSum, _RowSum]]:
    """The rows of both sides by key, those before first."""
    units = [max(sum(capture.units for capture in side), 1e-9) for side in (before, after)]
    found: dict[Any, tuple[_RowSum, _RowSum]] = {}
    for at, side in enumerate((before, after)):
        for key, row, count, ns, extra in (added for capture in side for added in rows(capture.device)):
            mine = found.setdefault(key, (_RowSum(units[0]), _RowSum(units[1])))[at]
            mine.row = mine.row or row
            mine.count, mine.ns, mine.extra = mine.count + count, mine.ns + ns, mine.extra + extra
    return found


def kernel_times(before: Sequence[Capture], after: Sequence[Capture]) -> dict[Hashable, tuple[Columns, Columns]]:
    """The columns of kernels, by name, whose times are known for each unit of work wherever they ran."""
    sides = [
        [{_kernel_key(row): f"kernel.{at}" for at, row in enumerate(capture.device.kernels)} for capture in side]
        for side in (before, after)
    ]
    found: dict[Hashable, tuple[Columns, Columns]] = {}
    for key in dict.fromkeys(key for side in sides for names in side for key in names):
        one, two = ([[names[key]] if key in names else [] for names in side] for side in sides)
        if all(holds(rows, side, complete=[True] * len(side)) for rows, side in ((one, before), (two, after))):
            found[key] = (one, two)
    return found


def _kernel_key(row: KernelRow) -> tuple[str, bool]:
    return row.name, row.communication


def kernel_changes(
    before: Sequence[Capture], after: Sequence[Capture], known: Mapping[Hashable, facts.Change], plain: Plain
) -> list[facts.KernelChange]:
    """All kernels by name, those whose time changed most first. Of `known` ones the interval is known, the change of
    others is made by `plain`."""

    def rows(device: DeviceReport) -> Iterable[Added]:
        return ((_kernel_key(row), row, row.count, row.total_ns, 0) for row in device.kernels)

    wholes = in_wholes(before) or in_wholes(after)
    found = []
    for key, (one, two) in _joined(before, after, rows).items():
        row = two.row or one.row
        assert isinstance(row, KernelRow)
        (count, ns, _), (count_after, ns_after, _) = one.per_unit(), two.per_unit()
        change = known.get(key) or plain(ns, ns_after)
        # Of a kernel that graphs may run, too, the time is known only if it runs as often outside of them.
        hidden = wholes and abs(count_after - count) > LEAST_CHANGE * max(count, count_after)
        found.append(
            facts.KernelChange(
                name=row.name,
                short_name=row.short_name,
                communication=row.communication,
                status=seen_status(before, after, one.row, two.row),
                count_before=count,
                count_after=count_after,
                mean_before_ns=one.ns // max(one.count, 1),
                mean_after_ns=two.ns // max(two.count, 1),
                change=unjudged(change) if hidden else change,
            )
        )
    found.sort(key=lambda each: (-abs(each.change.change_ns), -each.change.before_ns, each.name, each.communication))
    return found


def copy_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.CopyChange]:
    """Copies and sets by operation and memory, those with most time first."""

    def rows(device: DeviceReport) -> Iterable[Added]:
        for row in device.copies.rows:
            yield (row.operation, row.src, row.dst), row, row.count, row.total_ns, row.bytes

    found = []
    for (operation, src, dst), sides in _joined(before, after, rows).items():
        (count, ns, size), (count_after, ns_after, size_after) = (side.per_unit() for side in sides)
        found.append(facts.CopyChange(operation, src, dst, count, count_after, size, size_after, ns, ns_after))
    return sorted(
        found, key=lambda row: (-max(row.before_ns, row.after_ns), row.operation, row.src or "", row.dst or "")
    )


def collective_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.CollectiveChange]:
    """Collectives by kind, those with most time first."""

    def rows(device: DeviceReport) -> Iterable[Added]:
        return ((row.kind, row, row.count, row.total_ns, row.exposed_ns) for row in device.communication.kinds)

    found = []
    for kind, sides in _joined(before, after, rows).items():
        (count, ns, exposed), (count_after, ns_after, exposed_after) = (side.per_unit() for side in sides)
        found.append(facts.CollectiveChange(str(kind), count, count_after, ns, ns_after, exposed, exposed_after))
    return sorted(found, key=lambda row: (-max(row.before_ns, row.after_ns), row.kind))


def workload(
    before: Sequence[Capture], after: Sequence[Capture], *, part_of_step: bool = False
) -> list[facts.CountChange]:
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
            found.append(facts.CountChange(id=kind, before=round(one, 3), after=round(two, 3), changed=changed))
    return found


def finding_changes(
    before: Sequence[Capture], after: Sequence[Capture], pooled: Collection[str] = ()
) -> list[facts.FindingChange]:
    """Findings of the device by id, those that cost most first. Those of causes in `pooled` are not compared: one that
    is missing may be hidden by another capture. Nor are those of kernels that a side has not recorded."""
    left, right = _findings(before), _findings(after)
    found = []
    for key in dict.fromkeys([*left, *right]):
        (one, lost), (two, lost_after) = (side.get(key, (None, 0.0)) for side in (left, right))
        shown = two or one
        assert shown is not None
        seen = seen_status(before, after, one, two) if shown.bottleneck in OF_KERNELS else status(one, two)
        found.append(
            facts.FindingChange(
                id=key,
                title=shown.title,
                cause=shown.cause,
                status=facts.NOT_COMPARED if shown.cause in pooled else seen,
                severity_before=one.severity if one else None,
                severity_after=two.severity if two else None,
                before_ns=round(lost),
                after_ns=round(lost_after),
            )
        )
    return sorted(found, key=lambda row: (-max(row.before_ns, row.after_ns), row.id))


def _findings(captures: Sequence[Capture]) -> dict[str, tuple[Finding | None, float]]:
    """The findings of a side by id, with the ns that each costs in a unit of work."""
    found: dict[str, tuple[Finding | None, float]] = {}
    units = sum(capture.units for capture in captures)
    for capture in captures:
        for finding in capture.report.findings:
            if finding.device == capture.device.key:
                known, ns = found.get(finding.id, (finding, 0.0))
                found[finding.id] = (known, ns + finding.lost_ns / units)
    return found


def _found_idle(device: DeviceReport) -> float | None:
    launch = device.launch
    return launch.found_device_idle / launch.launched_ops if launch.launched_ops else None


def _overlapped(device: DeviceReport) -> float | None:
    total = device.overlapped_comm_ns + device.exposed_comm_ns
    return device.overlapped_comm_ns / total if total else None


NS, SHARE, COUNT = "ns", "share", "count"
Metric = tuple[str, str, str, str | Callable[[DeviceReport], float | None]]
"""The id, title and unit of a figure, and the path of its field in a device, or what reads it."""
LAUNCHES: list[Metric] = [
    ("call_p50", "Launch call, median", NS, "launch.call.p50_ns"),
    ("interval_p50", "Time between launching calls, median", NS, "launch.median_interval_ns"),
    ("kernel_p50", "Kernel, median", NS, "launch.median_kernel_ns"),
    ("queue_delay_p50", "Time in the queue, median", NS, "launch.median_queue_delay_ns"),
    ("found_idle", "Launches that found the device idle", SHARE, _found_idle),
    ("queue_depth_mean", "Operations that the host is ahead, mean", COUNT, "launch.queue_depth.mean"),
]
UTILIZATION: list[Metric] = [
    ("util_time_share", "Utilization by time", SHARE, "utilization.util_time_share"),
    ("util_period_share", "Utilization by polling", SHARE, "utilization.util_period_share"),
    ("busy", "Busy", SHARE, lambda device: device.busy_ns / device.window_ns),
    ("compute", "Computing", SHARE, lambda device: device.compute_ns / device.window_ns),
    ("sm_active", "SM activity", SHARE, "utilization.sm_active_share"),
    ("overlapped_comm", "Communication overlapped by compute", SHARE, _overlapped),
    ("coverage", "Idle time with evidence", SHARE, "coverage"),
]


def launch_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.MetricChange]:
    """Launches: how many, how long, how far ahead of the device."""
    calls = [round(mean_count(side, [each.device.launch.calls for each in side]), 6) for side in (before, after)]
    count = facts.MetricChange(id="calls", title="Launching calls", unit=COUNT, before=calls[0], after=calls[1])
    return [count, *(_metric(before, after, *each) for each in LAUNCHES)]


def utilization_metrics(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.MetricChange]:
    """What dashboards say, and what the GPU did."""
    return [_metric(before, after, *each) for each in UTILIZATION]


def _metric(
    before: Sequence[Capture],
    after: Sequence[Capture],
    id: str,
    title: str,
    unit: str,
    read: str | Callable[[DeviceReport], float | None],
) -> facts.MetricChange:
    """The mean over the captures of each side; None if one of them cannot tell."""
    means: list[float | None] = []
    for side in (before, after):
        values = [value_at(each.device, read) if isinstance(read, str) else read(each.device) for each in side]
        known = [value for value in values if value is not None]
        means.append(round(sum(known) / len(known), 6) if len(known) == len(values) else None)
    return facts.MetricChange(id=id, title=title, unit=unit, before=means[0], after=means[1])


# Gaps at one place of the program, before and after: whether they are there, and by which cause.

Place = tuple[str, str, tuple[str, ...]]
"""Where in the program: between the same operations, in the same NVTX range."""


class _GapKind(Struct):
    """A gap group with one cause: its row, its count and ns per unit of work, and its columns in each capture of the
    side."""

    row: SignatureRow
    columns: Columns
    count: float = 0.0
    ns: float = 0.0


Kinds = dict[str, _GapKind]
"""By largest cause."""
GapPair = tuple[Place, str | None, str | None]
"""Gaps at a place by their cause before and their cause after, None for a side without any."""


class GapGroupTable(Struct, frozen=True):
    """The gaps of a side by place, over all its captures; causes that are compared as one are one."""

    captures: Sequence[Capture]
    places: dict[Place, Kinds]

    def kind(self, place: Place, cause: str | None) -> _GapKind | None:
        """The gaps of a cause at a place."""
        return self.places.get(place, {}).get(cause or "")

    def columns(self, place: Place, cause: str | None) -> Columns | None:
        """The columns of the gaps of a cause in each capture; None if their time per unit of work is unknown, as the
        list of a report may be cut."""
        kind = self.kind(place, cause)
        columns: Columns = kind.columns if kind else [[] for _capture in self.captures]
        complete = [len(capture.device.signatures) < MOST for capture in self.captures]
        return columns if holds(columns, self.captures, complete=complete) else None


def gaps_of(captures: Sequence[Capture], pooled: Collection[str]) -> GapGroupTable:
    """The gaps of a side; causes in `pooled` are one."""
    found: dict[Place, Kinds] = defaultdict(dict)
    for number, capture in enumerate(captures):
        for at, row in enumerate(capture.device.signatures):
            cause = facts.NOT_COMPARED if row.cause in pooled else row.cause
            place = row.previous_op, row.next_op, tuple(row.nvtx)
            kind = found[place].setdefault(cause, _GapKind(row, [[] for _capture in captures]))
            kind.columns[number].append(f"signature.{at}")
            kind.count += row.count / capture.units / len(captures)
            kind.ns += _gap_ns(capture, row) / len(captures)
    return GapGroupTable(captures, dict(found))


def _gap_ns(capture: Capture, row: SignatureRow) -> float:
    """Its time for a unit of work: in the steady iterations if there are some."""
    if row.per_iteration_ns is None or capture.entries == 1:
        return row.total_ns / capture.units
    return row.per_iteration_ns / capture.fold


def gap_times(before: GapGroupTable, after: GapGroupTable) -> dict[Hashable, tuple[Columns, Columns]]:
    """The columns of the gaps whose times are known for each unit of work."""
    found: dict[Hashable, tuple[Columns, Columns]] = {}
    for place, left, right in _gap_pairs(before, after):
        one, two = before.columns(place, left), after.columns(place, right)
        if one is not None and two is not None:
            found[place, left, right] = (one, two)
    return found


def gap_group_changes(
    before: GapGroupTable, after: GapGroupTable, known: Mapping[Hashable, facts.Change], plain: Plain
) -> list[facts.SignatureChange]:
    """Gaps by place, those whose time changed most first. At each place the causes of both sides that have no like on
    the other one are one that was recaused. Of `known` ones the interval is known, the change of others is made
    by `plain`."""
    found = []
    for pair in _gap_pairs(before, after):
        place, *causes = pair
        one, two = before.kind(place, causes[0]), after.kind(place, causes[1])
        shown = two or one
        assert shown is not None
        seen = seen_status(before.captures, after.captures, one, two)
        change = known.get(pair) or plain(round(one.ns) if one else 0, round(two.ns) if two else 0)
        found.append(
            facts.SignatureChange(
                id=shown.row.id,
                status=facts.RECAUSED if one and two and causes[0] != causes[1] else seen,
                previous_op=place[0],
                next_op=place[1],
                nvtx=list(place[2]),
                cause_before=causes[0],
                cause_after=causes[1],
                count_before=round(one.count, 3) if one else 0.0,
                count_after=round(two.count, 3) if two else 0.0,
                change=unjudged(change) if seen in facts.UNSEEN else change,
            )
        )
    found.sort(key=lambda row: (-abs(row.change.change_ns), -row.change.before_ns, row.id))
    return found[:MOST_GROUPS]


def _gap_pairs(before: GapGroupTable, after: GapGroupTable) -> Iterable[GapPair]:
    """Which cause before is which after: the same one, or the largest of those that are left."""
    for place in dict.fromkeys([*before.places, *after.places]):
        left, right = before.places.get(place, {}), after.places.get(place, {})
        yield from ((place, cause, cause) for cause in left if cause in right)
        gone, came = (
            sorted((cause for cause in mine if cause not in other), key=lambda cause: (-mine[cause].ns, cause))
            for mine, other in ((left, right), (right, left))
        )
        yield from ((place, *causes) for causes in zip_longest(gone, came))


def cut_notes(captures: Sequence[Capture]) -> list[str]:
    """The note if a report had more gap groups than it keeps."""
    if all(len(capture.device.signatures) < MOST for capture in captures):
        return []
    return [
        f"A report keeps the {MOST} gap groups with most idle time. A new or missing group may be below them on the "
        "other side."
    ]


def recaused(before: GapGroupTable, after: GapGroupTable) -> dict[tuple[str, str], float]:
    """How much time of gaps at one place of the program changed from one largest cause to another, for a unit of
    work."""
    left, right = before.places, after.places
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for place in [each for each in left if each in right]:  # in order: sums of fractions depend on it
        lost, won = _less(left[place], right[place]), _less(right[place], left[place])
        most = max(sum(lost.values()), sum(won.values()))
        for one, gone in lost.items():
            for two, came in won.items():
                found[one, two] += gone * came / most
    return dict(sorted(found.items()))


def _less(kinds: Kinds, other: Kinds) -> dict[str, float]:
    """By how much each has more time here than on the other side, of those that do."""
    less = {cause: kind.ns - (other[cause].ns if cause in other else 0.0) for cause, kind in sorted(kinds.items())}
    return {cause: ns for cause, ns in less.items() if ns > 0}
