"""The iterations of one device's work, and what each of them is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.iterations import Iterations
from nsysdiag.iterations.report import idle_parts, iteration_report, work_parts
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.pipeline.shared import Shared
from nsysdiag.report import IterationReport


@dataclass(frozen=True, slots=True)
class Steps:
    """The report on the iterations of a device's work, the steady ones in time, and what each of these is made of; as
    little as there is by default where none were found."""

    report: IterationReport | None = None
    steady: Intervals | None = None
    parts: dict[str, IntArray] = field(default_factory=dict)


def steps_of(found: Iterations | None, slices: Slices, split: WindowSplit, shared: Shared) -> Steps:
    """What iterations are made of, by the slices of the gaps in them."""
    if found is None:
        return Steps()
    name = found.name or (shared.strings.text(found.anchor) if found.anchor >= 0 else "graph launch")
    parts = work_parts(split, found.spans) | idle_parts(slices, found.spans)
    report = iteration_report(found, name, parts)
    steady = np.ones(len(found), dtype=np.bool_)
    steady[report.left_out] = False
    return Steps(report, found.spans[steady], {part: ns[steady] for part, ns in parts.items()})
