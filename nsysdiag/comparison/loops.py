"""Other loops of a program than the compared one: how long their steps are, as the verdict is not about them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nsysdiag.comparison.facts import LoopChange
from nsysdiag.comparison.side import Capture
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.phases.facts import Phase
from nsysdiag.units import format_two_ns


class ComparedLoop(Struct, frozen=True):
    """A phase that repeats: its mean step in ns, 0 where it has none that is surely one; `compared`: the iterations of
    the device are in it."""

    step_ns: int
    compared: bool


def other_loops(sides: DeviceSides) -> list[LoopChange]:
    """The loops whose steps are known and not compared. Loops are the same by their place among as many. None where a
    side has several captures."""
    captures = [*sides.before, *sides.after]
    if len(captures) > 2:
        return []
    before, after = map(loops_of, captures)
    if len(before) != len(after):
        return []
    return [
        LoopChange(number=number, before_ns=one.step_ns, after_ns=two.step_ns)
        for number, (one, two) in enumerate(zip(before, after, strict=True), 1)
        if one.step_ns and two.step_ns and not (one.compared and two.compared)
    ]


def loop_notes(loops: Sequence[LoopChange]) -> list[str]:
    """How to compare a loop that changed."""
    return [
        f"The mean step of another loop (steady {each.number}) is "
        f"{format_two_ns(each.before_ns, each.after_ns, ' → ')}: --phase 'steady {each.number}' compares it."
        for each in loops
        if each.changed
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
