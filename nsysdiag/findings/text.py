"""The text of one hotspot: its title, where it is, its causal chain, its evidence and its advice."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from nsysdiag import typed
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, IN_LAUNCH_CALL, INPUT_WAIT, bottlenecks_of_cause
from nsysdiag.causes.cause import Cause, Hint, Variant
from nsysdiag.causes.device_side import DISPATCH
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.diagnosis.sentences import HANGS, UNSEEN_TITLE
from nsysdiag.events.rows import distinct_values
from nsysdiag.fields import Sentence
from nsysdiag.findings.attribution import Shares, calls_around
from nsysdiag.findings.facts import Evidence, EvidenceRow, FindingKind, Named, names_nothing
from nsysdiag.findings.hotspots import Hotspot
from nsysdiag.findings.spot_facts import (
    ALMOST_ALL,
    FindingContext,
    SpotFacts,
    counted_time,
    inside_place,
    leading_code,
    spot_facts,
)
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.report import DeviceReport, Root, Thread
from nsysdiag.trace.capabilities import CPU_SAMPLES, KINDS, NEVER_NONE, OS_RUNTIME, REFUSED, SCHEDULING
from nsysdiag.typed import NO_WORDS, joined, say
from nsysdiag.units import format_count, format_moment, format_ns, listed, mostly, uncapitalized

MOST_EVIDENCE, MOST_ADVICE, MOST_SYMBOLS, LONGEST_PLACE = 4, 3, 2, 60
MOST = 0.5
BUILDING = "Code is compiled at run time"
FEWER_NODES = "Fewer, larger kernels: fuse kernels that work on the same data. They run as a CUDA graph already."
THEN = "Then run it on more threads, or on the GPU."
KEEP_BUILT = "Keep the compiled code: cache it between runs, or compile ahead of time."
RANGES_THERE = "Add NVTX ranges to the code there: OS calls, scheduling and CPU samples show nothing of it."
OUTSIDE_CALLS = "Host code outside CUDA calls"
IN_PYTHON = (
    "Look at this Python function: its own stacks were sampled there. Whether it computes, or waits in a library, CPU "
    "samples (--sample) and scheduling events (--cpuctxsw) show."
)
FEW_LAUNCHES = "Check what makes these few calls slow: a first use, locks in the driver, other threads that launch."
RANGE_SAYS = 0.4
"""Confidence that code is compiled where a range of the program is named so, and nothing else shows the thread."""
MANY_LAUNCHES = 10
"""Gaps: a graph, or fused kernels, help where launches are many."""
DOUBTFUL = 0.5
"""The most confidence in a kind of a cause that something else looks like."""
UNNAMED_ROOT = 0.5
"""Confidence of a root cause that no described gap has."""


class Story(Struct, frozen=True):
    """The text of a finding, without its figures. `named` are parts of its counted time in ns, the most specific
    first."""

    title: Sentence
    kind: str
    finding_kind: FindingKind | UnsetType
    variant: str
    path: list[str]
    signature: str
    call: Sentence | None
    gaps: int
    confidence: float
    evidence: list[Sentence]
    measured: list[Evidence]
    advice: list[Sentence]
    chain: list[Sentence]
    rows: list[EvidenceRow]
    summary: Sentence
    named: list[tuple[Named, int]]


def story_of(device: DeviceReport, context: FindingContext, shares: Shares, spot: Hotspot) -> Story:
    """The whole text of a hotspot; `shares` are its rows."""
    facts = spot_facts(device, context, shares, spot)
    advice, fix = advice_and_fix(facts.kind, CAUSES[spot.cause], context.frameworks)
    if _builds(spot):
        advice, fix = [KEEP_BUILT], "keep the compiled code"
    elif spot.cause == FALLBACK and facts.code.python:
        advice, fix = [IN_PYTHON], "look at this function"
    elif _unseen(context, spot) and not context.asked & NEVER_NONE:
        advice = [HANGS]
    elif spot.cause == FALLBACK:
        advice, fix = _recapture(context)
    elif _in_graphs(context, facts):
        advice, fix = [FEWER_NODES], "fewer, larger kernels"
    elif spot.cause == IN_LAUNCH_CALL and len(facts.gaps.gap) < MANY_LAUNCHES and not facts.advised:
        advice, fix = [FEW_LAUNCHES], "see what makes the call slow"
    call = _function(facts)
    loads = spot.cause == INPUT_WAIT
    elsewhere = not loads and _followed(context, facts.slices) >= ALMOST_ALL
    named = _named(context, facts, shares, call, elsewhere=elsewhere)
    worker = _worker(facts, call) if loads else ""
    leading = mostly(((each.text, ns) for each, ns in named), spot.counted_ns, context.judged.ns)
    measured = _measured(facts, sampled=len(context.gaps.samples.position) > 0)
    summary = leading if elsewhere else _between_calls(context, facts, shares)
    place = say(", awaited in {}", typed.nvtx(facts.path[-1], LONGEST_PLACE)) if facts.path else ""
    return Story(
        title=_title(context, facts, elsewhere),
        kind=facts.kind.id,
        finding_kind=_finding_kind(context, facts),
        variant=_variant(facts),
        path=facts.path,
        signature=context.keys.signature(facts.gaps.typical(context.keys)),
        call=call,
        gaps=len(facts.gaps.gap),
        confidence=_confidence(device, context, facts),
        evidence=_evidence(context, facts, measured),
        measured=measured,
        advice=[*_naming(facts, call), *_with_row(context, facts, advice)][:MOST_ADVICE],
        chain=_chain(context, facts, fix),
        rows=_rows(context, facts),
        summary=say("{}{}", worker, place) if worker else summary,
        named=[] if worker else named,
    )


def _between_calls(context: FindingContext, facts: SpotFacts, shares: Shares) -> Sentence:
    """`between cudaMemcpy and cudaGraphLaunch`: the CUDA calls before and behind most of the time, where nothing else
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


