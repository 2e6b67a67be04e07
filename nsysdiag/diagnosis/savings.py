"""Findings of all devices as the job's: merged, with what each would save of a step, in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.behind import counts_before, is_behind
from nsysdiag.diagnosis.facts import KERNELS, OVERHEAD, REPLAY, AtMost, Predicted, Saves, TooMany
from nsysdiag.diagnosis.one_problem import (
    ABOUT,
    BEFORE_EACH,
    EXPLAINED,
    HIDDEN,
    OTHER_WORK,
    Judged,
    bound_of,
    each_advice_once,
    each_problem_once,
    most_saved,
    note_of,
    replayed_note,
    touched_share,
    waits_for_kernels,
)
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding, Named
from nsysdiag.findings.kernels import kinds_in_words
from nsysdiag.findings.rules import BEFORE_WORK, EXPOSED_COPY, LATE_RANK, SLOW_ITERATIONS, severity
from nsysdiag.phases.facts import PhaseSteps
from nsysdiag.typed import NameMark, Phrase, joined, parts
from nsysdiag.units import format_ns

STEP, WINDOW = "step", "window"
PACED_AT = "the loop is paced at {}"
"""The note if little is saved as the loop waits for a time in each step."""


Predict = Callable[[Finding, Sequence[Finding], float], Predicted | str]
"""The saving of a finding among all by replay, no more than a share; or why nothing is predicted."""


def predict_of(told: Predict | str) -> Predict:
    """A function that predicts savings, or the reason why there are no predictions."""
    return (lambda _finding, _among, _most: told) if isinstance(told, str) else told


def job_findings(
    found: list[Finding],
    judged: dict[str, Judged],
    steps: PhaseSteps | None,
    limits: FindingThresholds,
    predict: Predict | None = None,
) -> list[Finding]:
    """The dozen findings that matter most, and what threads did behind waits. `judged` are the working devices, by key.
    Savings are per step of `steps`, or of the judged time without steps: by replay if it can `predict` them, else
    bounds."""
    working = [each for each in found if each.device in judged and judged[each.device].account_ns]
    groups = [_counted(group, limits) for group in _same(working)]
    waiting = _waiting_for_kernels(working, judged)
    merged = [_merged(group, judged, steps, limits, waiting) for group in groups]
    known = {each.id: one.id for group, one in zip(groups, merged, strict=True) for each in group}
    pointed = [replace(each, part_of=known.get(each.part_of or "")) for each in merged]
    ranked = in_order(_within(each, judged) for each in each_problem_once(pointed, limits))
    own, behind = ([each for each in ranked if is_behind(each, limits) == after] for after in (False, True))
    chosen = [*own[: limits.most], *behind[: limits.most]]
    if predict is not None:
        bounds = {each.id: bound_of(each, judged).share for each in chosen}
        most = {each: of_whole_steps(share, steps) for each, share in bounds.items()}
        told = [
            _predicted(_at_most(each, judged, steps), predict(each, chosen, most[each.id]), limits, steps)
            for each in chosen
        ]
        longest = max((each.account_ns for each in judged.values()), default=0)
        chosen = in_order(_capped(each, int(bounds[each.id] * longest)) for each in told)
    return each_advice_once(chosen)


def _within(finding: Finding, judged: dict[str, Judged]) -> Finding:
    """The finding with no larger bound than there is: joined ones may add up to more."""
    saves = finding.saves
    most = round(bound_of(finding, judged).share * saves.of_ns) if saves is not None else 0
    return (
        finding if saves is None or saves.ns <= most else replace(finding, saves=replace(saves, ns=most, high_ns=most))
    )


def _at_most(finding: Finding, judged: dict[str, Judged], steps: PhaseSteps | None) -> Finding:
    """The finding with the bound that holds without a replay. What it takes of the idle time is none: kernels may run
    while other causes last, once this one is gone. What copies take is none if their calls hold a thread. What is
    before the first work is over once: its own time is a bound.

    ```
    host   [reads ][computes ......][launch][reads ][computes ......]      the GPU is idle in all of both, of which
    gpu                                [= k =]                             reads take a third; a helper that reads
                                                                           while the GPU computes may save more
    ```
    """
    saves = finding.saves
    frees = finding.cause == EXPOSED_COPY.id and any(judged[each].blocked_ns for each in finding.devices)
    hidden = (finding.cause in HIDDEN and not frees) or finding.cause == BEFORE_WORK.id
    if saves is None or hidden or finding.bottleneck in KERNELS or finding.cause in OTHER_WORK:
        return finding
    (most, why), (touched, touches) = most_saved(finding, judged), touched_share(finding, judged)
    longest = max(each.account_ns for each in judged.values())
    most, why = min((of_whole_steps(most, steps), why), (_in_whole_steps(touched, steps, longest), touches))
    high = round(most * saves.of_ns)
    note = finding.note or (why if high > saves.high_ns + ABOUT * saves.of_ns else "")
    return replace(finding, saves=replace(saves, high_ns=max(saves.high_ns, high)), note=note)


def _predicted(
    finding: Finding, found: Predicted | str, limits: FindingThresholds, steps: PhaseSteps | None
) -> Finding:
    """The finding with what the replay says in place of its bound, or with its bound as a share of what was replayed;
    one that promises nothing stays so. Its ceiling, which is its idle time, grows or shrinks with what it saves."""
    promised = finding.saves
    if promised is None:
        return finding
    if isinstance(found, TooMany):
        return replace(finding, saves=replace(promised, high_ns=promised.of_ns, reason=str(found), cannot_tell=True))
    if isinstance(found, str):
        most = round(found.share * promised.of_ns) if isinstance(found, AtMost) else promised.high_ns
        high = min(promised.high_ns, most)
        return replace(finding, saves=replace(promised, ns=min(promised.ns, high), high_ns=high, reason=str(found)))
    if found.reason:
        ns, high = (round(each / max(promised.of_ns, 1) * found.of_ns) for each in (promised.ns, promised.high_ns))
        bound = Saves(
            ns, 0, high, found.per, found.of_ns, promised.method, found.reason, paced_ns=found.paced_ns or None
        )
        return replace(finding, saves=bound)
    share, most_of = (ns / max(found.of_ns, 1) for ns in (found.ns, found.high_ns))
    mean = steps.average_ns if steps else found.of_ns
    saves = Saves(
        *found[2:5],
        found.per,
        found.of_ns,
        REPLAY,
        cannot_tell=found.cannot_tell,
        paced_ns=found.paced_ns or None,
        mean_of=found.steps if format_ns(mean) != format_ns(found.of_ns) else None,
    )
    absorbed = found.paced_ns and finding.share - most_of > EXPLAINED
    paced, told = PACED_AT.format(format_ns(found.paced_ns)) if absorbed else "", replayed_note(finding, share)
    return replace(
        finding,
        saves=saves,
        ceiling_ns=int(most_of / saved_share(finding) * finding.ceiling_ns) if promised.ns else 0,
        severity=severity(
            weighed_share(replace(finding, saves=saves)), limits, unresolved=finding.bottleneck == UNKNOWN
        ),
        note=joined("; ", filter(None, (told.text or paced, _more(found, finding.share)))),
        counted_before=told.counted_before,
    )


def _more(found: Predicted, share: float) -> str:
    """Why more may be saved than is predicted, if a reader sees the difference to that and to the finding's own
    `share`."""
    apart = min(found.high_ns - found.ns, found.high_ns - share * found.of_ns)
    return found.more[:1].lower() + found.more[1:].rstrip(".") if apart > ABOUT * found.of_ns else ""


def _capped(finding: Finding, most_ns: int) -> Finding:
    """With a ceiling of `most_ns` at most, and no more than a window is predicted to save; with that one if nothing
    is known."""
    saves = finding.saves
    if saves is not None and saves.is_unknown:
        return replace(finding, ceiling_ns=most_ns)
    most = min(most_ns, saves.high_ns) if saves is not None and saves.per == WINDOW else most_ns
    return replace(finding, ceiling_ns=min(finding.ceiling_ns, most))


def _waiting_for_kernels(found: list[Finding], judged: dict[str, Judged]) -> float:
    """The share of all GPUs' time in which they wait for each other's kernels. These have to run somewhere: at best all
    GPUs work all that time, so it is the most that working at the same time saves.

    ```
    gpu 0  [==A==)........[==A==)........        [==A==)[==A==)[==A==)
    gpu 1  .......[==B==)........[==B==)    ->   [==B==)[==B==)[==B==)     waiting was 50%, a step is 50% shorter
    ```
    """
    waited = sum(each.lost_ns for each in found if waits_for_kernels(each))
    return waited / max(sum(each.account_ns for each in judged.values()), 1)


def _same(found: list[Finding]) -> list[list[Finding]]:
    """Findings that are one: by id, or on several devices by what they say and where. A cause that has one place on one
    device, and several on another, has an id without the place there, and ids with it here."""
    ids: dict[tuple[Sentence, ...], str] = {}
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        said = ids.setdefault((finding.cause, finding.bottleneck, finding.title, *finding.nvtx), finding.id)
        taken = any(each.device == finding.device and each.id != finding.id for each in groups.get(said, []))
        groups.setdefault(finding.id if taken else said, []).append(finding)
    return list(groups.values())


def _counted(group: list[Finding], limits: FindingThresholds) -> list[Finding]:
    """Those with time of their own, if there are any: on other devices the same time is charged to waits before
    it."""
    return [each for each in group if not is_behind(each, limits)] or group


def of_whole_steps(most: float, steps: PhaseSteps | None) -> float:
    """The share of whole steps, from that of the judged time: at its end idle time of the last step may be missing."""
    return most if steps is None else 1 - (1 - most) / (1 + most / max(steps.count, 1))


def _in_whole_steps(touched: float, steps: PhaseSteps | None, judged_ns: int) -> float:
    """The same of time that a fix can touch: what is missing of the last step may be such time, but that is no more
    than steps are longer than the judged time; and all that is there may be in the steps."""
    if steps is None:
        return touched
    whole = max(steps.count, 1) * steps.average_ns
    return min((touched * judged_ns + max(whole - judged_ns, 0)) / whole, 1.0)


def saved_share(finding: Finding) -> float:
    """How much of a step, or of the judged time, it saves; 0 if unknown."""
    return finding.saves.share if finding.saves else 0.0


def weighed_share(finding: Finding) -> float:
    """The same for its severity. If the replay cannot tell it is half of that, or what is saved at least: a sure
    saving of about that size comes first."""
    saves = finding.saves
    if saves is None or saves.is_unknown or not saves.cannot_tell:
        return saved_share(finding)
    return max(saves.ns / 2, saves.low_ns) / max(saves.of_ns, 1)


def sure_share(finding: Finding) -> float:
    """The same to order findings, and to choose what to do first. A wait comes before what is behind it and saves about
    as much, a prediction before an upper bound of about its size. That a GPU is late comes before the wait by which it
    is, if the replay can tell what it costs: it says where to look. A bound on what comes before each operation counts
    half, as a thread that launches all the time launches no sooner without it. What slow iterations take more counts
    half: much of it is in findings that say why."""
    saves = finding.saves
    if finding.cause == SLOW_ITERATIONS.id:
        return weighed_share(finding) / 2
    bound = saves is not None and saves.method != REPLAY
    if finding.cause in BEFORE_EACH and bound:
        return weighed_share(finding) / 2
    if saves is None or saves.cannot_tell:
        return weighed_share(finding)
    if finding.cause == LATE_RANK.id and not bound:
        return weighed_share(finding) + ABOUT
    after = bound or counts_before(finding)
    return weighed_share(finding) - (ABOUT if after else 0.0)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by what they save."""
    return sorted(findings, key=_rank)


