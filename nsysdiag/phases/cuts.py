"""Where the work of a job changes: the cuts that leave the least squared error, and the exact time of each."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import FloatArray, IntArray, union
from nsysdiag.phases.names import JobWork
from nsysdiag.phases.signal import DeviceSignal, Signal, StepLoop, step_borders

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
    cost: FloatArray = np.maximum(second[None, :] - second[:, None] - square / length, 0.0)
    return cost


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
    def of(cls, signals: list[DeviceSignal], work: JobWork, loops: list[StepLoop]) -> CutCandidates:
        """Of all devices and loops. Idle time begins where no device works any more."""
        idle = union(*(signal.split.busy for signal in signals)).end
        return cls(step_borders(loops), [idle, *(device.spans.start for device in work.devices)])

    def between(self, lo: int, hi: int) -> IntArray:
        """Those in (lo, hi), sorted: borders of steps, or where there are none the others."""
        steps = _inside(self.steps, lo, hi)
        return steps if len(steps) else np.unique(np.concatenate([_inside(each, lo, hi) for each in self.work]))


def _inside(times: IntArray, lo: int, hi: int) -> IntArray:
    return times[np.searchsorted(times, lo, side="right") : np.searchsorted(times, hi, side="left")]


def job_cuts(signal: Signal, changes: CutCandidates) -> IntArray:
    """The borders of the parts of the job in ns, its start and its end too."""
    cost = segment_costs(signal.values, signal.weights)
    cuts = best_cuts(cost, signal.edges, penalty_of(signal.values, signal.weights))
    cuts = moved_cuts(cost, signal.edges, cuts)
    times = [_exact(signal, changes, *cuts[place - 1 : place + 2]) for place in range(1, len(cuts) - 1)]
    return np.unique(np.array([signal.edges[0], *times, signal.edges[-1]], np.int64))


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
    """Of the windows of a segment without the one at the cut, which both may share; of that one where it is alone."""
    part = slice(first, behind) if first < behind else slice(min(first, cut), max(behind, cut))
    weight: FloatArray = signal.weights[part]
    mean: FloatArray = weight @ signal.values[part] / weight.sum()
    return mean


def _best(signal: Signal, lo: int, times: IntArray, left: FloatArray, right: FloatArray, near: int) -> int:
    """The index of the cut with the least squared error, with mean `left` from `lo` to it and mean `right` after it; of
    equal ones the nearest to `near`."""
    covered = signal.until(np.append(times, lo))
    covered = covered[:-1] - covered[-1]
    error = 2 * covered @ (right - left) + (times - lo) * float(left @ left - right @ right)
    return int(np.lexsort((np.abs(times - near), np.round(error)))[0])
