"""Ledgers of iterations: the steady state, slow iterations explained by what they have more than the median one, and
the step without the profiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import column_from, median_of, running_sums, sum_of_each, to_planes, to_text
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, near, place_in, shared, stretches
from nsysdiag.causes.ids import GRAPH_BUILD
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import picked
from nsysdiag.iterations.facts import (
    InnerLoop,
    Iteration,
    IterationKind,
    IterationReport,
    IterationsPacked,
    SlowIteration,
    StepReference,
)
from nsysdiag.iterations.loop import SPREADS, Inner, Loop, SlowOnes, slow_ones, spread_of
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.messages import InputError, UsageError
from nsysdiag.report import DeviceReport, Report
from nsysdiag.time.facts import WORK
from nsysdiag.time.table import TimeTable
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


LEAST_SPREAD = 0.01
"""Of the median iteration: one that deviates by less is usual, however alike the others are. Without it, jitter at the
start of a very regular loop would be its warm-up."""
MOST_ROWS = 200
"""Iterations that a report lists, the longest: a limit on its size. Counts, percentiles and sums are of all steady
ones; what reads the rows has no others."""
MOST_SLOW = 10
"""Slow iterations that a report lists, the longest. Findings take from these what is longer in them; their count and
their extra time are of all."""
MOST_CAUSES = 4
"""Causes and kinds of work that a slow iteration has more of. The fifth largest is at most a fifth of all that
increased."""
MOST_KINDS = 6
"""Kinds of iterations that a report lists, the most frequent: a limit on its size."""
NamedKinds = tuple[IntArray, list[str]]
"""Of each iteration the place of its kind among the names of all."""


class SlowIterations(Struct, frozen=True):
    """The slow iterations, longest first, and when they were. `more` is what each has beyond the median one (ns), by
    work and by cause; negative if it has less."""

    ones: SlowOnes
    spans: Intervals
    more: dict[str, IntArray]

    def among(self, chosen: BoolArray) -> SlowIterations:
        """The chosen ones of them."""
        ones = SlowOnes(self.ones.index[chosen], self.ones.extra[chosen], self.ones.count)
        return SlowIterations(ones, self.spans[chosen], {name: ns[chosen] for name, ns in self.more.items()})

    def told_by(self, report: IterationReport) -> IterationReport:
        """The report with these as its slow iterations."""
        return replace(
            report,
            slow=[self._slow(at) for at in range(min(len(self.spans), MOST_SLOW))],
            slow_count=len(self.spans),
            slow_extra_ns=int(self.ones.extra.sum()),
            slow_period=self.ones.period,
        )

    def _slow(self, at: int) -> SlowIteration:
        """One of them, with what it has more of, most first."""
        more = {name: int(ns[at]) for name, ns in self.more.items() if ns[at] > 0}
        most = dict(sorted(more.items(), key=lambda item: (-item[1], item[0]))[:MOST_CAUSES])
        return SlowIteration(index=int(self.ones.index[at]), extra_ns=int(self.ones.extra[at]), more=most)


class DeviceIterations(Struct, frozen=True):
    """The report on the iterations, the slow ones, the steady ones in time, and the ns of each of these by work and by
    cause; defaults if none were found. Layers of one pass have a report only, and no measurements."""

    report: IterationReport | None = None
    slow: SlowIterations | None = None
    steady: Intervals | None = None
    parts: dict[str, IntArray] = field(default_factory=dict)


LEFT_FOR = 10
"""Times a usual iteration: a shorter one, in which a pause begins or ends, is slow, and the loop was not left."""


def device_iterations(
    found: Loop | None,
    time: TimeTable,
    strings: Strings,
    paused: Intervals,
    kinds: NamedKinds | None = None,
    phases: IntArray | None = None,
) -> DeviceIterations:
    """What iterations are made of; `paused` are the pauses of the job, and `kinds` those of iterations that
    take turns. `phases` are numbers of what steps of a server do."""
    if found is None:
        return DeviceIterations()
    parts = time.work_and_causes(found.spans)
    report, slow = _report(found, parts, strings, paused, kinds, phases)
    steady = np.ones(len(found), dtype=np.bool_)
    steady[report.left_out] = False
    if not found.closed:
        return DeviceIterations(report)
    return DeviceIterations(report, slow, found.spans[steady], {part: ns[steady] for part, ns in parts.items()})


def _report(
    found: Loop,
    parts: dict[str, IntArray],
    strings: Strings,
    paused: Intervals,
    kinds: NamedKinds | None,
    phases: IntArray | None,
) -> tuple[IterationReport, SlowIterations]:
    """Lengths, ledgers and the slow ones of the iterations `found`; `parts` is what each is made of: work and
    causes. One in which a pause begins or ends is not compared, and of several `phases` or `kinds` only the most
    frequent one."""
    spans = found.spans
    length = spans.end - spans.start
    left = found.open | _across(spans, paused)
    left &= found.open | (length >= LEFT_FOR * np.median(length))
    steady = _steady(length, left, parts.get(GRAPH_BUILD, np.zeros(len(length), dtype=np.int64)))
    inside = np.flatnonzero(steady)
    order = inside[np.argsort(length[inside], kind="stable")]
    median = int(order[(len(order) - 1) // 2])
    kind = phases if phases is not None or kinds is None else kinds[0]
    alike = steady if kind is None else steady & (kind == np.bincount(kind[steady]).argmax())
    usual = order[alike[order]]
    slow = _slow(slow_ones(length, alike), spans, parts, int(usual[(len(usual) - 1) // 2]))
    levels = list(_levels(found.inner, strings))
    listed = np.sort(np.argsort(-length, kind="stable")[:MOST_ROWS]).tolist()  # the longest, in order
    report = IterationReport(
        source=found.source,
        name=found.called.text(strings),
        count=len(length),
        steady=len(inside),
        left_out=[int(at) for at in np.flatnonzero(~steady)],
        p50_ns=int(length[median]),
        p95_ns=int(np.percentile(length[inside], 95)),
        worst_ns=int(length[inside].max()),
        median_index=median,
        rows=[_row(at, spans, parts, bool(steady[at])) for at in listed],
        slow=[],
        kind=found.kind,
        closed=found.closed,
        inner=next(iter(levels), None),
        levels=levels,
        outer=next(_levels(found.outer, strings), None),
        layers=list(found.layers),
        certain=found.certain,
        kinds=[] if kinds is None else _kinds(*kinds, length, steady),
    )
    return slow.told_by(report), slow


def _slow(ones: SlowOnes, spans: Intervals, parts: dict[str, IntArray], median: int) -> SlowIterations:
    """The slow ones, compared with the median one of their kind."""
    more = {name: ns[ones.index] - ns[median] for name, ns in parts.items()}
    return SlowIterations(ones, spans[ones.index], more)


def _kinds(kind: IntArray, names: list[str], length: IntArray, steady: BoolArray) -> list[IterationKind]:
    """The kinds of the steady iterations, the most frequent first."""
    its = {name: length[steady & (kind == at)] for at, name in enumerate(names)}
    found = [
        IterationKind(name=name, count=len(each), median_ns=median_of(each), total_ns=int(each.sum()))
        for name, each in its.items()
        if len(each)
    ]
    return sorted(found, key=lambda each: (-each.count, each.name))[:MOST_KINDS]


def _levels(inner: Inner | None, strings: Strings) -> Iterator[InnerLoop]:
    """A shorter period, and those in it."""
    while inner is not None:
        yield InnerLoop(inner.called.source, inner.called.text(strings), inner.per_iteration, inner.median_ns)
        inner = inner.inner


def _steady(length: IntArray, is_open: BoolArray, graph_build: IntArray) -> BoolArray:
    """All but the warm-up: iterations at the start that are unlike the median one, and those that capture a graph.
    If most build or update one, that is a part of each. An open iteration has no end of its own. The last one ends
    with the trace: if it is unlike the median one, it is cut short, or what follows is counted in."""
    middle = median_of(length)
    spread = max(SPREADS * spread_of(length, middle), LEAST_SPREAD * middle)
    usual = np.abs(length - middle) <= spread
    captures = graph_build > 0
    result: BoolArray = ~is_open & (~captures | (2 * np.count_nonzero(captures) > len(captures)))
    warm = int(np.argmax(usual)) if usual.any() else 0
    result[: min(warm, len(length) // 4)] = False
    result[-1] &= usual[-1]
    return result if result.any() else np.ones(len(length), dtype=np.bool_)


def _across(spans: Intervals, paused: Intervals) -> BoolArray:
    """In which iterations a pause begins or ends, as in the last one before it; in none if that is most of them, as
    pauses are parts of the iterations then.

    ```
    phases       |      steady      |       pause       |     steady      |
    iterations   [---)[---)[---)[---------------------------)[---)[---)[---)
    ```
    """
    begins = np.searchsorted(paused.start, spans.end) > np.searchsorted(paused.start, spans.start)
    ends = np.searchsorted(paused.end, spans.end) > np.searchsorted(paused.end, spans.start, side="right")
    inside: BoolArray = begins | ends
    return inside & (2 * np.count_nonzero(inside) < len(spans))


def _row(at: int, spans: Intervals, parts: dict[str, IntArray], steady: bool) -> Iteration:
    return Iteration(
        index=at,
        start_ns=int(spans.start[at]),
        end_ns=int(spans.end[at]),
        steady=steady,
        compute_ns=int(parts["compute"][at]),
        exposed_comm_ns=int(parts["exposed_comm"][at]),
        exposed_copy_ns=int(parts["exposed_copy"][at]),
        ledger={name: int(ns[at]) for name, ns in parts.items() if name not in WORK and ns[at]},
    )


# Every steady iteration in a few bytes each: what a comparison needs of them, and the report's rows do not hold.

MOST_ENTRIES = 20_000
"""Entries of a device: of more iterations, each entry is the sum of two or more. Larger values keep longer runs
exactly, and make reports larger."""
MOST_KERNELS, MOST_KERNEL_VALUES = 30, 20_000
"""Kernels with a time in each entry, those with most time, and all these times: 666 entries have all 30 kernels, 20,000
have one. Gap groups have as many values at most. Larger values make reports larger."""
_EFFORT = 6
"""Of zlib, from 1 for fast to 9 for small: its default."""


class KindsOfGaps(Struct, frozen=True):
    """The gaps of a device, disjoint and in order; each has the index of its group among the `count` rows of the
    report, -1 for none."""

    gaps: Intervals
    place: IntArray
    count: int


def pack_iterations(
    steady: Intervals,
    parts: dict[str, IntArray],
    roots: dict[str, IntArray] | None,
    device: DeviceTimeline,
    kernels: list[KernelRow],
    kinds: KindsOfGaps,
    strings: Strings,
) -> IterationsPacked:
    """The iterations `steady`, disjoint and in order. `parts` is what each is made of, work and causes; `roots` the
    causes after wake-ups were followed, None if they are the same. `kernels` and `kinds` of gaps are the rows of the
    report, those with most time first."""
    each = -(-len(steady) // MOST_ENTRIES)
    count = len(steady) // each
    place = place_in(steady[: count * each], device.operations.start) // each
    category_of, inside = device.operations.category, place >= 0
    most = MOST_KERNEL_VALUES // count
    first = kernels[: min(MOST_KERNELS, most)]

    def column(values: IntArray) -> str:
        return to_text(to_planes(values[: count * each].reshape(count, each).sum(axis=1)), _EFFORT)

    def columns(parts: dict[str, IntArray]) -> dict[str, str]:
        return {name: column(ns) for name, ns in parts.items() if ns.any()}

    ledger = columns({name: ns for name, ns in parts.items() if name not in WORK})
    return IterationsPacked(
        count=count,
        each=each,
        lengths=column(steady.end - steady.start),
        work=columns({name: parts[name] for name in WORK}),
        ledger=ledger,
        root_ledger=ledger if roots is None else columns(roots),
        ops={
            category.name.lower(): to_text(to_planes(counted), _EFFORT)
            for category in Category
            if (counted := np.bincount(place[inside & (category_of == category)], minlength=count)).any()
        },
        kernels=[to_text(to_planes(ns), _EFFORT) for ns in _kernel_times(device, place, count, first, strings)],
        signatures=[column(ns) for ns in _gap_times(kinds, steady, min(kinds.count, most))],
        copied=_copied(device, place, count),
        first_ns=int(steady.start[0]) if each == 1 else None,
        apart=column(steady.start - np.concatenate([steady.start[:1], steady.end[:-1]])) if each == 1 else "",
    )


def _copied(device: DeviceTimeline, place: IntArray, count: int) -> str:
    """The bytes that copies move in each entry; empty if no copy says how many."""
    operations = device.operations
    sized = (operations.category == Category.MEMCPY) & ~operations.migration & (operations.size > 0) & (place >= 0)
    if not sized.any():
        return ""
    return to_text(to_planes(sum_of_each(place[sized], operations.size[sized], count)), _EFFORT)


def _kernel_times(
    device: DeviceTimeline, place: IntArray, count: int, kernels: list[KernelRow], strings: Strings
) -> IntArray:
    """The ns of each kernel in each entry; kernels that are of communication and others of the same name are apart."""
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & (place >= 0))
    names, name = distinct(operations.name[rows])
    number = {(row.name, row.communication): at for at, row in enumerate(kernels)}
    wanted = np.array(
        [[number.get((text, other), -1) for other in (False, True)] for text in strings.whole(names)], dtype=np.int64
    ).reshape(-1, 2)
    kernel = wanted.reshape(-1)[2 * name + device.communication[rows]]
    kept = picked(kernel >= 0)
    rows, kernel = rows[kept], kernel[kept]
    # In one dimension NumPy adds ten times as fast.
    cell, ns = joint(kernel, place[rows], count), operations.end[rows] - operations.start[rows]
    return sum_of_each(cell, ns, len(kernels) * count).reshape(len(kernels), count)


def _gap_times(kinds: KindsOfGaps, steady: Intervals, most: int) -> IntArray:
    """The ns of each of the first gap groups in each iteration; a gap may reach into several."""
    total = np.zeros(most * len(steady), dtype=np.int64)
    for part in stretches(len(kinds.place)):
        kept = picked((kinds.place[part] >= 0) & (kinds.place[part] < most))
        gaps, kind = kinds.gaps[part][kept], kinds.place[part][kept]
        among = near(steady, gaps)
        iteration, gap, ns = shared(gaps, steady[among])
        np.add.at(total, joint(kind[gap], iteration + among.start, len(steady)), ns)
    return total.reshape(most, len(steady))


# The steps of a finished report: number and time of each steady one, and how much the profiler distorts them.


class Steps(Struct, frozen=True):
    """Steady steps in order of time: their numbers among all iterations, from 0, and their spans in ns."""

    number: IntArray
    spans: Intervals

    @property
    def length(self) -> IntArray:
        """The ns of each."""
        return self.spans.end - self.spans.start

    def take(self, chosen: IntArray) -> Steps:
        """Those at these places."""
        return Steps(self.number[chosen], self.spans[chosen])

    def nearest(self, ns: float) -> int:
        """The place of the one nearest a length, the first of equals; there is at least one."""
        return int(np.argmin(np.abs(self.length - ns)))


def steady_steps(found: IterationReport) -> Steps | None:
    """All steady steps; None if the report does not hold the time of each. Raises InputError if it is damaged."""
    packed = found.packed
    if packed is None or packed.first_ns is None or packed.each != 1 or not packed.count:
        return None
    steady = np.setdiff1d(np.arange(found.count), found.left_out)
    try:
        spans = _spans(packed, packed.first_ns)
    except ValueError as error:
        raise InputError("the iterations of this report cannot be read: the file is damaged") from error
    return Steps(steady, spans) if len(steady) == packed.count else None


def _spans(packed: IterationsPacked, first: int) -> Intervals:
    """Raises ValueError if the columns are damaged."""
    lengths, apart = (column_from(text, packed.count) for text in (packed.lengths, packed.apart))
    end = running_sums(lengths, first) + running_sums(apart)
    return Intervals(end - lengths, end)


# How much the profiler distorts: the steps of a report compared with a step measured without the profiler.
#
# ```
# without the profiler   |====step====|                 182 ms, which the user measured
# in the trace           |======step======|             200 ms: 1.10 times as long, by up to 18 ms a step
# ```
#
# Needs the report alone, so a saved one will do.

STEP = "step"
NEXT_TO_NOTHING = 0.02
"""Steps of two runs differ by as much."""
MUCH = 0.10
"""From here on times of the host in the trace are not those of a plain run."""


def referenced(report: Report, reference_ns: int | None) -> Report:
    """The report with what the profiler does to a step that takes so long without it; as it was with None. Raises
    UsageError if the report has no steps to compare."""
    if reference_ns is None:
        return report
    found = [(steps, device) for device in report.devices if (steps := median_step(device)) is not None]
    if not found:
        raise UsageError(
            f"--reference-step {format_ns(reference_ns)} has nothing to be compared with: no whole steps were found in "
            f"{report.trace.file}",
            hint="put NVTX ranges around the steps and capture several of them",
        )
    measured, device = max(found, key=lambda each: (each[0], each[1].key))
    reference = StepReference(
        reference_ns=reference_ns,
        measured_ns=measured,
        device=device.key,
        factor=round(measured / reference_ns, 6),
        sentence=_sentence(measured, reference_ns),
    )
    return replace(report, step_reference=reference)


def median_step(device: DeviceReport) -> int | None:
    """The median of a device's steady steps in ns; None if what repeats are layers, or parts of a loop that does not
    close."""
    found = device.iterations
    if found is None or not found.steady or not found.closed or found.kind != STEP:
        return None
    return found.p50_ns


def _sentence(measured: int, reference: int) -> str:
    times = f"A step takes {format_ns(measured)} in this trace and {format_ns(reference)} without the profiler"
    more = measured - reference
    if abs(more) <= NEXT_TO_NOTHING * reference:
        return f"{times}: the profiler hardly distorts it."
    share = format_share(abs(more), reference)
    if more < 0:
        return (
            f"{times}, which is {share} less here. A profiler makes nothing faster: the reference is of other steps, "
            "or of a machine in another state, and says nothing of this trace."
        )
    said = f"{times}, which is {share} more here: up to {format_ns(more)} of each step may be the profiler's."
    if more < MUCH * reference:
        return said
    return (
        f"{said} It lengthens host calls and launches, hardly kernels and copies. Idle time caused by the host "
        "may be less in a plain run."
    )
