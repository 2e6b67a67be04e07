"""Findings that point to time which other findings account for: they lose nothing of their own."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import sum_of_each, summed
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, place_in, sorted_times, union
from nsysdiag.arrays.nesting import levels
from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.diagnosis.facts import OVERHEAD
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint, pid_of, process_of, tid_of
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import SAME_KERNELS, EvidenceRow, Finding
from nsysdiag.findings.rules import EMPTY_ITERATIONS, SLOW_ITERATIONS, FindingRule, severity
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.findings.text import thread_words
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.iterations.by_range import LEAST_COVER
from nsysdiag.iterations.facts import IterationReport, SlowIteration
from nsysdiag.iterations.loop import FEWEST
from nsysdiag.iterations.named import MOST_LEVELS, OPERATOR
from nsysdiag.iterations.report import SlowIterations
from nsysdiag.report import DeviceReport, Thread
from nsysdiag.typed import say
from nsysdiag.units import every_nth, format_count, format_ns, format_share, uncapitalized

# Iterations of the program in which a device was given nothing to do.


class EmptyIterations(Struct, frozen=True):
    """The instances, of `count` of a range on `thread`, that launched nothing on the device, in order of time."""

    name: str
    thread: int
    count: int
    spans: Intervals


def empty_iterations(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, threads: IntArray
) -> EmptyIterations | None:
    """The range with most instances without work. It is on the outermost repeating level of one of `threads`, and
    covers most of the time from its first to its last instance. At least one instance has launches.

    ```
    thread 1   [step 1    ][step 2    ][step 3    ]
    launches      |  |                    |             by any thread of the process: step 2 is empty
    ```
    """
    launched = distinct_values(device.launch[device.launch >= 0])
    if len(launched) == 0 or len(ranges.rows) < FEWEST:
        return None
    names = [normal_range(name) for name in ranges.names]
    known = {name: at for at, name in enumerate(dict.fromkeys(names))}
    code = np.array([known[name] for name in names], dtype=np.int32)
    operator = np.array([OPERATOR.match(name) is not None for name in names], dtype=np.bool_)
    rows = ranges.rows
    chosen = ~operator[rows.name] & ~rows.communication & ~rows.mpi
    best: EmptyIterations | None = None
    distinct_names = list(known)
    of_thread, issued_by = RowsOf(rows.thread, threads), RowsOf(taken(calls.process, launched))
    issued: dict[int, IntArray] = {}
    for thread in of_thread.values():
        of_it = of_thread[thread]
        mine = of_it[chosen[of_it]]
        if len(mine) < FEWEST:
            continue
        owner = process_of(thread)
        if owner not in issued:
            issued[owner] = sorted_times(taken(calls.start, taken(launched, issued_by[owner])))
        spans = Intervals(rows.start[mine], np.minimum(rows.end[mine], np.iinfo(np.int64).max // 2))
        found = _on_thread(spans, code[rows.name[mine]], issued[owner], distinct_names, thread)
        if found is not None and (best is None or len(found.spans) > len(best.spans)):
            best = found
    return best


def _on_thread(
    spans: Intervals, code: IntArray, issued: IntArray, names: list[str], thread: int
) -> EmptyIterations | None:
    depth = levels(spans, MOST_LEVELS + 1)
    for level in range(MOST_LEVELS):
        at = np.flatnonzero(depth == level)
        of_name = RowsOf(code[at])
        found = [
            empty
            for name in of_name.values()
            if (empty := _of_name(spans[at[of_name[name]]], issued, names[name], thread)) is not None
        ]
        if found:
            return max(found, key=lambda each: each.count)
    return None


def _of_name(spans: Intervals, issued: IntArray, name: str, thread: int) -> EmptyIterations | None:
    """The instances of one name, if it repeats and holds launches at all."""
    if len(spans) < FEWEST:
        return None
    first, behind = np.searchsorted(issued, spans.start), np.searchsorted(issued, spans.end)
    empty = first == behind
    reach = int(spans.end.max()) - int(spans.start.min())
    if empty.all() or union(spans).total() < LEAST_COVER * reach:
        return None
    return EmptyIterations(name, thread, len(spans), spans[empty])


_WORK = {"compute": "compute", "exposed_comm": "exposed communication", "exposed_copy": "exposed copies"}


def pointers_of(
    device: DeviceReport,
    context: FindingContext,
    slow: SlowIterations | None,
    empty: EmptyIterations | None,
    others: list[Finding],
) -> list[Finding]:
    """Slow iterations, and iterations without work; `others` are the findings that account for their time. Iterations
    that are slow as the profiler takes most of what they take more are none."""
    found: list[Finding] = []
    if not device.window_ns:
        return found
    thresholds = context.thresholds
    if device.iterations is not None and slow is not None:
        judged = slow.among(coverage(context.judged.parts, slow.spans) == slow.spans.end - slow.spans.start)
        inside = judged.told_by(device.iterations)
        own_ns = inside.slow_extra_ns - int(_of_profiler(judged).sum())
        large = inside.slow and own_ns >= max(thresholds.smallest * device.window_ns, inside.slow_extra_ns / 2)
        longer = _longer_kernels(context.gaps.device, inside, judged) if large else 0.0
        if large and (longer or not _of_a_longer_loop(inside)):
            made = _slow(device, context, inside, judged, others)
            found.append(_same_kernels(made, inside, longer) if longer else made)
    if empty is not None and len(empty.spans) >= max(thresholds.empty * empty.count, 1):
        found.append(_empty(device, context, empty))
    return found


def _of_a_longer_loop(iterations: IterationReport) -> bool:
    """Whether the slow iterations may be where a longer loop closes: one that may be the step, or one that does kernels
    of its own at a regular distance, such as an evaluation. Its work is not a delay of an iteration."""
    extra = sum(each.extra_ns for each in iterations.slow)
    computes = 2 * sum(each.more.get("compute", 0) for each in iterations.slow) > extra
    return iterations.outer is not None or (iterations.slow_period is not None and computes)


def _pointer(
    device: DeviceReport,
    context: FindingContext,
    rule: FindingRule,
    ceiling_ns: int,
    *,
    bottleneck: str,
    title: str,
    evidence: list[Sentence],
    chain: list[Sentence],
    rows: list[EvidenceRow],
    nvtx: list[str],
    part_of: str | None = None,
) -> Finding:
    return replace(
        rule.finding(device.key, context.judged.share(min(ceiling_ns, context.judged.ns)), context.thresholds),
        severity=severity(ceiling_ns / device.window_ns, context.thresholds),
        title=title,
        ceiling_ns=ceiling_ns,
        nvtx=nvtx,
        evidence=evidence,
        advice=list(rule.advice.sentences(context.frameworks)),
        chain=[*chain, rule.fix],
        rows=rows[: context.thresholds.rows],
        bottleneck=bottleneck,
        part_of=part_of,
    )


def _beside_compute(slow: SlowIterations) -> int:
    """What slow iterations take beyond the median, but for what they compute more: that may be work, as a backward
    pass that others skip, and no delay. What the profiler takes is none of the program."""
    kept = _at_least(slow, "compute") + _of_profiler(slow)
    return int(np.maximum(slow.ones.extra - kept, 0).sum())


def _at_least(slow: SlowIterations, name: str) -> IntArray:
    """What each slow iteration has beyond the median of some work or cause, in ns; 0 if it has less."""
    return np.maximum(slow.more.get(name, np.zeros(len(slow.spans), np.int64)), 0)


def _of_profiler(slow: SlowIterations) -> IntArray:
    """What the profiler takes more in each slow iteration, in ns."""
    names = [each.id for each in CAUSES.values() if each.bottleneck == OVERHEAD]
    return sum((_at_least(slow, name) for name in names), np.zeros(len(slow.spans), np.int64))


def _slow(
    device: DeviceReport,
    context: FindingContext,
    iterations: IterationReport,
    judged: SlowIterations,
    others: list[Finding],
) -> Finding:
    """The finding on what slow iterations, the longest first, take beyond the median. What they do not compute is an
    upper bound, as much of it is in other findings; none if that is too little for a finding of its own."""
    slow = iterations.slow[:4]
    worst = slow[0]
    further = _how_many_more(iterations)
    chain: list[Sentence] = [f"iteration {worst.index} takes {format_ns(worst.extra_ns)} more than the median{further}"]
    most = max(worst.more.values(), default=0)
    chain += [f"{'mostly ' if 2 * most > worst.extra_ns else ''}{_more(worst)[0]}"] if most else []
    ceiling_ns = _beside_compute(judged)
    return _pointer(
        device,
        context,
        SLOW_ITERATIONS,
        ceiling_ns if ceiling_ns >= context.thresholds.smallest * device.window_ns else 0,
        bottleneck=_bottleneck(worst),
        title=_slow_title(iterations.slow_period),
        evidence=[
            *_in_all(iterations),
            *(f"iteration {each.index}: +{format_ns(each.extra_ns)}: {', '.join(_more(each)[:2])}" for each in slow),
        ],
        chain=chain,
        rows=_first_operations(context, iterations.slow, judged.spans),
        nvtx=[iterations.name] if iterations.source == "nvtx" else [],
        part_of=_explained_by(iterations, others),
    )


# Slow iterations that run the same kernels as others: those take longer, and nothing else does.
#
# ```
# device   [k1)[k2)|[k1)[k2)|[= k1 =)[= k2 =)|[k1)[k2)|      larger inputs, lower clocks, or others on the GPU
# ```

LEAST_SAME, LEAST_LONGER = 0.8, 1.05
"""Of the slow iterations, and of the others: so many run the usual kernels as often. And how many times as long these
take at least."""


def _longer_kernels(device: DeviceTimeline, iterations: IterationReport, slow: SlowIterations) -> float:
    """How many times as long the usual kernels take in slow iterations as in others; 0 if these run other ones, or if
    what they take longer for is mostly no kernel."""
    computes = sum(each.more.get("compute", 0) for each in iterations.slow)
    index = set(slow.ones.index.tolist())
    usual = [(row.start_ns, row.end_ns) for row in iterations.rows if row.steady and row.index not in index]
    if 2 * computes <= sum(each.extra_ns for each in iterations.slow) or not usual:
        return 0.0
    spans = Intervals.concatenate([slow.spans, Intervals.of(usual)])
    order = np.argsort(spans.start, kind="stable")
    count, time = _kernels_in(device, spans[order])
    is_slow = order < len(slow.spans)
    same = (count == np.median(count[:, ~is_slow], axis=1)[:, None]).all(axis=0)
    if min(same[is_slow].mean(), same[~is_slow].mean()) < LEAST_SAME:
        return 0.0
    longer = float(np.median(time[is_slow & same])) / max(float(np.median(time[~is_slow & same])), 1.0)
    return longer if longer >= LEAST_LONGER else 0.0


def _kernels_in(device: DeviceTimeline, spans: Intervals) -> tuple[IntArray, IntArray]:
    """How often the kernels of each name begin in each of the spans, and how long all of them take, in ns."""
    operations = device.operations
    rows = np.flatnonzero(device.running & (operations.category == Category.KERNEL))
    place = place_in(spans, operations.start[rows])
    rows, place = rows[place >= 0], place[place >= 0]
    names, code = distinct(operations.name[rows])
    table = sum_of_each(joint(code, place, len(spans)), np.ones(len(rows), np.int64), len(names) * len(spans))
    time = sum_of_each(place, operations.end[rows] - operations.start[rows], len(spans))
    return table.reshape(len(names), len(spans)), time


def _same_kernels(finding: Finding, iterations: IterationReport, longer: float) -> Finding:
    """The finding of slow iterations whose kernels are the usual ones, and take so many times as long."""
    of = f"{format_count(iterations.slow_count)} of {format_count(iterations.steady)} steps"
    said = f"the same kernels take {longer:.2f} times as long in {of}"
    return replace(
        finding,
        variant=SAME_KERNELS,
        summary=said,
        evidence=[*finding.evidence, said],
        advice=[*SLOW_ITERATIONS.words.advice_for(SAME_KERNELS).plain],
    )


def _explained_by(iterations: IterationReport, others: list[Finding]) -> str | None:
    """The finding about what slow iterations have more of, if that is half of their extra time or more."""
    more = summed(each.more for each in iterations.slow)
    most = max(more, key=lambda name: more[name], default="")
    if 2 * more.get(most, 0) < sum(each.extra_ns for each in iterations.slow):
        return None
    large = [each for each in others if 2 * each.ceiling_ns >= iterations.slow_extra_ns]
    same = [each for each in large if each.cause == most]
    alike = same or [each for each in large if most in CAUSES and each.bottleneck == CAUSES[most].bottleneck]
    return max(alike, key=lambda each: (each.ceiling_ns, each.id)).id if alike else None


def _bottleneck(slow: SlowIteration) -> str:
    """That of what a slow iteration has most more of."""
    most = max(slow.more, key=lambda name: slow.more[name], default="")
    if most in CAUSES:
        return CAUSES[most].bottleneck
    return OF_WORK.get(most, OF_WORK["compute"])


def _slow_title(period: int | None) -> str:
    if period is None:
        return f"{SLOW_ITERATIONS.title} than the median"
    return f"{every_nth(period).capitalize()} iteration takes far longer than the median"


def _in_all(iterations: IterationReport) -> list[str]:
    """What all slow iterations cost together, if there are several."""
    count, of = iterations.slow_count, iterations.steady
    if count < 2:
        return []
    every = "" if iterations.slow_period is None else f", {every_nth(iterations.slow_period)}"
    extra = format_ns(iterations.slow_extra_ns)
    return [f"{format_count(count)} of {format_count(of)} iterations are slow{every}: {extra} more in all"]


def _how_many_more(iterations: IterationReport) -> str:
    others = iterations.slow_count - 1
    if others < 1:
        return ""
    every = "" if iterations.slow_period is None else f": {every_nth(iterations.slow_period)}"
    return (", one more is slow" if others == 1 else f", {format_count(others)} more are slow") + every


def _more(slow: SlowIteration) -> list[str]:
    ranked = sorted(slow.more.items(), key=lambda item: (-item[1], item[0]))
    return [f"{_WORK.get(name) or uncapitalized(CAUSES[name].title)} +{format_ns(ns)}" for name, ns in ranked]


def _first_operations(context: FindingContext, slow: list[SlowIteration], spans: Intervals) -> list[EvidenceRow]:
    """The operation that each slow iteration begins with."""
    device = context.gaps.device
    rows = []
    for each, start in zip(slow, spans.start.tolist(), strict=False):
        begins = np.flatnonzero((device.operations.start == start) & device.running)
        rows += [context.sightings.operation(int(begins[0]), each.extra_ns)] if len(begins) else []
    return rows


def _empty(device: DeviceReport, context: FindingContext, empty: EmptyIterations) -> Finding:
    """Idle time of the device during instances in which nothing was launched to it: other findings have it as well."""
    gaps = context.gaps.frame.gaps
    ns = int(coverage(union(Intervals(gaps.start, gaps.end)), union(empty.spans)).sum())
    name = context.gaps.thread_names.get(empty.thread)
    thread = Thread(pid=pid_of(empty.thread), tid=tid_of(empty.thread), name=name)
    count, all_of = format_count(len(empty.spans)), format_count(empty.count)
    length = empty.spans.end - empty.spans.start
    longest = np.lexsort((empty.spans.start, -length))[: context.thresholds.rows].tolist()
    return _pointer(
        device,
        context,
        EMPTY_ITERATIONS,
        0,
        bottleneck=EMPTY_ITERATIONS.bottleneck,
        title=f"{count} of {all_of} iterations have no work for the device",
        evidence=[
            say("{} of {} instances of “{}” launched nothing to it", count, all_of, typed.nvtx(empty.name)),
            f"it was idle for {format_ns(ns)} of them, {format_share(ns, device.window_ns)} of the window",
        ],
        chain=[
            say(
                "{} goes through {} of {} instances of “{}”",
                thread_words(thread, 0),
                count,
                all_of,
                typed.nvtx(empty.name),
            ),
            "no thread of its process launches anything to the device meanwhile",
        ],
        rows=[
            EvidenceRow(
                table="NVTX_EVENTS",
                name=empty.name,
                start_ns=int(empty.spans.start[at]),
                ns=int(length[at]),
                thread=empty.thread,
            )
            for at in longest
        ],
        nvtx=[empty.name],
    )
