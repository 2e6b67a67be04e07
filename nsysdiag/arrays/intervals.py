"""Algebra of half-open intervals [start, end) in ns (int64).

A *set* is a sorted, disjoint, non-touching list of non-empty intervals, as `union` returns it. Functions do not modify
their arguments, and cost at most one sort, none for sorted input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

IntArray = npt.NDArray[np.signedinteger[Any]]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


AT_ONCE = 1 << 16
"""Rows of a stretch: few enough to stay in a core's own memory."""


def stretches(count: int) -> Iterator[slice]:
    """The rows 0 to `count` - 1, AT_ONCE at a time."""
    for at in range(0, count, AT_ONCE):
        yield slice(at, at + AT_ONCE)


class Intervals(Struct, frozen=True, eq=False):
    """Any intervals: `start` and `end` in ns, int64, one-dimensional and of the same length.

    They may overlap, be in any order, be empty or run backwards. Raises ValueError if the two arrays do not pair up,
    TypeError where they are not int64.
    """

    start: IntArray
    end: IntArray

    def __post_init__(self) -> None:
        if self.start.ndim != 1 or self.start.shape != self.end.shape:
            raise ValueError(f"starts and ends do not pair up: {self.start.shape} and {self.end.shape}")
        if self.start.dtype != np.int64 or self.end.dtype != np.int64:
            raise TypeError(f"intervals are int64 ns, not {self.start.dtype} and {self.end.dtype}")

    def __len__(self) -> int:
        return len(self.start)

    def total(self) -> int:
        """The sum of all lengths in ns; time that several intervals share counts once for each."""
        # The difference is right even if both sums overflow: as arrays they wrap around.
        return int((self.end.sum(keepdims=True) - self.start.sum(keepdims=True))[0])

    def __getitem__(self, index: slice | Sequence[int] | npt.NDArray[np.integer] | BoolArray) -> Intervals:
        """The intervals that a slice, a mask or an array of positions picks; a mask of all of them copies nothing."""
        if isinstance(index, np.ndarray) and index.dtype == np.bool_:
            if index.all():
                return self
            # Positions pick from both arrays: under an irregular mask the processor guesses wrong at every other row.
            index = np.flatnonzero(index)
        if isinstance(index, slice):
            return Intervals(self.start[index], self.end[index])
        return Intervals(self.start.take(index), self.end.take(index))  # in two thirds of the time

    @classmethod
    def empty(cls) -> Intervals:
        """No intervals at all."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]]) -> Intervals:
        """Intervals written out as (start, end) pairs."""
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0].copy(), table[:, 1].copy())

    @classmethod
    def concatenate(cls, parts: Iterable[Intervals]) -> Intervals:
        """The intervals of all parts, one part behind the other."""
        every = [cls.empty(), *parts]
        return cls(np.concatenate([part.start for part in every]), np.concatenate([part.end for part in every]))


def ascending(values: npt.NDArray[Any]) -> bool:
    """Whether no value is less than the one before it."""
    return bool(np.all(values[1:] >= values[:-1]))


def sorted_times(times: IntArray) -> IntArray:
    """The times, ascending; the same array if they are. Those of events are in order for long, which a stable sort
    makes use of: 500,000 ends of ranges took a fourteenth of the time."""
    return times if ascending(times) else np.sort(times, kind="stable")


def is_set(intervals: Intervals) -> bool:
    """Whether these intervals, none of which is empty, are a set."""
    return bool(np.all(intervals.start[1:] > intervals.end[:-1]))


def union(*parts: Intervals) -> Intervals:
    """The set of all time that any interval of any part covers.

    ```
    parts   [----)   [--)     )(  <- empty and reversed ones cover nothing
              [------)  [---)
    union   [------------)--)     touching ones merge
    ```
    """
    parts = tuple(part for part in parts if len(part))
    every = _without_empty(parts[0] if len(parts) == 1 else Intervals.concatenate(parts))
    if is_set(every):
        return every
    if not ascending(every.start):
        # A stable sort merges runs that are sorted already, as joined sets and rows of one stream are.
        every = every[np.argsort(every.start, kind="stable")]
    reach = np.maximum.accumulate(every.end)
    last = np.flatnonzero(every.start[1:] > reach[:-1])
    return Intervals(every.start[np.append(0, last + 1)], reach[np.append(last, len(reach) - 1)])


def _without_empty(intervals: Intervals) -> Intervals:
    return intervals[intervals.end > intervals.start]


def complement(s: Intervals, lo: int, hi: int) -> Intervals:
    """The part of [lo, hi) that the set `s` leaves free, as a set.

    ```
    s              [---)   [--)   [----)
    lo, hi           |                |
    complement         [---)  [---)
    ```
    """
    if hi <= lo:
        return Intervals.empty()
    inside = _inside(s, lo, hi)
    start = np.concatenate(([np.int64(lo)], inside.end))
    return _without_empty(Intervals(start, np.concatenate((inside.start, [np.int64(hi)]))))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The time that both sets cover, as a set.

    ```
    a          [-----)   [----)
    b             [----------)    [--)
    intersect     [--)   [---)
    ```
    """
    if len(a) == 1 or len(b) == 1:
        return pieces(b, a)[1] if len(a) == 1 else pieces(a, b)[1]
    return Intervals.concatenate(_stretches_of_both(a, b))


