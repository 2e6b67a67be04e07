"""The diagnosis of a job whose ranks may be in several traces: one account, one order of findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import Diagnosis
from nsysdiag.diagnosis.focus import Scope, judged_parts
from nsysdiag.diagnosis.judge import diagnose, ranks_elsewhere, ranks_left_out
from nsysdiag.diagnosis.late import LateShare, followed, lateness, with_late
from nsysdiag.diagnosis.savings import predict_of
from nsysdiag.diagnosis.sentences import seen_elsewhere
from nsysdiag.events.identity import together
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.ranks.report import RankAccount, RankFinding
from nsysdiag.report import DeviceReport, Finding

if TYPE_CHECKING:  # the package of the pipeline imports this one
    from nsysdiag.pipeline.result import DeviceResult, TraceResult


class RankJob(Struct, frozen=True):
    """What holds the job up, the findings of all ranks, and the judged time of each rank."""

    diagnosis: Diagnosis
    findings: list[RankFinding]
    judged: list[RankAccount]


class _Rank(Struct, frozen=True):
    """A device under its name among all ranks."""

    name: str
    result: DeviceResult

    @property
    def report(self) -> DeviceReport:
        """Its report."""
        return structs.replace(self.result.report, key=self.name)

    @property
    def findings(self) -> list[Finding]:
        """Its findings."""
        return [structs.replace(each, device=self.name, devices=[self.name]) for each in self.result.findings]

    def judged(self, late: LateShare | None) -> list[PhaseDevice]:
        """What it did in the judged phases of its trace: one record, none where nothing ran. What it waited for late
        ranks is charged to why these were late."""
        phases = [structs.replace(each, key=self.name) for each in self.result.phases]
        return judged_parts([followed(phases, late)], self.result.focus)


SEVERAL = "the ranks are in separate traces, which are not replayed together"


def diagnose_ranks(
    traces: list[TraceResult], names: list[list[str]], compared: RankComparison, limits: FindingThresholds
) -> RankJob:
    """The diagnosis of the job of all devices of `traces`, which have these `names`.

    The ranks of each trace are judged by its own phases: clocks of traces are aligned only by collectives, and all
    ranks of a job go through the same phases."""
    ranks = [
        _Rank(name, device)
        for trace, its in zip(traces, names, strict=True)
        for name, device in zip(its, trace.devices, strict=True)
    ]
    late = lateness([rank.report for rank in ranks], compared)
    judged = [part for rank in ranks for part in rank.judged(late.get(rank.name))]
    held = together(trace.ranks for trace in traces)
    durations = [trace.duration_ns for trace in traces if trace.duration_ns is not None]
    host_unseen = all(trace.host_unseen for trace in traces)
    found = [finding for rank in ranks for finding in rank.findings]
    diagnosis, findings, judged = diagnose(
        _scope(traces),
        judged,
        with_late(found if host_unseen else seen_elsewhere(found), late, limits),
        frameworks=list(dict.fromkeys(name for trace in traces for name in trace.frameworks)),
        gpus_present=traces[0].gpus_present if len(traces) == 1 else None,
        limits=limits,
        duration_ns=max(durations, default=None),
        missing={rank.name: rank.result.missing for rank in ranks},
        predict=predict_of(traces[0].predictions if len(traces) == 1 else SEVERAL),
        scheduled=all(trace.scheduled for trace in traces),
        host_unseen=host_unseen,
        behind={rank.name: rank.result.behind for rank in ranks},
        ranks=ranks_elsewhere(held, None, mpi=True) if len(traces) == 1 else ranks_left_out(held),
    )
    return RankJob(
        diagnosis,
        [RankFinding(**structs.asdict(finding)) for finding in findings],
        [RankAccount(**structs.asdict(each)) for each in judged],
    )


def _scope(traces: list[TraceResult]) -> Scope:
    """That of most traces; of these the one with the longest steps, as the slowest rank makes the step of the job. A
    phase is one of a trace, and has no place among those of several."""
    scopes = [Scope.of(each.devices[0].job_phases, each.devices[0].focus) for each in traces if each.devices]
    if len(scopes) == 1:
        return scopes[0]
    usual, _count = Counter(scope.basis for scope in scopes).most_common(1)[0]
    longest = max(
        (scope for scope in scopes if scope.basis == usual),
        key=lambda scope: scope.steps.median_ns if scope.steps else 0,
    )
    return Scope(usual, longest.phase)