def _builds(spot: Hotspot) -> bool:
    """Whether this is host code, or time without evidence, inside a range that compiles."""
    return spot.bottleneck == "startup" and spot.bottleneck not in bottlenecks_of_cause(spot.cause)


def _unseen(context: FindingContext, spot: Hotspot) -> bool:
    """Whether nothing explains this time as the trace shows nothing of the host but its CUDA calls."""
    return context.host_unseen and spot.cause == FALLBACK


def _recapture(context: FindingContext) -> tuple[list[Sentence], str]:
    """What to capture that this trace lacks, and its short form; ranges where it lacks nothing."""
    host = context.sightings.evidence.host
    scheduled = len(host.scheduling.on_cpu) + len(host.scheduling.out)
    known = {OS_RUNTIME: host.os_traced.any(), SCHEDULING: scheduled, CPU_SAMPLES: len(host.samples.position)}
    absent = [kind for kind, there in known.items() if not there]
    lacking = [_option(kind) for kind in absent if kind not in context.asked]
    refused: list[Sentence] = [REFUSED] if context.asked & NEVER_NONE else []
    if not lacking:
        return [*refused, RANGES_THERE], "add NVTX ranges"
    return [*refused, f"Capture again with {listed(lacking)}: that may show what the thread did."], (
        f"capture again with {' '.join(lacking)}"
    )


def _option(kind: str) -> str:
    return (KINDS[kind].recapture or "").removesuffix("=process-tree")


def _in_graphs(context: FindingContext, facts: SpotFacts) -> bool:
    """Whether most of this is dispatch between kernels of CUDA graphs."""
    if facts.spot.cause != DISPATCH.id:
        return False
    gaps, node = context.gaps.frame.gaps, context.gaps.device.operations.graph_node
    inside = (node[gaps.previous[facts.gaps.gap]] > 0) & (node[gaps.next[facts.gaps.gap]] > 0)
    return 2 * int(facts.gaps.ns[inside].sum()) > int(facts.gaps.ns.sum())


