"""Judges a job: one bottleneck and one action, by one account."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import group_totals, portions, summed
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.bottlenecks import BOTTLENECKS
from nsysdiag.causes import BLOCKED, CAUSES, HOST_CODE, PREEMPTION, bottlenecks_of_cause
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.behind import Behind, returned
from nsysdiag.diagnosis.facts import KERNELS, NO_WORK, OVERHEAD, UNRESOLVED, WAITS, Diagnosis, Part
from nsysdiag.diagnosis.focus import Focus, Scope, job_account, judged_parts, working
from nsysdiag.diagnosis.missing import FEWEST, MOST, MPI, Missing
from nsysdiag.diagnosis.one_problem import Judged, limited, waits_for_kernels
from nsysdiag.diagnosis.savings import Predict, in_order, job_findings, saved_share, sure_share
from nsysdiag.diagnosis.sentences import (
    SHOWN,
    Said,
    action_sentence,
    details_of,
    headline,
    limit_sentence,
    phase_sentence,
    rest_of_capture,
    verdict_sentence,
    waiting_part,
    waiting_sentence,
)
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import MpiRanks
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.rules import KERNELS as KERNEL_TIME
from nsysdiag.kernels.limits import InOrder
from nsysdiag.phases.facts import LEAST_WORK, Phase, PhaseDevice, counted_ns, done, shown_as
from nsysdiag.phases.phases import JobPhases
from nsysdiag.report import Verdict
from nsysdiag.typed import say
from nsysdiag.units import format_ns, format_share, listed

# That a trace holds some of the ranks of an MPI program: others may be why it waits, and use other GPUs.

MOST_RANKS_LISTED = 4
"""MPI ranks, or stretches of missing ones, that a sentence lists; of more it says only how many they are. A round
number: nothing depends on it closely."""


def ranks_elsewhere(found: MpiRanks, processes: int | None, *, mpi: bool) -> str:
    """A sentence on ranks that are not in the trace; empty if there is no evidence of any. `processes` is how many did
    work on GPUs, None if that is not known; `mpi` says that the program uses MPI."""
    held, most = len(found.ranks), found.at_least
    if not held:
        one = mpi and processes == 1
        return "The trace holds one process of an MPI program: other ranks, if any, are not in it." if one else ""
    if held < most:
        return f"The trace holds {_some(found.ranks, most)}: the others are not in it."
    if held == 1:
        return "The trace holds only MPI rank 0."
    return ""


def rank_alone(rank: tuple[int, int] | None) -> str:
    """The same by what the trace says of itself: which rank it is of, and of how many; empty for None."""
    return "" if rank is None else f"The trace holds rank {rank[0]:,} of {rank[1]:,}: the others are not in it."


def ranks_left_out(found: MpiRanks) -> str:
    """A sentence on ranks of which no file is among several; empty if there is no evidence of any."""
    ends = (-1, *found.ranks, found.at_least)
    missing = [(before + 1, behind - 1) for before, behind in pairwise(ends) if behind - before > 1]
    if not found.ranks or not missing:
        return ""
    count = found.at_least - len(found.ranks)
    named = [f"{first}" if first == last else f"{first} to {last}" for first, last in missing]
    if len(named) > MOST_RANKS_LISTED:
        return f"{count} of at least {found.at_least} MPI ranks are not among the files."
    one = f"MPI rank {named[0]} is"
    return f"{one if count == 1 else f'MPI ranks {listed(named)} are'} not among the files."


def _some(ranks: tuple[int, ...], most: int) -> str:
    """`MPI rank 7 of at least 8`, `MPI ranks 4 to 7 of at least 16`, `12 of at least 64 MPI ranks`."""
    first, last = ranks[0], ranks[-1]
    if len(ranks) == 1:
        return f"MPI rank {first} of at least {most}"
    if last - first == len(ranks) - 1:
        return f"MPI ranks {first} to {last} of at least {most}"
    if len(ranks) <= MOST_RANKS_LISTED:
        return f"MPI ranks {listed(list(map(str, ranks)))} of at least {most}"
    return f"{len(ranks)} of at least {most} MPI ranks"


# GPUs of the machine that did nothing, whether the program seems to have been meant to use them, and GPUs that are
# probably one.

MOST_LISTED = 4
"""GPUs that a sentence lists by their keys; of more it says only how many they are. A round number: nothing depends on
it closely."""


def working_processes(activity: DeviceActivity) -> int:
    """How many processes did real work on GPUs, compared with the busiest one."""
    operations = activity.operations
    _, code = distinct(operations.process)
    work = group_totals(code, operations.end - operations.start).total
    return int(np.count_nonzero(work >= LEAST_WORK * work.max(initial=0))) if len(work) else 0


def unused_gpus(present: int | None, used: int, processes: int | None, *, mpi: bool) -> str:
    """A sentence; empty if each GPU has a process, if their number is unknown, or if only chosen GPUs are analyzed
    (`processes` is None). Several processes that share GPUs while others are unused may have selected the wrong GPU.
    For one process, and if all GPUs are used, the sentence only counts. In a trace of one MPI rank, other ranks may
    use the other GPUs."""
    if not present or processes is None or used >= present:
        crowded = bool(present) and processes is not None and processes > used and not mpi
        return f"{processes} processes share {'the GPU' if used == 1 else f'{used} GPUs'}." if crowded else ""
    if processes > used:
        shared = "one GPU" if used == 1 else f"{used} GPUs"
        return (
            f"{processes} processes share {shared} of {present}, and {present - used} "
            f"{'is' if present - used == 1 else 'are'} unused: check which GPU each process selects."
        )
    return "" if mpi else f"{used} of {present} GPUs {'is' if used == 1 else 'are'} in use."


def barely_used(busy: Mapping[str, int], chosen: Collection[str]) -> str:
    """A sentence on chosen GPUs that are merely touched, by the time in ns that each GPU of the trace works; empty if
    one of them is not."""
    most = max(busy, key=lambda key: (busy[key], key), default="")
    own = max((busy[key] for key in chosen), default=0)
    if not chosen or own >= LEAST_WORK * busy[most]:
        return ""
    who = f"{listed(sorted(chosen))} {'has' if len(chosen) == 1 else 'have'}"
    return f"{who} next to no work: {format_ns(own)}, where {most} has {format_ns(busy[most])}."


def one_gpu(in_turns: Sequence[str]) -> str:
    """A sentence on devices that take turns (their keys), as processes on one GPU do; empty for fewer than two."""
    if len(in_turns) < 2:
        return ""
    who = listed(list(in_turns)) if len(in_turns) <= MOST_LISTED else f"{len(in_turns)} of these GPUs"
    return f"{who} take turns, as processes on one GPU do: --same-gpu makes them one."


SECOND = 0.1
"""The next part of the judged time is named from here on."""
CONTENDED = "contended"
NOTHING_RAN = Verdict(id=NO_WORK, sentence="No GPU work in this window.")
NO_PHASES = JobPhases(0, 0, [], "none", "no GPU work was recorded", [])
NO_FOCUS = Focus(Intervals.empty(), [], None)


class Leading(Struct, frozen=True):
    """The bottleneck with most of an account, its share, and the next one of SECOND or more."""

    bottleneck: str
    share: float
    second: Part | None
    unknown: float


def leading(account: dict[str, int]) -> Leading:
    """Kernels, whether they fill the chip or not, are one candidate, which has the name of its larger part. The
    profiler's own time is none: it is not the program's."""
    total = sum(account.values())
    ns = {name: value for name, value in account.items() if name not in (*KERNELS, OVERHEAD) and value}
    working = {name: account.get(name, 0) for name in KERNELS}
    if sum(working.values()):
        ns[max(working, key=lambda name: working[name])] = sum(working.values())
    if not ns:
        return Leading("unknown", 0.0, None, 0.0)
    ordered = sorted(ns, key=lambda name: (-ns[name], name))
    first, behind = ordered[0], ordered[1:]
    second = next((Part(each, round(ns[each] / total, 6)) for each in behind[:1] if ns[each] >= SECOND * total), None)
    return Leading(first, round(ns[first] / total, 6), second, round(account.get("unknown", 0) / total, 6))


def phase_records(
    found: JobPhases, devices: list[list[PhaseDevice]], judged: list[int], *, host_unseen: bool = False
) -> list[Phase]:
    """The phases of the report; `devices` holds a record for each device and phase."""
    records = []
    several = sum(phase.name == "steady" for phase in found.phases) > 1
    for at, phase in enumerate(found.phases):
        mine = [each[at] for each in devices]
        most = leading(job_account(mine))
        records.append(
            Phase(
                name=phase.name,
                start_ns=phase.start,
                end_ns=phase.end,
                judged=at in judged,
                bottleneck=most.bottleneck,
                share=most.share,
                sentence=phase_sentence(
                    phase,
                    counted_ns(mine) or phase.end - phase.start,
                    shown_as(most.bottleneck, mine),
                    most.share,
                    done(mine),
                    host_unseen=host_unseen,
                ),
                steps=phase.steps if several or phase.steps is None else replace(phase.steps, lengths=""),
                devices=mine,
            )
        )
    return records


class Judgment(Struct, frozen=True):
    """The report's diagnosis of the job."""

    diagnosis: Diagnosis
    phases: list[Phase]
    findings: list[Finding]
    verdicts: dict[str, Verdict]
    """By the key of the device; none for one that did nothing in the judged time."""

    def verdict(self, device: str) -> Verdict:
        """That of a device."""
        return self.verdicts.get(device, NOTHING_RAN)


