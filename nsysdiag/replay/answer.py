"""A prediction as a record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, Intervals, intersect, subtract, union
from nsysdiag.replay.facts import (
    KIND,
    WHATIF_SCHEMA_VERSION,
    FourParts,
    Identity,
    Transform,
    WhatIf,
    WhatIfDevice,
)
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Prediction, Run, predict
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
    """The prediction of some transforms."""
    found = predict(model, transforms, identity)
    stretch = model.stretch
    return WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        trace=report.trace,
        per="step" if stretch.stepwise else "window",
        steps=len(stretch.borders) - 1 if stretch.stepwise else 0,
        now_ns=found.now.ns,
        predicted_ns=found.run.ns,
        low_ns=found.low_ns,
        high_ns=found.high_ns,
        identity=identity,
        refused=None,
        transforms=list(transforms),
        devices=_devices(model, found),
        waterfall=[],
        savings=[],
        caveats=list(CAVEATS),
    )


def _devices(model: Model, found: Prediction) -> list[WhatIfDevice]:
    return [
        WhatIfDevice(
            key=model.names.keys[number],
            now_ns=found.now.ns,
            predicted_ns=found.run.ns,
            now=four_parts(model, found.now, number),
            predicted=four_parts(model, found.run, number),
            ledger={},
        )
        for number in np.unique(model.work.device).tolist()
    ]


def four_parts(model: Model, run: Run, device: int) -> FourParts:
    """What a device does in a step, a mean over the steps that count, or in the window."""
    work = model.work
    mine = (work.device == device) & (run.end > run.start)
    window = Intervals.of([run.span])
    compute, communication, copies = (_time(run, mine & (work.kind == kind), window) for kind in Class)
    exposed_comm = subtract(communication, compute)
    exposed_copy = subtract(copies, union(compute, communication))
    ns = [round(each.total() / len(run.steps)) for each in (compute, exposed_comm, exposed_copy)]
    return FourParts(compute_ns=ns[0], exposed_comm_ns=ns[1], exposed_copy_ns=ns[2], idle_ns=max(run.ns - sum(ns), 0))


def _time(run: Run, rows: BoolArray, window: Intervals) -> Intervals:
    return intersect(union(Intervals(run.start[rows], run.end[rows])), window)
