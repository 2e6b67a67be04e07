"""Rows of both sides in pairs: kernels, copies, collectives, findings, gap groups, numbers of operations, and figures
of launches and utilization."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison import facts
from nsysdiag.comparison.sides import LENGTH, Capture, mean_count, mean_operations
from nsysdiag.comparison.significance import LEAST_CHANGE
from nsysdiag.diagnosis.facts import KERNELS as OF_KERNELS
from nsysdiag.fields import value_at
from nsysdiag.gap_groups.groups import MOST
from nsysdiag.report import DeviceReport, SignatureRow

MOST_KERNELS, MOST_GROUPS, EDGES = 60, 60, 2
"""Kernels and gap groups that a comparison keeps, the largest changes first: they bound its size. EDGES is 2 as a side
has a first and a last unit: each may have lost an operation to a neighbour."""
LEAST_OF_PARTS = 0.1
"""Of the operations: parts of steps that differ by less hold other ends of them, not another workload."""
GRAPH = "graph"
Plain = Callable[[int, int], facts.Change]
"""Makes the change of a time of which only both means are known."""
Columns = list[list[str]]
"""For each capture of a side the columns that add up to a time of a kernel or of gaps; none if the capture lacks it."""
Pair = tuple[Any, Any]
"""The keys of a row before and after, None for a side without it."""
Times = dict[Hashable, tuple[Columns, Columns]]
"""The columns of both sides, by pair."""
Added = Iterable[tuple[Any, ...]]
"""Rows of a capture: the key of each, the row, and numbers to add up."""


class RowSum(Struct):
    """Rows of one key over the captures of a side: the first of them, their columns in each capture, and sums."""

    row: Any
    columns: Columns
    sums: list[float]


class SideRows(Struct, frozen=True):
    """The rows of a side by key, over all its captures; whether the list of each capture is `complete`, or cut."""

    captures: Sequence[Capture]
    rows: dict[Any, RowSum]
    complete: list[bool]

    @property
    def in_wholes(self) -> bool:
        """Whether a capture has graphs that were recorded as wholes, without their kernels."""
        return any(capture.device.ops.graph for capture in self.captures)

    def columns(self, key: Hashable) -> Columns | None:
        """None if a capture does not hold the time for each unit of work. One without the row spent none, provided that
        its list is complete."""
        columns: Columns = self.rows[key].columns if key in self.rows else [[] for _capture in self.captures]
        known = (
            all(name in capture.table for name in names) if names else whole
            for names, capture, whole in zip(columns, self.captures, self.complete, strict=True)
        )
        return columns if all(known) else None

    def per_unit(self, row: RowSum) -> list[Any]:
        """Its sums for a unit of work: the first is a count, the others are whole numbers."""
        return [round(mean_count(self.captures, [each]), None if at else 3) for at, each in enumerate(row.sums)]


class RowPairs(Struct, frozen=True):
    """The rows of both sides, and which of them belong together."""

    before: SideRows
    after: SideRows
    pairs: list[Pair]

    def __iter__(self) -> Iterator[tuple[Pair, RowSum, RowSum]]:
        """Each pair of keys with the rows of both sides. That of a side without it has no row, and sums of 0."""
        for pair in self.pairs:
            one, two = self.before.rows.get(pair[0]), self.after.rows.get(pair[1])
            nothing = RowSum(None, [], [0] * max(len(each.sums) for each in (one, two) if each))
            yield pair, one or nothing, two or nothing

    def times(self) -> Times:
        """The columns of those whose times are known for each unit of work."""
        found = {pair: (self.before.columns(pair[0]), self.after.columns(pair[1])) for pair in self.pairs}
        return {pair: (one, two) for pair, (one, two) in found.items() if one is not None and two is not None}

    def per_unit(self, one: RowSum, two: RowSum) -> list[Any]:
        """The sums of a pair for a unit of work, each before and after."""
        return [each for both in zip(self.before.per_unit(one), self.after.per_unit(two), strict=True) for each in both]

    def seen(self, one: object, two: object) -> str:
        """The status of rows of kernels. What a side lacks is only not recorded if that side has graphs that were
        recorded as wholes: it may run in them."""
        if not two and self.after.in_wholes:
            return facts.UNSEEN_AFTER
        return facts.UNSEEN_BEFORE if not one and self.before.in_wholes else status(one, two)


def status(before: object, after: object) -> str:
    """Whether a row is there on both sides, after alone or before alone."""
    return facts.BOTH if before and after else facts.ADDED if after else facts.GONE


def _added_up(captures: Sequence[Capture], rows: Callable[[Capture], Added], name: str = "", most: int = 0) -> SideRows:
    """`name` is that of the columns of rows, `most` how many a report keeps of them if it does not keep all."""
    found: dict[Any, RowSum] = {}
    counts = [0] * len(captures)
    for number, capture in enumerate(captures):
        for at, (key, row, *values) in enumerate(rows(capture)):
            mine = found.setdefault(key, RowSum(row, [[] for _capture in captures], [0] * len(values)))
            mine.columns[number].append(f"{name}.{at}")
            mine.sums = [each + value for each, value in zip(mine.sums, values, strict=True)]
            counts[number] += 1
    return SideRows(captures, found, [not most or count < most for count in counts])


def _by_key(
    before: Sequence[Capture], after: Sequence[Capture], rows: Callable[[Capture], Added], name: str = ""
) -> RowPairs:
    """Rows whose keys are the same on both sides."""
    one, two = _added_up(before, rows, name), _added_up(after, rows, name)
    return RowPairs(one, two, [(key, key) for key in {**one.rows, **two.rows}])


def unjudged(change: facts.Change) -> facts.Change:
    """The change without a verdict."""
    return replace(change, low_ns=None, high_ns=None, verdict=facts.UNKNOWN)


def kernels_of(before: Sequence[Capture], after: Sequence[Capture]) -> RowPairs:
    """Kernels by name: how often each ran, and its ns."""

    def rows(capture: Capture) -> Added:
        return (((row.name, row.communication), row, row.count, row.total_ns) for row in capture.device.kernels)

    return _by_key(before, after, rows, "kernel")


def kernel_changes(kernels: RowPairs, known: Mapping[Hashable, facts.Change], plain: Plain) -> list[facts.KernelChange]:
    """All kernels by name, those whose time changed most first. Of `known` ones the interval is known, the change of
    others is made by `plain`."""
    wholes, found = kernels.before.in_wholes or kernels.after.in_wholes, []
    for pair, one, two in kernels:
        row = two.row or one.row
        count, count_after, ns, ns_after = kernels.per_unit(one, two)
        change = known.get(pair) or plain(ns, ns_after)
        # Of a kernel that graphs may run, too, the time is known only if it runs as often outside of them.
        hidden = wholes and abs(count_after - count) > LEAST_CHANGE * max(count, count_after)
        found.append(
            facts.KernelChange(
                name=row.name,
                short_name=row.short_name,
                communication=row.communication,
                status=kernels.seen(one.row, two.row),
                count_before=count,
                count_after=count_after,
                mean_before_ns=int(one.sums[1] // max(one.sums[0], 1)),
                mean_after_ns=int(two.sums[1] // max(two.sums[0], 1)),
                change=unjudged(change) if hidden else change,
            )
        )
    found.sort(key=lambda each: (-abs(each.change.change_ns), -each.change.before_ns, each.name, each.communication))
    return found


def copy_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.CopyChange]:
    """Copies and sets by operation and memory, those with most time first."""

    def rows(capture: Capture) -> Added:
        for row in capture.device.copies.rows:
            yield (row.operation, row.src, row.dst), row, row.count, row.bytes, row.total_ns

    pairs = _by_key(before, after, rows)
    found = [facts.CopyChange(*pair[0], *pairs.per_unit(one, two)) for pair, one, two in pairs]
    return sorted(
        found, key=lambda row: (-max(row.before_ns, row.after_ns), row.operation, row.src or "", row.dst or "")
    )


def collective_changes(before: Sequence[Capture], after: Sequence[Capture]) -> list[facts.CollectiveChange]:
    """Collectives by kind, those with most time first."""

    def rows(capture: Capture) -> Added:
        return ((row.kind, row, row.count, row.total_ns, row.exposed_ns) for row in capture.device.communication.kinds)

    pairs = _by_key(before, after, rows)
    found = [facts.CollectiveChange(pair[0], *pairs.per_unit(one, two)) for pair, one, two in pairs]
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

    def of(side: Sequence[Capture]) -> SideRows:
        units = sum(capture.units for capture in side)

        def rows(capture: Capture) -> Added:
            mine = (each for each in capture.report.findings if each.device == capture.device.key)
            return ((each.id, each, each.lost_ns / units) for each in mine)

        return _added_up(side, rows)

    left, right = of(before), of(after)
    pairs, found = RowPairs(left, right, [(id, id) for id in {**left.rows, **right.rows}]), []
    for (id, _id), one, two in pairs:
        shown = two.row or one.row
        seen = (pairs.seen if shown.bottleneck in OF_KERNELS else status)(one.row, two.row)
        found.append(
            facts.FindingChange(
                id=id,
                title=shown.title,
                cause=shown.cause,
                status=facts.NOT_COMPARED if shown.cause in pooled else seen,
                severity_before=one.row.severity if one.row else None,
                severity_after=two.row.severity if two.row else None,
                before_ns=round(one.sums[0]),
                after_ns=round(two.sums[0]),
            )
        )
    return sorted(found, key=lambda row: (-max(row.before_ns, row.after_ns), row.id))


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


def gaps_of(before: Sequence[Capture], after: Sequence[Capture], pooled: Collection[str]) -> RowPairs:
    """Gaps by place and largest cause, causes in `pooled` as one: their count and ns for a unit of work. At a place the
    same cause is the same; of those that are left, the largest before is the largest after."""
    one, two = (_gap_rows(side, pooled) for side in (before, after))
    pairs: list[Pair] = []
    for place, (left, right) in _by_place(one, two).items():
        pairs += [((place, cause), (place, cause)) for cause in left if cause in right]
        gone, came = (
            sorted((cause for cause in mine if cause not in other), key=lambda cause: (-mine[cause], cause))
            for mine, other in ((left, right), (right, left))
        )
        pairs += [(cause and (place, cause), other and (place, other)) for cause, other in zip_longest(gone, came)]
    return RowPairs(one, two, pairs)


def _gap_rows(side: Sequence[Capture], pooled: Collection[str]) -> SideRows:
    def rows(capture: Capture) -> Added:
        for row in capture.device.signatures:
            cause = facts.NOT_COMPARED if row.cause in pooled else row.cause
            place: Place = row.previous_op, row.next_op, tuple(row.nvtx)
            count, ns = row.count / capture.units, _gap_ns(capture, row)
            yield (place, cause), row, count / len(side), ns / len(side)

    return _added_up(side, rows, "signature", MOST)


def _by_place(*sides: SideRows) -> dict[Place, tuple[dict[str, float], dict[str, float]]]:
    """The ns of the gaps of both sides by cause, at each place."""
    found: dict[Place, tuple[dict[str, float], dict[str, float]]] = {}
    for at, side in enumerate(sides):
        for (place, cause), row in side.rows.items():
            found.setdefault(place, ({}, {}))[at][cause] = row.sums[1]
    return found


def _gap_ns(capture: Capture, row: SignatureRow) -> float:
    """Its time for a unit of work: in the steady iterations if there are some."""
    if row.per_iteration_ns is None or capture.entries == 1:
        return row.total_ns / capture.units
    return row.per_iteration_ns / capture.fold


def gap_group_changes(
    gaps: RowPairs, known: Mapping[Hashable, facts.Change], plain: Plain
) -> list[facts.SignatureChange]:
    """Gaps by place, those whose time changed most first. Different causes in one pair are one that was recaused. Of
    `known` pairs the interval is known, the change of others is made by `plain`."""
    found = []
    for pair, one, two in gaps:
        cause, cause_after = (key and key[1] for key in pair)
        (previous, following, nvtx), _cause = pair[1] or pair[0]
        seen = gaps.seen(one.row, two.row)
        change = known.get(pair) or plain(round(one.sums[1]), round(two.sums[1]))
        found.append(
            facts.SignatureChange(
                id=(two.row or one.row).id,
                status=facts.RECAUSED if cause and cause_after and cause != cause_after else seen,
                previous_op=previous,
                next_op=following,
                nvtx=list(nvtx),
                cause_before=cause,
                cause_after=cause_after,
                count_before=round(float(one.sums[0]), 3),
                count_after=round(float(two.sums[0]), 3),
                change=unjudged(change) if seen in facts.UNSEEN else change,
            )
        )
    found.sort(key=lambda row: (-abs(row.change.change_ns), -row.change.before_ns, row.id))
    return found[:MOST_GROUPS]


def cut_notes(captures: Sequence[Capture]) -> list[str]:
    """The note if a report had more gap groups than it keeps."""
    if all(len(capture.device.signatures) < MOST for capture in captures):
        return []
    return [
        f"A report keeps the {MOST} gap groups with most idle time. A new or missing group may be below them on the "
        "other side."
    ]


def recaused(gaps: RowPairs) -> dict[tuple[str, str], float]:
    """How much time of gaps at one place of the program changed from one largest cause to another, for a unit of
    work."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for left, right in _by_place(gaps.before, gaps.after).values():  # in order: sums of fractions depend on it
        if not left or not right:
            continue
        lost, won = _less(left, right), _less(right, left)
        most = max(sum(lost.values()), sum(won.values()))
        for one, gone in lost.items():
            for two, came in won.items():
                found[one, two] += gone * came / most
    return dict(sorted(found.items()))


def _less(times: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By how much each has more time here than on the other side, of those that do."""
    less = {cause: ns - other.get(cause, 0.0) for cause, ns in sorted(times.items())}
    return {cause: ns for cause, ns in less.items() if ns > 0}
