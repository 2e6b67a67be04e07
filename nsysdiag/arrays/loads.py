"""Intervals that each take a share of something: how much of it is taken over time, all together."""

from __future__ import annotations

import math

import numpy as np

from nsysdiag.arrays.intervals import AT_ONCE, FloatArray, IntArray, Intervals, ascending, coverage

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
    edges = np.unique(np.concatenate(([low], some[(some > low) & (some < high)], [high])))
    sums = [_WeightArea(weight, by_start, by_end, most) for weight in weights]
    begun, over = np.searchsorted(start, edges), np.searchsorted(end, edges)
    for at in range(len(edges) - 1):
        opened, closed = slice(*begun[at : at + 2]), slice(*over[at : at + 2])
        # Ends and starts are two sorted runs: a stable sort merges them.
        times = np.concatenate((edges[at : at + 1], end[closed], start[opened]))
        order = np.argsort(times, kind="stable")
        steps = Intervals(times[order], np.append(times[order][1:], edges[at + 1]))
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
        level = np.cumsum(changes[order])
        self.level = int(level[-1])
        self.parts.append(float(np.minimum(level, self.most) @ length))


def _part(order: _Order, places: slice) -> slice | IntArray:
    return places if order is None else order[places]


def _sorted(times: IntArray) -> _Order:
    """The order that sorts the times; None if they are sorted."""
    return None if ascending(times) else np.argsort(times, kind="stable").astype(np.int32)