def _title(context: FindingContext, facts: SpotFacts, elsewhere: bool) -> Sentence:
    """The cause, and its kind and place where almost all of it is of one; `elsewhere`: on another thread."""
    spot = facts.spot
    title: Sentence = CAUSES[spot.cause].title
    if _builds(spot):
        title = BUILDING
    elif _unseen(context, spot):
        title = OUTSIDE_CALLS if facts.code.python else UNSEEN_TITLE
    if spot.rest:
        return say("{}, elsewhere", title)
    kind: Sentence = facts.kind.title if facts.alone else ""
    kind = kind or (_only_call(facts) if CAUSES[spot.cause].names_call else "")
    title = say("{}: {}", title, kind) if kind else title
    title = say("{} on another thread", title) if elsewhere else title
    place = typed.nvtx(facts.path[-1], LONGEST_PLACE) if facts.placed and facts.path else ""
    where = say("{}{}in {}", "" if facts.whole else "mostly ", "awaited " if elsewhere else "", place)
    return say("{}, {}", title, where) if place else title


def _only_call(facts: SpotFacts) -> Sentence:
    """The call that almost all of the hotspot's time is in; empty if there is none."""
    total = sum(ns for ns, _ in facts.calls.values())
    only = (text for text, (ns, _) in facts.calls.items() if ns >= ALMOST_ALL * total)
    return next((text for text in only if facts.call_of.get(text) == text), "")


def _finding_kind(context: FindingContext, facts: SpotFacts) -> FindingKind | UnsetType:
    if _builds(facts.spot):
        return UNSET
    if _unseen(context, facts.spot):
        return "unseen"
    return "operators" if facts.kind.hint == Hint.IN_OPERATORS else UNSET


def _variant(facts: SpotFacts) -> str:
    """The id of the kind that a hotspot is limited to; of waits for input also that of almost all of it, which says
    what to fix."""
    spot = facts.spot
    if spot.kind is not None:
        return CAUSES[spot.cause].variants[spot.kind].id
    told = spot.cause == INPUT_WAIT and facts.alone and facts.kind.title and not spot.rest
    return facts.kind.id if told else ""


def _confidence(device: DeviceReport, context: FindingContext, facts: SpotFacts) -> float:
    """Coverage is about the host: what the device did is known, what was not recorded is not. Time that only counts for
    the cause because wake-ups were followed is as sure as they are."""
    rule, slices = CAUSES[facts.spot.cause], facts.slices
    if rule.unresolved:
        return RANGE_SAYS if _builds(facts.spot) else 0.0
    known = 1.0 if rule.accepted or device.coverage is None else device.coverage
    known = min(known, DOUBTFUL) if facts.kind.doubtful else known
    share = _followed(context, slices)
    # A chain without hops is as sure as can be: of a wait that led nowhere, which is not what was followed here.
    sure = facts.root.confidence if facts.root is not None and facts.root.hops else UNNAMED_ROOT
    return round(known * (1 - share + share * sure), 4)


def _followed(context: FindingContext, slices: IntArray) -> float:
    """The share of their time that was followed from a wait to another thread."""
    ns = context.gaps.slices.lengths(slices)
    moved = context.attribution.cause[slices] != context.attribution.own[slices]
    return int(ns[moved].sum()) / max(int(ns.sum()), 1)


def _function(facts: SpotFacts) -> Sentence | None:
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


