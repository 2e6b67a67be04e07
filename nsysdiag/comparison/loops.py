"""Other loops of a program than the compared one: how long their steps are, as the verdict is not about them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nsysdiag.comparison.differences import NARROWING
from nsysdiag.comparison.facts import PhaseChange
from nsysdiag.comparison.side import Capture
from nsysdiag.comparison.units import DeviceSides
from nsysdiag.phases.facts import Phase
from nsysdiag.units import format_two_ns


class ComparedLoop(Struct, frozen=True):
    """A phase that repeats: its mean step in ns, 0 where it has none that is surely one; `compared`: the iterations of
    the device are in it."""

    step_ns: int
    compared: bool


def other_phases(sides: DeviceSides) -> list[PhaseChange]:
    """The start-up, and the loops whose steps are known and not compared. Loops are the same by their place among as
    many. None where a side has several captures."""
    captures = [*sides.before, *sides.after]
    if len(captures) > 2:
        return []
    before, after = map(loops_of, captures)
    alike = zip(before, after, strict=True) if len(before) == len(after) else ()
    loops = [
        PhaseChange(number=number, before_ns=one.step_ns, after_ns=two.step_ns)
        for number, (one, two) in enumerate(alike, 1)
        if one.step_ns and two.step_ns and not (one.compared and two.compared)
    ]
    starts = [_start_up(capture) for capture in captures]
    return [*([PhaseChange(number=0, before_ns=starts[0], after_ns=starts[1])] if all(starts) else []), *loops]


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
        f"{format_two_ns(each.before_ns, each.after_ns, ' → ')}: --phase 'steady {each.number}' compares it."
        for each in phases
        if each.number and each.changed
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
