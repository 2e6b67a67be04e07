"""Which parts of a job are one: steady neighbours, and the parts of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, union
from nsysdiag.iterations.loop import Loop
from nsysdiag.phases.facts import FEWEST_REPEATS
from nsysdiag.phases.signal import IRREGULAR, WINDOWS, DeviceSignal, JobWork, Signal, step_borders
from nsysdiag.phases.steady import (
    ALIKE,
    ALIKE_BUSY,
    LEAST_BUSY,
    MOST_STARTUP,
    REPEATED_SHARE,
    WARM_UP_SLOWER,
    JobParts,
    cosine,
    mostly_copies,
    segments_of,
)

# Where the work of a job changes: the cuts that leave the least squared error, and the exact time of each.

LEAST_LENGTH = 0.04
"""Of a phase, as a share of the job's window."""
LEAST_NOISE = 0.002
"""Variance of a window: the least that is assumed, so that a regular program is not cut for nothing."""
PENALTY = 3.0
"""Times what a cut has to gain. The same cuts are found from 0.5 to 12."""
FLAT = 0.05
"""The cost of each cut in addition to the noise: a change of a twentieth of the time of one window."""
MOST_CANDIDATES = 512
"""Times that are tried for one border at once."""


def penalty_of(values: FloatArray, weights: FloatArray) -> float:
    """What a cut has to gain: `3 * (2 * s * ln n + 0.05)`, where `s` is the noise of a window of weight 1. The noise of
    a window falls with its weight."""
    if len(values) < 2:
        return PENALTY * FLAT
    square = np.sum(np.diff(values, axis=0) ** 2, axis=1)
    noise = float(np.median(square / (1 / weights[1:] + 1 / weights[:-1])))
    return PENALTY * (2 * max(noise, LEAST_NOISE) * float(np.log(len(values))) + FLAT)


def segment_costs(values: FloatArray, weights: FloatArray) -> FloatArray:
    """[i, j]: the squared error of the windows i to j - 1 around their mean, all weighted; meaningless for j <= i."""
    count, features = values.shape
    weight, first, second = np.zeros(count + 1), np.zeros((count + 1, features)), np.zeros(count + 1)
    weight[1:] = np.cumsum(weights)
    first[1:] = np.cumsum(values * weights[:, None], axis=0)
    second[1:] = np.cumsum(np.sum(values**2, axis=1) * weights)
    # |a - b|² by parts: [i, j, feature] at once would take twenty times the memory.
    product = first @ first.T
    norm = np.diag(product)
    square = norm[None, :] + norm[:, None] - 2 * product
    length = weight[None, :] - weight[:, None]
    length[length <= 0] = np.inf
    return np.maximum(second[None, :] - second[:, None] - square / length, 0.0)


def best_cuts(cost: FloatArray, edges: IntArray, penalty: float) -> list[int]:
    """Positions of the edges, including the first and the last, that minimize the sum of `cost` and a `penalty` for
    each segment; no segment is shorter than the least length. Exact, by dynamic programming."""
    count = len(edges) - 1
    least = LEAST_LENGTH * float(edges[-1] - edges[0])
    best, before = np.full(count + 1, np.inf), np.zeros(count + 1, np.int64)
    best[0] = 0.0
    costs = cost.T + penalty
    for end, starts in enumerate(np.searchsorted(edges, edges - least, side="right").tolist()):
        if starts:
            total = best[:starts] + costs[end, :starts]
            before[end] = total.argmin()
            best[end] = total[before[end]]
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(int(before[cuts[-1]]) if np.isfinite(best[cuts[-1]]) else 0)
    return cuts[::-1]


def moved_cuts(cost: FloatArray, edges: IntArray, cuts: list[int]) -> list[int]:
    """Moves each cut to the edge that fits best between its neighbours, at most a least length away. So a start-up of
    3% is found with its exact end."""
    reach = LEAST_LENGTH * float(edges[-1] - edges[0])
    moved = list(cuts)
    for _ in range(2):
        for place in range(1, len(moved) - 1):
            lo, hi = moved[place - 1], moved[place + 1]
            tried = np.arange(lo + 1, hi)
            tried = tried[np.abs(edges[tried] - edges[cuts[place]]) <= reach]
            if len(tried):
                moved[place] = int(tried[np.argmin(cost[lo, tried] + cost[tried, hi])])
    return moved