def _named(
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
        known = np.flatnonzero(row >= 0)
        same = np.array([each == call for each in (*words, "")], dtype=np.bool_)
        found[known] = same[code[row[known]]]
    return found


def _worker(facts: SpotFacts, call: Sentence | None) -> Sentence:
    """`the worker reads (pread64)`; empty where workers do several things."""
    if not facts.alone or not facts.kind.title:
        return ""
    return say("{} ({})", facts.kind.title, call) if call else facts.kind.title


def _measured(facts: SpotFacts, *, sampled: bool) -> list[Evidence]:
    """Labels, the calls with most of the time, the longest gap, and idle time behind waits; of host code in a trace
    with CPU samples (`sampled`) also how many of them are in it."""
    calls = [each for each in list(facts.calls.items())[:MOST_EVIDENCE] if facts.call_of.get(each[0]) == each[0]]
    return [
        *(Evidence("label", _worded(label), ns=ns) for label, (ns, _) in list(facts.labels.items())[:MOST_EVIDENCE]),
        *(Evidence("call", call, count, ns) for call, (ns, count) in (calls if facts.spot.lost_ns else [])),
        Evidence("gap", "", 1, int(facts.gaps.ns.max())),
        *([Evidence("idle_behind", "", ns=facts.spot.made_ns)] if facts.spot.made_ns else []),
        *(
            [Evidence("samples", "", facts.code.count)]
            if facts.spot.cause == HOST_CODE and sampled and not facts.code.recorded
            else []
        ),
    ]


def _evidence(context: FindingContext, facts: SpotFacts, measured: list[Evidence]) -> list[Sentence]:
    """What was measured in words, and what CPU samples were in."""
    start = format_moment(int(context.gaps.frame.gaps.start[facts.gaps.longest]))
    done = context.batches.words(facts.slices) if facts.spot.cause == INPUT_WAIT else ""
    said: dict[str, list[Sentence]] = {}
    for each in measured:
        said.setdefault(each.kind, []).append(_said(each, start))
    sampled = [each.words() for each in facts.codes]
    labels, calls, longest, behind = (said.get(kind, []) for kind in ("label", "call", "gap", "idle_behind"))
    return [*labels, *calls, *([done] if done else []), *sampled, *longest, *behind]


def _said(each: Evidence, start: str) -> Sentence:
    """`start` is when the longest gap begins."""
    time, count = format_ns(each.ns or 0), each.count or 0
    if each.kind == "call":
        return say("{}: {} in {} {}", each.name, time, format_count(count), "piece" if count == 1 else "pieces")
    if each.kind == "gap":
        return f"longest: {time} in the gap at {start}"
    if each.kind == "idle_behind":
        return f"{time} of idle time after it: the thread could have launched while it waited"
    return say("{}: {}", each.name, time)


def _worded(label: EvidenceLabel) -> str:
    """A label in a sentence: that of a worker is the title of what it did."""
    return uncapitalized(CAUSES[label.cause].title) if label.cause else label.words


def advice_and_fix(kind: Variant, cause: Cause, frameworks: Iterable[str]) -> tuple[list[Sentence], str]:
    """The advice for this kind and its short form, or else the advice of the cause. A kind with its own name does not
    use the short form of its cause."""
    special = cause.words.advice_for(kind.id)
    advice = special or cause.words.advice_for()
    fix = advice.fix(frameworks) if special or not kind.title else ""
    return list(advice.sentences(frameworks)[:MOST_ADVICE]), fix or kind.fix


def _naming(facts: SpotFacts, call: Sentence | None) -> list[Sentence]:
    """Advice for host code that CPU samples name only as main: add NVTX ranges, as a profile exists already."""
    known = facts.path or facts.advised or not names_nothing(call)
    if facts.spot.cause != HOST_CODE or not (facts.code.count and call) or known:
        return []
    return [say("First find out what it does: most CPU samples are in {}, so add NVTX ranges. {}", call, THEN)]


def _with_row(context: FindingContext, facts: SpotFacts, advice: list[Sentence]) -> list[Sentence]:
    """Advice for waits that others follow in a row: each alone would leave the wait to the next one."""
    waits = context.waits
    if not len(facts.waits.code):
        return [*advice]
    near: BoolArray = waits.spans.start[1:] - waits.spans.end[:-1] <= READ_BACK_NS
    near &= waits.leading[1:] == waits.leading[:-1]
    mine = (np.append(near, False) | np.append(False, near)) & np.isin(waits.leading, facts.waits.code)
    mine[facts.waits.code] = False
    behind = sorted({waits.names[code] for code in distinct_values(waits.name[mine]).tolist()})
    if not behind or not advice:
        return [*advice]
    verb = "waits" if len(behind) == 1 else "wait"
    same = say("{} {} next to it {} for the same work: avoid both.", advice[0], typed.listed(behind), verb)
    return [same, *advice[1:]]


def _chain(context: FindingContext, facts: SpotFacts, fix: str) -> list[Sentence]:
    """Root, effect, where it shows, fix."""
    cause, gaps = facts.spot.cause, facts.gaps
    call = next(iter(facts.calls), None)
    opening = opening_step(
        cause,
        call=call,
        label=_label(facts, call),
        thread=thread_words(*gaps.threads(context.gaps)),
        code=joined(", ", map(typed.symbol, map(normal_kernel, list(facts.code.functions)[:MOST_SYMBOLS]))),
    )
    effect = effect_step(
        cause,
        total_ns=int(gaps.ns.sum()),
        longest_ns=int(gaps.ns.max()),
        median_ns=gaps.median_ns,
        count=len(gaps.gap),
        made=facts.spot.mostly_made,
    )
    if _builds(facts.spot) and cause == FALLBACK:
        opening = say("{} is in a range that compiles", thread_words(*gaps.threads(context.gaps)))
    following = context.keys.next_names[int(context.keys.following[gaps.typical(context.keys)])]
    roots = steps_from_root(facts.root, cause)
    return [*(roots or [opening]), effect, shown_step(following, facts.path), fix]


def _label(facts: SpotFacts, call: Sentence | None) -> EvidenceLabel | None:
    """The label of most of the hotspot's time, next to a call; what is no call says as much itself."""
    label, (ns, _) = next(iter(facts.labels.items()), (None, (0, 0)))
    return label if 2 * ns > facts.spot.lost_ns and (call is None or facts.call_of.get(call)) else None


def _rows(context: FindingContext, facts: SpotFacts) -> list[EvidenceRow]:
    """The rows behind the longest slices, or the calls that made most idle time."""
    most = context.thresholds.rows
    if not facts.spot.mostly_made:
        return context.sightings.rows(facts.slices, most)
    begun, made = context.waits.spans.start[facts.waits.code[:most]], facts.waits.total[:most]
    return [context.sightings.call_from(at, ns) for at, ns in zip(begun.tolist(), made.tolist(), strict=True)]


# The steps of a causal chain in words: root, effect, where it shows.


_ON_THREAD = "{call}{label} on {thread}"
_ON_DEVICE = "{title}{label}"


def thread_words(thread: Thread | None, others: int) -> Sentence:
    """The thread with most of it, and how many more there are: `thread 4242 'python' and 2 more`."""
    if thread is None:
        return "an unknown thread"
    name = say(" '{}'", typed.thread(thread.name)) if thread.name else ""
    return say("thread {}{}", thread.tid, name) + (f" and {others} more" if others else "")


def opening_step(
    cause: str, *, call: Sentence | None, label: EvidenceLabel | None, thread: Sentence, code: Sentence
) -> Sentence:
    """The first step of a chain; `code` names the functions in CPU samples."""
    rule = CAUSES[cause]
    pattern = rule.opening or (_ON_THREAD if rule.side in ("host", "root") else _ON_DEVICE)
    return say(
        pattern,
        call=call or uncapitalized(rule.title),
        label=f" ({label.words})" if label else "",
        thread=thread,
        title=uncapitalized(rule.title),
        code=say(": {}", code) if code else "",
    )


def effect_step(cause: str, *, total_ns: int, longest_ns: int, median_ns: int, count: int, made: bool) -> str:
    """The effect on the device, over `count` gaps."""
    times = f"{format_ns(median_ns)} at a time, {format_count(count)} times"
    if 2 * median_ns * count < total_ns:
        times = f"{format_ns(total_ns)} in {format_count(count)} gaps, {format_ns(longest_ns)} in the longest"
    if 2 * longest_ns >= total_ns:
        rest = f", and {format_ns(total_ns - longest_ns)} in {format_count(count - 1)} more" if count > 1 else ""
        times = f"{format_ns(longest_ns)} in one gap{rest}"
    if made:
        return f"the queue is empty when the call returns, and stays empty for {times}"
    late = CAUSES[cause].side in ("host", "call", "root")
    return f"the queue is empty for {times}" if late else f"the device waits {times}"


def shown_step(next_operation: str, path: list[str]) -> Sentence:
    """Where it shows."""
    inside = say(" in {}", joined(" › ", map(typed.nvtx, path))) if path else ""
    return say("idle before {}{}", typed.kernel(next_operation), inside)


def steps_from_root(root: Root | None, cause: str) -> list[Sentence]:
    """The steps from the root to the wait, where wake-ups were followed there and led to `cause`."""
    return root.chain[::-1] if root is not None and root.cause in ("", cause) else []
