"""Time cut into equal buckets: how much of each a set covers, coarser levels from finer ones, and how much of something
intervals take together."""

from __future__ import annotations

import itertools
import math

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import (
    AT_ONCE,
    FloatArray,
    IntArray,
    Intervals,
    ascending,
    coverage,
    coverage_between,
    equal_edges,
    nearest_before,
)


class Periods(Struct, frozen=True, eq=False):
    """Period i is [start + i * length, start + (i + 1) * length). `inside` is how many ns of it are in the given parts,
    `covered` how many of those the set covers. A period between two parts has no ns inside."""

    start: int
    length: int
    inside: IntArray
    covered: IntArray

    def together(self, count: int) -> Periods:
        """Each `count` periods as one, the last one of what is left."""
        first = np.arange(0, len(self.inside), count)
        inside, covered = (np.add.reduceat(each, first, dtype=np.int64) for each in (self.inside, self.covered))
        return Periods(self.start, self.length * count, inside, covered)


def in_periods(covered: Intervals, parts: Intervals, length: int, most: int) -> Periods:
    """The set `covered`, which is inside the set `parts`, in periods that begin where the parts do.

    ```
    parts       [-------------)        [-----)
    periods     |....|....|....|....|....|....|     one may be in no part, one may be cut by the border of a part
    covered       [-----)                [-)
    ```

    The length is doubled until there are no more than `most`. Raises ValueError for an empty set.
    """
    if not len(parts):
        raise ValueError("no time to cut into periods")
    low, high = int(parts.start[0]), int(parts.end[-1])
    while -(-(high - low) // length) > most:
        length *= 2
    edges = np.append(np.arange(low, high, length), high)
    narrow = np.dtype(np.int32 if length < 1 << 31 else np.int64)  # a week has a million of them
    inside, held = (coverage_between(each, edges).astype(narrow, copy=False) for each in (parts, covered))
    return Periods(low, length, inside, held)


def coarser(values: IntArray, coarsest: int) -> list[IntArray]:
    """`values` (2^n of them) and the sums of pairs of them, down to 2^coarsest, finest first.

    ```
    3 1 4 1 5 9 2 6
    4   5   14  8
    9       22
    ```
    """
    result = [values]
    while len(result[-1]) > 1 << coarsest:
        result.append(result[-1].reshape(-1, 2).sum(axis=1))
    return result


# How many of many intervals are open at each moment: a step function, and what it is over buckets of time.


class StepFunction(Struct, frozen=True, eq=False):
    """`level[i]` holds on [time[i], time[i + 1]), the last one until `end`; times rise strictly."""

    time: IntArray
    level: IntArray
    end: int

    @property
    def spans(self) -> Intervals:
        """The time of each step."""
        return Intervals(self.time, np.append(self.time[1:], self.end))


class Buckets(Struct, frozen=True, eq=False):
    """A step function in equal buckets of [edges[0], edges[-1]): the lowest and highest level of each, and its mean."""

    edges: IntArray
    lowest: IntArray
    mean: FloatArray
    highest: IntArray


def count_open(start: IntArray, end: IntArray, low: int, high: int, before: int = 0) -> StepFunction:
    """How many intervals are open over [low, high), from their sorted starts and sorted ends, plus `before` that are
    open all the time.

    ```
    intervals   [------)
                   [---------)
    level       1  2   1     0
    ```

    Raises ValueError for an empty range.
    """
    if high <= low:
        raise ValueError(f"no time between {low} and {high}")
    # One number for time and kind, so that merging two sorted runs is one sort. Counted from `low`, so that it fits.
    events = np.concatenate((_within(end, low, high) << 1, (_within(start, low, high) << 1) | 1))
    events.sort(kind="stable")
    begins = (events & 1).astype(np.int8)
    level: IntArray = np.cumsum((begins << 1) - 1, dtype=np.int32)
    level += before
    time: IntArray = events
    time >>= 1
    last = np.append(time[1:] != time[:-1], True)[: len(time)]
    last[np.searchsorted(time, high - low) :] = False
    if not last.all():
        time, level = time[last], level[last]
    if len(time) == 0 or time[0] > 0:
        time, level = np.append(np.int64(0), time), np.append(np.int64(before), level)
    return StepFunction(time + low, level, high)


def _within(times: IntArray, low: int, high: int) -> IntArray:
    """Sorted times from `low` on; what is outside is moved to the borders."""
    inside = len(times) == 0 or (times[0] >= low and times[-1] <= high)
    return (times if inside else np.clip(times, low, high)) - low


def time_by_level(steps: StepFunction, parts: Intervals) -> IntArray:
    """How many ns of the set `parts` are at level 0, 1, 2 and so on up to the highest that occurs."""
    whole = len(parts) == 1 and parts.start[0] <= steps.time[0] and parts.end[0] >= steps.end
    length = np.diff(steps.time, append=steps.end) if whole else coverage(parts, steps.spans)
    # Sums of lengths are whole numbers far below 2^53: the floats are exact.
    found = np.bincount(steps.level, weights=length.astype(np.float64)).astype(np.int64)
    occurs = np.flatnonzero(found)
    return found[: occurs[-1] + 1] if len(occurs) else found[:0]


def in_buckets(steps: StepFunction, most: int) -> Buckets:
    """The steps in `most` equal buckets, fewer where there are not as many ns."""
    return _between(steps, _edges(int(steps.time[0]), steps.end, most))


def open_in_buckets(start: IntArray, end: IntArray, parts: Intervals, most: int) -> tuple[Buckets, IntArray]:
    """`count_open` from the begin to the end of the nonempty set `parts`, as `in_buckets` and as `time_by_level`. Works
    in chunks, as the steps of millions of intervals need much memory."""
    edges = _edges(int(parts.start[0]), int(parts.end[-1]), most)
    begun, over = (np.searchsorted(times, edges, side="right") for times in (start, end))
    stretch = (begun + over) // AT_ONCE
    borders = np.flatnonzero(np.concatenate(([True], stretch[1:-1] != stretch[:-2], [True])))
    found, levels = [], np.zeros(0, dtype=np.int64)
    for first, last in itertools.pairwise(borders.tolist()):
        opened, closed = start[begun[first] : begun[last]], end[over[first] : over[last]]
        low, high = int(edges[first]), int(edges[last])
        steps = count_open(opened, closed, low, high, before=int(begun[first] - over[first]))
        found.append(_between(steps, edges[first : last + 1]))
        # Levels above the highest of a stretch have no time in it.
        shorter, longer = sorted((levels, time_by_level(steps, parts)), key=len)
        longer[: len(shorter)] += shorter
        levels = longer
    lowest, mean, highest = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("lowest", "mean", "highest")
    )
    return Buckets(edges, lowest, mean, highest), levels


