"""Several ranks in one or several files: each file through the pipeline, then the ranks compared.

The diagnosis of the whole job has one account and one order of findings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from nsysdiag import typed
from nsysdiag.config.settings import FindingThresholds, Settings
from nsysdiag.diagnosis.behind import followed, lateness, with_late
from nsysdiag.diagnosis.facts import AtMost, Diagnosis
from nsysdiag.diagnosis.focus import Scope, judged_parts
from nsysdiag.diagnosis.judge import JobFacts, diagnose, ranks_elsewhere, ranks_left_out
from nsysdiag.diagnosis.savings import Predict, predict_of
from nsysdiag.diagnosis.sentences import seen_elsewhere
from nsysdiag.events.identity import together
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.rules import cause_infos
from nsysdiag.messages import UsageError, printable
from nsysdiag.phrases import finished
from nsysdiag.pipeline.analysis import analyze_devices
from nsysdiag.pipeline.reading import Progress
from nsysdiag.pipeline.result import TraceResult
from nsysdiag.ranks.clocks import RankTimeline, meet_by_mpi, rank_timeline
from nsysdiag.ranks.comparison import compare_ranks
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.ranks.report import KIND, RANKS_SCHEMA_VERSION, RankAccount, RankFinding, RanksReport, RankTrace
from nsysdiag.report import Tool
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import stem_of
from nsysdiag.trace.trace import open_trace
from nsysdiag.version import __version__

SEVERAL = "the ranks are in separate traces, which are not replayed together"


def _most_of_all(traces: list[TraceResult], names: list[list[str]], compared: RankComparison) -> Predict:
    """A function that says how much a finding saves at most. No rank can do without its own work: what the fix saves of
    that, and all that it waits in collectives, is the most that the job is shorter by.

    ```
    late rank   [work][sync )[work ][AllReduce)      shorter by the synchronization, and it waits for none
    others      [work][AllReduce .............)      shorter by their wait at most
    ```

    A collective without those of the other ranks may be a wait as a whole.
    """
    alone = {row.rank: row.exposed_comm_ns * (row.matched < row.collectives) for row in compared.ranks}
    waits = {row.rank: (row.wait_ns + alone[row.rank]) / max(row.span_ns, 1) for row in compared.ranks}

    def most(finding: Finding, among: Sequence[Finding], share: float) -> AtMost:
        own = (
            _most_of_own(trace, its, finding, among, share) + max((waits.get(name, 1.0) for name in its), default=1.0)
            for trace, its in zip(traces, names, strict=True)
        )
        return AtMost(SEVERAL, min(own, default=1.0))

    return most


def _most_of_own(trace: TraceResult, its: list[str], finding: Finding, among: Sequence[Finding], most: float) -> float:
    """The most that the fix saves of a trace by itself, as a share."""
    keys = {name: device.report.key for name, device in zip(its, trace.devices, strict=True)}

    def here(each: Finding) -> list[str]:
        return [keys[name] for name in each.devices if name in keys]

    if not here(finding):
        return 0.0
    if isinstance(trace.predictions, str):
        return 1.0
    own = [structs.replace(each, device=here(each)[0], devices=here(each)) for each in among if here(each)]
    found = trace.predictions(next(each for each in own if each.id == finding.id), own, most)
    return 1.0 if found.reason else found.high_ns / max(found.of_ns, 1)


def _diagnosed(
    traces: list[TraceResult], names: list[list[str]], compared: RankComparison, limits: FindingThresholds
) -> tuple[Diagnosis, list[RankFinding], list[RankAccount]]:
    """What holds the job of all devices of `traces` up, which have these `names`; the findings of all ranks, and the
    judged time of each.

    The ranks of each trace are judged by its own phases: clocks of traces are aligned only by collectives, and all
    ranks of a job go through the same phases."""
    ranks = [
        (name, device)
        for trace, its in zip(traces, names, strict=True)
        for name, device in zip(its, trace.devices, strict=True)
    ]
    late = lateness([structs.replace(each.report, key=name) for name, each in ranks], compared)
    parts = []
    for name, each in ranks:
        # One record for each, none if nothing ran. What it waited for late ranks is charged to why these were late.
        phases = [structs.replace(phase, key=name) for phase in each.phases]
        parts += judged_parts([followed(phases, late.get(name))], each.focus)
    held = together(trace.ranks for trace in traces)
    durations = [trace.duration_ns for trace in traces if trace.duration_ns is not None]
    host_unseen = all(trace.host_unseen for trace in traces)
    found = [structs.replace(finding, device=name, devices=[name]) for name, each in ranks for finding in each.findings]
    diagnosis, findings, judged = diagnose(
        _scope(traces),
        parts,
        with_late(found if host_unseen else seen_elsewhere(found), late, limits),
        JobFacts(
            frameworks=list(dict.fromkeys(name for trace in traces for name in trace.frameworks)),
            gpus_present=traces[0].gpus_present if len(traces) == 1 else None,
            limits=limits,
            duration_ns=max(durations, default=None),
            missing={name: each.missing for name, each in ranks},
            predict=predict_of(traces[0].predictions) if len(traces) == 1 else _most_of_all(traces, names, compared),
            scheduled=all(trace.scheduled for trace in traces),
            host_unseen=host_unseen,
            behind={name: each.behind for name, each in ranks},
            ranks=ranks_elsewhere(held, None, mpi=True) if len(traces) == 1 else ranks_left_out(held),
        ),
    )
    return (
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


File = tuple[RankTrace, TraceResult]
"""What is kept of a file when it is closed."""


def analyze_ranks(
    paths: Sequence[str | os.PathLike[str]], settings: Settings | None = None, progress: Progress | None = None
) -> RanksReport:
    """Compare the ranks of one run: all devices of all files. Raises InputError for other files, UsageError if there is
    only one rank or no collective matches between ranks."""
    settings, step = settings or Settings(), progress or (lambda _name, _share: None)
    files = []
    for number, path in enumerate(paths):
        step(f"analyzing {Path(path).name}", number / len(paths))
        files.append(_analyzed(path, settings))
    names = _names(files)
    ranks = _ranks(files, names)
    if len(ranks) < 2:
        found = f"{ranks[0].rank} is the only GPU with work" if ranks else "no GPU did any work"
        raise UsageError(
            f"there is nothing to compare: {found}", hint="name the traces of all ranks, or one that holds several GPUs"
        )
    comparison = compare_ranks(ranks)
    if not comparison.groups:
        raise UsageError("no collective of one rank matches one of another", hint=_why_not(ranks, comparison.unmatched))
    results = [result for _trace, result in files]
    diagnosis, findings, judged = _diagnosed(results, names, comparison, settings.findings)
    made = RanksReport(
        schema_version=RANKS_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        traces=[trace for trace, _result in files],
        comparison=comparison,
        causes=cause_infos(),
        settings=settings.changed(),
        diagnosis=diagnosis,
        findings=findings,
        judged=judged,
    )
    return finished(made)


def _analyzed(path: str | os.PathLike[str], settings: Settings) -> File:
    with Attempt(f"analyze '{printable(os.fsdecode(path))}'"), open_trace(path, reader=settings.reader) as trace:
        result = analyze_devices(trace, settings)
        starts = trace.read("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")["utcEpochNs"]
        trace.check_unchanged()
        described = RankTrace(
            file=trace.file,
            size_bytes=trace.size_bytes,
            fingerprint=trace.fingerprint,
            nsys_version=trace.nsys_version,
            start_utc_ns=int(starts[0]) if len(starts) and starts[0] > 0 else None,
            warnings=[*trace.typed_warnings, *result.warnings],
            host_unseen=result.host_unseen,
        )
    return described, result


def _names(files: list[File]) -> list[list[str]]:
    """For each file the shortest names that distinguish its devices from those of all files: the MPI ranks if each
    holds one, and no two the same."""
    if len(files) == 1:
        return [[device.report.key for device in files[0][1].devices]]
    held = [result.ranks.ranks for _trace, result in files]
    apart = all(len(each) == 1 for each in held) and len(set(held)) == len(files)
    stems = [f"MPI rank {each[0]}" for each in held] if apart else [stem_of(Path(trace.file)) for trace, _ in files]
    found = []
    for number, ((_trace, result), stem) in enumerate(zip(files, stems, strict=True)):
        name = stem if stems.count(stem) == 1 else f"{stem}#{number}"
        found.append([name if len(result.devices) == 1 else f"{name} {each.report.key}" for each in result.devices])
    return found


def _ranks(files: list[File], names: list[list[str]]) -> list[RankTimeline]:
    """The devices of all files in the order of the files."""
    by_mpi = meet_by_mpi(device.collectives for _trace, result in files for device in result.devices)
    return [
        rank_timeline(name, trace.file, number, trace.start_utc_ns, device, by_mpi=by_mpi)
        for number, ((trace, result), its) in enumerate(zip(files, names, strict=True))
        for name, device in zip(its, result.devices, strict=True)
    ]


def _why_not(ranks: list[RankTimeline], unmatched: list[Sentence]) -> str:
    if not any(len(rank.collectives) for rank in ranks):
        return "none of the ranks ran a communication kernel or called a blocking MPI collective"
    return typed.plain(typed.joined("; ", unmatched)) or "no two ranks ran collectives of the same kind"
