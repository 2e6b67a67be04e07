"""Which parts of a job are one: steady neighbours, and the parts of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.phases.cuts import LEAST_LENGTH
from nsysdiag.phases.names import JobWork
from nsysdiag.phases.signal import IRREGULAR, WINDOWS, DeviceSignal, StepLoop, whole_steps
from nsysdiag.phases.steady import (
    ALIKE,
    ALIKE_BUSY,
    FEWEST_REPEATS,
    REPEATED_SHARE,
    WARM_UP_SLOWER,
    JobParts,
    cosine,
    segments_of,
)

LONGEST_PERIOD = 4
"""Parts of a step that are looked for: each takes 4% of the window at least, so more would not repeat often."""
STEPS_SHARE = 0.2
"""Of a steady part: what whole steps take at least where it ends with them."""
ALIKE_LENGTHS = 3
"""Times the shorter: parts of steps differ by less."""


def merged(borders: IntArray, loops: list[StepLoop], signals: list[DeviceSignal], work: JobWork) -> JobParts:
    """The parts between `borders` after merging: steady neighbours with the same work, and alternating parts of a step.
    Steady parts end with their last step."""

    def parts(borders: IntArray) -> JobParts:
        return segments_of(borders, loops, signals, work)

    def measured(kept: Iterable[int]) -> JobParts:
        return parts(found.borders[sorted(kept)])

    found = parts(borders)
    found = _neighbours(found, loops, measured)
    while joined := _joined_run(found, measured):
        found = joined
    found = _neighbours(found, loops, measured)
    return _trimmed(parts(_with_last_steps(found, loops)), loops, parts)


Measure = Callable[[Iterable[int]], JobParts]
"""The parts between those borders of the parts so far that are kept, by their places."""


def _neighbours(found: JobParts, loops: list[StepLoop], measured: Measure) -> JobParts:
    """With steady neighbours that are alike as one. Each is compared with the next one, so that a slow drift is one.
    What is between two of them, and shorter than any phase, is a slow step."""
    same: set[int] = set()
    shortest = LEAST_LENGTH * float(found.borders[-1] - found.borders[0])
    for at, after in pairwise(np.flatnonzero(found.steady).tolist()):
        between = int(found.borders[after] - found.borders[at + 1])
        if between and (between >= shortest or not found.like(at, after)):
            continue
        short = min(int(found.lengths[at]), int(found.lengths[after])) < shortest
        if between or found.like(at, after) or _same_work(found, at, after, loops, short=short):
            same.update(range(at + 1, after + 1))
    return measured(set(range(len(found.borders))) - same) if same else found


def _same_work(found: JobParts, one: int, other: int, loops: list[StepLoop], *, short: bool) -> bool:
    """Whether two neighbours that are not equally busy do the same work: one of them is too short for a separate phase,
    or both are the same typical steps of one loop, one with more slow steps. With fewer than five steps, one of the
    usual length is enough."""
    if cosine(found.mix[one], found.mix[other]) <= ALIKE:
        return False
    first, second = (whole_steps(loops, int(found.borders[at]), int(found.borders[at + 1])) for at in (one, other))
    if first is None or second is None or first[0] is not second[0]:
        return short
    few, many = sorted((np.diff(first[1]), np.diff(second[1])), key=len)
    ratio = np.log(few / np.median(many))
    if len(few) >= FEWEST_REPEATS:
        return abs(float(np.median(ratio))) <= math.log(1 + ALIKE_BUSY)
    return float(np.abs(ratio).min()) <= math.log(WARM_UP_SLOWER)


def _joined_run(found: JobParts, measured: Measure) -> JobParts | None:
    """The parts with the longest alternating run merged, if that is steady as a whole; None without such a run.

    ```
    parts    |  A  | B |  A  | B |  A  |        five parts, two of a step
    ```
    """
    runs = [_run(found, first, period) for period in range(2, LONGEST_PERIOD + 1) for first in range(len(found))]
    for first, behind in sorted(filter(None, runs), key=lambda run: run[0] - run[1]):
        joined = measured(at for at in range(len(found.borders)) if not first < at < behind)
        if joined.steady[first]:
            return joined
    return None


def _run(found: JobParts, first: int, period: int) -> tuple[int, int] | None:
    """How far the parts from `first` on are each like the one a period before: [first, behind), two periods at least.
    The last part may be cut short."""
    behind = first + period
    while behind < len(found) and found.like_account(behind - period, behind):
        if behind + 1 < len(found) and not _alike_long(found, behind - period, behind):
            break
        behind += 1
    return (first, behind) if behind >= first + 2 * period else None


def _alike_long(found: JobParts, one: int, other: int) -> bool:
    short, long = sorted((int(found.lengths[one]), int(found.lengths[other])))
    return long <= ALIKE_LENGTHS * short


def _with_last_steps(found: JobParts, loops: list[StepLoop]) -> IntArray:
    """The borders; those after a steady part are moved to the end of its loop, if fewer than five steps of it remain. A
    slow step before the idle end of a program looks like a part of that end. Time before the first step of a part is
    unchanged: it may be a warm-up."""
    borders = found.borders
    steady = np.flatnonzero(found.steady).tolist()
    for at, after in pairwise([*steady, len(found)]):
        start, end = (int(each) for each in found.borders[at : at + 2])
        inside = whole_steps(loops, start, end)
        if inside is None:
            continue
        left = inside[0].starts[inside[0].starts >= inside[1][-1]]
        few = 1 < len(left) <= FEWEST_REPEATS and end < left[-1] <= found.borders[after]
        if few and np.diff(left).max() <= IRREGULAR * np.median(np.diff(inside[1])):
            borders = np.union1d(borders[(borders < end) | (borders > left[-1])], left[-1:])
    return borders


def _trimmed(found: JobParts, loops: list[StepLoop], measured: Callable[[IntArray], JobParts]) -> JobParts:
    """The parts, with separate ones for time outside the steps of a steady part with other work: a short start before
    the first step, which the least length hides.

    ```
    part     |.....=====.=====.=====.=====.=====...|
    steps          |     |     |     |     |     |
    parts    |  1  |             2               |3|
    ```
    """
    ends = {at: _ends_of_steps(found, at, loops) for at in np.flatnonzero(found.steady).tolist()}
    every = {time for pair in ends.values() for time in pair} - set(found.borders.tolist())
    if not every:
        return found
    parts = measured(np.union1d(found.borders, list(every)))
    alike = set()
    for first, last in ends.values():
        before, behind = (int(np.searchsorted(parts.borders, time)) for time in (first, last))
        if first in every and not _other_work(parts, before - 1, before, loops):
            alike.add(first)
        if last in every and not _other_work(parts, behind, behind - 1, loops):
            alike.add(last)
    if alike == every:
        return found
    parts = measured(np.union1d(found.borders, list(every - alike))) if alike else parts
    return _marked(parts, found, ends)


def _other_work(parts: JobParts, outside: int, steps: int, loops: list[StepLoop]) -> bool:
    """Whether the part `outside` is unlike the neighbouring part `steps`. One shorter than a step may be a part of a
    step, which differs from the whole: then only names that the steps do not have count."""
    inside = whole_steps(loops, int(parts.borders[steps]), int(parts.borders[steps + 1]))
    if inside is None or parts.lengths[outside] >= np.median(np.diff(inside[1])):
        return not parts.like(outside, steps)
    mix = parts.mix[outside]
    return float(mix[parts.mix[steps] == 0].sum()) > (1 - REPEATED_SHARE) * float(mix.sum())


def _marked(parts: JobParts, found: JobParts, ends: dict[int, tuple[int, int]]) -> JobParts:
    """`parts`, of which those are steady that hold the steps of a steady part of `found`, and no others."""
    steady, strong = np.zeros(len(parts), np.bool_), np.zeros(len(parts), np.bool_)
    for at, (first, _) in ends.items():
        inside = int(np.searchsorted(parts.borders, first, side="right")) - 1
        steady[inside], strong[inside] = True, found.strong[at]
    return replace(parts, steady=steady, strong=strong)


def _ends_of_steps(found: JobParts, at: int, loops: list[StepLoop]) -> tuple[int, int]:
    """Where the whole steps of a steady part begin and end; its own ends where no step, and no window, is outside of
    them."""
    start, end = (int(each) for each in found.borders[at : at + 2])
    inside = whole_steps(loops, start, end, STEPS_SHARE)
    if inside is None:
        return start, end
    first, last = int(inside[1][0]), int(inside[1][-1])
    window = int(found.borders[-1] - found.borders[0]) // WINDOWS
    least = max(min(float(np.median(np.diff(inside[1]))), window), 1)
    return first if first - start >= least else start, last if end - last >= least else end
