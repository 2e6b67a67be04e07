"""The sentences of a diagnosis: what takes the time, of which time, and what to fix first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import UNKNOWN, takes_of
from nsysdiag.causes import CAUSES, FALLBACK, THREAD_WAIT
from nsysdiag.diagnosis.facts import FULL_LINK, KERNELS, PACED, UNSEEN, WAITS, Part, noun_of
from nsysdiag.diagnosis.focus import Scope
from nsysdiag.diagnosis.one_problem import EXPLAINED
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import SAME_KERNELS, Finding, Named, kernels_first
from nsysdiag.findings.rules import BEFORE_WORK, OTHER_GPU
from nsysdiag.host.alone import Alone
from nsysdiag.iterations.named import HostLoop
from nsysdiag.phases.facts import PASS, PhaseDevice
from nsysdiag.phases.steps import FoundPhase
from nsysdiag.typed import joined, say
from nsysdiag.units import capitalized, format_count, format_ns, format_share, listed, mostly

RANGE_LENGTH = 60
"""A headline shows the beginning of a long range name."""
NOT_CAPTURED = "what it did was not captured"
UNSEEN_TAKES = f"{capitalized(UNSEEN)} takes"
"""Of unknown time in a trace without OS calls, scheduling events and CPU samples."""
UNSEEN_TITLE = f"{capitalized(UNSEEN)}; {NOT_CAPTURED}"
HANGS = (
    "Capture what the thread did there: NVTX ranges around parts of this code, CPU samples (--sample) and scheduling "
    "events (--cpuctxsw). On Linux capture OS calls too (--trace=osrt). Some programs hang or slow down under OS "
    "tracing and sampling: then use ranges alone."
)
TOO_FEW = "too few to be steady"
MORE_STEPS = "If the program can run more steps, capture these."
"""A trace does not show whether it ended, or continued after the capture."""
DURATION_S = 10
"""Of a capture: time for many steps, and no large trace."""
LITTLE_WORK = 0.01
"""Share of the judged time: if the GPU works less, no finding is about its work."""
SMALL_PART, NEARLY_ALL = 0.05, 0.9
"""Shares of the run: if less is judged, the headline begins with that share, or ends with it."""

NOT_FOLLOWED = "; what that wait was for is not in the trace"
"""Behind a wait for another thread without scheduling events, by which it is followed to what that thread did."""
TOLD = 0.1
"""Share of the time: smaller parts of what is not judged, and smaller limits, are not named."""
MOST_PARTS, NEARLY_ALL_OF_IT = 3, 0.97
"""So many parts of the time that is not judged are named, and less of it than this is said to be most of it."""
OTHERS = {
    "pause": "pauses",
    "steady": "other phases that repeat",
    "head": "the head of the slice",
    "tail": "the tail of the slice",
    "outside": "time outside of the named steps",
}
SLOWED = ("host", "launch")
"""Bottlenecks of time that recording operators and functions makes longer."""
RECORDED = "Operators and functions were recorded: this makes the host slower, and the GPU waits less without it."
NAMED = 0.01
"""Share of the time of what can be fixed first, from which on the headline names it."""
SHOWN = 0.0005
"""The least share that is not shown as 0.0%."""
SAY_THEIR_SHARES = (*KERNELS, BEFORE_WORK.id)
"""Causes whose findings say how much of the time each part of them takes."""
BEFORE_CALLS, BEFORE_OPERATIONS = "time before the first CUDA call", "time before the first GPU work"
BEFORE_KNOWN = "time before the first complete step, in which the trace does not show what the GPU did"
AFTER_OPERATIONS, NOT_IN_TRACE = "time after the last GPU work", "time that is not in the trace"


class BottleneckDetail(NamedTuple):
    """What stands behind the time of a bottleneck, as the end of a sentence. `most` is what more than half of it is."""

    words: Sentence
    most: Named | None = None

    def and_then(self, more: str) -> BottleneckDetail:
        """With more words."""
        return BottleneckDetail(self.words + more, self.most)


NO_DETAIL = BottleneckDetail("")


class Said(Struct, frozen=True):
    """What a headline needs in addition to the account: what is judged, and its length. By bottleneck: the reason, as
    the end of a sentence. Sentences on `unused` GPUs and on MPI `ranks` that are not in the trace. The length of the
    capture, None if unknown. `waiting` is the part of the kernels' share in which other GPUs wait for them, empty if
    small. `recorded_ns` is the time from the first to the last event, 0 if unknown. `work_ns` is the working time of
    the devices in it, a sum over them. `rest` says what else was captured, as the end of a sentence. `sliced`: the
    trace is a slice of the capture. `paced_ns`: the time of a step that the loop waits for. `limit` is a sentence on
    copies that run all the time, empty if none do. `as_shown` is what bottlenecks are shown as, if that is not their
    own name. `profiler` is the share of the profiler's own time, which never leads. `slowed`: operators and functions
    were recorded, which takes time of the host that no row shows."""

    scope: Scope
    judged_ns: int
    details: dict[str, BottleneckDetail]
    unused: str = ""
    duration_ns: int | None = None
    work_ns: int = 0
    waiting: Sentence = ""
    rest: Sentence = ""
    ranks: str = ""
    sliced: bool = False
    limit: Sentence = ""
    paced_ns: int | None = None
    recorded_ns: int = 0
    host_unseen: bool = False
    slowed: bool = False
    as_shown: Mapping[str, str] = {}
    profiler: float = 0.0

    def shown(self, bottleneck: str) -> str:
        """What a bottleneck is shown as."""
        return self.as_shown.get(bottleneck, bottleneck)


def headline(said: Said, bottleneck: str, share: float, second: Part | None, action: Finding | None) -> Sentence:
    """The bottleneck with its share and what it is made of, the next one, and what can be fixed first if that
    is something else."""
    unseen = said.host_unseen and said.shown(bottleneck) == UNKNOWN
    first = f"{UNSEEN_TAKES if unseen else takes_of(said.shown(bottleneck))} {format_share(share, 1)} of {_time(said)}"
    detail = joined(", ", filter(None, (NOT_CAPTURED if unseen else "", said.details.get(bottleneck, NO_DETAIL).words)))
    ahead = action is not None and action.bottleneck != bottleneck and _saves_more(action, share)
    also = say("; “{}” saves more: {}", action.title, action.saves.figure) if ahead and action and action.saves else ""
    sentences: list[Sentence] = [say("{}: {}{}.", first, detail, also) if detail else say("{}{}.", first, also)]
    if said.scope.basis == "cold":
        few = f"only {format_ns(said.scope.few_ns)} of steps, {TOO_FEW}" if said.scope.few_ns else "no steady state"
        steady = f"only {format_ns(said.scope.steady_ns)} of steady state" if said.scope.steady_ns else few
        sentences.insert(0, f"The trace shows a start and {steady}: {format_ns(said.work_ns)} of GPU work.")
    whole = said.duration_ns or said.recorded_ns or said.scope.phases_ns or 0
    if said.judged_ns < SMALL_PART * whole:
        sentences.insert(0, _judged_part(said, whole))
    if said.limit:
        sentences.append(said.limit)
    if said.paced_ns:
        sentences.append(PACED.format(format_ns(said.paced_ns)))
    if said.waiting and bottleneck in KERNELS:
        sentences.append(said.waiting)
    if second is not None:
        noun = noun_of(said.shown(second.bottleneck), host_unseen=said.host_unseen)
        behind = said.details.get(second.bottleneck, NO_DETAIL)
        made_of = say(", mostly {}", behind.most.short or behind.most.text) if behind.most else ""
        if said.host_unseen and said.shown(second.bottleneck) == UNKNOWN and behind.words and not behind.most:
            made_of = say(", {}", behind.words)
        sentences.append(say("Second: {}, {}{}.", noun, format_share(second.share, 1), made_of))
        if said.waiting and second.bottleneck in KERNELS:
            sentences.append(said.waiting)
    sentences += _of_the_profiler(said, {bottleneck, second.bottleneck if second else ""})
    other = action is not None and action.bottleneck not in (bottleneck, second.bottleneck if second else "")
    # So small a share is not a reason to name it here: the finding says what it saves. Unknown time is not fixed.
    other = other and action is not None and action.share >= NAMED and action.bottleneck != UNKNOWN and not ahead
    if action is not None and other and not (bottleneck in KERNELS and action.bottleneck in KERNELS):
        what, share_of_it = capitalized(noun_of(said.shown(action.bottleneck))), format_share(action.share, 1)
        when = "as well" if kernels_first(bottleneck, share, action) else "first"
        more = f", and saves {action.saves.figure}" if action.saves and _saves_more(action, action.share) else ""
        sentences.append(f"{what} ({share_of_it}) can be fixed {when}{more}.")
    sentences += [each for each in (said.unused, said.ranks) if each]
    if SMALL_PART * whole <= said.judged_ns < NEARLY_ALL * whole:
        sentences.append(_judged_part(said, whole))
    if said.scope.basis == "cold" and (bottleneck != "unknown" or said.scope.later is not None):
        sentences.append(_another_capture(said))
    return joined(" ", sentences)


def _of_the_profiler(said: Said, named: set[str]) -> list[Sentence]:
    """What the profiler takes, and what it makes longer of the bottlenecks that are `named`."""
    own: list[Sentence] = (
        [f"The profiler itself takes {format_share(said.profiler, 1)}."] if said.profiler >= TOLD else []
    )
    return own + ([RECORDED] if said.slowed and not named.isdisjoint(SLOWED) else [])


def _judged_part(said: Said, whole: int) -> Sentence:
    """The time of which the judged time is a part, and what the rest is."""
    length, part = format_ns(said.judged_ns), format_share(said.judged_ns, whole)
    if said.sliced and not said.rest:
        return f"The trace is a slice: {length} ({part}) of a session of {format_ns(whole)}."
    if not (said.duration_ns or said.recorded_ns):  # then the phases are all that is known, and the others are listed
        return f"The {length} judged are {part} of the {format_ns(whole)} since the first CUDA call."
    seen = "captured" if said.duration_ns else "recorded"
    return say("The {} judged are {} of the {} {}{}.", length, part, format_ns(whole), seen, said.rest)


def _another_capture(said: Said) -> str:
    """What to capture instead of a start: a later time only if the trace shows work then."""
    if said.scope.later is not None:
        return f"To see more, capture a later part: nsys profile --delay={said.scope.later} --duration={DURATION_S}."
    if said.work_ns < LITTLE_WORK * said.judged_ns:
        return f"There is nothing to tune on the GPU here. {MORE_STEPS}"
    return MORE_STEPS


def rest_of_capture(scope: Scope, run: tuple[int, int], judged_ns: int, *, sliced: bool = False) -> Sentence:
    """What a run from its begin to its end, in ns, holds besides the judged time, as the end of a sentence; empty if
    unknown. `sliced`: the trace holds a part of the run."""
    if scope.phases is None:
        return ""
    before, behind = max(scope.phases[0] - run[0], 0), max(run[1] - scope.phases[1], 0)
    if scope.chosen:
        return f": the chosen time, which leaves out {format_ns(max(run[1] - run[0] - judged_ns, 0))}"
    parts = {OTHERS.get(name, name): ns for name, ns in scope.others.items()}
    if sliced:
        if not parts:
            return ""
        parts[NOT_IN_TRACE] = before + behind
    else:
        unknown = BEFORE_KNOWN if scope.held else BEFORE_OPERATIONS
        parts |= {BEFORE_CALLS if scope.started else unknown: before, AFTER_OPERATIONS: behind}
    large = [name for name in sorted(parts, key=lambda name: -parts[name]) if parts[name] >= TOLD * sum(parts.values())]
    large = [name for name in large if parts[name]][:MOST_PARTS]
    told = sum(parts[name] for name in large)
    rest = "the rest" if told >= NEARLY_ALL_OF_IT * sum(parts.values()) else "most of the rest"
    pages = f"; pages of unified memory move for {format_ns(scope.paged_ns)} of it" if scope.paged_ns else ""
    before_it, behind_it = scope.around
    did = {
        BEFORE_CALLS: before_it,
        BEFORE_OPERATIONS: before_it,
        AFTER_OPERATIONS: behind_it,
        OTHERS["pause"]: scope.paused,
    }
    named = []
    # What was done is said of the largest part alone that does not repeat: a headline is read in one breath.
    largest = next((name for name in large if name != OTHERS["steady"]), None)
    for name in large:
        what = did.get(name) if name == largest else None
        paged = pages if name == AFTER_OPERATIONS else ""
        named.append(say("{} ({}{}{})", name, format_ns(parts[name]), say(": {}", what) if what else "", paged))
    return say("; {} is {}", rest, typed.listed(named)) if large else ""


def _saves_more(action: Finding, share: float) -> bool:
    """Whether even the low bound of what it saves is more than a share, by so much that a reader sees it."""
    saves = action.saves
    return saves is not None and saves.has_bounds and saves.low_ns > (share + EXPLAINED) * saves.of_ns


def seen_elsewhere(findings: list[Finding]) -> list[Finding]:
    """Findings of a rank whose trace shows nothing of its host, if another rank's shows more: time that nothing
    explains has the title that it has there, so that both are one finding."""
    title = CAUSES[FALLBACK].title
    return [
        replace(each, title=title + typed.without(UNSEEN_TITLE, each.title)) if each.kind == "unseen" else each
        for each in findings
    ]


def unrecorded(
    loop: HostLoop | None, alone: Alone | None = None, *, cuda_asked: bool = False, elsewhere: bool = False
) -> Sentence:
    """That no GPU activity was recorded, or none in the chosen time, but `elsewhere`; whether there were CUDA calls;
    and what the host did instead: what repeats there, and the thread that did most."""
    alone = alone or Alone()
    first: Sentence = "No GPU activity was recorded"
    if elsewhere:
        first = "No GPU worked in the chosen time: all GPU activity that was recorded is before or after it."
    elif alone.cuda:
        first += say(", although the program made {}", alone.cuda)
    elif cuda_asked:
        first += ". The trace was recorded with CUDA tracing; the program made no CUDA call in it."
    else:
        first += ", so what the GPU did is unknown."
    waits = "" if cuda_asked and not alone.cuda else "Host ranges may include waits for the GPU."
    return joined(" ", filter(None, (first, _repeats(loop, alone.looping), waits if loop else "", alone.busiest)))


def _repeats(loop: HostLoop | None, thread: Sentence) -> Sentence:
    if loop is None:
        return ""
    longest, *others = loop.ranges
    takes = say("{} takes {} of that time", typed.nvtx(longest.name, RANGE_LENGTH), format_share(longest.share, 1))
    also = [say("{} {}", typed.nvtx(each.name, RANGE_LENGTH), format_share(each.share, 1)) for each in others]
    who = say("On the host {} repeats a loop", thread) if thread else "On the host a loop repeats"
    every = f"{format_count(longest.count)} times, every {format_ns(loop.period_ns)}"
    return say("{} {}: {}.", who, every, joined(", ", [takes, *also]))


def phase_sentence(
    phase: FoundPhase, length_ns: int, bottleneck: str, share: float, did: Sentence, *, host_unseen: bool = False
) -> Sentence:
    """One phase in a sentence; the share is one of its length. `did` is what took most of it, empty for none."""
    length = format_ns(length_ns)
    steps = f", {phase.steps.words}" if phase.steps is not None else ""
    name = PASS if phase.steps is not None and phase.steps.kind == PASS else phase.name
    most = f"{noun_of(bottleneck, host_unseen=host_unseen)} {format_share(share, 1)}"
    return say("{}, {}{}: {}{}.", capitalized(name), length, steps, most, did and "; " + did)


def verdict_sentence(bottleneck: str, share: float, second: Part | None, *, host_unseen: bool = False) -> str:
    """One device in a sentence."""
    begin = UNSEEN_TAKES if host_unseen and bottleneck == UNKNOWN else takes_of(bottleneck)
    text = f"{begin} {format_share(share, 1)} of the judged time"
    return (
        f"{text}; second: {noun_of(second.bottleneck, host_unseen=host_unseen)}, {format_share(second.share, 1)}."
        if second
        else f"{text}."
    )


def limit_sentence(findings: list[Finding]) -> Sentence:
    """That copies run all the time, whatever takes most time of the account, or that kernels take longer in some steps
    than in others; empty if neither is so."""
    full = next((each for each in findings if each.variant == FULL_LINK and each.share >= TOLD), None)
    if full is not None:
        return say("The copy engine is the limit: {}.", typed.uncapitalized(full.summary))
    slower = next((each for each in findings if each.variant == SAME_KERNELS), None)
    return say("{}.", typed.capitalized(slower.summary)) if slower is not None else ""


def action_sentence(action: Finding) -> Sentence:
    """What to fix first, and what that saves."""
    advice = action.advice[0] if action.advice else action.title
    return (
        say("{}: saves {}. {}", action.title, action.saves.words, advice)
        if action.saves
        else say("{}. {}", action.title, advice)
    )


def _time(said: Said) -> str:
    phase = said.scope.phase
    if phase is not None and phase.steps is not None and phase.steps.kind == PASS:
        return f"the one pass in the trace ({format_ns(said.judged_ns)})"
    steps = phase.steps if phase is not None and said.scope.basis in ("steady", "phase") else None
    length = format_ns(said.judged_ns)
    if steps is not None and not steps.of_the_program:
        return f"{said.scope.which or 'the judged time'} ({length})"
    if steps is not None:
        few = f"{format_count(steps.count)} of them, {TOO_FEW}" if said.scope.basis == "phase" else ""
        first = steps.warm_up_ns
        warm_up = f"one before them took {format_ns(first)}" if first is not None else ""
        return f"each step ({', '.join(filter(None, (said.scope.which, steps.length, few, warm_up)))})"
    if said.scope.basis == "steady":
        return f"{said.scope.which or 'the steady phase'} ({length})"
    if said.scope.basis == "phase":
        return f"{said.scope.which or 'the part that repeats'} ({length}, {TOO_FEW})"
    return f"the {length} judged{', a part of one step' if said.scope.inside_step else ''}"


def waiting_sentence(findings: list[Finding], least: float) -> Sentence:
    """The part of all GPUs' time in these findings on waits for kernels of other GPUs, and the waiting GPUs; empty
    below `least`."""
    share = sum(each.share for each in findings)
    if not findings or share < least:
        return ""
    one = findings[0] if len(findings) == 1 and len(findings[0].devices) == 1 else None
    who = one.summary if one else "GPUs wait for kernels of other GPUs"
    return say("This includes {} in which {}.", format_share(share, 1), who)


def waiting_part(device: PhaseDevice, least: float) -> str:
    """The part of its time in which a device waits for others, and for which ones, longest first; empty below
    `least`."""
    waited = summed({each.device: each.ns} for each in device.waited)
    share = sum(waited.values()) / max(sum(device.account.values()), 1)
    others = sorted(waited, key=lambda key: (-waited[key], key))
    return f"for {format_share(share, 1)} of it this GPU waits for {listed(others)}" if share >= least else ""


def details_of(
    findings: list[Finding], account: Mapping[str, float], *, scheduled: bool
) -> dict[str, BottleneckDetail]:
    """By bottleneck what stands behind it: that of the finding with most time, of those that say it; `account` holds
    the bottlenecks' shares of the time. Waits for another GPU say what that one did, not why; but those that stay waits
    are why. Without scheduling (`scheduled` is false) no wait for another thread can be followed to what that thread
    did, which is said."""
    causes = [each for each in findings if each.cause != OTHER_GPU.id or each.bottleneck == WAITS]
    told = [(each, detail_of(each, account.get(each.bottleneck, each.share))) for each in causes]
    said = sorted((each.share, detail.words, each.id, each, detail) for each, detail in told if detail.words)
    found = {
        each.bottleneck: (each, detail if scheduled or each.cause != THREAD_WAIT else detail.and_then(NOT_FOLLOWED))
        for *_, each, detail in said
    }
    largest = {each.bottleneck: each for each in sorted(causes, key=lambda each: (each.share, each.id))}
    return {name: _or_larger(each.share, detail, largest[name]) for name, (each, detail) in found.items()}


def _or_larger(share: float, detail: BottleneckDetail, largest: Finding) -> BottleneckDetail:
    """The detail of a finding with this share; the title of a larger one that has no detail, with its share."""
    if share >= largest.share or detail.most or largest.bottleneck == UNKNOWN:
        return detail
    return BottleneckDetail(say("{} {}", typed.uncapitalized(largest.title), format_share(largest.share, 1)))


def detail_of(finding: Finding, whole: float) -> BottleneckDetail:
    """The reason of a share `whole` of the time, by its largest finding: the call, and where in the program. What is
    not most of it has its own share. No words if nothing of it has a name."""
    if finding.named and finding.cause not in KERNELS:
        most = next((each for each in finding.named if 2 * each.share > whole), None)
        return BottleneckDetail(mostly(((each.text, each.share) for each in finding.named), whole), most)
    # `mostly between` two calls is of the finding alone.
    least = NEARLY_ALL_OF_IT if finding.cause == FALLBACK else 0.5
    if finding.cause in SAY_THEIR_SHARES or finding.share > least * whole:
        return BottleneckDetail(finding.summary)
    shown = finding.summary and finding.share >= SHOWN
    return BottleneckDetail(say("for {} {}", format_share(finding.share, 1), finding.summary)) if shown else NO_DETAIL
