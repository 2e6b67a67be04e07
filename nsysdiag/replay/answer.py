"""A prediction as a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from nsysdiag.arrays.groups import summed
from nsysdiag.fields import TextKind
from nsysdiag.phrases import finished
from nsysdiag.record import Record, rewritten
from nsysdiag.replay.bounds import Prediction
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import KIND, WHATIF_SCHEMA_VERSION, CauseChange, Identity, Transform, WhatIf, WhatIfDevice
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Told, floor_of, predict, savings_of
from nsysdiag.replay.reshaped import mostly_read
from nsysdiag.replay.run import Run, four_parts, step_idle
from nsysdiag.replay.sources import of_unknown_sources
from nsysdiag.report import Report

# A prediction with what the report of its trace says: titles of findings, causes, settings, and names in sentences.


def complete(made: WhatIf, report: Report) -> WhatIf:
    """The prediction as it is saved. Its sentences may hold names that know what they are names of."""
    titles = {finding.id: finding.title for finding in report.findings}
    models = {device.key: device.name for device in report.devices}
    whole = replace(
        made,
        devices=[replace(each, name=models.get(each.key, each.name)) for each in made.devices],
        savings=[replace(each, title=each.title or titles.get(each.finding or "", "")) for each in made.savings],
        causes=report.causes,
        settings=report.settings,
    )
    known = report.phrases.typed() if report.phrases is not None else {}

    def visit(_text: TextKind, _record: Record, value: Any) -> Any:
        if isinstance(value, list):
            return [known.get(each, each) for each in value]
        return known.get(value, value) if isinstance(value, str) else value

    return finished(rewritten(whole, visit))


CAVEATS = (
    "Not predicted: contention for clocks, memory bandwidth and SMs; data dependencies that the trace does not show.",
)

IN_MPI = "MPI calls take as long as recorded: this trace does not show whether other ranks would be faster."
OUTSIDE = (
    "Input from outside of the trace is predicted as if it was always there. What makes it late is not known, so the "
    "least that is saved is nothing."
)
READING = "The workers mostly read: more of them help only if the storage can serve more."


def refused(report: Report, transforms: Sequence[Transform], reason: str, identity: Identity | None = None) -> WhatIf:
    """No prediction, and why."""
    judged = [phase.steps for phase in report.phases if phase.judged and phase.steps is not None]
    steps = next((each for each in judged if each.of_the_program), None)
    now = steps.average_ns if steps else max((each.window_ns for each in report.devices), default=0)
    made = WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        trace=report.trace,
        per="step" if steps else "window",
        steps=0,
        now_ns=now,
        predicted_ns=now,
        low_ns=now,
        high_ns=now,
        identity=identity,
        refused=reason,
        transforms=list(transforms),
        devices=[],
        waterfall=[],
        savings=[],
    )
    return complete(made, report)


def answered(
    report: Report, model: Model, transforms: Sequence[Transform], identity: Identity, told: Told | None = None
) -> WhatIf:
    """The prediction of some transforms; of none, what each finding would bring. What the report was `told` of a
    finding is said again. Raises UsageError where one matches nothing."""
    told = told or {}
    known = told.get(transforms[0].of) if [each.option for each in transforms] == ["finding"] else None
    findings = {each.id: each for each in report.findings}
    found = known if isinstance(known, Prediction) else predict(model, transforms, identity, findings)
    stretch = model.stretch
    shown = {each.key for each in report.devices}
    numbers = [number for number in model.devices if model.names.keys[number] in shown]
    now = idle_of(Changes.none(model), found.now, numbers)
    then = now if not transforms else idle_of(found.changes, found.run, numbers)
    made = WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        trace=report.trace,
        per=stretch.per,
        steps=len(stretch.borders) - 1 if stretch.stepwise else 0,
        now_ns=found.now.ns,
        predicted_ns=found.run.ns if transforms else found.now.ns,
        low_ns=found.low_ns if transforms else found.now.ns,
        high_ns=found.high_ns if transforms else found.now.ns,
        identity=identity,
        refused=None,
        transforms=list(transforms),
        devices=_devices(model, found, now, then),
        waterfall=_waterfall(now, then),
        savings=[] if transforms else savings_of(model, report.findings, identity, told),
        floor_ns=floor_of(model, report.findings).ns,
        cannot_tell=bool(transforms) and found.cannot_tell,
        paced_ns=model.threads.timed.pace(stretch) or None,
        caveats=[
            *CAVEATS,
            *([IN_MPI] if len(model.host.host.mpi) else []),
            *([OUTSIDE] if (found.changes.unknown & of_unknown_sources(model)).any() else []),
            *([READING] if any(each.option == "workers" for each in transforms) and mostly_read(model) else []),
        ],
        reasons=list(found.why) if transforms else [],
    )
    return complete(made, report)


Idle = dict[int, dict[str, int]]
"""Idle time by cause, by the number of the device; of a step or of the window, in ns."""


def idle_of(changes: Changes, run: Run, devices: Iterable[int]) -> Idle:
    """The idle time of `devices` (numbers) by cause, in a step (a mean over the counted steps) or in the window."""
    return {device: step_idle(changes, run, device) for device in devices}


def _waterfall(now: Idle, then: Idle) -> list[CauseChange]:
    """By how much each cause changes, the largest change first."""
    before, after = summed(now.values()), summed(then.values())
    rows = [
        CauseChange(cause=each, from_ns=before.get(each, 0), to_ns=after.get(each, 0)) for each in {**before, **after}
    ]
    return sorted(rows, key=lambda each: (-abs(each.from_ns - each.to_ns), each.cause))


def _devices(model: Model, found: Prediction, now: Idle, then: Idle) -> list[WhatIfDevice]:
    return [_device(model, found, number, now[number], then[number]) for number in now]


def _device(model: Model, found: Prediction, number: int, now: dict[str, int], then: dict[str, int]) -> WhatIfDevice:
    return WhatIfDevice(
        key=model.names.keys[number],
        now_ns=found.now.ns,
        predicted_ns=found.run.ns,
        now=four_parts(model, found.now, number),
        predicted=four_parts(model, found.run, number),
        ledger=then,
        ledger_now=now,
    )
