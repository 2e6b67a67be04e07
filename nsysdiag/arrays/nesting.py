"""Nesting of intervals: calls within calls, ranges within ranges.

The parent of an interval is the one that began last among those still open at its start. So intervals of one level
never overlap, even if the input overlaps without nesting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import is_constant
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before, searched, stretches


def outermost(intervals: Intervals, group: IntArray | None = None) -> BoolArray:
    """True where no other interval of the same group contains it, in input order.

    Containing means to start no later and end no earlier. Of identical intervals the first one is outermost.

    ```
    [--------)        True
      [---)           False
           [-----)    True: overlaps, is not contained
    ```
    """
    if group is not None and (is_constant(group) or not len(group) or group.min() == group.max()):
        group = None
    if group is None and _rising(intervals.start) and _rising(intervals.end):
        return np.ones(len(intervals), np.bool_)
    order = _outer_first(intervals, group)
    rank = intervals.end[order]
    if group is not None:
        changes = group[order][1:] != group[order][:-1]
        if np.all(changes | (rank[1:] > rank[:-1])):
            return np.ones(len(intervals), np.bool_)
        # By end within a group, and each group above all earlier ones. Places stand for the ends: a time multiplied by
        # the number of a group would overflow.
        ends, place = np.unique(rank, return_inverse=True)
        number = np.concatenate(([0], np.cumsum(changes)))
        rank = number * np.int64(len(ends)) + place
    result = np.ones(len(intervals), np.bool_)
    # Whatever starts no later stands before, so a container is there if any of those ends no earlier.
    result[order[1:]] = np.maximum.accumulate(rank)[:-1] < rank[1:]
    return result


def _outer_first(intervals: Intervals, group: IntArray | None = None) -> IntArray:
    """The order by group, then start, then the later end first, then the input."""
    # ~end falls as end rises and, unlike -end, never overflows.
    keys = (~intervals.end, intervals.start) if group is None else (~intervals.end, intervals.start, group)
    if is_ordered(keys):
        return np.arange(len(intervals), dtype=np.int64)
    return np.lexsort(keys).astype(np.int64, copy=False)


def is_ordered(keys: tuple[IntArray, ...]) -> bool:
    """True if rows are sorted by the last key, ties by the one before it, and so on, as np.lexsort sorts them."""
    tied = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for key in reversed(keys):
        if np.any(tied & (key[1:] < key[:-1])):
            return False
        tied &= key[1:] == key[:-1]
        if not tied.any():
            break
    return True


def _rising(values: IntArray) -> bool:
    return bool(np.all(values[1:] > values[:-1]))


MOST_LEVELS = 64
"""Levels of nested intervals that are distinguished."""


def levels(intervals: Intervals, limit: int = MOST_LEVELS) -> IntArray:
    """The nesting depth of each interval, in input order; 0 is outermost. What is deeper gets `limit - 1`.

    ```
    [--------------)     0
      [----)             1
         [------)        2: not nested, but [----) is open at its start
    ```
    """
    depth, order = np.full(len(intervals), limit - 1, np.int8), _outer_first(intervals)
    for level in range(limit - 1 if len(order) else 0):
        top = _begin_alone(intervals, order)
        depth[order[top]] = level
        order = order[~top]
    return depth


def enclosing(intervals: Intervals, times: IntArray, limit: int = MOST_LEVELS) -> Iterator[IntArray]:
    """For each level, outermost first: the index of its interval open at each time, -1 for none.

    Only the outer `limit` levels are returned: time in a deeper interval counts for the enclosing one of the last
    level. `times` may be in any order.

    ```
    0: [------------)
    1:    [--------)
    times    |        |     -> [[0, -1], [1, -1]]
    ```
    """
    return Nesting.of(intervals, limit).open_at(times)


def _open_at(intervals: Intervals, members: IntArray, times: IntArray) -> IntArray:
    """The one of `members`, disjoint and sorted by start, that is open at each time, -1 for none."""
    at = nearest_before(intervals.start[members], times)
    last_begun = members[at]
    return np.where((at >= 0) & (intervals.end[last_begun] > times), last_begun, last_begun.dtype.type(-1))


class Nesting(Struct, frozen=True):
    """Intervals and how they nest, for many questions: each costs a look-up, not one for each level.

    `members` are the indices of the intervals of each of the outer levels, sorted by start. `order` are those of all,
    sorted by start, outer ones first; None if they are in that order. `above` is the parent of each, -1 for none; None
    if some are deeper than the limit, or end behind the end of their parent: then levels are looked at one by one.
    """

    intervals: Intervals
    members: tuple[IntArray, ...]
    order: IntArray | None
    above: IntArray | None

    @classmethod
    def of(cls, intervals: Intervals, limit: int = MOST_LEVELS) -> Nesting:
        """The limit bounds the work, for a trace may well hold a million ranges that were pushed and never popped."""
        order = _outer_first(intervals).astype(np.int32)
        members, above = _by_open(intervals, order) or _by_peeling(intervals, order, limit)
        sorted_already = bool(np.all(order[1:] > order[:-1]))
        whole = above if len(members) <= limit else None
        return cls(intervals, tuple(members[:limit]), None if sorted_already else order, whole)

    def open_at(self, times: IntArray) -> Iterator[IntArray]:
        """As `enclosing`."""
        for members in self.members:
            yield _open_at(self.intervals, members, times)

    def innermost(self, times: IntArray) -> IntArray:
        """The interval of the deepest level that is open at each time, -1 for none."""
        if self.above is None:
            deepest = np.full(len(times), -1, dtype=np.int64)
            for level in self.open_at(times):
                deepest = np.where(level >= 0, level, deepest)
            return deepest
        start, end = self.intervals.start, self.intervals.end
        begun = start if self.order is None else start[self.order]
        found = np.empty(len(times), dtype=np.int32)
        for part in stretches(len(times)):
            moment, inner = times[part], found[part]
            inner[:] = nearest_before(begun, moment)
            ended = np.flatnonzero(inner >= 0)
            if self.order is not None:
                inner[ended] = self.order[inner[ended]]
            while len(ended := ended[inner[ended] >= 0]) and len(ended := ended[end[inner[ended]] <= moment[ended]]):
                inner[ended] = self.above[inner[ended]]
        return found

    def parents(self) -> IntArray:
        """The innermost interval of an outer level that is open at the start of each, -1 for none; of what is deeper
        than the limit, or empty, any."""
        if self.above is not None:
            return self.above
        found, inner = (np.full(len(self.intervals), -1, dtype=np.int64) for _ in range(2))
        for members, level in zip(self.members, self.open_at(self.intervals.start), strict=True):
            found[members] = inner[members]
            inner = np.where(level >= 0, level, inner)
        return found


def _by_open(intervals: Intervals, order: IntArray) -> tuple[list[IntArray], IntArray] | None:
    """The members of each level, and the parent of each interval: its level is how many are open at its start. None if
    there are too many levels, or one is not inside all that are open at its start."""
    level = np.arange(len(order), dtype=np.int32)
    # An empty interval counts as the shortest one there is.
    over = np.maximum(intervals.end, intervals.start + 1)
    over.sort(kind="stable")  # ends of intervals by their start are in order for long
    level -= searched(over, intervals.start[order], "right")
    del over
    if not len(level) or level.max() >= MOST_LEVELS:
        return None
    ordered = np.argsort(level.astype(np.uint16), kind="stable").astype(np.int32)
    places = np.split(ordered, np.cumsum(np.bincount(level))[:-1])
    # The first one inside another comes right behind that; those that follow on its level are inside the same one.
    parent = np.where(np.diff(level, prepend=level[:1]) > 0, np.arange(-1, len(level) - 1, dtype=np.int32), -1)
    for inner in places[1:]:
        parent[inner] = np.maximum.accumulate(parent.take(inner))
    above = np.empty_like(order)
    above[order] = np.append(order, order.dtype.type(-1)).take(parent)
    return ([order[each] for each in places], above) if _all_inside(intervals, above) else None


def _by_peeling(intervals: Intervals, order: IntArray, limit: int) -> tuple[list[IntArray], IntArray | None]:
    """The same of any intervals, a level at a time: it is what begins when all that began before has ended. No parents
    if some are deeper than the limit, or end behind the end of their parent."""
    members: list[IntArray] = []
    above = np.full(len(intervals), -1, dtype=np.int32)
    while len(order) and len(members) < limit:
        top = _begin_alone(intervals, order)
        members.append(order[top])
        parent, order = members[-1][(np.cumsum(top) - 1)[~top]], order[~top]
        above[order] = parent
    return members, above if not len(order) and _all_inside(intervals, above) else None


def _begin_alone(intervals: Intervals, order: IntArray) -> BoolArray:
    """Which of the intervals in this `order` begin when all before them have ended."""
    reach = intervals.end[order]
    np.maximum.accumulate(reach, out=reach)
    return np.append(True, reach[:-1] <= intervals.start[order[1:]])[: len(order)]


def _all_inside(intervals: Intervals, above: IntArray) -> bool:
    """Is each interval inside its parent, which is open at its start?"""
    for part in stretches(len(above)):
        outer, mine = above[part], intervals[part]
        outer_end = intervals.end.take(outer, mode="wrap")
        if not np.all((outer_end >= mine.end) & (outer_end > mine.start) | (outer < 0)):
            return False
    return True
