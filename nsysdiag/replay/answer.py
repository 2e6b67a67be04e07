"""A prediction as a record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from nsysdiag.arrays.groups import summed
from nsysdiag.arrays.intervals import BoolArray, Intervals, intersect, subtract, union
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import (
    KIND,
    WHATIF_SCHEMA_VERSION,
    CauseChange,
    FourParts,
    Identity,
    Transform,
    WhatIf,
    WhatIfDevice,
)
from nsysdiag.replay.idle import idle_by_cause
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Prediction, Run, predict
from nsysdiag.replay.savings import floor_of, savings_of
from nsysdiag.replay.work import Class
from nsysdiag.report import Report

CAVEATS = (
    "Not predicted: contention for clocks, memory bandwidth and SMs; data dependencies that the trace does not show.",
)


def refused(report: Report, transforms: Sequence[Transform], reason: str, identity: Identity | None = None) -> WhatIf:
    """No prediction, and why."""
    steps = next((each.steps for each in report.phases if each.judged and each.steps), None)
    now = steps.median_ns if steps else max((each.window_ns for each in report.devices), default=0)
    return WhatIf(
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


def answered(report: Report, model: Model, transforms: Sequence[Transform], identity: Identity) -> WhatIf:
    """The prediction of some transforms; of none, what each finding would bring. Raises UsageError where one matches
    nothing."""
    found = predict(model, transforms, identity, {each.id: each for each in report.findings})
    stretch = model.stretch
    now = idle_of(Changes.none(model), found.now)
    then = now if not transforms else idle_of(found.changes, found.run)
    return WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        trace=report.trace,
        per="step" if stretch.stepwise else "window",
        steps=len(stretch.borders) - 1 if stretch.stepwise else 0,
        now_ns=found.now.ns,
        predicted_ns=found.run.ns if transforms else found.now.ns,
        low_ns=found.low_ns if transforms else found.now.ns,
        high_ns=found.high_ns if transforms else found.now.ns,
        identity=identity,
        refused=None,
        transforms=list(transforms),
        devices=_devices(model, found, then),
        waterfall=_waterfall(now, then),
        savings=[] if transforms else savings_of(model, report.findings, identity),
        floor_ns=floor_of(model).ns,
        caveats=list(CAVEATS),
    )


Idle = dict[int, dict[str, int]]
"""Idle time by cause, by the number of the device; of a step or of the window, in ns."""


def idle_of(changes: Changes, run: Run) -> Idle:
    """What the devices wait for in a step, a mean over those that count, or in the window: all of the idle time of its
    four parts."""
    return {
        device: _adding_up(idle_by_cause(changes, device, run.span), four_parts(changes.model, run, device).idle_ns)
        for device in np.unique(changes.model.work.device).tolist()
    }


def _adding_up(parts: dict[str, int], total: int) -> dict[str, int]:
    """Parts in proportion, as whole numbers that add up to `total`."""
    whole = max(sum(parts.values()), 1)
    until = [0, *(ns * total // whole for ns in accumulate(parts.values()))]
    return dict(zip(parts, (end - start for start, end in pairwise(until)), strict=True))


def _waterfall(now: Idle, then: Idle) -> list[CauseChange]:
    """By how much each cause changes, the largest change first."""
    before, after = summed(now.values()), summed(then.values())
    rows = [
        CauseChange(cause=each, from_ns=before.get(each, 0), to_ns=after.get(each, 0)) for each in {**before, **after}
    ]
    return sorted(rows, key=lambda each: (-abs(each.from_ns - each.to_ns), each.cause))


def _devices(model: Model, found: Prediction, idle: Idle) -> list[WhatIfDevice]:
    return [_device(model, found, number, idle[number]) for number in np.unique(model.work.device).tolist()]


def _device(model: Model, found: Prediction, number: int, idle: dict[str, int]) -> WhatIfDevice:
    return WhatIfDevice(
        key=model.names.keys[number],
        now_ns=found.now.ns,
        predicted_ns=found.run.ns,
        now=four_parts(model, found.now, number),
        predicted=four_parts(model, found.run, number),
        ledger=idle,
    )


def four_parts(model: Model, run: Run, device: int) -> FourParts:
    """What a device does in a step, a mean over the steps that count, or in the window."""
    work = model.work
    mine = (work.device == device) & (run.end > run.start)
    window = Intervals.of([run.span])
    compute, communication, copies = (_time(run, mine & (work.kind == kind), window) for kind in Class)
    exposed_comm = subtract(communication, compute)
    exposed_copy = subtract(copies, union(compute, communication))
    busy = accumulate(each.total() for each in (compute, exposed_comm, exposed_copy))
    # The borders between the parts are rounded, not the parts: they add up.
    borders = [0, *(round(ns / len(run.steps)) for ns in busy), run.ns]
    ns = [end - start for start, end in pairwise(borders)]
    return FourParts(compute_ns=ns[0], exposed_comm_ns=ns[1], exposed_copy_ns=ns[2], idle_ns=ns[3])


def _time(run: Run, rows: BoolArray, window: Intervals) -> Intervals:
    return intersect(union(Intervals(run.start[rows], run.end[rows])), window)