def _rank(finding: Finding) -> tuple[float, bool, float, str]:
    """Unknown time is ordered as if all of it could be saved, or by what a replay saves, if that is more: it may be the
    first thing to investigate. Profiler overhead comes last."""
    unknown = finding.bottleneck == UNKNOWN and (finding.cause != SLOW_ITERATIONS.id or finding.saves is None)
    first = max(sure_share(finding), finding.share if unknown else 0.0)
    behind = 0.0 if finding.bottleneck == OVERHEAD else finding.share
    return (-first, finding.saves is None, -behind, finding.id)


def _merged(
    group: list[Finding],
    judged: dict[str, Judged],
    steps: PhaseSteps | None,
    limits: FindingThresholds,
    waiting: float,
) -> Finding:
    """The finding of the device that lost most, with the sums of all devices. A step is as long as on the slowest
    device, so the job's saving is the largest share of a device. `waiting` is the most that is saved if GPUs no longer
    wait for each other's kernels."""
    time = summed({each.device: round(each.share * judged[each.device].window_ns)} for each in group)
    ceiling = summed({each.device: each.ceiling_ns} for each in group)  # one device may have it at several places
    first = max(group, key=lambda each: (each.lost_ns, each.ceiling_ns, time[each.device], each.device))
    total = sum(each.account_ns for each in judged.values())
    share = min(sum(time.values()) / total, 1.0)
    most = max(group, key=lambda each: (ceiling[each.device] / judged[each.device].account_ns, each.device))
    bound = bound_of(first, judged)
    saved = min(ceiling[most.device] / judged[most.device].account_ns, bound.share)
    saved = min(saved, waiting) if waits_for_kernels(first) else saved
    longest = max(each.account_ns for each in judged.values())
    lost = sum(each.lost_ns for each in group)
    named = _named(group, judged, total)
    saves = _saves(saved, steps.average_ns, STEP) if steps else _saves(saved, longest, WINDOW)
    note = note_of(most, time[most.device] / judged[most.device].account_ns, share, saved, bound)
    return replace(
        first,
        title=_title(first, group, named, share),
        devices=sorted({each.device for each in group}),
        lost_ns=lost,
        lost_share=round(min(lost / total, 1.0), 6),
        ceiling_ns=min(max(ceiling.values()), round(saved * longest)),
        gaps=sum(each.gaps for each in group),
        share=round(share, 6),
        named=named,
        saves=saves,
        summary=kinds_in_words(named, share) if first.cause in KERNELS else first.summary,
        severity=severity(saved or share, limits, unresolved=first.bottleneck in (UNKNOWN, OVERHEAD)),
        note=note.text,
        counted_before=note.counted_before,
    )