def common_ns(a: Intervals, b: Intervals) -> int:
    """How many ns both sets cover, without the intervals that these are in all at once."""
    if np.array_equal(a.start, b.start) and np.array_equal(a.end, b.end):
        return a.total()  # as the work of a device often is that of its kernels
    return sum(stretch.total() for stretch in _stretches_of_both(a, b))


def _stretches_of_both(a: Intervals, b: Intervals) -> Iterator[Intervals]:
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    for part in stretches(max(len(many), 1)):
        stretch = many[part]
        yield pieces(stretch, few[near(few, stretch)])[1]


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The time that the set `a` covers and the set `b` does not, as a set.

    ```
    a          [-----)   [----)
    b             [----------)    [--)
    subtract   [--)          [)
    ```
    """
    if not len(a) or not len(b):
        return a
    return intersect(a, complement(b, int(a.start[0]), int(a.end[-1])))


def clip(intervals: Intervals, lo: int, hi: int) -> Intervals:
    """What of each interval is in [lo, hi), in the same order; those with nothing inside are dropped."""
    start, end = np.maximum(intervals.start, lo), np.minimum(intervals.end, hi)
    return _without_empty(Intervals(start, end))


def coverage(s: Intervals, queries: Intervals, rows: IntArray | None = None) -> IntArray:
    """How many ns of each query, or of each of those at `rows`, the set `s` covers; queries in any order, overlapping
    or empty.

    ```
    s          [---)      [-----)
    query        [----------)          -> 2 + 2
    ```
    """
    found = np.zeros(len(queries) if rows is None else len(rows), np.int64)
    if not len(s):
        return found
    until = _until(s)
    for part in stretches(len(found)):
        picked = queries[part if rows is None else rows[part]]
        start, end = picked.start, picked.end
        if len(s) == 1:
            found[part] = np.maximum(np.minimum(end, s.end) - np.maximum(start, s.start), 0)
            continue
        before_end = _covered_before(s, until, end)
        # Most queries begin where the one before ends, as samples and buckets do.
        before_start, new = np.append(0, before_end[:-1]), np.append(0, 1 + np.flatnonzero(start[1:] != end[:-1]))
        before_start[new] = _covered_before(s, until, start[new])
        found[part] = np.where(end > start, before_end - before_start, 0)
    return found


def coverage_between(s: Intervals, edges: IntArray) -> IntArray:
    """How many ns the set `s` covers from each of the edges, which rise, to the next one."""
    if not len(s):
        return np.zeros(len(edges) - 1, np.int64)
    until = _until(s)
    return np.diff(np.concatenate([_covered_before(s, until, edges[part]) for part in stretches(len(edges))]))


def _until(s: Intervals) -> IntArray:
    """How many ns the set covers up to the end of each interval, with a 0 before these."""
    until = np.zeros(len(s) + 1, dtype=np.int64)
    np.cumsum(s.end - s.start, out=until[1:])
    return until


def _covered_before(s: Intervals, until: IntArray, times: IntArray) -> IntArray:
    begun = searched(s.start, times, "right")
    unfinished = s.end.take(np.maximum(begun - 1, 0)) - times
    return until.take(begun) - np.where(begun > 0, np.maximum(unfinished, 0), 0)


def shared_ns(parts: Intervals, spans: Intervals, rows: IntArray) -> int:
    """How many ns of the set `parts` any of the spans at `rows`, sorted by start, covers."""
    found, reach = 0, np.iinfo(np.int64).min
    for stretch in stretches(len(rows)):
        own = spans[rows[stretch]]
        until = np.maximum.accumulate(np.append(reach, own.end))
        new = _without_empty(Intervals(np.maximum(own.start, until[:-1]), own.end))
        found += common_ns(new, parts[near(parts, new)])
        reach = until[-1]
    return found


def pieces(s: Intervals, queries: Intervals) -> tuple[IntArray, Intervals]:
    """The parts of the set `s` inside each query: (index of the query, piece), ordered by query, then time.

    ```
    s            [---)   [-----)  [--)
    query 0        [---------)
    query 1                 [-------)
    pieces       0:[-)0: [---)
                         1: [--)1:[-)
    ```
    """
    if len(queries) == 1:
        inside = _inside(s, int(queries.start[0]), int(queries.end[0]))
        return np.zeros(len(inside), dtype=np.int64), inside
    query, item = overlaps(s, queries)
    start = np.maximum(s.start.take(item), queries.start.take(query))
    return query, Intervals(start, np.minimum(s.end.take(item), queries.end.take(query)))


def overlaps(s: Intervals, queries: Intervals) -> tuple[IntArray, IntArray]:
    """Which intervals of `s`, disjoint and sorted, have time in common with each query: (index of the query, place in
    `s`), ordered by query, then time."""
    first = searched(s.end, queries.start, "right")
    behind_last = searched(s.start, queries.end, "left")
    count = np.where(queries.end > queries.start, behind_last - first, 0)
    # The n-th piece of a query is the n-th interval of s after its first one.
    return np.repeat(np.arange(len(queries), dtype=np.int64), count), rows_from(first, count)


def shared(s: Intervals, queries: Intervals) -> tuple[IntArray, IntArray, IntArray]:
    """As `overlaps`, and the ns that each query and interval have in common."""
    query, item = overlaps(s, queries)
    begin = np.maximum(s.start.take(item), queries.start.take(query))
    return query, item, np.minimum(s.end.take(item), queries.end.take(query)) - begin


def places_among(known: IntArray, values: IntArray) -> IntArray:
    """The place of each value among the `known`, which are sorted; -1 if it is not one of them."""
    if len(known) == 0:
        return np.full(len(values), -1, dtype=np.int64)
    if len(known) == 1:
        return np.where(values == known[0], 0, -1)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known.take(at) == values, at, -1)


def place_in(spans: Intervals, times: IntArray) -> IntArray:
    """The place of the interval, of sorted disjoint ones, that holds each time; -1 for none."""
    if len(spans) == 0:
        return np.full(len(times), -1)
    at = nearest_before(spans.start, times)
    return np.where((at >= 0) & (times < spans.end.take(np.maximum(at, 0))), at, -1)


def _inside(s: Intervals, lo: int, hi: int) -> Intervals:
    """The part of the set `s` in [lo, hi), as a set; nothing is copied where no interval is cut."""
    if hi <= lo:
        return Intervals.empty()
    found = s[int(np.searchsorted(s.end, lo, side="right")) : int(np.searchsorted(s.start, hi, side="left"))]
    if not len(found) or (found.start[0] >= lo and found.end[-1] <= hi):
        return found
    return Intervals(np.maximum(found.start, lo), np.minimum(found.end, hi))


def contains(s: Intervals, times: IntArray) -> BoolArray:
    """True for each time that the set `s` covers; a start is inside, an end is not."""
    if len(s) == 1:
        return (times >= s.start[0]) & (times < s.end[0])
    found = np.zeros(len(times), np.bool_)
    for part in stretches(len(times) if len(s) else 0):
        last = nearest_before(s.start, times[part])
        found[part] = (last >= 0) & (s.end[last] > times[part])
    return found


def near(s: Intervals, spans: Intervals) -> slice:
    """The places of the intervals of the set `s` between the beginning of the first of the sorted spans and the end of
    the last."""
    if len(spans) == 0:
        return slice(0, 0)
    lo, hi = spans.start[0], spans.end[-1]
    return slice(int(np.searchsorted(s.end, lo, side="right")), int(np.searchsorted(s.start, hi, side="left")))


def equal_edges(low: int, high: int, count: int) -> IntArray:
    """The `count` + 1 edges of equal parts of [low, high), each rounded down to a whole ns."""
    steps = np.arange(count + 1, dtype=np.int64)
    # In two parts, so that a span of days does not overflow.
    whole, rest = divmod(high - low, count)
    return low + whole * steps + rest * steps // count


def rows_from(first: IntArray, count: IntArray) -> IntArray:
    """The rows `first[i]` to `first[i] + count[i] - 1`, for one i after another.

    ```
    first   7  3  5
    count   2  0  3
    rows    7 8 5 6 7
    ```
    """
    return np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)


def searched(known: IntArray, values: IntArray, side: Literal["left", "right"]) -> IntArray:
    """As np.searchsorted. Of many ascending values each stretch is looked up between the places of its first and last
    one: in half the time."""
    if len(values) < AT_ONCE or not ascending(values):
        return np.searchsorted(known, values, side)
    found = np.empty(len(values), dtype=np.int64)
    edges = np.searchsorted(known, np.append(values[::AT_ONCE], values[-1]), side).tolist()
    for part, (low, high) in enumerate(pairwise(edges)):
        mine = slice(part * AT_ONCE, (part + 1) * AT_ONCE)
        np.add(np.searchsorted(known[low:high], values[mine], side), low, out=found[mine])
    return found


def nearest_before(times: IntArray, queries: IntArray) -> IntArray:
    """The index of the last of the sorted `times` at or before each query, -1 if there is none."""
    found: IntArray = searched(times, queries, "right").astype(np.int64, copy=False)
    found -= 1
    return found


def nearest_after(times: IntArray, queries: IntArray) -> IntArray:
    """The index of the first of the sorted `times` at or after each query, `len(times)` if there is none."""
    return searched(times, queries, "left").astype(np.int64, copy=False)
