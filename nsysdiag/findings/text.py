"""The text of one hotspot: its title, where it is, its causal chain, its evidence and its advice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.bottlenecks import promised
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, IN_LAUNCH_CALL, INPUT_WAIT, bottlenecks_of_cause
from nsysdiag.causes.cause import Cause, Hint, Variant
from nsysdiag.causes.device_side import DISPATCH
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.diagnosis.sentences import HANGS, UNSEEN_TITLE
from nsysdiag.fields import Sentence
from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.facts import Evidence, EvidenceRow, Finding, FindingKind, names_nothing
from nsysdiag.findings.hotspots import Hotspot, SpotGaps
from nsysdiag.findings.rules import severity
from nsysdiag.findings.spot_facts import (
    ALMOST_ALL,
    FindingContext,
    SpotFacts,
    between_calls,
    function_of,
    named_parts,
    spot_facts,
)
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.report import DeviceReport, Thread
from nsysdiag.trace.capabilities import CPU_SAMPLES, KINDS, NEVER_NONE, OS_RUNTIME, REFUSED, SCHEDULING
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_moment, format_ns, listed, mostly, uncapitalized

MOST_EVIDENCE, MOST_ADVICE, MOST_SYMBOLS, LONGEST_PLACE = 4, 3, 2, 60
"""Labels, and also calls, that are evidence of a finding; MOST_ADVICE: sentences of its advice; MOST_SYMBOLS: functions
in its first step; LONGEST_PLACE: characters of an NVTX range in its title. Round numbers: they change how long a
finding is, not what is found."""
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
"""Confidence that code is compiled if a range of the program is named so, and nothing else shows the thread."""
MANY_LAUNCHES = 10
"""Gaps: a graph, or fused kernels, help if launches are many."""
DOUBTFUL = 0.5
"""The most confidence in a kind of a cause that something else looks like."""
UNNAMED_ROOT = 0.5
"""Confidence of a root cause that no described gap has."""


class Told(NamedTuple):
    """The finding on a hotspot, and the id of the variant of its cause that most of it is of."""

    finding: Finding
    kind: str


def told_of(device: DeviceReport, context: FindingContext, shares: Shares, spot: Hotspot) -> Told:
    """The finding on a hotspot; `shares` are its rows."""
    rule, judged = CAUSES[spot.cause], context.judged
    facts = spot_facts(device, context, shares, spot)
    advice, fix = advice_and_fix(facts.kind, rule, context.frameworks)
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
    call = function_of(facts)
    loads = spot.cause == INPUT_WAIT
    elsewhere = not loads and facts.followed >= ALMOST_ALL
    named = named_parts(context, facts, shares, call, elsewhere=elsewhere)
    worker = _worker(facts, call) if loads else ""
    leading = mostly(((each.text, ns) for each, ns in named), spot.counted_ns, judged.ns)
    measured = _measured(facts, sampled=len(context.gaps.samples.position) > 0)
    summary = leading if elsewhere else between_calls(context, facts, shares)
    place = say(", awaited in {}", typed.nvtx(facts.path[-1], LONGEST_PLACE)) if facts.path else ""
    ceiling = min(spot.ceiling_ns, judged.compute_ns) if rule.overlapped else spot.ceiling_ns
    finding = Finding(
        id=_id(spot, facts),
        cause=spot.cause,
        device=device.key,
        severity=severity(judged.share(spot.ceiling_ns), context.thresholds, unresolved=rule.unresolved),
        title=_title(context, facts, elsewhere),
        lost_ns=spot.lost_ns,
        lost_share=round(judged.share(spot.lost_ns), 6),
        ceiling_ns=ceiling if promised(spot.bottleneck) else 0,
        confidence=_confidence(device, context, facts),
        nvtx=facts.path,
        evidence=_evidence(context, facts, measured),
        measured=measured,
        advice=[*_naming(facts, call), *_with_row(context, facts, advice)][:MOST_ADVICE],
        signature=context.keys.signature(facts.typical),
        call=call,
        gaps=len(facts.gaps.gap),
        chain=_chain(context, facts, fix),
        rows=_rows(context, facts),
        devices=[device.key],
        bottleneck=spot.bottleneck,
        share=round(judged.share(spot.counted_ns), 6),
        variant=_variant(facts),
        kind=_finding_kind(context, facts),
        summary=say("{}{}", worker, place) if worker else summary,
        named=[] if worker else [replace(each, share=round(judged.share(ns), 6)) for each, ns in named],
    )
    return Told(finding, facts.kind.id)


def _id(spot: Hotspot, facts: SpotFacts) -> str:
    """An id that is the same in every trace of the program and on every device: by cause, bottleneck, variant and
    place."""
    bottleneck = "" if spot.bottleneck == CAUSES[spot.cause].bottleneck else f"-{spot.bottleneck}"
    if spot.rest:
        return f"f-{spot.cause}{bottleneck}-rest"
    if spot.kind is None:
        return f"f-{spot.cause}{bottleneck}"
    text = "\x1f".join((facts.kind.id, *facts.path))
    place = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"f-{spot.cause}{bottleneck}-{place}"


def _builds(spot: Hotspot) -> bool:
    """Whether this is host code, or time without evidence, inside a range that compiles."""
    return spot.bottleneck == "startup" and spot.bottleneck not in bottlenecks_of_cause(spot.cause)


def _unseen(context: FindingContext, spot: Hotspot) -> bool:
    """Whether nothing explains this time as the trace shows nothing of the host but its CUDA calls."""
    return context.host_unseen and spot.cause == FALLBACK


def _recapture(context: FindingContext) -> tuple[list[Sentence], str]:
    """What to capture that this trace lacks, and its short form; ranges if it lacks nothing."""
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
    """The cause, and its kind and place if almost all of it is of one; `elsewhere`: on another thread."""
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
    rule, share = CAUSES[facts.spot.cause], facts.followed
    if rule.unresolved:
        return RANGE_SAYS if _builds(facts.spot) else 0.0
    known = 1.0 if rule.accepted or device.coverage is None else device.coverage
    known = min(known, DOUBTFUL) if facts.kind.doubtful else known
    # A chain without hops is as sure as can be: of a wait that led nowhere, which is not what was followed here.
    sure = facts.root.confidence if facts.root is not None and facts.root.hops else UNNAMED_ROOT
    return round(known * (1 - share + share * sure), 4)


def _worker(facts: SpotFacts, call: Sentence | None) -> Sentence:
    """`the worker reads (pread64)`; empty if workers do several things."""
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
    effect = effect_step(cause, facts.charged, made=facts.spot.mostly_made)
    if _builds(facts.spot) and cause == FALLBACK:
        opening = say("{} is in a range that compiles", thread_words(*gaps.threads(context.gaps)))
    following = context.keys.words(facts.typical)[1]
    inside = say(" in {}", joined(" › ", map(typed.nvtx, facts.path))) if facts.path else ""
    # Wake-ups were followed to the root, if they led to this cause.
    roots = facts.root.chain[::-1] if facts.root is not None and facts.root.cause in ("", cause) else []
    return [*(roots or [opening]), effect, say("idle before {}{}", typed.kernel(following), inside), fix]


def _label(facts: SpotFacts, call: Sentence | None) -> EvidenceLabel | None:
    """The label of most of the hotspot's time, next to a call; what is not a call says as much itself."""
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


def effect_step(cause: str, gaps: SpotGaps, *, made: bool) -> str:
    """The effect on the device."""
    total_ns, longest_ns, median_ns, count = int(gaps.ns.sum()), int(gaps.ns.max()), gaps.median_ns, len(gaps.gap)
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
