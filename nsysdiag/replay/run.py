"""One replay of a model with changes: when everything starts and ends, and how long its steps are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.graph import replay
from nsysdiag.replay.model import Model
from nsysdiag.replay.step_work import StepWork
from nsysdiag.replay.stretch import first_border
from nsysdiag.replay.work import Class

LEAST_WORK = 0.05
"""Of the busiest device's work: the steps of one with less say nothing."""


class Run(Struct, frozen=True):
    """One replay: the `times` of all moments; the start and end of each operation; the `borders` of the counted steps,
    in ns, at the end of their work; or those of the window, from its begin to the last end. `longer` is by how much the
    whole judged time needs a step to be longer, in ns, as its kernels take more of it. Between two borders are `each`
    steps."""

    times: IntArray
    start: IntArray
    end: IntArray
    borders: IntArray
    longer: int = 0
    each: int = 1

    @property
    def steps(self) -> IntArray:
        """The lengths between the borders."""
        return np.diff(self.borders)

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.steps) * self.each

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last border."""
        return int(self.borders[0]), int(self.borders[-1])

    @property
    def ns(self) -> int:
        """The mean length of a step, or the length of the window."""
        return round(float(self.steps.mean()) / self.each) + self.longer


def run_of(
    changes: Changes, *, proven: bool = False, observed: bool = True, pinned: bool = False, brief: bool = False
) -> Run:
    """Replay a model with changes."""
    ns, residual = changes.edges(proven=proven, observed=observed, pinned=pinned, brief=brief)
    first, each = changes.counted.tolist()
    return as_run(changes.model, replay(changes.model.graph, ns, residual), changes.length, first, each)


def as_run(model: Model, times: IntArray, length: IntArray, first: int = -1, each: int = 1) -> Run:
    """The run in which the moments are at `times` and the operations last for `length`, both in ns."""
    start, end = times[model.places.operation], times[model.places.end] + length
    return Run(times, start, end, borders_of(model, start, end, first, each), each=each)


def borders_of(
    model: Model, start: IntArray, end: IntArray, first: int, each: int, least: StepWork = StepWork.OWN
) -> IntArray:
    """When the work of each step and of all before it is done, on the device that takes longest; from the `first` on,
    after `each` so many. That is work which is at `least` so much of the steps."""
    work, stretch = model.work, model.stretch
    inside = work.start < stretch.end
    # From a time that no change moves: else a window is longer once its first operation is earlier.
    whole = np.array([stretch.begin, end[inside].max()])
    if not stretch.stepwise:
        return whole
    inside &= model.step_work >= least
    busy = np.bincount(work.device, work.length * inside)
    step = np.searchsorted(stretch.borders, work.start, side="right") - 1
    found: list[IntArray] = []
    for device in np.flatnonzero(busy >= LEAST_WORK * busy.max()).tolist():
        mine = np.flatnonzero(inside & (work.device == device))
        done = np.full(len(stretch.borders) - 1, start[mine].min(initial=whole[0]))
        np.maximum.at(done, step[mine], end[mine])
        borders = np.maximum.accumulate(done)
        found.append(borders[first_border(len(borders)) if first < 0 else first :: each])
    return max((each for each in found if len(each) > 1), key=mean_step, default=whole)


def mean_step(borders: IntArray) -> float:
    """The mean time in ns between borders."""
    return float(borders[-1] - borders[0]) / (len(borders) - 1)


def busy(model: Model, run: Run, device: int, kinds: Sequence[Class], among: BoolArray | bool = True) -> Intervals:
    """When a device is busy with operations of these kinds in the counted time of a replay, a set; `among` marks those
    that are looked at."""
    work = model.work
    mine = (work.device == device) & np.isin(work.kind, kinds) & (run.end > run.start) & among
    return intersect(union(Intervals(run.start[mine], run.end[mine])), Intervals.of([run.span]))
