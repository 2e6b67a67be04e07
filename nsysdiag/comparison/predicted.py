"""A comparison with a prediction on a side: what it promises, or how good it was. Each side is the step of each device,
its four parts, and its idle time by cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.comparison import facts, sides, waterfall
from nsysdiag.comparison.compare import WORK_TITLES, compare_reports, redactions, side_trace
from nsysdiag.comparison.job import DIFFER, MEAN, SLOW, speedup, top_changes
from nsysdiag.comparison.units import OneRun
from nsysdiag.diagnosis.facts import CANNOT_TELL
from nsysdiag.fields import Sentence
from nsysdiag.messages import NotComparableError, UsageError
from nsysdiag.replay.facts import FourParts, WhatIf, WhatIfDevice, text_of
from nsysdiag.report import CauseInfo, DeviceReport, Report, Tool
from nsysdiag.units import format_ns, format_share, format_speedup, format_two_ns
from nsysdiag.version import __version__

LEDGER = "ledger."
NOT_PREDICTED = (
    "Not predicted and not compared: kernels, gap groups, copies, collectives, launches, utilization and findings."
)
ONLY_THE_STEP = "Bounds are predicted for the whole length only."
UNLIKE = 0.05
"""Lengths of the same trace that are further apart are not of the same steps."""
NO_ROWS = "workload kernels signatures copies communication launch utilization findings notes"
"""What is not known of a prediction."""
Side = Sequence[Report | WhatIf]


class Length(Struct, frozen=True):
    """A time in ns; of a prediction with its bounds, None if they are not known. If they are too far apart for a
    figure, it is not `sure`."""

    ns: int
    bounds: tuple[int, int] | None = None
    sure: bool = True


class DeviceLength(Struct, frozen=True):
    """One device: its length, the four parts by name, and its idle time by cause."""

    key: str
    name: str
    length: Length
    parts: dict[str, int]
    ledger: dict[str, int]


class OneSide(Struct, frozen=True):
    """A side: the job's length, that of each device, and how many steps are behind them. `options` are the changes of a
    prediction; `notes` say what makes the side less certain."""

    traces: list[facts.SideTrace]
    step: Length
    count: int
    devices: list[DeviceLength]
    causes: list[CauseInfo]
    options: str = ""
    notes: list[Sentence] = field(default_factory=list)


def of_prediction(found: WhatIf) -> OneSide:
    """Raises NotComparableError for one that was refused, or has no device, UsageError for one without a change."""
    file = found.trace.file
    if found.refused is not None:
        raise NotComparableError(f"the prediction of {file} was refused: {typed.plain(found.refused)}")
    if not found.transforms:
        raise UsageError(
            f"the prediction of {file} changes nothing: it only lists predicted savings",
            hint="predict a change: nsysdiag whatif TRACE --without CAUSE -o predicted.json",
        )
    if not found.devices:
        raise NotComparableError(f"the prediction of {file} has no GPU work to compare")
    options = text_of(found.transforms)
    step = Length(found.predicted_ns, (found.low_ns, found.high_ns), not found.cannot_tell)
    notes = list(found.caveats)
    if found.identity is not None:
        notes.append(
            f"The model reproduces the recorded {found.per} to within "
            f"{format_share(abs(found.identity.length_error), 1)}."
        )
    devices = [_predicted(each, step) for each in found.devices]
    traces = [replace(side_trace(found), prediction=options)]
    return OneSide(traces, step, found.steps, devices, found.causes, options, notes)


def _predicted(device: WhatIfDevice, step: Length) -> DeviceLength:
    """A device that keeps step with the job has the bounds of the job; of another one they are not known."""
    ns = device.predicted_ns
    bounds = None
    if step.bounds is not None and abs(ns - step.ns) <= DIFFER * step.ns:
        bounds = (min(step.bounds[0], ns), max(step.bounds[1], ns))
    length = Length(ns, bounds, step.sure or bounds is None)
    return DeviceLength(device.key, device.name, length, _parts(device.predicted), device.ledger)


def replayed(found: WhatIf, side: OneSide) -> OneSide:
    """The capture that a prediction was made of, as it was replayed: the same steps, so that what changes is the fix
    alone. Any other capture, and that of a prediction that does not hold its idle time by cause, stays as it is."""
    whole = all(each.ledger_now or not each.now.idle_ns for each in found.devices)
    if not whole or [each.fingerprint for each in side.traces] != [found.trace.fingerprint]:
        return side
    devices = [
        DeviceLength(each.key, each.name, Length(each.now_ns), _parts(each.now), each.ledger_now)
        for each in found.devices
    ]
    return replace(side, step=Length(found.now_ns), count=found.steps, devices=devices, notes=[])


def _parts(parts: FourParts) -> dict[str, int]:
    return {name: getattr(parts, f"{name}_ns") for name in (*sides.WORK, sides.IDLE)}


def of_captures(reports: Sequence[Report], per: str) -> OneSide:
    """Captures as what the prediction is of. Raises NotComparableError if they have no GPU work or no steps,
    InputError if a report is damaged."""
    captures: list[list[sides.Capture]] = []
    for devices in sides.in_all(sides.working_devices(reports)):
        found = [_capture(report, device, per) for report, device in zip(reports, devices, strict=True)]
        known = [each for each in found if each is not None]
        if len(known) == len(found):
            captures.append(known)
    if not captures:
        files = " and ".join(dict.fromkeys(report.trace.file for report in reports))
        raise NotComparableError(
            f"no device has whole steps in {files}, and the prediction is of one",
            hint="capture with NVTX ranges around the steps, or compare captures of both sides",
        )
    lengths = [_measured(each) for each in captures]
    causes = {cause.id: cause for report in reports for cause in report.causes}
    return OneSide(
        traces=[side_trace(report) for report in reports],
        step=_longest(lengths),
        count=max(sum(map(_count, row)) for row in captures),
        devices=lengths,
        causes=list(causes.values()),
        notes=_slow(captures),
    )


def _longest(devices: Iterable[DeviceLength]) -> Length:
    return max((each.length for each in devices), key=lambda length: length.ns)


def _capture(report: Report, device: DeviceReport, per: str) -> sides.Capture | None:
    """One device in steps, by its iterations or else by the steps of the judged phases; or its window. None if it
    has no steps."""
    if per != facts.STEP:
        return sides.by_window(report, device, 1.0)
    found = sides.by_iterations(report, device)
    if found is not None and device.iterations is not None and device.iterations.closed:
        return found
    steps = [phase.steps for phase in report.phases if phase.judged]
    known = [each for each in steps if each is not None and each.of_the_program]
    count = sum(each.count for each in known)
    return sides.by_phase(report, device, float(count)) if count and len(known) == len(steps) else None


def _count(capture: sides.Capture) -> int:
    """The steps behind a capture; those of phases are one entry."""
    return capture.entries if capture.entries > 1 else max(round(capture.units), 1)


def _measured(captures: Sequence[sides.Capture]) -> DeviceLength:
    """The mean over all steps of all captures, in whole numbers that add up."""
    causes = sorted({name for each in captures for name in each.table if name.startswith(LEDGER)})

    def mean(name: str) -> float:
        return float(np.concatenate(sides.column(captures, name)).mean())

    length = round(mean(sides.LENGTH))
    names = (*sides.WORK, sides.IDLE)
    whole = waterfall.adding_up(np.array([mean(name) for name in names]), length)
    parts = dict(zip(names, whole, strict=True))
    times = waterfall.adding_up(np.array([mean(name) for name in causes]), parts[sides.IDLE])
    ledger = {name.removeprefix(LEDGER): ns for name, ns in zip(causes, times, strict=True)}
    device = captures[0].device
    return DeviceLength(device.key, device.name, Length(length), parts, ledger)


def _slow(captures: Sequence[Sequence[sides.Capture]]) -> list[Sentence]:
    """A note if some steps take far longer than the median one."""
    for row in captures:
        lengths = np.concatenate(sides.column(row, sides.LENGTH))
        median = float(np.median(lengths))
        if float(lengths.max()) > SLOW * median > 0:
            took = format_ns(round(median))
            return [f"Some steps take more than twice the median one, which takes {took}; the mean is compared."]
    return []


Pair = tuple[DeviceLength, DeviceLength]


def compare_sides(
    before: Side, after: Side, *, across_gpus: bool = False, same_work: Mapping[str, OneRun] | None = None
) -> facts.Comparison:
    """Compare captures, as `compare_reports` does, or a prediction on either side. Raises what that does; UsageError
    for a prediction that is not alone on its side or has no change; NotComparableError for one that was refused."""
    left, right = ([each for each in side if isinstance(each, Report)] for side in (before, after))
    predicted = [each for each in (*before, *after) if isinstance(each, WhatIf)]
    if not predicted:
        return compare_reports(left, right, across_gpus=across_gpus, same_work=same_work)
    for side in (before, after):
        if len(side) > 1 and any(isinstance(each, WhatIf) for each in side):
            raise UsageError("a prediction must be the only input of its side", hint="name it without further captures")
    if len({each.per for each in predicted}) > 1:
        raise NotComparableError("one prediction is of a step, the other of a window")
    per = predicted[0].per
    one, two = (
        of_prediction(side[0]) if isinstance(side[0], WhatIf) else of_captures(reports, per)
        for side, reports in ((before, left), (after, right))
    )
    if left and isinstance(after[0], WhatIf):
        one = replayed(after[0], one)
    pairs, notes = _paired(one, two, across_gpus=across_gpus)
    one, two = (  # with the step of these devices alone, if it was measured
        side if side.options else replace(side, step=_longest(pair[at] for pair in pairs))
        for at, side in enumerate((one, two))
    )
    causes = {cause.id: cause for cause in (*one.causes, *two.causes)}
    titles = {id: cause.title for id, cause in causes.items()} | WORK_TITLES
    unit = facts.Unit(kind=per, name_before="", name_after="", count_before=one.count, count_after=two.count, scale=1.0)
    devices = [_device(pair, unit, _said(one, two, per, *pair), titles) for pair in pairs]
    step = _change(one.step, two.step)
    return facts.Comparison(
        schema_version=facts.COMPARISON_SCHEMA_VERSION,
        kind=facts.KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        before=one.traces,
        after=two.traces,
        verdict=step.verdict,
        sentence=_outcome(one, two, step),
        devices=devices,
        not_compared=[],
        notes=[*notes, *_doubts(one, two, predicted), NOT_PREDICTED, *dict.fromkeys((*one.notes, *two.notes))],
        causes=list(causes.values()),
        settings=redactions(before, after),
        across_gpus=across_gpus,
        headline=_said(one, two, per),
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
    models = sorted({each.name for pair in pairs for each in pair} - set(sides.UNNAMED))
    sides.refuse_models(models, across_gpus=across_gpus)
    return pairs, notes + ([f"The GPUs are of different models: {', '.join(models)}."] if len(models) > 1 else [])


def _doubts(before: OneSide, after: OneSide, predicted: Sequence[WhatIf]) -> list[str]:
    """Notes if a promise is compared with another trace than its own, or with other steps of it."""
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


def _change(before: Length, after: Length) -> facts.Change:
    """The change with the bounds of the sides that are predicted; None if they are not known."""
    if before.bounds is None and after.bounds is None:
        return waterfall.change_between(before.ns, after.ns, None)
    (low, high), (least, most) = (each.bounds or (each.ns, each.ns) for each in (before, after))
    return waterfall.change_between(before.ns, after.ns, (least - high, most - low))


def _device(pair: Pair, unit: facts.Unit, sentence: str, titles: Mapping[str, str]) -> facts.DeviceComparison:
    before, after = pair
    length = _change(before.length, after.length)

    def rows(left: dict[str, int], right: dict[str, int]) -> list[facts.PartChange]:
        times = {name: (left.get(name, 0), right.get(name, 0)) for name in left | right}
        return [facts.PartChange(name, waterfall.change_of_part(*its, before.length.ns)) for name, its in times.items()]

    parts, ledger = rows(before.parts, after.parts), rows(before.ledger, after.ledger)
    ledger.sort(key=lambda row: (-max(row.change.before_ns, row.change.after_ns), row.id))
    whole = [part for part in parts if part.id != sides.IDLE] + ledger
    moved = waterfall.moves(whole, {})
    nothing: dict[str, Any] = {name: [] for name in NO_ROWS.split()}
    return facts.DeviceComparison(
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
        waterfall=waterfall.waterfall(whole),
        moves=moved,
        renaming=waterfall.renaming(whole, moved, titles, ONLY_THE_STEP),
        **nothing,
    )


def _job(
    pairs: Sequence[Pair], devices: Sequence[facts.DeviceComparison], step: facts.Change, unit: facts.Unit
) -> facts.JobComparison:
    before, after = (max((pair[at] for pair in pairs), key=lambda each: (each.length.ns, each.key)) for at in (0, 1))
    lengths = [[pair[at].length.ns for pair in pairs] for at in (0, 1)]
    slowest = next(each for each, pair in zip(devices, pairs, strict=True) if pair[1] is after)
    return facts.JobComparison(
        statistic=MEAN,
        unit=unit,
        verdict=step.verdict,
        device_before=before.key,
        device_after=after.key,
        devices_differ=any(max(side) > (1 + DIFFER) * min(side) for side in lengths),
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
    name = "Step time" if per == facts.STEP else "Window"
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
    """`18.9 ms (18.5 to 19.6)`; `anywhere between 17.0 and 31.0 ms` if the trace cannot tell."""
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


def _outcome(before: OneSide, after: OneSide, step: facts.Change) -> str:
    """What the verdict means."""
    if before.options and after.options:
        said = {facts.IMPROVED: "The second prediction is faster", facts.REGRESSED: "The second prediction is slower"}
        return f"{said.get(step.verdict, 'The bounds of the predictions overlap')}."
    if after.options:
        said = {
            facts.IMPROVED: "The change is predicted to save time",
            facts.REGRESSED: "The change is predicted to cost time",
        }
        return f"{said.get(step.verdict, 'The prediction leaves no change within its bounds')}."
    said = {
        facts.IMPROVED: "The change brought more than was predicted",
        facts.REGRESSED: "The change brought less than was predicted",
    }
    return f"{said.get(step.verdict, 'The change brought what was predicted')}."
