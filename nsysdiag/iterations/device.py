"""The iterations of one device's work, and what each of them is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.report import idle_parts, iteration_report, work_parts
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import InnerLoop, IterationReport

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings


@dataclass(frozen=True, slots=True)
class DeviceIterations:
    """The report on the iterations, the steady ones in time, and the ns of each of these by what the device did and by
    cause; the defaults where none were found. Layers of one pass have a report only: nothing is measured by them."""

    report: IterationReport | None = None
    steady: Intervals | None = None
    parts: dict[str, IntArray] = field(default_factory=dict)


def device_iterations(found: Loop | None, slices: Slices, split: WindowSplit, strings: Strings) -> DeviceIterations:
    """What iterations are made of, by the slices of the gaps in them."""
    if found is None:
        return DeviceIterations()
    parts = work_parts(split, found.spans) | idle_parts(slices, found.spans)
    report = iteration_report(found, found.called.text(strings), parts, _inner(found, strings))
    steady = np.ones(len(found), dtype=np.bool_)
    steady[report.left_out] = False
    if not found.closed:
        return DeviceIterations(report)
    return DeviceIterations(report, found.spans[steady], {part: ns[steady] for part, ns in parts.items()})


def _inner(found: Loop, strings: Strings) -> InnerLoop | None:
    if found.inner is None:
        return None
    called = found.inner.called
    return InnerLoop(
        source=called.source,
        name=called.text(strings),
        per_iteration=found.inner.per_iteration,
        median_ns=found.inner.median_ns,
    )
