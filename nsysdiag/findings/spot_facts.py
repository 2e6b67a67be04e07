"""What is known of a hotspot before its text is made: its kind, its place, its calls, and the code in CPU samples."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.bottlenecks import DeviceWaitCalls
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.groups import GroupTotals, group_totals
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, common_ns, near, stretches
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, INPUT_WAIT, variant_of
from nsysdiag.causes.cause import Hint, Variant
from nsysdiag.causes.input_output import WORKER_COMPUTES
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.callchains import Origin, interpreter_part
from nsysdiag.events.rows import picked
from nsysdiag.fields import Sentence
from nsysdiag.findings.attribution import Attribution, Shares, calls_around
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.facts import Named
from nsysdiag.findings.hotspots import Hotspot, SpotGaps, code_in, path_of, python_in
from nsysdiag.findings.phase_work import JudgedTime, RangeSets, host_time
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.report import DeviceReport, Root
from nsysdiag.stacks.samples import SampledCode
from nsysdiag.time.table import TimeTable
from nsysdiag.typed import NO_WORDS, say
from nsysdiag.wakeups.batches import Batches

ALMOST_ALL, MOST = 0.95, 0.5
"""Shares of a hotspot's time. From ALMOST_ALL on, a text says of all of it what holds for this share; below, it says
"mostly" or leaves it out. A call is named if its share is larger than MOST, which only one can have."""
NO_CODE = SampledCode(0, {}, {})
Word = TypeVar("Word")
Times = dict[Sentence, tuple[int, int]]
"""Time in ns and number of pieces by word, most time first."""


class FindingContext(Struct, frozen=True):
    """The input for findings of a device. `attribution` is the cause of each slice; `sightings` finds evidence rows;
    `waits` are the calls that waited for the device, `time` is all time of the device, `batches` what loading workers
    did. `paths` are places in the program, `ranges` when the program was there. `judged` is the time that they are
    about; `frameworks` (ids of programs.facts) select the advice. `host_unseen`: the trace has no OS calls, scheduling
    events and CPU samples. `asked` are kinds of evidence that it lacks though they were asked for."""

    gaps: GapContext
    keys: GapGroupKeys
    attribution: Attribution
    sightings: Sightings
    waits: DeviceWaitCalls
    time: TimeTable
    batches: Batches
    paths: list[list[str]]
    ranges: RangeSets
    judged: JudgedTime
    thresholds: FindingThresholds
    frameworks: tuple[str, ...] = ()
    host_unseen: bool = False
    asked: frozenset[str] = frozenset()


class SpotFacts(Struct, frozen=True):
    """Facts about a hotspot before its text is made. `charged` are its gaps, as far as they are charged to it. `naming`
    are the texts that may name it, `call_of` the calls that texts name. `typical` is the first gap of the signature
    with most of the time; `followed` is the share of its time that was followed from a wait to another thread. `code`
    is what samples were in, for host code: of all `codes` the one that tells most. `sampled` is the share of it that
    they stand for; `waits` is the idle time that each wait caused. `alone`: almost all of it is of one `kind`.
    `placed`: it has one place, `path`; `inside` is the counted time inside the ranges of that, `whole`: it is almost
    all."""

    spot: Hotspot
    gaps: SpotGaps
    charged: SpotGaps
    typical: int
    slices: IntArray
    followed: float
    kind: Variant
    alone: bool
    path: list[str]
    labels: dict[EvidenceLabel, tuple[int, int]]
    calls: Times
    naming: Times
    call_of: dict[Sentence, Sentence]
    code: SampledCode
    codes: list[SampledCode]
    sampled: float
    root: Root | None
    waits: GroupTotals
    placed: bool
    inside: int
    whole: bool

    @property
    def advised(self) -> bool:
        """Whether there is advice for its kind."""
        return bool(CAUSES[self.spot.cause].words.advice_for(self.kind.id))


def spot_facts(device: DeviceReport, context: FindingContext, shares: Shares, spot: Hotspot) -> SpotFacts:
    gaps = SpotGaps.of(shares, spot)
    explained = shares.slice >= 0
    rows = picked(explained)
    slices, ns = shares.slice[rows], shares.lost[rows]
    sampled = CAUSES[spot.cause].sampled
    loads = spot.cause == INPUT_WAIT
    mine = _as_the_worker_did(context, shares, slices) if loads else slice(None)
    own = slices[mine]
    native, known = code_in(context.gaps, own) if (sampled or loads) and len(own) else (NO_CODE, 0.0)
    kind, alone = _kind(shares, spot, native if sampled else NO_CODE, gaps, context.thresholds)
    of_host = spot.cause in (HOST_CODE, FALLBACK) and len(own) > 0
    python, told = python_in(context.gaps, own) if of_host else (NO_CODE, 0.0)
    code, known = (python, told) if python.count else (native, known)
    calls = _calls(context, shares, slices, ns)
    path, inside = _place(context, shares, spot)
    # What a worker computes is in samples alone: calls are those in which others wait for it.
    naming = {} if kind.id == WORKER_COMPUTES else _calls(context, shares, own, ns[mine]) if loads else calls
    known_calls = zip(context.gaps.slices.texts, context.gaps.slices.calls, strict=True)
    return SpotFacts(
        call_of=dict(known_calls) | {name: name for name in context.waits.names},
        spot=spot,
        gaps=gaps,
        charged=gaps.charged(shares, spot),
        typical=gaps.typical(context.keys),
        slices=slices,
        followed=_followed(context, slices),
        kind=kind,
        alone=alone,
        path=path,
        labels=_by_words(taken(context.attribution.label, slices), context.attribution.labels, ns),
        calls=calls,
        naming=naming,
        code=code,
        codes=[each for each in (python, native) if each.count],
        sampled=known,
        root=_root(device, context, gaps),
        waits=group_totals(shares.wait[~explained], shares.made[~explained]),
        placed=leading_code(shares.path, shares.lost + shares.made)[1] >= ALMOST_ALL,
        inside=inside,
        whole=inside >= ALMOST_ALL * spot.counted_ns,
    )


def _place(context: FindingContext, shares: Shares, spot: Hotspot) -> tuple[list[str], int]:
    """The NVTX path that most of the hotspot's time is inside, and its counted time there.

    ```
    path of the gaps     compile › nvrtc                 time      [= compile ===================)
    place                compile: more than half of it             [= nvrtc =)
    ```
    """
    path, total = path_of(shares, spot, context.paths), spot.counted_ns
    time = counted_time(context, shares, spot.bottleneck) if path else []
    inside = inside_place(context, shares, path, time)
    while path and total and not _is_most(context, shares, spot, path, inside):
        path = path[:-1]
        inside = inside_place(context, shares, path, time)
    return path, inside


def _is_most(context: FindingContext, shares: Shares, spot: Hotspot, path: list[str], inside: int) -> bool:
    """Whether `inside` is more than half of the counted time, and the path holds more than half of all its time in the
    ledger. Of that a part may be charged to a wait before it: the rest is then the end of what the host did."""
    if 2 * inside <= spot.counted_ns or spot.mostly_made or spot.lost_ns <= spot.counted_ns:
        return 2 * inside > spot.counted_ns
    time = host_time(context.gaps, context.time, context.judged, shares.slice[shares.slice >= 0], None)
    return 2 * _inside(context, path, time) > spot.lost_ns


def _inside(context: FindingContext, path: list[str], time: list[Intervals]) -> int:
    """How many ns of sets on the axis, which share no time, are inside the ranges of `path`."""
    ranges = context.ranges.inside(path)
    return sum(common_ns(each, ranges[near(ranges, each)]) for each in time)


def counted_time(context: FindingContext, shares: Shares, bottleneck: str) -> list[Intervals]:
    """The counted time of the slices of these rows, as `host_time` has it."""
    slices = shares.slice[(shares.slice >= 0) & shares.counts]
    return host_time(context.gaps, context.time, context.judged, slices, bottleneck)


def inside_place(context: FindingContext, shares: Shares, path: list[str], time: list[Intervals]) -> int:
    """The counted time of these rows inside the ranges of `path`, `time` that of their slices, in ns; what a wait
    caused is where the wait is."""
    if not path:
        return int(shares.counted[shares.slice < 0].sum())
    inside = _inside(context, path, time)
    there = np.array([each[: len(path)] == path for each in context.paths], dtype=np.bool_)[shares.path]
    return inside + int(shares.counted[(shares.slice < 0) & there].sum())


def _as_the_worker_did(context: FindingContext, shares: Shares, slices: IntArray) -> BoolArray:
    """The slices in which the loading worker did what it does longest over whole batches."""
    leading, _ = leading_code(shares.kind, shares.lost + shares.made)
    kinds = np.array([variant_of(INPUT_WAIT, each) for each in (*context.attribution.labels, None)])
    return kinds[context.attribution.label[slices]] == leading


def leading_code(code: IntArray, ns: IntArray) -> tuple[int, float]:
    """The code with most time, and its share."""
    groups = group_totals(code, ns)
    return int(groups.code[0]), int(groups.total[0]) / max(int(groups.total.sum()), 1)


def _kind(
    shares: Shares, spot: Hotspot, code: SampledCode, gaps: SpotGaps, thresholds: FindingThresholds
) -> tuple[Variant, bool]:
    """The kind with most of the hotspot's time, and whether that is almost all of it."""
    kinds = CAUSES[spot.cause].variants
    leading, share = leading_code(shares.kind, shares.lost + shares.made)
    kind = kinds[leading]
    hints = (
        (Hint.IN_COLLECTOR, Origin.COLLECTOR, thresholds.collector),
        (Hint.IN_INTERPRETER, Origin.INTERPRETER, thresholds.interpreter),
    )
    symbols = code.functions if kind is kinds[-1] else {}
    if code.recorded and symbols and gaps.between_operators:
        return next(each for each in kinds if each.hint == Hint.IN_OPERATORS), True
    for hint, origin, least in hints if symbols else ():
        inside = sum(count for symbol, count in symbols.items() if interpreter_part(symbol) is origin)
        if inside >= least * sum(symbols.values()):
            return next(each for each in kinds if each.hint == hint), True
    return kind, share >= ALMOST_ALL