def _title(first: Finding, group: list[Finding], named: list[Named], share: float) -> Sentence:
    """The title of the first, without its place if others are elsewhere, unless a part that is named there is most of
    the time."""
    *before, words, place = ("", "", *parts(first.title))
    if isinstance(place, str) or not isinstance(words, str) or not words.endswith("in "):
        return first.title
    there = max((each.share for each in named if place.text in _names(each.text)), default=0.0)
    elsewhere = any(each.nvtx != first.nvtx for each in group)
    return Phrase(*before, words.rpartition(", ")[0]) if elsewhere and 2 * there <= share else first.title


def _names(text: Sentence) -> list[str]:
    return [each.text for each in parts(text) if isinstance(each, NameMark)]


def _named(group: list[Finding], judged: dict[str, Judged], total: int) -> list[Named]:
    """The named parts of all devices, each a share of their time. Kinds of kernels are in the order of their time."""
    parts = summed(
        {(part.text, part.short): round(part.share * judged[each.device].window_ns) for part in each.named}
        for each in group
    )
    parts_of = {part.text: part for each in group for part in each.named}
    found = [
        replace(parts_of[text], short=short, share=round(min(ns / total, 1.0), 6))
        for (text, short), ns in parts.items()
    ]
    return sorted(found, key=lambda each: -each.share) if group[0].cause in KERNELS else found


def _saves(share: float, of_ns: int, per: str) -> Saves | None:
    ns = round(share * of_ns)
    return Saves(ns=ns, low_ns=0, high_ns=ns, per=per, of_ns=of_ns, method="bound") if ns else None