class CutCandidates(Struct, frozen=True):
    """Times at which a phase can begin, in sorted arrays: borders of steps, and where operations or idle time begin."""

    steps: IntArray
    work: list[IntArray]

    @classmethod
    def of(cls, signals: list[DeviceSignal], work: JobWork, loops: list[Loop]) -> CutCandidates:
        """Of all devices and loops. Idle time begins where no device works any more."""
        idle = union(*(signal.split.busy for signal in signals)).end
        return cls(step_borders(loops), [idle, *(device.spans.start for device in work.devices)])

    def between(self, lo: int, hi: int) -> IntArray:
        """Those in (lo, hi), sorted: borders of steps, or if there are none the others."""
        steps = _inside(self.steps, lo, hi)
        return steps if len(steps) else distinct_values(np.concatenate([_inside(each, lo, hi) for each in self.work]))


def _inside(times: IntArray, lo: int, hi: int) -> IntArray:
    return times[np.searchsorted(times, lo, side="right") : np.searchsorted(times, hi, side="left")]


def job_cuts(signal: Signal, changes: CutCandidates) -> IntArray:
    """The borders of the parts of the job in ns, its start and its end too."""
    cost = segment_costs(signal.values, signal.weights)
    cuts = best_cuts(cost, signal.edges, penalty_of(signal.values, signal.weights))
    cuts = moved_cuts(cost, signal.edges, cuts)
    times = [_exact(signal, changes, *cuts[place - 1 : place + 2]) for place in range(1, len(cuts) - 1)]
    return distinct_values(np.array([signal.edges[0], *times, signal.edges[-1]], np.int64))