def _edges(low: int, high: int, most: int) -> IntArray:
    return equal_edges(low, high, min(most, high - low))


def _between(steps: StepFunction, edges: IntArray) -> Buckets:
    """The steps in buckets that begin with the first and end with the last of them."""
    high = steps.end
    first = nearest_before(steps.time, edges[:-1])
    last = np.searchsorted(steps.time, edges[1:], side="left") - 1
    inside = steps.level[last]
    area = np.zeros(len(steps.time) + 1)
    area[1:] = np.diff(steps.time, append=high)
    area[1:] *= steps.level
    np.cumsum(area, out=area)
    at_edge = area[first] + steps.level[first] * (edges[:-1] - steps.time[first])
    total = np.diff(np.append(at_edge, area[-1]))
    # The step that a bucket ends in may be the one that the next begins in: `reduceat` stops before it.
    return Buckets(
        edges=edges,
        lowest=np.minimum(np.minimum.reduceat(steps.level, first), inside),
        mean=total / np.diff(edges),
        highest=np.maximum(np.maximum.reduceat(steps.level, first), inside),
    )


# Intervals that each take a share of something: how much of it is taken over time, all together.

_Order = IntArray | None
_ALL = slice(None)


def taken(spans: Intervals, weights: list[IntArray], most: int, parts: Intervals) -> list[float]:
    """For each kind of weight: the sum of the weights of all open spans, capped at `most`, integrated over the ns of
    the set `parts`. Spans run forward; weights are at least 0.

    ```
    spans      [---- 4 ----)
                     [---- 5 ----)
    sum        4     9     5           most 8:  6 x 4  +  6 x 8  +  6 x 5
    ```
    """
    if not len(spans) or not len(parts):
        return [0.0 for _ in weights]
    by_start, by_end = _sorted(spans.start), _sorted(spans.end)
    start, end = spans.start[_part(by_start, _ALL)], spans.end[_part(by_end, _ALL)]
    # Stretches with a bounded number of events each.
    low, high = parts.start[0], parts.end[-1]
    some = np.concatenate((start[::AT_ONCE], end[::AT_ONCE]))
    edges = distinct_values(np.concatenate(([low], some[(some > low) & (some < high)], [high])))
    sums = [_WeightArea(weight, by_start, by_end, most) for weight in weights]
    begun, over = np.searchsorted(start, edges), np.searchsorted(end, edges)
    for at in range(len(edges) - 1):
        opened, closed = slice(*begun[at : at + 2]), slice(*over[at : at + 2])
        # Ends and starts are two sorted runs: a stable sort merges them.
        times = np.concatenate((edges[at : at + 1], end[closed], start[opened]))
        order = np.argsort(times, kind="stable")
        times = times.take(order)
        steps = Intervals(times, np.append(times[1:], edges[at + 1]))
        length = (steps.end - steps.start if len(parts) == 1 else coverage(parts, steps)).astype(np.float64)
        for each in sums:
            each.add(opened, closed, order, length)
    return [math.fsum(each.parts) for each in sums]


class _WeightArea:
    """The area under the sum of one weight, stretch by stretch. As floats: share times ns may be beyond 64 bits, and a
    sum of whole levels is exact before it comes to that."""

    def __init__(self, weight: IntArray, by_start: _Order, by_end: _Order, most: int) -> None:
        self.weight, self.by_start, self.by_end, self.most = weight, by_start, by_end, most
        self.level: int | None = None
        self.parts: list[float] = []

    def add(self, opened: slice, closed: slice, order: IntArray, length: FloatArray) -> None:
        """A stretch in which the spans of these places begin and end, its events in this order after its own border."""
        begun, over = self.weight[_part(self.by_start, opened)], self.weight[_part(self.by_end, closed)]
        if self.level is None:
            self.level = int(self.weight[_part(self.by_start, slice(0, opened.start))].sum())
            self.level -= int(self.weight[_part(self.by_end, slice(0, closed.start))].sum())
        changes = np.concatenate(([self.level], -over, begun))
        level = np.cumsum(changes.take(order))
        self.level = int(level[-1])
        self.parts.append(float(np.minimum(level, self.most) @ length))


def _part(order: _Order, places: slice) -> slice | IntArray:
    return places if order is None else order[places]


def _sorted(times: IntArray) -> _Order:
    """The order that sorts the times; None if they are sorted."""
    return None if ascending(times) else np.argsort(times, kind="stable").astype(np.int32)
