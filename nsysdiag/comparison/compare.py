"""The whole comparison, step by step; also with the runs of a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.comparison import facts, job, rows, sides, waterfall
from nsysdiag.comparison.headline import headline, outcome_sentence, overall
from nsysdiag.comparison.significance import FEWEST_RUNS, Values, spread_of, strays
from nsysdiag.comparison.step_pairs import aligned_steps
from nsysdiag.comparison.units import DeviceSides, OneRun, in_units
from nsysdiag.comparison.work import family_changes, goes_with, work_changes
from nsysdiag.fields import Sentence, SettingValue
from nsysdiag.phrases import finished, unfinished
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import CauseInfo, Report, Tool
from nsysdiag.units import format_share, listed
from nsysdiag.version import __version__

WORK_TITLES = {
    "compute": "Compute",
    "exposed_comm": "Exposed communication",
    "exposed_copy": "Exposed copies",
    "idle": "Idle",
}
POOLED = CauseInfo(
    id=facts.NOT_COMPARED,
    title="Causes that some captures cannot tell apart",
    meaning="Some captures lack the evidence for these causes, or the causes were disabled: they are compared as one.",
    color="#8a8f98",
)


def compare_reports(
    before: Sequence[Report],
    after: Sequence[Report],
    *,
    across_gpus: bool = False,
    same_work: Mapping[str, OneRun] | None = None,
) -> facts.Comparison:
    """Compare one or several captures before with one or several after. `same_work` are the devices by key that did the
    same operations on both sides once, or in few steps. Raises NotComparableError if they have no unit of work in
    common or are of different GPUs, InputError if a report is damaged."""
    runs = same_work or {}
    before, after = ([_with_names(report) for report in side] for side in (before, after))
    pairs, notes = sides.paired(before, after, across_gpus=across_gpus)
    pooled, evidence_notes = sides.uncompared(before, after)
    # If reports know a cause by other words, those of the last one count.
    known = {cause.id: cause for report in (*before, *after) for cause in report.causes}
    causes = [*known.values(), *([POOLED] if pooled else [])]
    titles = {cause.id: cause.title for cause in causes} | WORK_TITLES
    measured = [_measured(pair, runs.get(pair.before[0][1].key), pooled) for pair in pairs]
    _judge_together(measured)
    devices = [_device(each, pooled, titles, len(pairs)) for each in measured]
    accounts = job.with_accounts(pairs, devices)
    devices = [replace(each, account=account) for each, account in zip(devices, accounts, strict=True)]
    verdict, sentence = overall(devices)
    of_all = job.job_comparison([job.Compared(*each) for each in zip(measured, devices, strict=True)], verdict)
    made = facts.Comparison(
        schema_version=facts.COMPARISON_SCHEMA_VERSION,
        kind=facts.KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        before=[side_trace(report) for report in before],
        after=[side_trace(report) for report in after],
        verdict=verdict,
        sentence=sentence,
        devices=devices,
        not_compared=pooled,
        notes=[
            *job.loop_notes(of_all.phases),
            *notes,
            *sides.settings_notes(before, after),
            *evidence_notes,
            *sides.window_notes(before, after),
            *sides.capture_notes(before, after),
        ],
        causes=causes,
        settings=redactions(before, after),
        across_gpus=across_gpus,
        headline=headline(of_all, titles),
        job=of_all,
    )
    return finished(made)


def _with_names(report: Report) -> Report:
    """The report with names that know what they are names of in the sentences of its findings."""
    return replace(report, findings=unfinished(report.findings, report.phrases))


def _measured(pair: sides.DevicePair, run: OneRun | None, pooled: Sequence[str]) -> job.ComparedDevice:
    """A device in units of work, with its changes as if no other were compared."""
    both = in_units(pair.before, pair.after, run)
    kernels = rows.kernels_of(both.before, both.after)
    gaps = rows.gaps_of(both.before, both.after, pooled)
    found = waterfall.changes(both.before, both.after, pooled, kernels.times() | gaps.times())
    return job.ComparedDevice(pair, both, kernels, gaps, found)


def _judge_together(devices: Sequence[job.ComparedDevice]) -> None:
    """Correct the changes of all devices, and of their median steps, for multiple testing."""
    for each, found in zip(devices, waterfall.corrected([each.changes for each in devices]), strict=True):
        each.changes = replace(
            found, times=found.times | {sides.LENGTH: waterfall.change_of_run(found.length, each.sides.chance)}
        )
    steps = [
        (each, job.step_change(each.sides.before, each.sides.after, each.changes.noise))
        for each in devices
        if each.sides.unit.kind == facts.ITERATIONS
    ]
    judged = waterfall.judged_together([(step.change, step.freedom) for _each, step in steps])
    for (each, step), change in zip(steps, judged, strict=True):
        each.step = replace(step, change=waterfall.change_of_run(change, each.sides.chance))


def _device(
    of: job.ComparedDevice, pooled: Sequence[str], titles: Mapping[str, str], devices: int
) -> facts.DeviceComparison:
    both, found, step = of.sides, of.changes, of.step
    before, after = both.before, both.after
    parts = found.cut()
    moved = waterfall.moves(parts, rows.recaused(of.gaps))
    counts = rows.workload(before, after, part_of_step=both.unit.part_of_step)
    findings = rows.finding_changes(before, after, pooled)
    plain = partial(waterfall.change_of_part, length=found.length.before_ns, noise=found.noise)
    by_name = rows.kernel_changes(of.kernels, found.own, plain)
    work = work_changes(both)
    steps = aligned_steps(both.unit, before[0], after[0], devices)
    verdict = _verdict(both.unit, found.length, step, work)
    return facts.DeviceComparison(
        key=before[0].device.key,
        name_before=before[0].device.name,
        name_after=after[0].device.name,
        unit=both.unit,
        verdict=verdict,
        sentence=outcome_sentence(both.unit, found.length, step, work),
        noise=round(found.noise, 6),
        length=found.length,
        parts=found.parts,
        ledger=found.ledger("ledger"),
        root_ledger=found.ledger("root"),
        waterfall=waterfall.waterfall(parts),
        moves=moved,
        renaming=waterfall.renaming(parts, moved, titles),
        workload=counts,
        kernels=by_name[: rows.MOST_KERNELS],
        signatures=rows.gap_group_changes(of.gaps, found.own, plain),
        copies=rows.copy_changes(before, after),
        communication=rows.collective_changes(before, after),
        launch=rows.launch_metrics(before, after),
        utilization=rows.utilization_metrics(before, after),
        findings=findings,
        notes=_notes(both, counts, findings, titles),
        strip_before=_strip(before[0]),
        strip_after=_strip(after[0]),
        step=step.change if step is not None else None,
        steps=None if isinstance(steps, str) else steps,
        no_steps=steps if isinstance(steps, str) else "",
        slow_steps=step is not None and step.slow,
        work=work,
        families=[] if any(row.id == rows.GRAPH for row in counts) else family_changes(by_name, both.unit),
    )


def _verdict(
    unit: facts.Unit, length: facts.Change, step: job.StepChange | None, work: Sequence[facts.WorkChange]
) -> str:
    """The verdict: `unknown` for parts of steps, `mixed` if the work changed in the same direction as the time."""
    if unit.part_of_step:
        return facts.UNKNOWN
    found = job.verdict_of(length, step)
    return facts.MIXED if found != facts.SAME and goes_with(work, length) else found


def _notes(
    both: DeviceSides,
    counts: Sequence[facts.CountChange],
    findings: Sequence[facts.FindingChange],
    titles: Mapping[str, str],
) -> list[Sentence]:
    """What lowers the confidence in the comparison of a device."""
    notes: list[Sentence] = [*both.notes]
    changed = [f"{row.id} {row.before:,.6g} before, {row.after:,.6g} after" for row in counts if row.changed]
    if changed:
        notes.append(f"The workload changed, operations for a unit of work: {'; '.join(changed)}.")
    hidden = dict.fromkeys(row.cause for row in findings if row.status == facts.NOT_COMPARED)
    if hidden:
        names = ", ".join(titles.get(cause, cause) for cause in hidden)
        notes.append(f"Findings of these causes are not compared, as some captures lack the evidence: {names}.")
    return [*notes, *rows.cut_notes([*both.before, *both.after])]


def side_trace(report: Report | WhatIf) -> facts.SideTrace:
    """A capture as the comparison holds it, or the trace of a prediction."""
    reasons = {device.window.reason for device in report.devices} if isinstance(report, Report) else set()
    return facts.SideTrace(
        file=report.trace.file,
        size_bytes=report.trace.size_bytes,
        fingerprint=report.trace.fingerprint,
        nsys_version=report.trace.nsys_version,
        window=sorted(reasons, key=typed.plain),
        warnings=report.trace.warnings,
    )


def redactions(before: Sequence[Report | WhatIf], after: Sequence[Report | WhatIf]) -> dict[str, SettingValue]:
    """How the names of the reports were replaced, if they were."""
    found = {str(report.settings.get("redacted", "")) for report in (*before, *after)} - {""}
    return {"redacted": ", ".join(sorted(found))} if found else {}


def _strip(capture: sides.Capture) -> facts.Strip | None:
    levels = capture.report.timeline
    if not isinstance(levels, dict) or capture.device.key not in levels:
        return None
    mine = levels[capture.device.key]
    return facts.Strip(start_ns=mine.start_ns, end_ns=mine.end_ns, cause_ids=mine.cause_ids, level=mine.levels[-1])


# A comparison with the runs of a baseline: which of them are compared, and what they tell of chance.

MOST_NAMED = 3
"""Files of a baseline that a note names; the others are counted. It changes only the length of the note."""


class BaselineRuns(Struct, frozen=True):
    """The runs of the baseline `name`, each with the name of its file; `damaged` are files that cannot be read."""

    name: str
    files: list[str]
    reports: list[Report]
    damaged: list[str]


def compare_with_baseline(
    runs: BaselineRuns, after: Sequence[Report], *, across_gpus: bool = False
) -> facts.Comparison:
    """Compare the runs that belong together with those after. The captures before are in the order of `runs`. Raises
    what `compare_reports` does."""
    lengths = _lengths(runs.reports, after, across_gpus=across_gpus)
    out = strays(lengths)
    kept = [at for at in range(len(lengths)) if at not in out]
    made = compare_reports([runs.reports[at] for at in kept], after, across_gpus=across_gpus)
    left_out = [runs.files[at] for at in out]
    spread = spread_of(lengths[kept])
    use = facts.BaselineUse(
        name=runs.name,
        runs=len(kept),
        spread=None if spread is None else round(spread, 6),
        sentence=_baseline_sentence(runs.name, len(kept), spread),
        left_out=left_out,
        damaged=runs.damaged,
    )
    notes = [
        *_files(left_out, "Left out of the baseline, too far from its other runs"),
        *_files(runs.damaged, "Left out of the baseline, as they cannot be read"),
    ]
    made = sides.read_from(made, [runs.files[at] for at in kept], [])
    return replace(made, baseline=use, notes=[*notes, *made.notes])


def _lengths(before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool) -> Values:
    """The lengths of the runs before on their slowest devices, in the unit of work that they share with those after.
    Raises what `compare_reports` does."""
    pairs, _notes = sides.paired(before, after, across_gpus=across_gpus)
    both = [in_units(pair.before, pair.after).before for pair in pairs]
    lengths = [[float(each.table[sides.LENGTH].mean()) for each in captures] for captures in both]
    return np.asarray(np.max(lengths, axis=0), dtype=np.float64)


def _baseline_sentence(name: str, count: int, spread: float | None) -> str:
    runs = "1 run" if count == 1 else f"{count:,} runs"
    if spread is None:
        return (
            f"Baseline {name} has {runs}: what differs from run to run is not known before there are {FEWEST_RUNS}. "
            "A change may be no more than that."
        )
    return f"Baseline {name} has {runs}, whose steps differ by {format_share(spread, 1)} (standard deviation)."


def _files(files: Sequence[str], what: str) -> list[str]:
    few = [*files[:MOST_NAMED], *([f"{len(files) - MOST_NAMED:,} more"] if len(files) > MOST_NAMED else [])]
    return [f"{what}: {listed(few)}."] if files else []
