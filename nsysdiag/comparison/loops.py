"""Other loops of a program than the compared one: a note says that their steps changed, as the verdict does not."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.comparison.side import Capture
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.phases.facts import Phase
from nsysdiag.units import format_two_ns

LEAST = 0.1
"""The change of a step that is said: less may be another mix of work, or chance, which is not judged here."""


class ComparedLoop(Struct, frozen=True):
    """A phase that repeats: its mean step in ns, 0 where it has none that is surely one; `compared`: the iterations of
    the device are in it."""

    step_ns: int
    compared: bool


def other_loops(sides: DeviceSides) -> list[str]:
    """Sentences on loops whose steps became longer or shorter, and which are not compared on both sides. Loops are the
    same by their place among as many. Nothing where a side has several captures."""
    captures = [*sides.before, *sides.after]
    if len(captures) > 2:
        return []
    before, after = map(loops_of, captures)
    if len(before) != len(after):
        return []
    return [
        f"The mean step of another loop (steady {number}) is {format_two_ns(one.step_ns, two.step_ns, ' → ')}: "
        f"--phase 'steady {number}' compares it."
        for number, (one, two) in enumerate(zip(before, after, strict=True), 1)
        if not (one.compared and two.compared) and _differ(one, two)
    ]


def loops_of(capture: Capture) -> list[ComparedLoop]:
    """The phases that repeat, in order."""
    found = capture.device.iterations
    starts = [row.start_ns for row in found.rows] if found is not None else []
    return [
        ComparedLoop(_mean_step(phase), any(phase.start_ns <= start < phase.end_ns for start in starts))
        for phase in capture.report.phases
        if phase.name == "steady"
    ]


def _mean_step(phase: Phase) -> int:
    steps = phase.steps
    if steps is None or not steps.of_the_program or not steps.certain:
        return 0
    return steps.average_ns


def _differ(one: ComparedLoop, two: ComparedLoop) -> bool:
    """Are both steps known, and one longer by LEAST?"""
    short, long = sorted((one.step_ns, two.step_ns))
    return 0 < short < long / (1 + LEAST)
