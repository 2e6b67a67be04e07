"""The whole comparison, step by step, and no logic of its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from nsysdiag.comparison.changes import Changes, change_of_means, changes
from nsysdiag.comparison.evidence import NOT_COMPARED, uncompared
from nsysdiag.comparison.facts import (
    COMPARISON_SCHEMA_VERSION,
    KIND,
    Comparison,
    CountChange,
    DeviceComparison,
    FindingChange,
    SideTrace,
    Strip,
)
from nsysdiag.comparison.matching import (
    collective_changes,
    copy_changes,
    finding_changes,
    kernel_changes,
    kernel_times,
    workload,
)
from nsysdiag.comparison.metrics import launch_metrics, utilization_metrics
from nsysdiag.comparison.pairing import Pair, is_narrowed, paired, settings_notes
from nsysdiag.comparison.sentences import device_sentence, overall
from nsysdiag.comparison.side import Capture, Quantity
from nsysdiag.comparison.signatures import Gaps, cut_notes, gap_times, gaps_of, recaused, signature_changes
from nsysdiag.comparison.together import judged_together
from nsysdiag.comparison.units import Sides, in_units
from nsysdiag.comparison.waterfall import cut, moves, renaming, waterfall
from nsysdiag.report import CauseInfo, Report, Tool
from nsysdiag.version import __version__

WORK_TITLES = {
    "compute": "Compute",
    "exposed_comm": "Exposed communication",
    "exposed_copy": "Exposed copies",
    "idle": "Idle",
}
POOLED = CauseInfo(
    id=NOT_COMPARED,
    title="Causes that not all captures tell apart",
    meaning="Not all captures have the evidence for these causes, or were analysed for them: they are compared as one.",
    color="#8a8f98",
)


def compare_reports(before: Sequence[Report], after: Sequence[Report], *, across_gpus: bool = False) -> Comparison:
    """Compare one or several captures before with one or several after. Raises NotComparableError where they have no
    unit of work in common or are of different GPUs, InputError where a report is damaged."""
    pairs, notes = paired(before, after, across_gpus=across_gpus)
    pooled, told = uncompared(before, after)
    causes = _causes([*before, *after], pooled=bool(pooled))
    titles = {cause.id: cause.title for cause in causes} | WORK_TITLES
    grounds = [_ground(pair, pooled) for pair in pairs]
    found = judged_together([changes(each.before, each.after, pooled, each.times) for each in grounds])
    devices = [_device(ground, each, pooled, titles) for ground, each in zip(grounds, found, strict=True)]
    verdict, sentence = overall(devices)
    return Comparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        before=[_trace(report) for report in before],
        after=[_trace(report) for report in after],
        verdict=verdict,
        sentence=sentence,
        devices=devices,
        not_compared=pooled,
        notes=[
            *notes,
            *settings_notes(before, after),
            *told,
            *_window_notes(before, after),
            *_capture_notes(before, after),
        ],
        causes=causes,
        settings=_redacted(before, after),
        across_gpus=across_gpus,
    )


@dataclass(frozen=True, slots=True)
class _Ground:
    """One device on both sides: its captures in one unit of work, its gaps, and the times of kernels and gaps."""

    sides: Sides
    gaps: tuple[Gaps, Gaps]
    times: dict[Hashable, Quantity]

    @property
    def before(self) -> list[Capture]:
        return self.sides.before

    @property
    def after(self) -> list[Capture]:
        return self.sides.after


def _ground(pair: Pair, pooled: Sequence[str]) -> _Ground:
    sides = in_units(pair.before, pair.after)
    gaps = gaps_of(sides.before, pooled), gaps_of(sides.after, pooled)
    return _Ground(sides, gaps, kernel_times(sides.before, sides.after) | gap_times(*gaps))


def _device(ground: _Ground, found: Changes, pooled: Sequence[str], titles: Mapping[str, str]) -> DeviceComparison:
    sides, before, after = ground.sides, ground.before, ground.after
    rows = cut(found)
    moved = moves(rows, recaused(*ground.gaps))
    counts = workload(before, after)
    findings = finding_changes(before, after, pooled)
    plain = partial(change_of_means, found)
    return DeviceComparison(
        key=before[0].device.key,
        name_before=before[0].device.name,
        name_after=after[0].device.name,
        unit=sides.unit,
        verdict=found.length.verdict,
        sentence=device_sentence(sides.unit, found.length, rows, titles),
        noise=round(found.noise, 6),
        length=found.length,
        parts=found.parts,
        ledger=found.ledgers["ledger"],
        root_ledger=found.ledgers["root"],
        waterfall=waterfall(rows),
        moves=moved,
        renaming=renaming(rows, moved, titles),
        workload=counts,
        kernels=kernel_changes(before, after, found.own, plain),
        signatures=signature_changes(*ground.gaps, found.own, plain),
        copies=copy_changes(before, after),
        communication=collective_changes(before, after),
        launch=launch_metrics(before, after),
        utilization=utilization_metrics(before, after),
        findings=findings,
        notes=[
            *sides.notes,
            *_workload_notes(counts),
            *_finding_notes(findings, titles),
            *cut_notes([*before, *after]),
        ],
        strip_before=_strip(before[0]),
        strip_after=_strip(after[0]),
    )


def _workload_notes(counts: Sequence[CountChange]) -> list[str]:
    changed = [f"{row.id} {row.before:,.6g} before, {row.after:,.6g} after" for row in counts if row.changed]
    return [f"The workload changed, operations for a unit of work: {'; '.join(changed)}."] if changed else []


def _finding_notes(findings: Sequence[FindingChange], titles: Mapping[str, str]) -> list[str]:
    causes = dict.fromkeys(row.cause for row in findings if row.status == NOT_COMPARED)
    names = ", ".join(titles.get(cause, cause) for cause in causes)
    return [f"Findings of these causes are not compared, as not all captures can tell them: {names}."] if causes else []


def _window_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """Windows that nobody chose, and that are of different kinds all the same."""
    if any(is_narrowed(report) for report in (*before, *after)):
        return []
    reasons = sorted({device.window.reason for report in (*before, *after) for device in report.devices})
    return [f"The windows follow different rules: {'; '.join(reasons)}."] if len(reasons) > 1 else []


def _capture_notes(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    if len(before) == len(after) == 1:
        return [
            *_twice(before, after),
            "One capture a side: how much one run differs from the next is not in the interval.",
        ]
    return _twice(before, after)


def _twice(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """Captures that are the same trace, and the same time of it: nothing that they have in common is measured twice."""
    notes = []
    seen: dict[object, str] = {}
    for report in (*before, *after):
        windows = tuple(tuple(map(tuple, device.window.parts)) for device in report.devices)
        what = (report.trace.size_bytes, report.trace.fingerprint, windows)
        if what in seen:
            notes.append(f"{seen[what]} and {report.trace.file} are the same capture: it is no second measurement.")
        seen.setdefault(what, report.trace.file)
    return notes


def _trace(report: Report) -> SideTrace:
    return SideTrace(
        file=report.trace.file,
        size_bytes=report.trace.size_bytes,
        fingerprint=report.trace.fingerprint,
        nsys_version=report.trace.nsys_version,
        window=sorted({device.window.reason for device in report.devices}),
        warnings=report.trace.warnings,
    )


def _causes(reports: Sequence[Report], *, pooled: bool) -> list[CauseInfo]:
    """The causes as the reports know them, the later ones first where they differ."""
    found = {cause.id: cause for report in reports for cause in report.causes}
    return [*found.values(), *([POOLED] if pooled else [])]


def _redacted(before: Sequence[Report], after: Sequence[Report]) -> dict[str, str]:
    """How the names of the reports were replaced, where they were."""
    found = {report.settings.get("redacted", "") for report in (*before, *after)} - {""}
    return {"redacted": ", ".join(sorted(found))} if found else {}


def _strip(capture: Capture) -> Strip | None:
    levels = capture.report.timeline
    if not isinstance(levels, dict) or capture.device.key not in levels:
        return None
    mine = levels[capture.device.key]
    return Strip(start_ns=mine.start_ns, end_ns=mine.end_ns, cause_ids=mine.cause_ids, level=mine.levels[-1])