class JobFacts(Struct, frozen=True):
    """What is known of a job besides what its devices did. `processes` did work on `gpus_worked` GPUs; None if only
    chosen GPUs are looked at. `recorded` are the times of the first and the last event, `missing` is what was not
    recorded of each device. `ranks` is a sentence on ranks that were not traced. `functions`: recorded operators and
    functions made the host slower. `scheduled`: there are scheduling events. `host_unseen`: the trace shows nothing of
    the host but CUDA calls. `in_turns` are the keys of devices that look like one GPU, and `unused` is a sentence on
    chosen devices with next to no work. `behind` is what threads did behind waits. `in_order` is what no fix changes of
    the order of what each device does. `predict` tells what the fix of a finding saves, by replay."""

    frameworks: list[str]
    limits: FindingThresholds
    gpus_present: int | None = None
    gpus_worked: int = 0
    processes: int | None = 1
    duration_ns: int | None = None
    recorded: tuple[int, int] = (0, 0)
    missing: Mapping[str, Missing] = {}
    ranks: str = ""
    functions: bool = False
    scheduled: bool = True
    host_unseen: bool = False
    in_turns: Sequence[str] = ()
    unused: str = ""
    behind: Behind = {}
    in_order: Mapping[str, InOrder] = {}
    predict: Predict | None = None


