"""The median step before and after: what a program takes step by step, however long a few slow steps last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.comparison.changes import DECIDED, MIXED, SAME, change_of_step, outside
from nsysdiag.comparison.facts import Change, Speedup
from nsysdiag.comparison.side import LENGTH, Capture
from nsysdiag.comparison.significance import LEVEL, Values, drawn_means, drawn_medians, freedom, interval

SLOW = 2.0
"""Times the median: one step that is longer makes a mean uncertain. Steps of a loop differ by less."""
MEDIAN, MEAN = "median", "mean"


class Step(Struct, frozen=True):
    """The change of the median (or the mean) step, and the degrees of freedom behind its interval. `slow` where a side
    has steps far longer than its median one."""

    change: Change
    freedom: float | None
    slow: bool


def step_change(before: Sequence[Capture], after: Sequence[Capture], noise: float, statistic: str = MEDIAN) -> Step:
    """The change of the median (or mean) step between captures of the same unit of work. `noise` is how much a side
    drifts, as a share."""
    most = max(each.fold for each in (*before, *after))
    sides = [[_whole_steps(each, most)[:, None] for each in captures] for captures in (before, after)]
    middle = [float(np.median(np.concatenate(side))) for side in sides]
    longer = middle[0] > middle[1]  # the same draws whichever side is called before
    draw = drawn_medians if statistic == MEDIAN else drawn_means
    one, two = draw(sides[0], int(longer)), draw(sides[1], int(not longer))
    found = interval(one, two)
    bounds = None if found is None else (float(found[0][0]), float(found[1][0]))
    change = change_of_step(round(float(one.mean[0])), round(float(two.mean[0])), bounds, noise)
    slow = any(float(np.concatenate(side).max()) > SLOW * at for side, at in zip(sides, middle, strict=True))
    return Step(change, freedom(one, two), slow)


def _whole_steps(capture: Capture, fold: float) -> Values:
    """The length of a unit of work in each stretch of as much work as the largest iteration of any capture, which has
    `fold` units. The median layer is not the median step: steps begin or end with something else."""
    values = capture.table[LENGTH]
    together = max(round(fold / capture.fold), 1)
    count = len(values) // together
    return values[: count * together].reshape(count, together).mean(axis=1) if count else values


def verdict_of(length: Change, step: Step | None) -> str:
    """The verdict on the mean length, or on the median step if slow steps hide its change. The latter must be beyond
    chance at half the level, as two tests are wrong twice as often as one."""
    if step is None or not step.slow:
        return length.verdict
    median = step.change.verdict
    if length.verdict == SAME and median in DECIDED and outside(step.change, step.freedom, LEVEL / 2):
        return median
    return MIXED if {length.verdict, median} == {*DECIDED} else length.verdict


def speedup(change: Change) -> Speedup | None:
    """How many times as fast as before, with its interval; None where a side took no time."""
    if change.before_ns <= 0 or change.after_ns <= 0:
        return None
    low = high = None
    ends = [change.before_ns + each for each in (change.low_ns, change.high_ns) if each is not None]
    if len(ends) == 2 and min(ends) > 0:
        high, low = (_rounded(change.before_ns / end) for end in ends)
    return Speedup(factor=_rounded(change.before_ns / change.after_ns), low=low, high=high)


def _rounded(factor: float) -> float:
    """To seven digits, so that one above 0 stays above 0."""
    return float(f"{factor:.7g}")
