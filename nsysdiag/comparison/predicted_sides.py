"""The sides of a comparison with a prediction, each a capture or a prediction: the step of each device, its four parts,
and its idle time by cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.comparison.compare import side_trace
from nsysdiag.comparison.facts import SideTrace
from nsysdiag.comparison.job import DIFFER, SLOW
from nsysdiag.comparison.sides import IDLE, LENGTH, WORK, Capture, by_iterations, by_phase, by_window, column
from nsysdiag.comparison.units import STEP
from nsysdiag.comparison.waterfall import adding_up
from nsysdiag.fields import Sentence
from nsysdiag.messages import NotComparableError, UsageError
from nsysdiag.replay.facts import FourParts, WhatIf, WhatIfDevice
from nsysdiag.replay.options import text_of
from nsysdiag.report import CauseInfo, DeviceReport, Report
from nsysdiag.units import format_ns, format_share

LEDGER = "ledger."


class Length(Struct, frozen=True):
    """A time in ns; of a prediction with its bounds, None where they are not known. If they are too far apart for a
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

    traces: list[SideTrace]
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
    trace = SideTrace(
        file=file,
        size_bytes=found.trace.size_bytes,
        fingerprint=found.trace.fingerprint,
        nsys_version=found.trace.nsys_version,
        window=[],
        warnings=found.trace.warnings,
        prediction=options,
    )
    step = Length(found.predicted_ns, (found.low_ns, found.high_ns), not found.cannot_tell)
    notes = list(found.caveats)
    if found.identity is not None:
        notes.append(
            f"The model reproduces the recorded {found.per} to within "
            f"{format_share(abs(found.identity.length_error), 1)}."
        )
    devices = [_predicted(each, step) for each in found.devices]
    return OneSide([trace], step, found.steps, devices, found.causes, options, notes)


def _predicted(device: WhatIfDevice, step: Length) -> DeviceLength:
    """A device that keeps step with the job has the bounds of the job; of another one they are not known."""
    ns = device.predicted_ns
    bounds = None
    if step.bounds is not None and abs(ns - step.ns) <= DIFFER * step.ns:
        bounds = (min(step.bounds[0], ns), max(step.bounds[1], ns))
    return DeviceLength(
        device.key,
        device.name,
        Length(ns, bounds, step.sure or bounds is None),
        _parts(device.predicted),
        device.ledger,
    )


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
    return {name: getattr(parts, f"{name}_ns") for name in (*WORK, IDLE)}


def of_captures(reports: Sequence[Report], per: str) -> OneSide:
    """Captures as what the prediction is of. Raises NotComparableError where they have no GPU work or no steps,
    InputError where a report is damaged."""
    rows = [[device for device in report.devices if device.window_ns] for report in reports]
    for report, row in zip(reports, rows, strict=True):
        if not row:
            raise NotComparableError(f"{report.trace.file} has no GPU work to compare")
    keys = [each.key for each in rows[0] if all(any(each.key == other.key for other in row) for row in rows)]
    captures: dict[str, list[Capture]] = {}
    for key in keys:
        devices = [next(each for each in row if each.key == key) for row in rows]
        found = [_capture(report, device, per) for report, device in zip(reports, devices, strict=True)]
        known = [each for each in found if each is not None]
        if len(known) == len(found):
            captures[key] = known
    if not captures:
        files = " and ".join(dict.fromkeys(report.trace.file for report in reports))
        raise NotComparableError(
            f"no device has whole steps in {files}, and the prediction is of one",
            hint="capture with NVTX ranges around the steps, or compare captures of both sides",
        )
    lengths = [_measured(each) for each in captures.values()]
    causes = {cause.id: cause for report in reports for cause in report.causes}
    return OneSide(
        traces=[side_trace(report) for report in reports],
        step=max((each.length for each in lengths), key=lambda length: length.ns),
        count=max(sum(map(_count, row)) for row in captures.values()),
        devices=lengths,
        causes=list(causes.values()),
        notes=_slow(captures),
    )


def _capture(report: Report, device: DeviceReport, per: str) -> Capture | None:
    """One device in steps, by its iterations or else by the steps of the judged phases; or its window. None where it
    has no steps."""
    if per != STEP:
        return by_window(report, device, 1.0)
    found = by_iterations(report, device)
    if found is not None and device.iterations is not None and device.iterations.closed:
        return found
    steps = [phase.steps for phase in report.phases if phase.judged]
    known = [each for each in steps if each is not None and each.of_the_program]
    count = sum(each.count for each in known)
    return by_phase(report, device, float(count)) if count and len(known) == len(steps) else None


def _count(capture: Capture) -> int:
    """The steps behind a capture; those of phases are one entry."""
    return capture.entries if capture.entries > 1 else max(round(capture.units), 1)


def _measured(captures: Sequence[Capture]) -> DeviceLength:
    """The mean over all steps of all captures, in whole numbers that add up."""
    causes = sorted({name for each in captures for name in each.table if name.startswith(LEDGER)})

    def mean(name: str) -> float:
        return float(np.concatenate(column(captures, name)).mean())

    length = round(mean(LENGTH))
    parts = dict(zip((*WORK, IDLE), adding_up(np.array([mean(name) for name in (*WORK, IDLE)]), length), strict=True))
    times = adding_up(np.array([mean(name) for name in causes]), parts[IDLE])
    ledger = {name.removeprefix(LEDGER): ns for name, ns in zip(causes, times, strict=True)}
    device = captures[0].device
    return DeviceLength(device.key, device.name, Length(length), parts, ledger)


def _slow(captures: dict[str, list[Capture]]) -> list[Sentence]:
    """A note where some steps take far longer than the median one."""
    for row in captures.values():
        lengths = np.concatenate(column(row, LENGTH))
        median = float(np.median(lengths))
        if float(lengths.max()) > SLOW * median > 0:
            took = format_ns(round(median))
            return [f"Some steps take more than twice the median one, which takes {took}; the mean is compared."]
    return []