class WithoutWork(Struct, frozen=True):
    """What is said of a trace without GPU activity: its headline, and lines on what its threads did."""

    headline: Sentence
    host: list[Sentence]


def judge(
    found: JobPhases,
    devices: list[list[PhaseDevice]],
    focus: Focus,
    scope: Scope,
    findings: list[Finding],
    job: JobFacts,
    nothing: WithoutWork,
) -> Judgment:
    """The judgment of a job. `devices` holds a record for each device and phase, `findings` are those of all. Without
    GPU activity the diagnosis is `nothing`."""
    judged = judged_parts(devices, focus)
    job = replace(job, missing={each.key: Missing() for each in judged} | dict(job.missing))
    diagnosis, merged, judged = diagnose(scope, judged, findings, job)
    if found.basis == "none":
        diagnosis = replace(diagnosis, headline=nothing.headline, host=nothing.host)
    unseen = job.host_unseen
    verdicts = {each.key: device_verdict(each, job.missing[each.key], host_unseen=unseen) for each in judged}
    accounted = with_accounts(devices, focus, judged)
    return Judgment(diagnosis, phase_records(found, accounted, found.judged, host_unseen=unseen), merged, verdicts)


def diagnose(
    scope: Scope, judged: list[PhaseDevice], findings: list[Finding], job: JobFacts
) -> tuple[Diagnosis, list[Finding], list[PhaseDevice]]:
    """The bottleneck of a job and its findings in order, by what each device did in the judged time; and that with
    accounts as predictions tell."""
    times = {each.key: Judged.of(each, job.in_order.get(each.key, InOrder())) for each in working(judged)}
    merged = [limited(each, times) for each in job_findings(findings, times, scope.steps, job.limits, job.predict)]
    judged, merged = returned(judged, merged, job.behind, job.limits)
    # What is behind waits may have time of its own now.
    merged = merged if job.predict is None else in_order(merged)
    # A GPU that is merely touched has nothing to do sooner.
    if job.unused:
        merged = [replace(each, saves=None, ceiling_ns=0, severity="info") for each in merged]
    active = working(judged)
    # A list that lacks one which works is no list of those that the machine has.
    listed = job.gpus_present if (job.gpus_present or 0) >= len(active) else None
    run = job.recorded if job.duration_ns is None else (0, job.duration_ns)
    most, sliced = leading(job_account(judged)), scope.phases is not None and _is_slice(job.missing)
    account = job_account(judged)
    shares = {name: ns / max(sum(account.values()), 1) for name, ns in account.items()}
    judged_ns = max((sum(each.account.values()) for each in active), default=0)
    said = Said(
        scope=scope,
        judged_ns=judged_ns,
        details=details_of(merged, shares, scheduled=job.scheduled),
        host_unseen=job.host_unseen,
        profiler=shares.get(OVERHEAD, 0.0),
        as_shown={name: shown_as(name, active) for name in account},
        unused=job.unused
        or one_gpu(job.in_turns)
        or unused_gpus(listed, max(len(active), job.gpus_worked), job.processes, mpi=MPI in job.frameworks),
        duration_ns=job.duration_ns,
        work_ns=sum(each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in active),
        ranks=job.ranks,
        slowed=job.functions,
        recorded_ns=run[1] - run[0],
        rest=rest_of_capture(scope, run, judged_ns, sliced=sliced),
        sliced=sliced,
        waiting=waiting_sentence([each for each in merged if waits_for_kernels(each)], SECOND)
        or late_sentence(active, shares, merged),
        limit=limit_sentence(merged),
        paced_ns=next((each.saves.paced_ns for each in merged if each.saves and each.saves.paced_ns), None),
    )
    saving = max(filter(saved_share, merged), key=sure_share, default=None)
    leading_ones = (each for each in merged if each.bottleneck == most.bottleneck)
    action = saving or next(
        (each for each in leading_ones if each.bottleneck in KERNELS or each.cause == BLOCKED), None
    )
    worst = max((job.missing[each.key] for each in active), key=_worst, default=Missing())
    diagnosis = Diagnosis(
        headline=doubted(headline(said, most.bottleneck, most.share, most.second, saving), worst),
        bottleneck=most.bottleneck,
        share=most.share,
        basis=scope.basis,
        phase=scope.place,
        second=most.second,
        action=None if action is None else action_sentence(action),
        saves=None if action is None else action.saves,
        unknown_share=most.unknown,
        frameworks=job.frameworks,
        findings=[each.id for each in merged],
        gpus_present=listed,
        gpus_used=len(active),
        paced_ns=said.paced_ns,
        fix_first=None if action is None else action.id,
    )
    return diagnosis, merged, judged


