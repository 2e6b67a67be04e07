"""Loops whose steps of several kinds take turns: each is one phase. Cut by their work, the steps would be as many
phases as there are changes of kind."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.bottlenecks import IN_GRAPHS, noun_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.iterations.kinds import longest_in, take_turns
from nsysdiag.phases.signal import JobWork, StepLoop, job_work
from nsysdiag.trace.columns import Strings

GRAPHS, OTHERS = noun_of(IN_GRAPHS), "no kernel"


def with_kinds(loops: list[StepLoop], work: JobWork) -> list[StepLoop]:
    """The loops, each with whether its steps are of several kinds that take turns."""
    return [replace(loop, mixed=loop.closed and take_turns(kinds_of(loop.starts, work))) for loop in loops]


def kinds_of(starts: IntArray, work: JobWork) -> IntArray:
    """The kind of each step, from one of `starts` to the next: the code of the kernel that takes most of its time, 0
    where none does. Graphs that a trace holds as wholes are one kind, whichever was launched."""
    name = np.concatenate([device.name for device in work.devices])
    spans = Intervals.concatenate(device.spans for device in work.devices)
    kernel = work.kernel[name]
    return longest_in(Intervals(starts[:-1], starts[1:]), spans[kernel], work.kind[name[kernel]])


def named_kinds(steps: Intervals, device: DeviceTimeline, strings: Strings) -> tuple[IntArray, list[str]] | None:
    """The kinds of steps of a device that take turns: the place of that of each step among the names of all. None where
    all do the same work."""
    work = job_work([device], int(steps.start[0]), int(steps.end[-1]))
    kinds = kinds_of(np.append(steps.start, steps.end[-1:]), work)
    if not take_turns(kinds):
        return None
    codes, place = np.unique(kinds, return_inverse=True)
    return place, [_name(int(key), strings) for key in work.keys[codes]]


def _name(key: int, strings: Strings) -> str:
    if key < -1:
        return GRAPHS
    return strings.text(key) if key >= 0 else OTHERS
