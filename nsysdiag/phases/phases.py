"""The phases of a job: start-up, steady phases, pauses and teardown, and which of them can be judged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import IntArray, Intervals, common_ns, coverage, place_in, subtract, union
from nsysdiag.iterations.loop import Loop
from nsysdiag.phases.facts import FEWEST_REPEATS, Basis, PhaseName
from nsysdiag.phases.merging import LEAST_LENGTH, CutCandidates, job_cuts, merged
from nsysdiag.phases.signal import (
    WINDOWS,
    DeviceSignal,
    job_window,
    job_work,
    loops_of,
    signal_of,
    window_edges,
    working,
)
from nsysdiag.phases.steady import (
    ALIKE,
    REPEATED,
    REPEATED_SHARE,
    TWO_STEPS,
    WARM_UP_SLOWER,
    JobParts,
    busiest,
    cosine,
    few_repeats,
    segments_of,
)
from nsysdiag.phases.steps import (
    SAME_WORK,
    FoundPhase,
    JobPasses,
    Span,
    does_the_work_of,
    is_like,
    named_spans,
    passes_of_job,
    with_few_repeats,
    with_kinds,
    with_steps,
    without_cut_steps,
)

LOOKS = ((WINDOWS, False), (WINDOWS // 4, False), (WINDOWS, True))
"""Numbers of windows, and whether the signal is scaled. Unknown steps as long as a window or two hide all other
changes, and so does a mostly idle device."""
JUDGED_SHARE = 0.1
"""Of the time of all steady phases: a shorter one is not judged."""
LEAST_KERNELS = 0.1
"""Of the kernel time of the job: with less of it in steady phases, these are not what the job does."""
SHORT_STEADY = 0.2
"""Of the time since the first CUDA call: steady phases that take less may be a small part of a start."""
STARTING_OR_UNKNOWN, STARTING = 0.6, 0.4
"""Of the time since the first CUDA call: what start-up, memory and unknown causes take of a start, and of that start-up
and memory. All time before the first work of a GPU is part of a start."""
MANY_NAMED = 20
"""Steps that NVTX ranges name: so many are a loop, however short."""
LEAST_STEADY = 100_000_000
"""In ns. Steady phases that take less, and far less than the start before them, show no steady state. GPU clocks rise
for some tens of milliseconds."""
BUSY_SINCE_START = 0.5
"""Of the time since the first CUDA call: how long a GPU works in a run whose work is done once, so that work and not
the start is most of it. Known starts have up to 17%, such runs 70% and more."""
WEAK_STEADY = 0.5
"""Of the busy time: steady phases that hold less, none of them strong, are not what the job does."""
CHOSEN = "the range was chosen"
INSIDE_STEP = "what repeats is a part of a step"
ONCE, ONE_PASS, NAMED = "nothing repeats", "the capture holds few passes", "the steps were named"


class JobPhases(Struct, frozen=True):
    """The phases of a job in time. They touch and cover its window [start, end), from the first to the last launched
    operation of all devices; a start-up begins before that, with the first CUDA call.

    `judged` are indices into `phases`. `reason` explains the basis. `started` is the end of the last idle time by a
    start-up cause; None without any. `held`: the first work waited for work that is not in the trace."""

    start: int
    end: int
    phases: list[FoundPhase]
    basis: Basis
    reason: str
    judged: list[int]
    started: int | None = None
    held: bool = False

    @property
    def judges_before(self) -> bool:
        """Whether time before the work of a device is judged with it: in a start, and if the user chose it."""
        return self.basis == "cold" or self.reason == CHOSEN

    def basis_of(self, phase: int) -> Basis:
        """The basis of the statement on one judged phase: one with few repeats is not a steady state, whatever others
        are."""
        few = self.basis == "steady" and self.phases[phase].repeats < FEWEST_REPEATS
        return "phase" if few else self.basis


def find_phases(signals: list[DeviceSignal], first_call_ns: int | None, *, narrowed: bool) -> JobPhases:
    """The phases of the job that the devices of `signals` worked for.

    `first_call_ns` is the time of the first CUDA call of its processes, None if it is not known; `narrowed` says
    that the user chose the time, which is then judged as it is: from `first_call_ns` on, if that is before it."""
    window, active = job_window(signals), working(signals)
    if window is None or not active:
        return JobPhases(0, 0, [], "none", "no GPU work was recorded", [])
    lo, hi = window
    if narrowed:
        return _chosen(lo, hi, active, lo if first_call_ns is None else min(first_call_ns, lo))
    loops, inside_run = loops_of(active, lo, hi), all(each.window.inside_run for each in active)
    passes, held = passes_of_job(active, loops), any(each.window.held for each in active)
    if passes is not None:
        first = lo if first_call_ns is None or inside_run else min(first_call_ns, lo)
        return replace(_of_passes(passes, lo, hi, first, active, inside_run=inside_run), held=held)
    judged = _judged(_parts(active, loops, lo, hi), active, loops, first_call_ns)
    if loops and any(each.window.named for each in active):
        judged = _only_named(judged, loops, active)
    return replace(_inside_run(judged) if inside_run else judged, held=held)


def _only_named(found: JobPhases, loops: list[Loop], signals: list[DeviceSignal]) -> JobPhases:
    """The phases with the steps that the user named, and what is next to these."""
    known = {(each.start, each.end): each for each in found.phases if each.name == "steady"}
    spans = named_spans(list(known) if found.basis in ("steady", "phase") else [], loops)
    if spans == list(known):
        phases = _with_outside(found.phases, spans, found.start, signals)
        return replace(found, phases=phases, judged=_within_judged(found, phases))
    steps = [known.get(each) or with_steps(FoundPhase("steady", *each), loops, signals)[0] for each in spans]
    phases = _with_rest(steps, found.phases[0].start, found.end)
    phases = _with_outside(phases, spans, found.start, signals)
    enough = any(each.repeats >= FEWEST_REPEATS for each in steps)
    return JobPhases(found.start, found.end, phases, "steady" if enough else "phase", NAMED, _judged_places(phases))


def _within_judged(found: JobPhases, phases: list[FoundPhase]) -> list[int]:
    """The places of the `phases` that are, or are a part of, those which were judged in `found`."""
    judged = [found.phases[at] for at in found.judged]
    return [at for at, each in enumerate(phases) if any(one.start <= each.start < one.end for one in judged)]


def _with_outside(
    phases: list[FoundPhase], steps: list[Span], lo: int, signals: list[DeviceSignal]
) -> list[FoundPhase]:
    """The phases; what is next to the steps and does their work is outside of them, from the first work of a device on,
    at `lo`."""
    found: list[FoundPhase] = []
    for phase in phases:
        begin = max(phase.start, lo)
        if phase.name == "steady" or begin >= phase.end or not is_like((begin, phase.end), steps, signals):
            found.append(phase)
            continue
        found += [replace(phase, end=begin)] if phase.start < begin else []
        found.append(replace(phase, name="outside", start=begin))
    return found


def _of_passes(
    passes: JobPasses, lo: int, hi: int, first: int, signals: list[DeviceSignal], *, inside_run: bool
) -> JobPhases:
    """The passes as one phase, and what is before and after them."""
    judged = FoundPhase("steady", *passes.within(lo, hi), repeats=passes.steps.count, steps=passes.steps)
    phases = _with_rest([judged], first, hi, ("head", "tail") if inside_run else ("start-up", "teardown"))
    phases = phases if inside_run else _with_outside(phases, [(judged.start, judged.end)], lo, signals)
    basis: Basis = "window" if judged.repeats == 1 else "phase"
    return JobPhases(lo, hi, phases, basis, ONE_PASS, [phases.index(judged)])


def _inside_run(found: JobPhases) -> JobPhases:
    """The phases of a capture that begins in the middle of a run: what has no start is judged as a whole."""
    if found.basis == "cold":
        whole = FoundPhase("steady", found.start, found.end)
        return JobPhases(found.start, found.end, [whole], "window", ONCE, [0])
    named = [replace(each, name="head") if each.name == "start-up" else each for each in found.phases]
    return replace(found, phases=named)


def _chosen(lo: int, hi: int, signals: list[DeviceSignal], first: int) -> JobPhases:
    """The time that the user chose, from `first` on. It has steps only if the user names them."""
    chosen = _whole(lo, hi, loops_of(signals, lo, hi), signals, CHOSEN)
    (phase,) = chosen.phases
    basis: Basis = "window"
    if phase.steps is not None:
        basis = "steady" if phase.repeats >= FEWEST_REPEATS else "phase"
    return replace(chosen, phases=[replace(phase, start=first)], basis=basis)


def _parts(signals: list[DeviceSignal], loops: list[Loop], lo: int, hi: int) -> JobParts:
    """The parts of the job. If none is steady, the search is repeated with longer windows, and with the devices' work
    scaled up. If that finds no steady part either, the first result is used. Without loops, no part ends inside one of
    a few repeats of the same operations."""
    work = job_work([signal.device for signal in signals], lo, hi)
    if work.most_repeats < REPEATED:  # no part can be steady, wherever the borders are
        return segments_of(np.array([lo, hi], np.int64), loops, signals, work)
    loops = with_kinds(loops, work)
    changes = CutCandidates.of(signals, work, loops)
    repeats = Intervals.empty() if loops else few_repeats(busiest(signals), lo, hi)
    looks: list[JobParts] = []
    for windows, scaled in LOOKS:
        signal = signal_of(signals, work, window_edges(lo, hi, loops, windows))
        cuts = job_cuts(signal.scaled() if scaled else signal, changes)
        looks.append(merged(_outside(repeats, cuts), loops, signals, work))
        if looks[-1].steady.any():
            return looks[-1]
    return looks[0]


def _outside(repeats: Intervals, cuts: IntArray) -> IntArray:
    """The cuts outside of the repeats; one inside the first is where that begins."""
    at = place_in(repeats, cuts)
    moved = np.where(at == 0, repeats.start[:1].sum(), cuts)
    return distinct_values(moved[(at <= 0) | (cuts == np.append(repeats.start, 0)[at])])


def _judged(found: JobParts, signals: list[DeviceSignal], loops: list[Loop], first_call_ns: int | None) -> JobPhases:
    lo, hi = int(found.borders[0]), int(found.borders[-1])
    first = min(lo if first_call_ns is None else first_call_ns, lo)
    phases = _named(found, loops, signals, first)
    open_loop = any(phase.loop is not None and phase.loop.in_one_pass for phase in phases if phase.name == "steady")
    if open_loop:
        return _whole(lo, hi, loops, signals, INSIDE_STEP)
    once = _runs_once(found, phases, signals)
    # A kernel that waits for pages of unified memory does no work meanwhile.
    works = union(*(subtract(each.split.busy, each.memory) for each in signals))
    if once and works.total() >= BUSY_SINCE_START * (hi - first):
        return _whole(lo, hi, loops, signals, once)
    cold = _cold(found, phases, signals, once, hi - first)
    if cold:
        started = max((int(each.startup.end[-1]) for each in signals if len(each.startup)), default=None)
        return JobPhases(lo, hi, phases, "cold", cold, list(range(len(phases))), started)
    phases = _with_work_of_one(phases, lo, loops, signals)
    judged = _judged_places(phases)
    phases = _with_unjudged_work(phases, signals)
    enough = any(phases[at].repeats >= FEWEST_REPEATS for at in judged)
    if enough:
        return JobPhases(lo, hi, phases, "steady", "work repeats", judged)
    return JobPhases(lo, hi, phases, "phase", "work repeats less than five times", judged)


def _repeating_ns(found: JobParts, phases: list[FoundPhase], signals: list[DeviceSignal]) -> int:
    """How long the devices work in steady parts, and in the slow first repeats before such, a sum over devices."""
    slow = [
        (phase.start - phase.steps.warm_up_ns, phase.end) for phase in phases if phase.steps and phase.steps.warm_up_ns
    ]
    steady = Intervals(found.borders[:-1][found.steady], found.borders[1:][found.steady])
    repeating = union(steady, Intervals.of(slow))
    return sum(common_ns(repeating, signal.split.busy) for signal in signals)


def _whole(lo: int, hi: int, loops: list[Loop], signals: list[DeviceSignal], reason: str) -> JobPhases:
    """The window as the one phase."""
    phase, _ = with_steps(FoundPhase("steady", lo, hi), [loop for loop in loops if not loop.in_one_pass], signals)
    return JobPhases(lo, hi, [phase], "window", reason, [0])


def _runs_once(found: JobParts, phases: list[FoundPhase], signals: list[DeviceSignal]) -> str:
    """Why what repeats is not what the job does; empty if it may be."""
    if not found.steady.any():
        return ONCE
    if _is_short(phases):
        return "what repeats is short"
    if found.strong.any():
        return ""
    if found.kernel_ns[found.steady].sum() < LEAST_KERNELS * found.kernel_ns.sum():
        return "what repeats takes little of the kernel time"
    once = _repeating_ns(found, phases, signals) < WEAK_STEADY * found.busy_ns.sum()
    return "most of the work runs once" if once else ""


def _is_short(phases: list[FoundPhase]) -> bool:
    """Whether all that repeats is over soon after a far longer start, and is not a loop of many steps that the program
    names."""
    steps = [phase.steps for phase in phases if phase.name == "steady" and phase.steps is not None]
    if any(each.source != "anchor" and each.count >= MANY_NAMED for each in steps):
        return False
    steady, start = (_length(phases, name) for name in ("steady", "start-up"))
    return steady < LEAST_STEADY and steady < SHORT_STEADY * (steady + start)


def _cold(found: JobParts, phases: list[FoundPhase], signals: list[DeviceSignal], once: str, since_start: int) -> str:
    """Why the trace holds no more than the start of a program; empty if it does. `once` says why what repeats is not
    what the job does, `since_start` is the time since the first CUDA call in ns. A loop that goes on for long enough is
    no start, however little it works."""
    if _length(phases, "steady") >= SHORT_STEADY * since_start:
        return ""
    window = found.borders[[0, -1]]
    span = Intervals(window[:1], window[1:])
    time = np.array([[coverage(each, span)[0] for each in (one.startup, one.memory, one.unknown)] for one in signals])
    startup, memory, unknown = time.mean(axis=0) / since_start
    starting = startup + memory + 1 - int(window[1] - window[0]) / since_start
    long_start = starting >= STARTING and starting + unknown >= STARTING_OR_UNKNOWN and not found.strong.any()
    return once or ("start-up takes most of the time" if long_start else "")


def _length(phases: list[FoundPhase], name: PhaseName) -> int:
    return sum(phase.end - phase.start for phase in phases if phase.name == name)


def _judged_places(phases: list[FoundPhase]) -> list[int]:
    """The strong phases, and those that take enough of the steady time."""
    steady = [at for at, phase in enumerate(phases) if phase.name == "steady"]
    time = sum(phases[at].end - phases[at].start for at in steady)
    return [at for at in steady if phases[at].strong or phases[at].end - phases[at].start >= JUDGED_SHARE * time]


def _with_unjudged_work(phases: list[FoundPhase], signals: list[DeviceSignal]) -> list[FoundPhase]:
    """The phases; what does the work of the steady phase before it is not a pause or a teardown, but steady. Such a
    part is too short to be judged."""
    most = JUDGED_SHARE * _length(phases, "steady")
    named = list(phases)
    for at, phase in enumerate(phases):
        if phase.name in ("pause", "teardown") and phase.end - phase.start < most:
            before = phases[at - 1]
            works = does_the_work_of((phase.start, phase.end), (before.start, before.end), signals)
            named[at] = replace(phase, name="steady") if works else phase
    return named


def _with_work_of_one(
    phases: list[FoundPhase], lo: int, loops: list[Loop], signals: list[DeviceSignal]
) -> list[FoundPhase]:
    """The phases; if one of several devices goes on with its work, or begins earlier than the others, the job does
    not start, pause or end. What is as short as a step may be a slow one.

    ```
    gpu0     |=====|=====|=====|                       ends first
    gpu1     |===|===|===|===|===|===|===|===|===|
    phases   |      steady     |      steady     |
    ```
    """
    steady = [(each.start, each.end) for each in phases if each.name == "steady"]
    longest = max((each.steps.median_ns for each in phases if each.steps is not None), default=0)
    named: list[FoundPhase] = []
    for phase in phases:
        part = (max(phase.start, lo), phase.end)
        least = TWO_STEPS if phase.name == "start-up" else 1
        looked = phase.name != "steady" and len(signals) > 1 and part[1] - part[0] > least * longest
        works = looked and any(does_the_work_of(part, each, [one]) for each in steady for one in signals)
        made = with_steps(FoundPhase("steady", *part), loops, signals)[0] if works else phase
        warms_up = made.steps is not None and made.steps.median_ns >= WARM_UP_SLOWER * longest
        if not works or (phase.name == "start-up" and warms_up):
            named.append(phase)
            continue
        named += [replace(phase, end=lo)] if phase.start < lo else []
        named.append(made)
    return named


def _named(found: JobParts, loops: list[Loop], signals: list[DeviceSignal], first: int) -> list[FoundPhase]:
    """The phases: steady ones, and all that is between two of them, before the first or after the last as one.

    A start-up begins at `first`, the first CUDA call. If the window begins with a steady phase, the time before it
    is a start-up of its own, unless it is shorter than any phase."""
    lo, hi = int(found.borders[0]), int(found.borders[-1])
    steady: list[FoundPhase] = []
    for at in np.flatnonzero(found.steady).tolist():
        phase = FoundPhase("steady", *found.span(at), bool(found.strong[at]), int(found.repeats[at]))
        phase = without_cut_steps(*with_steps(phase, loops, signals))
        if phase.steps is None and not _within_other_work(found, at):
            phase = with_few_repeats(phase, steady[-1].end if steady else lo, signals)
        steady.append(phase)
    if steady and steady[0].start == lo and lo - first < LEAST_LENGTH * (hi - lo):
        first = lo
    phases = _with_rest(steady, first, hi)
    if phases[-1].name == "teardown" and _goes_on(found):
        at = int(np.flatnonzero(found.steady)[-1])
        phases[-1] = FoundPhase("steady", phases[-1].start, hi, repeats=int(found.repeats[at + 1 :].max()))
    return phases


def _within_other_work(found: JobParts, at: int) -> bool:
    """Whether what a steady part mostly does comes again among other work in steady parts: its few repeats may be the
    layers of one of the steps that these hold."""
    others = [each for each in np.flatnonzero(found.steady).tolist() if cosine(found.mix[at], found.mix[each]) <= ALIKE]
    again = found.mix[at][found.mix[others].sum(axis=0) > 0]
    return bool(again.sum() >= REPEATED_SHARE * found.mix[at].sum())


def _with_rest(
    steady: list[FoundPhase], first: int, hi: int, ends: tuple[PhaseName, PhaseName] = ("start-up", "teardown")
) -> list[FoundPhase]:
    """The steady phases, and what is before the first, between two and behind the last of them in [first, hi)."""
    names: list[PhaseName] = ["pause"] * (len(steady) + 1)
    names[-1], names[0] = ends[1], ends[0]  # without steady phases the only one has the first name
    borders = pairwise([(first, first), *((each.start, each.end) for each in steady), (hi, hi)])
    rest = [FoundPhase(name, end, start) for name, ((_, end), (start, _)) in zip(names, borders, strict=True)]
    return sorted([*steady, *(each for each in rest if each.start < each.end)], key=lambda each: each.start)


def _goes_on(found: JobParts) -> bool:
    """Whether what comes after the last steady part is mostly its work, and works for about as much of the time."""
    steady = np.flatnonzero(found.steady)
    behind = slice(int(steady[-1]) + 1, None) if len(steady) else slice(0)
    last, length = int(steady[-1]) if len(steady) else 0, int(found.lengths[behind].sum())
    busy = float(found.busy[behind] @ found.lengths[behind])
    alike = cosine(found.mix[behind].sum(axis=0), found.mix[last]) > ALIKE
    return length > 0 and alike and busy >= SAME_WORK * float(found.busy[last]) * length
