"""A comparison with a prediction on a side: what it promises, or how good it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from nsysdiag.comparison.compare import WORK_TITLES, compare_reports, redactions
from nsysdiag.comparison.facts import (
    COMPARISON_SCHEMA_VERSION,
    KIND,
    Change,
    Comparison,
    DeviceComparison,
    JobComparison,
    PartChange,
    Unit,
)
from nsysdiag.comparison.job import DIFFER, MEAN, speedup, top_changes
from nsysdiag.comparison.predicted_sides import DeviceLength, Length, OneSide, of_captures, of_prediction, replayed
from nsysdiag.comparison.sides import IDLE, UNNAMED, WORK, refuse_models
from nsysdiag.comparison.units import STEP, OneRun
from nsysdiag.comparison.waterfall import (
    IMPROVED,
    REGRESSED,
    change_between,
    change_of_part,
    moves,
    renaming,
    waterfall,
)
from nsysdiag.diagnosis.facts import CANNOT_TELL
from nsysdiag.fields import SettingValue
from nsysdiag.messages import NotComparableError, UsageError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report, Tool
from nsysdiag.units import format_ns, format_speedup, format_two_ns
from nsysdiag.version import __version__

NOT_PREDICTED = (
    "Not predicted and not compared: kernels, gap groups, copies, collectives, launches, utilization and findings."
)
ONLY_THE_STEP = "Bounds are predicted for the whole length only."
UNLIKE = 0.05
"""Lengths of the same trace that are further apart are not of the same steps."""
Pair = tuple[DeviceLength, DeviceLength]
Side = Sequence[Report | WhatIf]


def compare_sides(
    before: Side, after: Side, *, across_gpus: bool = False, same_work: Mapping[str, OneRun] | None = None
) -> Comparison:
    """Compare captures, as `compare_reports` does, or a prediction on either side. Raises what that does; UsageError
    for a prediction that is not alone on its side or has no change; NotComparableError for one that was refused."""
    left, right = (
        [each for each in before if isinstance(each, Report)],
        [each for each in after if isinstance(each, Report)],
    )
    predicted = [each for each in (*before, *after) if isinstance(each, WhatIf)]
    if not predicted:
        return compare_reports(left, right, across_gpus=across_gpus, same_work=same_work)
    for side in (before, after):
        if len(side) > 1 and any(isinstance(each, WhatIf) for each in side):
            raise UsageError("a prediction must be the only input of its side", hint="name it without further captures")
    if len({each.per for each in predicted}) > 1:
        raise NotComparableError("one prediction is of a step, the other of a window")
    per = predicted[0].per
    sides = [
        of_prediction(side[0]) if isinstance(side[0], WhatIf) else of_captures(reports, per)
        for side, reports in ((before, left), (after, right))
    ]
    if left and isinstance(after[0], WhatIf):
        sides[0] = replayed(after[0], sides[0])
    return _compared(sides[0], sides[1], per, predicted, redactions(before, after), across_gpus=across_gpus)


def _compared(
    before: OneSide,
    after: OneSide,
    per: str,
    predicted: Sequence[WhatIf],
    settings: dict[str, SettingValue],
    *,
    across_gpus: bool,
) -> Comparison:
    pairs, notes = _paired(before, after, across_gpus=across_gpus)
    before, after = (_of_devices(side, [pair[at] for pair in pairs]) for at, side in enumerate((before, after)))
    causes = {cause.id: cause for cause in (*before.causes, *after.causes)}
    titles = {id: cause.title for id, cause in causes.items()} | WORK_TITLES
    unit = Unit(kind=per, name_before="", name_after="", count_before=before.count, count_after=after.count, scale=1.0)
    devices = [_device(pair, unit, _said(before, after, per, *pair), titles) for pair in pairs]
    step = _change(before.step, after.step)
    headline = _said(before, after, per)
    return Comparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        before=before.traces,
        after=after.traces,
        verdict=step.verdict,
        sentence=_outcome(before, after, step),
        devices=devices,
        not_compared=[],
        notes=[
            *notes,
            *_doubts(before, after, predicted),
            NOT_PREDICTED,
            *dict.fromkeys((*before.notes, *after.notes)),
        ],
        causes=list(causes.values()),
        settings=settings,
        across_gpus=across_gpus,
        headline=headline,
        job=_job(pairs, devices, step, unit),
    )


def _paired(before: OneSide, after: OneSide, *, across_gpus: bool) -> tuple[list[Pair], list[str]]:
    """The devices of both sides, by key, or else in order. Raises NotComparableError if GPU models differ without
    --across-gpus."""
    theirs = {each.key: each for each in after.devices}
    pairs = [(each, theirs[each.key]) for each in before.devices if each.key in theirs]
    notes = []
    if not pairs:
        pairs = list(zip(before.devices, after.devices, strict=False))
        notes.append("The devices have different numbers; they are compared in order.")
    compared = {id(each) for pair in pairs for each in pair}
    rest = [each.key for each in (*before.devices, *after.devices) if id(each) not in compared]
    if rest:
        notes.append(f"Devices found on one side only are left out: {', '.join(rest)}.")
    models = sorted({each.name for pair in pairs for each in pair} - set(UNNAMED))
    refuse_models(models, across_gpus=across_gpus)
    return pairs, notes + ([f"The GPUs are of different models: {', '.join(models)}."] if len(models) > 1 else [])


def _of_devices(side: OneSide, devices: Sequence[DeviceLength]) -> OneSide:
    """The side with the step of these devices alone, where it was measured."""
    return (
        side if side.options else replace(side, step=max((each.length for each in devices), key=lambda each: each.ns))
    )


def _doubts(before: OneSide, after: OneSide, predicted: Sequence[WhatIf]) -> list[str]:
    """Where a promise is compared with another trace than its own, or with other steps of it."""
    if not after.options or before.options:
        return []
    found = predicted[0]
    if all(trace.fingerprint != found.trace.fingerprint for trace in before.traces):
        return ["The prediction was made from another capture than the one before."]
    if abs(before.step.ns - found.now_ns) > UNLIKE * max(found.now_ns, 1):
        return [
            f"The {found.per} that was replayed takes {format_ns(found.now_ns)}, in the whole capture "
            f"{format_ns(before.step.ns)}: other ones were replayed."
        ]
    return []


def _change(before: Length, after: Length) -> Change:
    """The change with the bounds of the sides that are predicted; None where they are not known."""
    if before.bounds is None and after.bounds is None:
        return change_between(before.ns, after.ns, None)
    (low, high), (least, most) = (each.bounds or (each.ns, each.ns) for each in (before, after))
    return change_between(before.ns, after.ns, (least - high, most - low))


def _device(pair: Pair, unit: Unit, sentence: str, titles: Mapping[str, str]) -> DeviceComparison:
    before, after = pair
    length = _change(before.length, after.length)

    def rows(left: Mapping[str, int], right: Mapping[str, int], names: Sequence[str]) -> list[PartChange]:
        times = [(name, left.get(name, 0), right.get(name, 0)) for name in names]
        return [PartChange(id=id, change=change_of_part(was, now, before.length.ns)) for id, was, now in times]

    parts = rows(before.parts, after.parts, (*WORK, IDLE))
    ledger = rows(before.ledger, after.ledger, sorted({*before.ledger, *after.ledger}))
    ledger.sort(key=lambda row: (-max(row.change.before_ns, row.change.after_ns), row.id))
    whole = [part for part in parts if part.id != IDLE] + ledger
    moved = moves(whole, {})
    return DeviceComparison(
        key=before.key,
        name_before=before.name,
        name_after=after.name,
        unit=unit,
        verdict=length.verdict,
        sentence=f"{sentence}.",
        noise=0.0,
        length=length,
        parts=parts,
        ledger=ledger,
        root_ledger=ledger,
        waterfall=waterfall(whole),
        moves=moved,
        renaming=renaming(whole, moved, titles, ONLY_THE_STEP),
        workload=[],
        kernels=[],
        signatures=[],
        copies=[],
        communication=[],
        launch=[],
        utilization=[],
        findings=[],
        notes=[],
    )


def _job(pairs: Sequence[Pair], devices: Sequence[DeviceComparison], step: Change, unit: Unit) -> JobComparison:
    before, after = (max((pair[at] for pair in pairs), key=lambda each: (each.length.ns, each.key)) for at in (0, 1))
    sides = [[pair[at].length.ns for pair in pairs] for at in (0, 1)]
    slowest = next(each for each, pair in zip(devices, pairs, strict=True) if pair[1] is after)
    return JobComparison(
        statistic=MEAN,
        unit=unit,
        verdict=step.verdict,
        device_before=before.key,
        device_after=after.key,
        devices_differ=any(max(side) > (1 + DIFFER) * min(side) for side in sides),
        step=step,
        mean=step,
        speedup=speedup(step),
        work=[],
        account=[],
        top=top_changes(slowest, known=False),
    )


def _said(
    before: OneSide, after: OneSide, per: str, one: DeviceLength | None = None, two: DeviceLength | None = None
) -> str:
    """The promise, or what became of it, in a line: of the job, or of a device on both sides."""
    name = "Step time" if per == STEP else "Window"
    was, now = one.length if one else before.step, two.length if two else after.step
    if before.options and after.options:
        return f"{name} predicted {_bounded(was)} with {before.options}, {_bounded(now)} with {after.options}"
    if after.options and not now.sure:
        return f"{name} {format_ns(was.ns)}; predicted {_bounded(now)}: {after.options}"
    if after.options:
        both = format_two_ns(was.ns, now.ns, " → ")
        between = f", between {format_two_ns(*now.bounds, ' and ')}" if now.bounds else ""
        return f"{name} {both} predicted ({format_speedup(was.ns, now.ns)}{between}): {after.options}"
    return f"{name} predicted {_bounded(was)}, measured {format_ns(now.ns)}{_inside(was, now)}"


def _bounded(length: Length) -> str:
    """`18.9 ms (18.5 to 19.6)`; `anywhere between 17.0 and 31.0 ms` where the trace cannot tell."""
    said = format_ns(length.ns)
    if length.bounds is None:
        return said
    if not length.sure:
        return f"anywhere between {format_two_ns(*length.bounds, ' and ')} ({CANNOT_TELL})"
    low, high = (format_ns(ns) for ns in length.bounds)
    unit = f" {said.partition(' ')[2]}"
    if low.endswith(unit) and high.endswith(unit):
        low, high = low.removesuffix(unit), high.removesuffix(unit)
    return f"{said} ({low} to {high})"


def _inside(predicted: Length, measured: Length) -> str:
    if predicted.bounds is None:
        return ""
    low, high = predicted.bounds
    if measured.ns > high:
        return f": {format_ns(measured.ns - high)} above the bounds"
    return f": {format_ns(low - measured.ns)} below the bounds" if measured.ns < low else ": inside the bounds"


def _outcome(before: OneSide, after: OneSide, step: Change) -> str:
    """What the verdict means."""
    if before.options and after.options:
        said = {IMPROVED: "The second prediction is faster", REGRESSED: "The second prediction is slower"}
        return f"{said.get(step.verdict, 'The bounds of the predictions overlap')}."
    if after.options:
        said = {IMPROVED: "The change is predicted to save time", REGRESSED: "The change is predicted to cost time"}
        return f"{said.get(step.verdict, 'The prediction leaves no change within its bounds')}."
    said = {
        IMPROVED: "The change brought more than was predicted",
        REGRESSED: "The change brought less than was predicted",
    }
    return f"{said.get(step.verdict, 'The change brought what was predicted')}."