def _by_words(code: IntArray, words: list[Word], ns: IntArray) -> dict[Word, tuple[int, int]]:
    """Pieces without a word are left out."""
    known = picked(code >= 0)
    groups = group_totals(taken(code, known), taken(ns, known))
    columns = (groups.code.tolist(), groups.total.tolist(), groups.count.tolist())
    return {words[each]: (total, count) for each, total, count in zip(*columns, strict=True)}


def _calls(context: FindingContext, shares: Shares, slices: IntArray, ns: IntArray) -> Times:
    """The calls of the hotspot; if it has no exclusive time, the calls that caused idle time."""
    rows, waits = context.gaps.slices, context.waits
    found = _by_words(taken(rows.rows.text, slices), rows.texts, ns)
    made = shares.wait >= 0
    return found or _by_words(waits.name[shares.wait[made]], waits.names, shares.made[made])


def _root(device: DeviceReport, context: FindingContext, gaps: SpotGaps) -> Root | None:
    """The thread that ended the wait in the hotspot's largest gap, if the report describes that gap."""
    start = int(context.gaps.frame.gaps.start[gaps.longest])
    return next((gap.root for gap in device.gaps if gap.start_ns == start), None)


# What names a hotspot: functions, places, and the calls around it.


def between_calls(context: FindingContext, facts: SpotFacts, shares: Shares) -> Sentence:
    """`between cudaMemcpy and cudaGraphLaunch`: the CUDA calls before and behind most of the time, if nothing else
    shows the host or the place. `after cudaMemcpy` if different calls follow."""
    host = context.sightings.evidence.host
    seen = len(host.os_calls) or len(host.samples.position) or len(host.scheduling.on_cpu)
    if facts.spot.cause != FALLBACK or facts.path or seen or facts.code.count or not len(facts.slices):
        return ""
    before, behind, names = calls_around(context.gaps, host, facts.slices)
    time, width = shares.lost[shares.slice >= 0], len(names) + 1
    pair, share = leading_code((before + 1) * width + behind + 1, time)
    first, then = divmod(pair, width)
    if not (first and then) or share <= MOST:
        (first, share), then = leading_code(before + 1, time), 0
    if first == 0 or share <= MOST:
        return ""
    mostly, call = "" if share >= ALMOST_ALL else "mostly ", typed.api(names[first - 1])
    if then == first:
        return say("{}between calls of {}", mostly, call)
    if then:
        return say("{}between {} and {}", mostly, call, typed.api(names[then - 1]))
    return say("{}after {}", mostly, call)


