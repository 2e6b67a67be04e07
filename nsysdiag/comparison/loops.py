"""Other loops of a program than the compared one: how long their steps are, as the verdict is not about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import column_from
from nsysdiag.comparison.differences import NARROWING
from nsysdiag.comparison.facts import PhaseChange
from nsysdiag.comparison.side import LENGTH, Capture, Column
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.comparison.waterfall import change_of_part, changes, corrected
from nsysdiag.messages import InputError
from nsysdiag.phases.facts import PhaseSteps
from nsysdiag.units import format_two_ns

OTHER_WORK = 0.1
"""Numbers of operations of a step that are further apart, as a share, are not the same work."""


class ComparedLoop(Struct, frozen=True):
    """A phase that repeats: the capture with its steps alone, None where it has none that are surely steps, and how
    many operations each has; `compared`: the iterations of the device are in it."""

    steps: Capture | None
    operations: int | None
    compared: bool


def other_phases(sides: DeviceSides) -> list[PhaseChange]:
    """The start-up, and the loops whose steps are known and not compared, which are judged together. Loops are the same
    by their place among as many. None where a side has several captures."""
    captures = [*sides.before, *sides.after]
    if len(captures) > 2:
        return []
    before, after = map(loops_of, captures)
    alike = zip(before, after, strict=True) if len(before) == len(after) else ()
    pairs = {at: (one, two) for at, (one, two) in enumerate(alike, 1) if not (one.compared and two.compared)}
    known = {at: (one.steps, two.steps) for at, (one, two) in pairs.items() if one.steps and two.steps}
    found = corrected([changes([one], [two], (), {}) for one, two in known.values()])
    loops = [
        PhaseChange(number=at, change=each.length, other_work=_other_work(*pairs[at]))
        for at, each in zip(known, found, strict=True)
    ]
    starts = [_start_up(capture) for capture in captures]
    return [*([PhaseChange(number=0, change=change_of_part(starts[0], starts[1], 0))] if all(starts) else []), *loops]


def _other_work(one: ComparedLoop, two: ComparedLoop) -> bool:
    if one.operations is None or two.operations is None:
        return False
    return abs(two.operations - one.operations) > OTHER_WORK * max(one.operations, two.operations)


def _start_up(capture: Capture) -> int:
    """Its length in ns from the first CUDA call, 0 where there is none, or where a part of the time was chosen."""
    if any(name in capture.report.settings for name in NARROWING):
        return 0
    first = capture.report.phases[0] if capture.report.phases else None
    return first.end_ns - first.start_ns if first is not None and first.name == "start-up" else 0


def loop_notes(phases: Sequence[PhaseChange]) -> list[str]:
    """How to compare a loop that changed."""
    return [
        f"The mean step of another loop (steady {each.number}) is "
        f"{format_two_ns(each.change.before_ns, each.change.after_ns, ' → ')}: --phase 'steady {each.number}' "
        "compares it."
        for each in phases
        if each.changed
    ]


def loops_of(capture: Capture) -> list[ComparedLoop]:
    """The phases that repeat, in order."""
    found = capture.device.iterations
    starts = [row.start_ns for row in found.rows] if found is not None else []
    return [
        ComparedLoop(
            _steps(capture, phase.steps),
            phase.steps.operations if phase.steps is not None else None,
            any(phase.start_ns <= start < phase.end_ns for start in starts),
        )
        for phase in capture.report.phases
        if phase.name == "steady"
    ]


def _steps(capture: Capture, steps: PhaseSteps | None) -> Capture | None:
    if steps is None or not steps.of_the_program or not steps.certain:
        return None
    return replace(capture, table={LENGTH: _lengths(capture, steps)})


def _lengths(capture: Capture, steps: PhaseSteps) -> Column:
    """Of each step, or the mean alone where the report does not hold them. Raises InputError where it is damaged."""
    if not steps.lengths:
        return np.array([float(steps.average_ns)])
    try:
        return column_from(steps.lengths, steps.count // steps.each) / steps.each
    except ValueError as error:
        raise InputError(f"the phases of {capture.report.trace.file} cannot be read: the report is damaged") from error
