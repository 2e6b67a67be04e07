"""What a report says of the steps of a program, held against its loops."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.arrays.intervals import IntArray
    from nsysdiag.phases.facts import Phase, PhaseSteps
    from nsysdiag.report import Report

NEAR_LENGTH = 0.15
"""A median or mean step is that of the program where it differs by less: if steps are of two lengths, one step more
changes the median from one length to the other."""


class Verdict(enum.Enum):
    """`RIGHT`: the steps are those of the program. `NAMED`: the trace does not tell, and the program's are one of the
    levels that are named. `UNKNOWN`: no steps are named. `INNER`, `WRONG`: others are called the steps: those of
    another loop of the program, or none that it has."""

    RIGHT = "right"
    NAMED = "levels named"
    UNKNOWN = "cannot tell"
    INNER = "confidently an inner loop"
    WRONG = "confidently wrong"

    @property
    def confidently_wrong(self) -> bool:
        """Whether a reader takes it for true, and it is not."""
        return self in (Verdict.INNER, Verdict.WRONG)


def near(count: float, true: int) -> bool:
    """The ends of a phase may cut steps; a fraction comes of levels that do not divide it."""
    return abs(count - true) <= 1 + (true > 20) + 0.05 * true


def judged(report: Report, truth: dict[str, IntArray], levels: tuple[str, ...]) -> Verdict:
    """Of the judged phase with most time that has steps."""
    phases = [phase for phase in report.phases if phase.judged and phase.steps is not None]
    if not phases:
        return Verdict.UNKNOWN
    phase = max(phases, key=lambda each: each.end_ns - each.start_ns)
    assert phase.steps is not None
    if not phase.steps.of_the_program:
        return Verdict.UNKNOWN
    inside = {level: _inside(starts, phase) for level, starts in truth.items()}
    lengths = [phase.steps.median_ns, *([phase.steps.mean_ns] if phase.steps.mean_ns else [])]
    if any(_is(phase.steps.count, lengths, inside[level]) for level in levels):
        return Verdict.RIGHT
    if not phase.steps.certain and any(_may_be(phase.steps, inside[level]) for level in levels):
        return Verdict.NAMED
    inner = any(near(phase.steps.count, len(starts)) for starts in inside.values())
    return Verdict.INNER if inner else Verdict.WRONG


def _inside(starts: IntArray, phase: Phase) -> IntArray:
    return starts[(starts >= phase.start_ns) & (starts < phase.end_ns)]


def _is(count: int, lengths: Sequence[int], starts: IntArray) -> bool:
    """Whether the steps are these: `lengths` are their median, and their mean if it is known."""
    if len(starts) < 2 or not near(count, len(starts)):
        return False
    each = np.diff(starts)
    true = float(np.median(each)), float(each.mean())
    return any(abs(told - own) <= NEAR_LENGTH * own for told, own in zip(lengths, true, strict=False))


def _may_be(steps: PhaseSteps, starts: IntArray) -> bool:
    """Whether the other level that is named has these steps, by their number or their length; several of them at a
    time are any fewer steps."""
    if not (steps.group or steps.parts):
        return len(starts) < steps.count
    times = 1 / steps.group if steps.group else steps.parts or 1
    return near(steps.count * times, len(starts)) or _is(len(starts), [round(steps.median_ns / times)], starts)