def function_of(facts: SpotFacts) -> Sentence | None:
    """The function with most of the time, on whichever thread: of calls, else of CPU samples."""
    functions = [facts.call_of[text] for text in facts.naming if facts.call_of.get(text)]
    return next(
        iter(
            [
                *functions,
                *(typed.symbol(name) for name in facts.code.functions if len(name.split()) == 1),
            ]
        ),
        None,
    )


def named_parts(
    context: FindingContext, facts: SpotFacts, shares: Shares, call: Sentence | None, *, elsewhere: bool
) -> list[tuple[Named, int]]:
    """The counted time of the function at the place, of the function, and of the place. That of a function in CPU
    samples is what these stand for; at a place it is the least that it can be."""
    counted = shares.counted
    total = int(counted.sum())
    bottleneck = facts.spot.bottleneck
    path = [] if CAUSES[facts.spot.cause].overlapped else facts.path  # one fix for all places
    mine = _of_call(context, shares, call or "")
    at_place = facts.inside if path else 0
    both = at_place
    if path and not mine.all():
        own = shares.take(mine)
        both = inside_place(context, own, path, counted_time(context, own, bottleneck))
    in_call, caller = int(counted[mine].sum()), ""
    if not in_call and facts.code.count:
        sampled = next((name for name in facts.code.functions if typed.symbol(name) == call), "")
        in_call = int(total * facts.sampled * facts.code.functions.get(sampled, 0) / facts.code.count)
        both = max(in_call + at_place - total, 0)
        caller = facts.code.callers.get(sampled, "")
    place = typed.nvtx(path[-1]) if path else NO_WORDS
    where = say("{} in {}", ", awaited" if elsewhere else "", place)
    thread = " on another thread" if elsewhere else ""
    of_library = say(" (called by {})", typed.symbol(normal_kernel(caller))) if caller else NO_WORDS
    function = say("{}{}{}", call, of_library, thread) if call else NO_WORDS
    what: list[tuple[Sentence, Sentence, int]] = (
        [(say("{}{}", function, where), function, both), (function, "", in_call)] if call else []
    )
    if path:
        work = f"the work{thread}"
        what.append((work + where, work, at_place) if elsewhere else ("in " + place, "", at_place))
    return [
        (Named(text=text, short=short if elsewhere else "", share=0), ns)
        for text, short, ns in (what if path else what[1:])
    ]


def _of_call(context: FindingContext, shares: Shares, call: Sentence) -> BoolArray:
    """True for the rows of a function, on whatever thread."""
    found = np.zeros(len(shares), dtype=np.bool_)
    columns = (
        (shares.slice, context.gaps.slices.rows.text, context.gaps.slices.calls),
        (shares.wait, context.waits.name, context.waits.names),
    )
    for row, code, words in columns if call else ():
        same = np.array([each == call for each in (*words, "")], dtype=np.bool_)
        for part in stretches(len(found)):
            known = np.flatnonzero(row[part] >= 0)
            found[part][known] = taken(same, taken(code, row[part][known]))
    return found


def _followed(context: FindingContext, slices: IntArray) -> float:
    """The share of their time that was followed from a wait to another thread."""
    lengths, attribution = context.gaps.slices.lengths, context.attribution
    moved = slices[taken(attribution.cause, slices) != taken(attribution.own, slices)]
    return int(lengths(moved).sum()) / max(int(lengths(slices).sum()), 1) if len(moved) else 0.0
