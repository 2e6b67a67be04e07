"""Pairs of a wait and a thread that may have ended it, and how one is chosen among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.rows import Rows
from nsysdiag.activity.streams import distinct
from nsysdiag.timeline.intervals import BoolArray, FloatArray, IntArray

PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Pairs(Rows):
    """Waits, and threads that may have ended them, at a `distance` in ns from the moment; `at` is when they did, `call`
    by what, -1 where that is not known."""

    wait: IntArray
    thread: IntArray
    at: IntArray
    distance: IntArray
    call: IntArray

    @classmethod
    def without_calls(cls, wait: IntArray, thread: IntArray, at: IntArray, distance: IntArray) -> Pairs:
        """Pairs whose calls are not known."""
        return cls(wait, thread, at, distance, np.full(len(wait), -1, dtype=np.int64))


def within(
    time: IntArray, low: IntArray, high: IntArray, chosen: IntArray, fits: Callable[[IntArray, IntArray], BoolArray]
) -> tuple[IntArray, IntArray]:
    """For the `chosen` of some waits the rows of the sorted `time` in [low, high] that fit: (wait, row) pairs. Tried in
    parts: of many rows few fit."""
    first = np.searchsorted(time, low[chosen])
    count = np.maximum(np.searchsorted(time, high[chosen], side="right") - first, 0)
    parts = [(chosen[:0], first[:0])]
    for part in np.split(np.arange(len(chosen)), np.flatnonzero(np.diff(np.cumsum(count) // PAIRS_AT_ONCE)) + 1):
        some, begin = count[part], first[part]
        wait = np.repeat(chosen[part], some)
        row = np.arange(len(wait)) + np.repeat(begin - (np.cumsum(some) - some), some)
        kept = fits(wait, row)
        parts.append((wait[kept], row[kept]))
    waits, rows = (np.concatenate(side) for side in zip(*parts, strict=True))
    return waits, rows


def nearest(pairs: Pairs) -> Pairs:
    """The nearest pair of each wait, of equally near ones the thread with the lower number."""
    order = np.lexsort((pairs.call, pairs.at, pairs.thread, pairs.distance, pairs.wait))
    pairs = pairs.take(order)
    return pairs.take(np.append(True, pairs.wait[1:] != pairs.wait[:-1])[: len(pairs)])


def alone(pairs: Pairs) -> BoolArray:
    """True for pairs of waits that have a single thread."""
    if len(pairs) == 0:
        return np.zeros(0, dtype=np.bool_)
    size = int(pairs.wait.max()) + 1
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(lowest, pairs.wait, pairs.thread)
    np.maximum.at(highest, pairs.wait, pairs.thread)
    single: BoolArray = lowest == highest
    return single[pairs.wait]


def group_and_thread(pairs: Pairs, group: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each pair's (group of waits, thread), every wait counted once for a thread; and the threads."""
    threads, code = distinct(pairs.thread)
    _, key = distinct(group[pairs.wait] * len(threads) + code)
    return key, threads


def most_often(pairs: Pairs, group: IntArray) -> Pairs:
    """Of each wait's pairs those of the thread that is there at most waits of its group."""
    if len(pairs) == 0:
        return pairs
    pairs = one_a_thread(pairs)
    key, _ = group_and_thread(pairs, group)
    hits = np.bincount(key)[key].astype(np.float64)
    best, _ = two_best(pairs.wait, hits)
    return pairs.take(hits == best[pairs.wait])


def one_a_thread(pairs: Pairs) -> Pairs:
    """The nearest pair of each wait and thread."""
    order = np.lexsort((pairs.call, pairs.at, pairs.distance, pairs.thread, pairs.wait))
    pairs = pairs.take(order)
    new = (pairs.wait[1:] != pairs.wait[:-1]) | (pairs.thread[1:] != pairs.thread[:-1])
    return pairs.take(np.append(True, new)[: len(pairs)])


def two_best(owner: IntArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest and the second largest value of each owner; -inf where there is none."""
    size = int(owner.max(initial=-1)) + 1
    best, second = np.full(size, -np.inf), np.full(size, -np.inf)
    order = np.lexsort((value, owner))
    owner, value = owner[order], value[order]
    last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    best[owner[last]] = value[last]
    before = np.flatnonzero(last) - 1
    before = before[before >= 0]
    again = before[owner[before] == owner[before + 1]]
    second[owner[again]] = value[again]
    return best, second