def _exact(signal: Signal, changes: CutCandidates, before: int, cut: int, after: int) -> int:
    """The time of the cut between the edges `before` and `after`: of the changes in the two windows around it the one
    that fits best. A change of the mean shows within the windows too, and this is where it leaves the least error.

    ```
    busy      ....................####.####.####       mean before 0, after 0.8
    windows   |       |       |       |       |
    cut                       ^ best edge
    exact                 ^ where work begins
    ```
    """
    edges = signal.edges
    lo = max(int(edges[cut - 1]), int(edges[before] + edges[cut]) // 2)
    hi = min(int(edges[cut + 1]), int(edges[cut] + edges[after]) // 2)
    times = changes.between(lo, hi)
    if not len(times):
        return int(edges[cut])
    left, right = _mean(signal, before, cut - 1, cut), _mean(signal, cut + 1, after, cut)
    step = -(-len(times) // MOST_CANDIDATES)
    at = step * _best(signal, lo, times[::step], left, right, int(edges[cut]))
    near = times[max(at - step + 1, 0) : at + step]
    return int(near[_best(signal, lo, near, left, right, int(edges[cut]))])


def _mean(signal: Signal, first: int, behind: int, cut: int) -> FloatArray:
    """Of the windows of a segment without the one at the cut, which both may share; of that one if it is alone."""
    part = slice(first, behind) if first < behind else slice(min(first, cut), max(behind, cut))
    weight: FloatArray = signal.weights[part]
    return weight @ signal.values[part] / weight.sum()


def _best(signal: Signal, lo: int, times: IntArray, left: FloatArray, right: FloatArray, near: int) -> int:
    """The index of the cut with the least squared error, with mean `left` from `lo` to it and mean `right` after it; of
    equal ones the nearest to `near`."""
    covered = signal.until(np.append(times, lo))
    covered = covered[:-1] - covered[-1]
    error = 2 * covered @ (right - left) + (times - lo) * float(left @ left - right @ right)
    return int(np.lexsort((np.abs(times - near), np.round(error)))[0])


LONGEST_PERIOD = 4
"""Parts of a step that are looked for: each takes 4% of the window at least, so more would not repeat often."""
STEPS_SHARE = 0.2
"""Of a steady part: what whole steps take at least if it ends with them."""
FEWEST_STOPS, OFTEN = 3, 0.1
"""Runs of steps four times as long as usual, between usual ones: so many, and so many for each step of the loop, are no
pauses. With far less, three evaluations in a long run would be steps. How many there are for each step is not known if
several repeats may be one."""
AS_LONG = 1.5
"""Times the shorter: stops of one kind differ by less, though a step far longer than usual may be the only such one."""
MOST_OF_THE_TIME = 0.5
"""Of a loop: stops that take more of it are what the program mostly does, however few they are."""
MOST_OF_A_STEP = 0.75
"""Of the steps between two steady parts: one that takes more of their time, and is longer than any regular one, holds
a pause."""
BY_CHANCE, OVERLAP = 3.3, 0.45
"""Standard deviations: chance separates the ranks of equal steps as much once in 1,000 times. And the share of pairs,
beyond a half, in which the step of one part is the longer one: above it the parts hardly overlap. Without the second,
five short steps and five long ones would be one part."""
ALIKE_LENGTHS = 3
"""Times the shorter: parts of steps differ by less."""


def merged(borders: IntArray, loops: list[Loop], signals: list[DeviceSignal], work: JobWork) -> JobParts:
    """The parts between `borders` after merging: steady neighbours with the same work, and alternating parts of a step.
    Steady parts end with their last step."""

    def parts(borders: IntArray) -> JobParts:
        return segments_of(borders, loops, signals, work)

    def without(found: JobParts, inside: Iterable[int]) -> JobParts:
        """The parts without the borders at these places."""
        left = np.delete(found.borders, list(inside))
        return parts(left) if len(left) <= len(found) else found

    found = parts(borders)
    found = without(found, _in_turns(found))
    found = without(found, _uneven(found))
    found = without(found, _often_left(found))
    found = without(found, _alike(found))
    while joined := _joined_run(found, without):
        found = joined
    found = without(found, _alike(found))
    found = without(found, _of_few_steps(found))
    last = _with_last_steps(found)
    return _trimmed(found if np.array_equal(last, found.borders) else parts(last), parts)


def _in_turns(found: JobParts) -> Iterator[int]:
    """The borders inside each loop whose steps of several kinds take turns, without a start before them: that is a
    first step far longer than all others, too. Not across a part without work: that is a pause."""
    for loop in (each for each in found.loops if each.mixed):
        first = loop.starts[int(_starts(np.diff(loop.borders)))]
        works = (found.borders[1:] > loop.starts[0]) & (found.borders[:-1] < loop.ends[-1])
        works &= found.busy >= LEAST_BUSY
        starts = works & ~found.steady & ((found.account[:, 3] > MOST_STARTUP) | (found.borders[1:] <= first))
        for run in np.split(np.arange(len(found)), np.flatnonzero(~works)):
            part = run[works[run] & ~starts[run]]
            yield from range(int(part[0]) + 1, int(part[-1]) + 1) if found.steady[part].any() else ()


def _starts(length: IntArray) -> bool:
    """Whether the first of these steps is a start: it takes far longer than usual, and than any other."""
    longest = WARM_UP_SLOWER * length[1:].max(initial=0)
    return len(length) > 1 and bool(length[0] > max(IRREGULAR * np.median(length), longest))


def _uneven(found: JobParts) -> Iterator[int]:
    """The borders inside each loop that does the same work all the time and stops in many steps, here and there: its
    stops are slow steps, no pauses. A step far longer than these stops holds a pause.

    ```
    steps    |--|--|-----|--|-----|--|--|--|-----------------------|--|-----|--|-----|-----|--|
    parts    |               1             |        pause          |             2            |
    ```
    """
    for loop in (each for each in found.loops if each.closed):
        length = np.diff(loop.borders)
        slow = _slow(length)
        stops = np.count_nonzero(np.diff(np.flatnonzero(~slow)) > 1)
        often = stops >= OFTEN * len(length) or not loop.certain
        if stops < FEWEST_STOPS or not (often or length[slow].sum() > MOST_OF_THE_TIME * length.sum()):
            continue
        pauses = np.flatnonzero(length > IRREGULAR * np.median(length[slow])).tolist()
        for first, behind in pairwise([-1, *pauses, len(length)]):
            yield from _one_stretch(found, loop.borders[first + 1 : behind + 1], slow[first + 1 : behind])


def _slow(length: IntArray) -> BoolArray:
    """Which steps of these lengths are far longer than usual, or about as long as such a one."""
    far: BoolArray = length > IRREGULAR * np.median(length)
    return length * AS_LONG >= length[far].min() if far.any() else far


def _often_left(found: JobParts) -> Iterator[int]:
    """The borders inside each loop that is left several times, for most of its time: the pauses are what the program
    does, such as to open the data of each epoch. A loop that is left once or twice runs in rounds.

    ```
    steps    |||||||..................|||||||..................|||||||..................|||||||
    parts    |                                          1                                     |
    ```
    """
    closed = [each for each in found.loops if each.closed]
    for name in dict.fromkeys(each.called for each in closed):
        runs = [each for each in closed if each.called == name]
        stops = _stops_of(runs)
        whole = np.array([runs[0].starts[0], runs[-1].ends[-1]], np.int64)
        if len(stops) >= FEWEST_STOPS and stops.sum() > MOST_OF_THE_TIME * (whole[1] - whole[0]):
            yield from _one_stretch(found, whole, np.zeros(1, np.bool_))


def _stops_of(runs: list[Loop]) -> IntArray:
    """The times between runs of a loop, and steps that are about as long, in ns: a few steps more or less decide
    whether a loop is left."""
    left = np.array([behind.starts[0] - before.ends[-1] for before, behind in pairwise(runs)], np.int64)
    steps = np.concatenate([np.diff(each.borders) for each in runs])
    return np.append(left, steps[steps * AS_LONG >= left.min()] if len(left) else left)


def _one_stretch(found: JobParts, borders: IntArray, slow: BoolArray) -> list[int]:
    """The borders of parts inside steps between these `borders`, from the first that is not `slow` to the last one.
    None if one of the parts does other work: other kernels, as a part of a step may be its copies. A part without work
    that begins before them or ends after them is a pause."""
    usual = np.flatnonzero(~slow)
    if not len(usual):
        return []
    lo, hi = borders[usual[0]], borders[usual[-1] + 1]
    begin, end, busy = found.borders[:-1], found.borders[1:], found.busy >= LEAST_BUSY
    part = np.flatnonzero((end > lo) & (begin < hi) & (busy | ((begin >= lo) & (end <= hi))))
    computes = busy & ~mostly_copies(found.busy_ns, found.kernel_ns)
    works = found.mix[part[(computes if computes[part].any() else busy)[part]]]
    alike = [cosine(each, works.sum(axis=0)) > ALIKE for each in works]
    starting = part[found.account[part, 3] > MOST_STARTUP]
    # What comes again in the second half of the steps is what these do, such as to capture a graph once more.
    starts = len(starting) > 0 and 2 * begin[starting[-1]] < lo + hi
    return part[1:].tolist() if all(alike) and found.steady[part].any() and not starts else []


def _alike(found: JobParts) -> Iterator[int]:
    """The borders between steady neighbours that are alike. Each is compared with the next one, so that a slow drift is
    one. What is between two of them is a slow step if it is shorter than any phase, or several."""
    shortest = LEAST_LENGTH * float(found.borders[-1] - found.borders[0])
    for at, after in pairwise(np.flatnonzero(found.steady).tolist()):
        between = int(found.borders[after] - found.borders[at + 1])
        if between and (between >= shortest or not found.like(at, after)):
            continue
        short = min(int(found.lengths[at]), int(found.lengths[after])) < shortest
        if between or found.like(at, after) or _same_work(found, at, after, short=short):
            yield from range(at + 1, after + 1)
    steps = ((at, found.steps(at)) for at in np.flatnonzero(found.steady).tolist())
    many = [(at, *its) for at, its in steps if its is not None and len(its[1]) > FEWEST_REPEATS]
    for (at, loop, before), (after, other, behind) in pairwise(many):
        goes_on = loop is other and not loop.in_one_pass and after > at + 1
        if goes_on and _of_slow_steps(found, at, after, loop, float(np.median(np.diff(np.append(before, behind))))):
            yield from range(at + 1, after + 1)


def _of_few_steps(found: JobParts) -> Iterator[int]:
    """The borders between a steady part and a few steps next to it that do its work, if the same loop goes on around
    these. They are too few to be steady, and no pause.

    ```
    steps    |d|d|d|d|d|d|d|  p  |    p p|    p p|  p  |  p  |        `d` decode; `p` prefill as well, some twice
    parts    |      1      |  2  |             3             |        2 and 3 are one
    ```
    """
    for at in range(1, len(found) - 1):
        behind, before = found.steps(at + 1), found.steps(at - 1)
        steady = found.steady[at - 1 : at + 2].tolist() == [True, False, True]
        if not steady or behind is None or before is None or behind[0] is not before[0]:
            continue
        if _are_steps(found, at, at + 1, *behind):
            yield at + 1
        elif _are_steps(found, at, at - 1, *before):
            yield at


def _are_steps(found: JobParts, at: int, other: int, loop: Loop, steps: IntArray) -> bool:
    """Whether a part is steps of a loop that do the work of another part, which has the `steps`. None of them may hold
    a pause."""
    own = loop.borders_in(*found.span(at))
    whole = len(own) > 1 and np.isin(found.span(at), own).all()
    return bool(whole and found.like(at, other) and np.diff(own).max() <= IRREGULAR * np.median(np.diff(steps)))


def _of_slow_steps(found: JobParts, at: int, after: int, loop: Loop, usual: float) -> bool:
    """Whether a loop of two steady parts, with `usual` steps in ns, goes on between them: in steps with the same work,
    of which none holds a pause.

    ```
    steps    |--|--|--|--|-----|----|------|--|--|--|--|       the loader falls behind for three steps
    steps    |--|--|--|--|-----------------|--|--|--|--|       a pause, in one step
    ```
    """
    begin = np.searchsorted(loop.borders, found.borders[at + 1], side="right") - 1
    steps = np.diff(loop.borders[begin : np.searchsorted(loop.borders, found.borders[after]) + 1])
    if steps.max() > max(MOST_OF_A_STEP * steps.sum(), IRREGULAR * usual):
        return False
    mix = found.mix[at + 1 : after].sum(axis=0)
    return min(cosine(mix, found.mix[each]) for each in (at, after)) > ALIKE


def _same_work(found: JobParts, one: int, other: int, *, short: bool) -> bool:
    """Whether two neighbours that are not equally busy do the same work: one of them is too short for a separate phase,
    or both are the same typical steps of one loop. One may have more slow steps by chance. With fewer than five steps,
    one of the usual length is enough."""
    if cosine(found.mix[one], found.mix[other]) <= ALIKE:
        return False
    first, second = found.steps(one), found.steps(other)
    if first is None or second is None or first[0] is not second[0]:
        return short
    few, many = sorted((np.diff(first[1]), np.diff(second[1])), key=len)
    ratio = np.log(few / np.median(many))
    if len(few) >= FEWEST_REPEATS:
        return abs(float(np.median(ratio))) <= math.log(1 + ALIKE_BUSY) or _by_chance(few, many)
    return float(np.abs(ratio).min()) <= math.log(WARM_UP_SLOWER)


def _by_chance(one: IntArray, other: IntArray) -> bool:
    """Whether steps of one loop are longer in one part than in another by chance: by the rank-sum test of Mann and
    Whitney, and they overlap."""
    order, pairs = np.sort(other), len(one) * len(other)
    longer = (np.searchsorted(order, one) + np.searchsorted(order, one, side="right")).sum() / 2
    deviation = abs(float(longer) - pairs / 2)
    return deviation < BY_CHANCE * math.sqrt(pairs * (len(one) + len(other) + 1) / 12) and deviation < OVERLAP * pairs


def _joined_run(found: JobParts, without: Callable[[JobParts, Iterable[int]], JobParts]) -> JobParts | None:
    """The parts with the longest alternating run merged, if that is steady as a whole; None without such a run. Pauses
    between rounds of many steps each are not parts of a step.

    ```
    parts    |  A  | B |  A  | B |  A  |        five parts, two of a step
    steps    |||||||   |||||||   |||||||        three rounds of steps, and B is a pause
    ```
    """
    runs = [_run(found, first, period) for period in range(2, LONGEST_PERIOD + 1) for first in range(len(found))]
    pause = np.array([_is_pause(found, at) for at in range(len(found))], np.bool_)
    for first, behind in sorted(filter(None, runs), key=lambda run: run[0] - run[1]):
        if pause[first:behind].any():
            continue
        joined = without(found, range(first + 1, behind))
        if joined.steady[first]:
            return joined
    return None


def _is_pause(found: JobParts, at: int) -> bool:
    """Whether a part without work is between two runs of a loop that are full of steps, not of layers of a pass. If
    the trace does not show that these are steps, they are many."""
    if found.busy[at] >= LEAST_BUSY or not 0 < at < len(found) - 1:
        return False
    before, behind = found.steps(at - 1), found.steps(at + 1)
    if before is None or behind is None or before[0] is behind[0] or before[0].in_one_pass or behind[0].in_one_pass:
        return False
    return all(loop.certain or len(steps) > FEWEST_REPEATS for loop, steps in (before, behind))


def _run(found: JobParts, first: int, period: int) -> tuple[int, int] | None:
    """How far the parts from `first` on are each like the one a period before: [first, behind), two periods at least.
    The last part may be cut short."""
    behind = first + period
    while behind < len(found) and found.like_account(behind - period, behind):
        short, long = sorted((int(found.lengths[behind - period]), int(found.lengths[behind])))
        if behind + 1 < len(found) and long > ALIKE_LENGTHS * short:
            break
        behind += 1
    return (first, behind) if behind >= first + 2 * period else None


def _with_last_steps(found: JobParts) -> IntArray:
    """The borders; those after a steady part are moved to the end of its loop, if fewer than five steps of it remain. A
    slow step before the idle end of a program looks like a part of that end. Time before the first step of a part is
    unchanged: it may be a warm-up."""
    borders = found.borders
    steady = np.flatnonzero(found.steady).tolist()
    for at, after in pairwise([*steady, len(found)]):
        end, inside = int(found.borders[at + 1]), found.steps(at)
        if inside is None:
            continue
        left = inside[0].borders_in(int(inside[1][-1]), int(inside[0].ends[-1]))
        few = 1 < len(left) <= FEWEST_REPEATS and end < left[-1] <= found.borders[after]
        if few and np.diff(left).max() <= IRREGULAR * np.median(np.diff(inside[1])):
            borders = np.union1d(borders[(borders < end) | (borders > left[-1])], left[-1:])
    return borders


def _trimmed(found: JobParts, measured: Callable[[IntArray], JobParts]) -> JobParts:
    """The parts, with separate ones for time outside the steps of a steady part with other work: a short start before
    the first step, which the least length hides.

    ```
    part     |.....=====.=====.=====.=====.=====...|
    steps          |     |     |     |     |     |
    parts    |  1  |             2               |3|
    ```
    """
    ends = {at: _ends_of_steps(found, at) for at in np.flatnonzero(found.steady).tolist()}
    every = {time for pair in ends.values() for time in pair} - set(found.borders.tolist())
    if not every:
        return found
    parts = measured(np.union1d(found.borders, list(every)))
    alike = set()
    for first, last in ends.values():
        before, behind = (int(np.searchsorted(parts.borders, time)) for time in (first, last))
        if first in every and not _other_work(parts, before - 1, before):
            alike.add(first)
        if last in every and not _other_work(parts, behind, behind - 1):
            alike.add(last)
    if alike == every:
        return found
    parts = measured(np.union1d(found.borders, list(every - alike))) if alike else parts
    return _marked(parts, found, ends)


def _other_work(parts: JobParts, outside: int, steps: int) -> bool:
    """Whether the part `outside` is unlike the neighbouring part `steps`. One shorter than a step may be a part of a
    step, which differs from the whole: then only names that the steps do not have count."""
    inside = parts.steps(steps)
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


def _ends_of_steps(found: JobParts, at: int) -> tuple[int, int]:
    """Where the whole steps of a steady part begin and end; its own ends if no step, and no window, is outside of
    them."""
    (start, end), inside = found.span(at), found.steps(at, STEPS_SHARE)
    if inside is None:
        return start, end
    first, last = int(inside[1][0]), int(inside[1][-1])
    runs = [each.borders_in(start, end) for each in found.loops if each.called == inside[0].called]
    first, last = (int(each) for each in np.concatenate(runs)[[0, -1]])
    window = int(found.borders[-1] - found.borders[0]) // WINDOWS
    least = max(min(float(np.median(np.diff(inside[1]))), window), 1)
    return first if first - start >= least else start, last if end - last >= least else end
