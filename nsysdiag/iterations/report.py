"""Per-iteration ledgers: the steady state, and slow iterations explained by what they have more than the median one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, union
from nsysdiag.causes import CAUSES
from nsysdiag.causes.ids import GRAPH_BUILD
from nsysdiag.iterations.loop import Inner, Loop
from nsysdiag.iterations.slow import SPREADS, median_of, slow_ones, spread_of
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import InnerLoop, Iteration, IterationReport, SlowIteration

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

LEAST_SPREAD = 0.01
MOST_ROWS = 200
MOST_SLOW = 10
MOST_CAUSES = 4
WORK = ("compute", "exposed_comm", "exposed_copy")


class DeviceIterations(Struct, frozen=True):
    """The report on the iterations, the steady ones in time, and the ns of each of these by work and by cause; defaults
    if none were found. Layers of one pass have a report only, and no measurements."""

    report: IterationReport | None = None
    steady: Intervals | None = None
    parts: dict[str, IntArray] = field(default_factory=dict)


LEFT_FOR = 10
"""Times a usual iteration: a shorter one, in which a pause begins or ends, is slow, and the loop was not left."""


def device_iterations(
    found: Loop | None, slices: Slices, split: WindowSplit, strings: Strings, paused: Intervals
) -> DeviceIterations:
    """What iterations are made of, by the slices of the gaps in them; `paused` are the pauses between phases."""
    if found is None:
        return DeviceIterations()
    parts = work_parts(split, found.spans) | idle_parts(slices, found.spans)
    report = iteration_report(found, parts, strings, paused)
    steady = np.ones(len(found), dtype=np.bool_)
    steady[report.left_out] = False
    if not found.closed:
        return DeviceIterations(report)
    return DeviceIterations(report, found.spans[steady], {part: ns[steady] for part, ns in parts.items()})


def iteration_report(
    found: Loop, parts: dict[str, IntArray], strings: Strings, paused: Intervals | None = None
) -> IterationReport:
    """Lengths, ledgers and the slow ones of the iterations `found`; `parts` is what each is made of: work and
    causes. One in which a pause begins or ends is not compared."""
    spans = found.spans
    length = spans.end - spans.start
    left = found.open | (np.zeros(len(length), dtype=np.bool_) if paused is None else _across(spans, paused))
    left &= found.open | (length >= LEFT_FOR * np.median(length))
    steady = _steady(length, left, parts.get(GRAPH_BUILD, np.zeros(len(length), dtype=np.int64)))
    inside = np.flatnonzero(steady)
    order = inside[np.argsort(length[inside], kind="stable")]
    median = int(order[(len(order) - 1) // 2])
    slow = slow_ones(length, steady)
    listed = np.sort(np.argsort(-length, kind="stable")[:MOST_ROWS]).tolist()  # the longest, in order
    return IterationReport(
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
        slow=[_slow(at, length, parts, median) for at in slow.index[:MOST_SLOW].tolist()],
        slow_count=len(slow.index),
        slow_extra_ns=slow.extra_ns,
        slow_period=slow.period,
        kind=found.kind,
        closed=found.closed,
        inner=None if found.inner is None else _inner(found.inner, strings),
        levels=_levels(found, strings),
        outer=None if found.outer is None else _inner(found.outer, strings),
        certain=found.certain,
    )


def _levels(found: Loop, strings: Strings) -> list[InnerLoop]:
    levels, inner = [], found.inner
    while inner is not None:
        levels.append(_inner(inner, strings))
        inner = inner.inner
    return levels


def _inner(inner: Inner, strings: Strings) -> InnerLoop:
    called = inner.called
    return InnerLoop(
        source=called.source,
        name=called.text(strings),
        per_iteration=inner.per_iteration,
        median_ns=inner.median_ns,
    )


def work_parts(split: WindowSplit, spans: Intervals) -> dict[str, IntArray]:
    """The ns of each span by what the device did."""
    return dict(zip(WORK, (coverage(part, spans) for part in split.parts), strict=True))


def idle_parts(slices: Slices, spans: Intervals) -> dict[str, IntArray]:
    """The ns of each span by cause of its idle time, of the causes that have any."""
    rows, found = slices.rows, {}
    for number, cause in enumerate(CAUSES):
        mine = rows.cause == number
        if mine.any():
            found[cause] = coverage(union(Intervals(rows.start[mine], rows.end[mine])), spans)
    return found


def _steady(length: IntArray, is_open: BoolArray, graph_build: IntArray) -> BoolArray:
    """All but the warm-up: iterations at the start that are unlike the median one, and those that capture a graph. An
    open iteration has no end of its own. The last one ends with the trace: where it is unlike the median one, it is cut
    short, or what follows is counted in."""
    middle = median_of(length)
    spread = max(SPREADS * spread_of(length, middle), LEAST_SPREAD * middle)
    usual = np.abs(length - middle) <= spread
    result: BoolArray = (graph_build == 0) & ~is_open
    warm = int(np.argmax(usual)) if usual.any() else 0
    result[: min(warm, len(length) // 4)] = False
    result[-1] &= usual[-1]
    return result if result.any() else np.ones(len(length), dtype=np.bool_)


def _across(spans: Intervals, paused: Intervals) -> BoolArray:
    """In which iterations a pause begins or ends, as in the last one before it; in none where that is most of them, as
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


def _slow(at: int, length: IntArray, parts: dict[str, IntArray], median: int) -> SlowIteration:
    """One slow iteration, with what it has more of than the median one, most first."""
    more = {name: int(ns[at] - ns[median]) for name, ns in parts.items() if ns[at] > ns[median]}
    most = dict(sorted(more.items(), key=lambda item: (-item[1], item[0]))[:MOST_CAUSES])
    return SlowIteration(index=at, extra_ns=int(length[at] - length[median]), more=most)
