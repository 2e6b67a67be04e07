"""Phases that are none: work of the loop that is called a pause or a teardown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysdiag.phases.facts import Phase
    from nsysdiag.report import Report

BUSY = 0.8
"""Of the busy share of the judged phases: a part with so much of it works as these do."""


def working_pauses(report: Report) -> list[Phase]:
    """The pauses and teardowns in which the GPU works in kernels for about as much of the time as in judged phases."""
    judged = [_computes(phase) for phase in report.phases if phase.judged]
    return [
        phase
        for phase in report.phases
        if phase.name in ("pause", "teardown") and judged and _computes(phase) >= BUSY * max(judged)
    ]


def _computes(phase: Phase) -> float:
    (device,) = phase.devices
    return device.compute_ns / max(phase.end_ns - phase.start_ns, 1)