def _with_returned(phases: list[PhaseDevice], places: Sequence[int], judged: PhaseDevice) -> list[PhaseDevice]:
    """The phases of a device; of its waits each judged one loses as large a part as all of them together."""
    accounts = {at: dict(phases[at].account) for at in places}
    before = summed(accounts.values())
    more = {name: ns - before.get(name, 0) for name, ns in judged.account.items() if ns > before.get(name, 0)}
    for bottleneck, ns in more.items():
        waits = np.array([account.get(WAITS, 0) for account in accounts.values()])
        for account, part in zip(accounts.values(), portions(waits, ns).tolist(), strict=True):
            account[WAITS] = account.get(WAITS, 0) - part
            account[bottleneck] = account.get(bottleneck, 0) + part
    return [_charged(each, accounts.get(at, each.account)) for at, each in enumerate(phases)]


def _charged(device: PhaseDevice, account: Mapping[str, int]) -> PhaseDevice:
    returned_ns = device.account.get(WAITS, 0) - account.get(WAITS, 0)
    return replace(device, account={name: ns for name, ns in account.items() if ns}, returned_ns=returned_ns)


def with_accounts(devices: list[list[PhaseDevice]], focus: Focus, judged: list[PhaseDevice]) -> list[list[PhaseDevice]]:
    """The phases of devices, charged as in the judged time."""
    records = {each.key: each for each in judged if each.returned_ns}
    return [
        _with_returned(its, focus.places, records[its[0].key]) if its and its[0].key in records else its
        for its in devices
    ]


