"""The whole comparison, step by step, and the sentences on its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import structs
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.comparison.facts import (
    COMPARISON_SCHEMA_VERSION,
    KIND,
    Change,
    Comparison,
    CountChange,
    DeviceComparison,
    FindingChange,
    SideTrace,
    Strip,
    Unit,
    WorkChange,
)
from nsysdiag.comparison.headline import headline
from nsysdiag.comparison.job import (
    Compared,
    StepChange,
    job_comparison,
    loop_notes,
    step_change,
    verdict_of,
    with_accounts,
)
from nsysdiag.comparison.rows import (
    GRAPH,
    MOST_KERNELS,
    GapGroupTable,
    collective_changes,
    copy_changes,
    cut_notes,
    finding_changes,
    gap_group_changes,
    gap_times,
    gaps_of,
    kernel_changes,
    kernel_times,
    launch_metrics,
    recaused,
    utilization_metrics,
    workload,
)
from nsysdiag.comparison.sides import (
    NOT_COMPARED,
    Capture,
    capture_notes,
    paired,
    settings_notes,
    uncompared,
    window_notes,
)
from nsysdiag.comparison.step_pairs import aligned_steps
from nsysdiag.comparison.units import ITERATIONS, DeviceSides, OneRun, in_units
from nsysdiag.comparison.waterfall import (
    IMPROVED,
    MIXED,
    REGRESSED,
    SAME,
    UNKNOWN,
    DeviceChanges,
    change_of_part,
    change_of_run,
    changes,
    corrected,
    cut,
    judged_together,
    moves,
    outweighed,
    renaming,
    too_small,
    waterfall,
)
from nsysdiag.comparison.work import family_changes, goes_with, work_changes, work_sentence
from nsysdiag.fields import Sentence, SettingValue
from nsysdiag.phrases import finished, unfinished
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import CauseInfo, Report, Tool
from nsysdiag.units import format_ns, format_share, format_signed_share
from nsysdiag.version import __version__

WORK_TITLES = {
    "compute": "Compute",
    "exposed_comm": "Exposed communication",
    "exposed_copy": "Exposed copies",
    "idle": "Idle",
}
POOLED = CauseInfo(
    id=NOT_COMPARED,
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
) -> Comparison:
    """Compare one or several captures before with one or several after. `same_work` are the devices by key that did the
    same operations on both sides once, or in few steps. Raises NotComparableError where they have no unit of work in
    common or are of different GPUs, InputError where a report is damaged."""
    runs = same_work or {}
    before, after = ([_with_names(report) for report in side] for side in (before, after))
    pairs, notes = paired(before, after, across_gpus=across_gpus)
    pooled, evidence_notes = uncompared(before, after)
    # Where reports know a cause by other words, those of the last one count.
    known = {cause.id: cause for report in (*before, *after) for cause in report.causes}
    causes = [*known.values(), *([POOLED] if pooled else [])]
    titles = {cause.id: cause.title for cause in causes} | WORK_TITLES
    sides = [in_units(pair.before, pair.after, runs.get(pair.before[0][1].key)) for pair in pairs]
    gaps = [(gaps_of(each.before, pooled), gaps_of(each.after, pooled)) for each in sides]
    times = [kernel_times(each.before, each.after) | gap_times(*both) for each, both in zip(sides, gaps, strict=True)]
    found = corrected(
        [changes(each.before, each.after, pooled, further) for each, further in zip(sides, times, strict=True)]
    )
    found = [
        replace(each, length=change_of_run(each.length, side.chance)) for each, side in zip(found, sides, strict=True)
    ]
    steps = _steps(sides, found)
    devices = [_device(*each, pooled, titles, len(sides)) for each in zip(sides, gaps, found, steps, strict=True)]
    devices = [
        replace(each, account=account) for each, account in zip(devices, with_accounts(pairs, devices), strict=True)
    ]
    verdict, sentence = overall(devices)
    job = job_comparison([Compared(*each) for each in zip(pairs, sides, found, steps, devices, strict=True)], verdict)
    made = Comparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        before=[side_trace(report) for report in before],
        after=[side_trace(report) for report in after],
        verdict=verdict,
        sentence=sentence,
        devices=devices,
        not_compared=pooled,
        notes=[
            *loop_notes(job.phases),
            *notes,
            *settings_notes(before, after),
            *evidence_notes,
            *window_notes(before, after),
            *capture_notes(before, after),
        ],
        causes=causes,
        settings=redactions(before, after),
        across_gpus=across_gpus,
        headline=headline(job, titles),
        job=job,
    )
    return finished(made)


def _with_names(report: Report) -> Report:
    """The report with names that know what they are names of in the sentences of its findings."""
    return structs.replace(report, findings=unfinished(report.findings, report.phrases))


def _steps(sides: Sequence[DeviceSides], found: Sequence[DeviceChanges]) -> list[StepChange | None]:
    """The median step of each device, judged together; None where other units are compared."""
    steps = [
        step_change(each.before, each.after, changes.noise) if each.unit.kind == ITERATIONS else None
        for each, changes in zip(sides, found, strict=True)
    ]
    judged = iter(judged_together([(step.change, step.freedom) for step in steps if step is not None]))
    return [
        None if step is None else replace(step, change=change_of_run(next(judged), side.chance))
        for step, side in zip(steps, sides, strict=True)
    ]


def _device(
    sides: DeviceSides,
    gaps: tuple[GapGroupTable, GapGroupTable],
    found: DeviceChanges,
    step: StepChange | None,
    pooled: Sequence[str],
    titles: Mapping[str, str],
    devices: int,
) -> DeviceComparison:
    before, after = sides.before, sides.after
    rows = cut(found)
    moved = moves(rows, recaused(*gaps))
    counts = workload(before, after, part_of_step=sides.unit.part_of_step)
    findings = finding_changes(before, after, pooled)
    plain = partial(change_of_part, length=found.length.before_ns, noise=found.noise)
    kernels = kernel_changes(before, after, found.own, plain)
    work = work_changes(sides)
    steps = aligned_steps(sides.unit, before[0], after[0], devices)
    verdict = _verdict(sides.unit, found.length, step, work)
    return DeviceComparison(
        key=before[0].device.key,
        name_before=before[0].device.name,
        name_after=after[0].device.name,
        unit=sides.unit,
        verdict=verdict,
        sentence=outcome_sentence(sides.unit, found.length, step, work),
        noise=round(found.noise, 6),
        length=found.length,
        parts=found.parts,
        ledger=found.ledgers["ledger"],
        root_ledger=found.ledgers["root"],
        waterfall=waterfall(rows),
        moves=moved,
        renaming=renaming(rows, moved, titles),
        workload=counts,
        kernels=kernels[:MOST_KERNELS],
        signatures=gap_group_changes(*gaps, found.own, plain),
        copies=copy_changes(before, after),
        communication=collective_changes(before, after),
        launch=launch_metrics(before, after),
        utilization=utilization_metrics(before, after),
        findings=findings,
        notes=_notes(sides, counts, findings, titles),
        strip_before=_strip(before[0]),
        strip_after=_strip(after[0]),
        step=step.change if step is not None else None,
        steps=None if isinstance(steps, str) else steps,
        no_steps=steps if isinstance(steps, str) else "",
        slow_steps=step is not None and step.slow,
        work=work,
        families=[] if any(row.id == GRAPH for row in counts) else family_changes(kernels, sides.unit),
    )


def _verdict(unit: Unit, length: Change, step: StepChange | None, work: Sequence[WorkChange]) -> str:
    """The verdict: `unknown` for parts of steps, `mixed` if the work changed in the same direction as the time."""
    if unit.part_of_step:
        return UNKNOWN
    found = verdict_of(length, step)
    return MIXED if found != SAME and goes_with(work, length) else found


def _notes(
    sides: DeviceSides, counts: Sequence[CountChange], findings: Sequence[FindingChange], titles: Mapping[str, str]
) -> list[Sentence]:
    """What lowers the confidence in the comparison of a device."""
    notes: list[Sentence] = [*sides.notes]
    changed = [f"{row.id} {row.before:,.6g} before, {row.after:,.6g} after" for row in counts if row.changed]
    if changed:
        notes.append(f"The workload changed, operations for a unit of work: {'; '.join(changed)}.")
    hidden = dict.fromkeys(row.cause for row in findings if row.status == NOT_COMPARED)
    if hidden:
        names = ", ".join(titles.get(cause, cause) for cause in hidden)
        notes.append(f"Findings of these causes are not compared, as some captures lack the evidence: {names}.")
    return [*notes, *cut_notes([*sides.before, *sides.after])]


def side_trace(report: Report) -> SideTrace:
    """A capture as the comparison holds it."""
    return SideTrace(
        file=report.trace.file,
        size_bytes=report.trace.size_bytes,
        fingerprint=report.trace.fingerprint,
        nsys_version=report.trace.nsys_version,
        window=sorted({device.window.reason for device in report.devices}, key=typed.plain),
        warnings=report.trace.warnings,
    )


def redactions(before: Sequence[Report | WhatIf], after: Sequence[Report | WhatIf]) -> dict[str, SettingValue]:
    """How the names of the reports were replaced, where they were."""
    found = {str(report.settings.get("redacted", "")) for report in (*before, *after)} - {""}
    return {"redacted": ", ".join(sorted(found))} if found else {}


def _strip(capture: Capture) -> Strip | None:
    levels = capture.report.timeline
    if not isinstance(levels, dict) or capture.device.key not in levels:
        return None
    mine = levels[capture.device.key]
    return Strip(start_ns=mine.start_ns, end_ns=mine.end_ns, cause_ids=mine.cause_ids, level=mine.levels[-1])


def outcome_sentence(unit: Unit, length: Change, step: StepChange | None, work: Sequence[WorkChange]) -> str:
    """What became of a device: of its work and its time, and what the slow steps do to that."""
    said = device_sentence(unit, length)
    if any(row.differs for row in work):
        said = f"{work_sentence(work, unit)}. {said}"
    if step is not None and step.slow:
        times = f"{format_ns(step.change.before_ns)} before and {format_ns(step.change.after_ns)} after"
        said = f"{said} Some steps take more than twice the median one, which takes {times}."
    return f"{said} The change may not be the reason: no whole steps are compared." if unit.part_of_step else said


def device_sentence(unit: Unit, length: Change) -> str:
    """What became of a unit of work."""
    what = "The mean iteration" if unit.kind == ITERATIONS else "The same work"
    times = f"{what} takes {format_ns(length.after_ns)} instead of {format_ns(length.before_ns)}"
    share = format_signed_share(length.change_ns, length.before_ns)
    if outweighed(length):
        return f"{times}: {share}, {interval_text(length)}. That may be chance: a verdict takes 99%."
    if length.verdict == SAME and too_small(length):
        least = format_share(length.least_ns, length.before_ns)
        return f"{times}: {share}, {interval_text(length)}. That is too small to count: a verdict takes {least}."
    if length.verdict == SAME:
        seen = max(length.least_ns, (length.high_ns or 0) - length.change_ns, length.change_ns - (length.low_ns or 0))
        return (
            f"{what} takes {format_ns(length.before_ns)} before and {format_ns(length.after_ns)} after: no difference "
            f"beyond chance. Less than {format_share(seen, length.before_ns)} would not be seen."
        )
    if length.verdict == UNKNOWN:
        return f"{times}: the data do not show whether that is more than chance."
    return f"{times}: {share}, {interval_text(length)}."


def interval_text(change: Change) -> str:
    """The interval of a change as shares of the time before."""
    if change.low_ns is None or change.high_ns is None:
        return "no interval"
    low, high = (format_signed_share(ns, change.before_ns) for ns in (change.low_ns, change.high_ns))
    return f"95% interval {low} to {high}"


def overall(devices: Sequence[DeviceComparison]) -> tuple[str, Sentence]:
    """The verdict over all devices and its sentence: of the devices with that verdict, the one whose length changed
    most."""
    verdicts = {device.verdict for device in devices}
    if {IMPROVED, REGRESSED} <= verdicts:
        better = [device.key for device in devices if device.verdict == IMPROVED]
        worse = [device.key for device in devices if device.verdict == REGRESSED]
        return MIXED, f"Better on {', '.join(better)}, worse on {', '.join(worse)}."
    verdict = next((each for each in (MIXED, REGRESSED, IMPROVED, UNKNOWN) if each in verdicts), SAME)
    shown = max(
        (device for device in devices if device.verdict == verdict),
        key=lambda device: abs(device.length.change_ns) / max(device.length.before_ns, 1),
    )
    where = f"{shown.key}: " if len(devices) > 1 else ""
    return verdict, where + shown.sentence