def _is_slice(missing: Mapping[str, Missing]) -> bool:
    """Whether the trace begins or ends in the middle of queued work."""
    return sum(each.cut for each in missing.values()) >= FEWEST


def _worst(missing: Missing) -> tuple[float, int]:
    return missing.unseen_share, len(missing.reasons())


def device_verdict(judged: PhaseDevice, missing: Missing, *, host_unseen: bool = False) -> Verdict:
    """The verdict of one device, by its own account of the judged phases. It says if rows are missing; if too many are
    missing, it names no bottleneck."""
    if not sum(judged.account.values()):
        return NOTHING_RAN
    most = leading(judged.account)
    if missing.unseen_share >= MOST:
        return Verdict(id=UNRESOLVED, sentence=cannot_tell(missing))
    known = BOTTLENECKS[most.bottleneck].verdict or _by_cause(most.bottleneck, judged.ledger)
    sentence = verdict_sentence(shown_as(most.bottleneck, [judged]), most.share, most.second, host_unseen=host_unseen)
    if waits := waiting_part(judged, SECOND):
        sentence = f"{sentence[:-1]}; {waits}."
    if reasons := missing.reasons():
        sentence = f"{sentence[:-1]}; but the trace is incomplete: {reasons[0]}."
    return Verdict(id=known, sentence=sentence)


def late_sentence(judged: list[PhaseDevice], shares: Mapping[str, float], findings: list[Finding]) -> str:
    """Why the finding on kernel time has less than the headline, if a reader sees that: the rest is waiting in
    communication, charged to the kernels of those that were late."""
    own = next((each.share for each in findings if each.cause == KERNEL_TIME.id), None)
    late = sum(each.late_ns for each in judged) / max(sum(sum(each.account.values()) for each in judged), 1)
    more = sum(shares.get(name, 0.0) for name in KERNELS) - (own or 0.0)
    if own is None or not 0 < more <= late + SHOWN or format_share(own, 1) == format_share(own + more, 1):
        return ""
    return f"This includes {format_share(max(more, SHOWN), 1)} in which GPUs wait for kernels of late ones."


def doubted(text: Sentence, missing: Missing) -> Sentence:
    """A headline about a trace of which rows are missing says so first."""
    reasons = missing.reasons()
    if missing.unseen_share >= MOST:
        return say("{} Of what was recorded: {}", cannot_tell(missing), text)
    return say("The trace is incomplete: {}. {}", reasons[0], text) if reasons else text


def cannot_tell(missing: Missing) -> str:
    """The verdict if so many launches have no kernel that busy and idle time mean nothing."""
    return f"The trace cannot tell how busy the GPU was: {missing.reasons()[0]}."


def _by_cause(bottleneck: str, ledger: dict[str, int]) -> str:
    """The cause with most time of those that may be charged to a bottleneck; if idle time has none, what the
    bottleneck mostly is."""
    able = [cause for cause in CAUSES if bottleneck in bottlenecks_of_cause(cause)]
    usual = HOST_CODE if HOST_CODE in able else next(iter(able), bottleneck)
    largest = max((each for each in able if ledger.get(each)), key=lambda each: (ledger[each], each), default=usual)
    return CONTENDED if largest == PREEMPTION else f"{largest}-bound"
