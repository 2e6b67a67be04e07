"""Stretches of time in which operations of one name come at a regular distance.

```
starts     | | ||  | |    |     |     |     |     |         |     |     |      | || |
distance                  [usual][     ][    ][    ][ slow   ][    ][    ]
stretch                   [--------------------------------------------)       from the first usual one to the last
```

The usual distance is the median one, and a stretch may hold others: a checkpoint now and then hides no loop. Operations
that repeat at one distance and later at another one make two stretches.
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import Rows
from nsysdiag.iterations.loop import spread_of

MOST_LEVELS = 4
UNUSUAL = 0.8
"""What an unusual distance costs a stretch, where a usual one brings 1: half of them usual is enough to go on."""
LEAST_USUAL, LEAST_USUAL_OF_FEW, FEW = 0.6, 0.75, 10
"""Arrivals at random times (exponential distances) are within a factor of two of their median in 46% of all cases."""
LEAST_ALTERNATING, ALIKE, MOST_ALTERNATING = 0.8, 0.25, 64

MOST_SPREADS, LEAST_BAND = 5, 0.1


class RegularStretches(Rows, frozen=True):
    """Stretches of regular starts: `count` starts from row `first` of the sorted rows on; the median distance, the time
    in usual distances, and the summed deviations from the median, in ns."""

    name: IntArray
    first: IntArray
    count: IntArray
    median: IntArray
    explained: IntArray
    deviation: IntArray


def stretches(start: IntArray, name: IntArray, fewest: int, least_ns: float) -> RegularStretches:
    """The regular stretches of each name with `fewest` starts and usual distances of `least_ns` in all; rows are sorted
    by name, then by start."""
    rows = np.flatnonzero(name[1:] == name[:-1])
    distance = start[rows + 1] - start[rows]
    code = name[rows]
    found: list[RegularStretches] = []
    for _ in range(MOST_LEVELS):
        kept = _worth_a_look(code, distance, fewest - 1, least_ns)
        if not kept.all():
            rows, distance, code = rows[kept], distance[kept], code[kept]
        if len(rows) == 0:
            break
        level, taken = _level(start, rows, distance, code, fewest, least_ns)
        found.append(level)
        rows, distance, code = rows[~taken], distance[~taken], code[~taken]
    return (
        RegularStretches.concatenate(found)
        if found
        else RegularStretches(*(np.zeros(0, dtype=np.int64) for _ in range(6)))
    )


def _worth_a_look(code: IntArray, distance: IntArray, fewest: int, least_ns: float) -> BoolArray:
    """The distances of names that have enough of them, in number and in time."""
    if len(code) == 0:
        return np.zeros(0, dtype=np.bool_)
    total = np.bincount(code, weights=distance)
    good: BoolArray = (np.bincount(code) >= fewest) & (total >= least_ns)
    return good[code]


def _level(
    start: IntArray, rows: IntArray, distance: IntArray, code: IntArray, fewest: int, least_ns: float
) -> tuple[RegularStretches, BoolArray]:
    """The best stretch of each name at its median distance, and the distances that are done: those in a stretch, and
    the usual ones of names without any."""
    begin = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    size = np.diff(np.append(begin, len(code)))
    median = _medians(code, distance, begin, size)
    each = np.repeat(np.arange(len(begin)), size)
    typical = median[each]
    usual = (2 * distance >= typical) & (distance <= 2 * typical)
    low, high = _best_runs(rows, usual, begin, size)
    usual_before = np.append(0, np.cumsum(usual))
    usually = usual_before[high + 1] - usual_before[low]
    length = rows[high] + 1 - rows[low]
    needed = np.where(length < FEW, LEAST_USUAL_OF_FEW, LEAST_USUAL)
    good = usually >= needed * length
    explained = _sums(np.where(usual, distance, 0), low, high)
    enough = (length >= fewest - 1) & (explained >= least_ns)
    good = enough & (good | _alternating(distance, typical, low, high, enough & ~good & (2 * usually >= length - 1)))
    taken = start[rows[high] + 1] - start[rows[low]] - _sums(distance, low, high)
    deviation = _sums(np.abs(distance - typical), low, high) + taken
    found = RegularStretches(code[begin], rows[low], length + 1, median, explained, deviation)
    place = np.arange(len(code))
    inside = good[each] & (place >= low[each]) & (place <= high[each])
    return found.take(good), inside | (usual & ~good[each])


def _medians(code: IntArray, distance: IntArray, begin: IntArray, size: IntArray) -> IntArray:
    """The lower median distance of each name, by one sort of name and distance in one number."""
    bits = 62 - int(code[-1] + 1).bit_length()
    key = (code << bits) | np.minimum(distance, (1 << bits) - 1)
    key.sort()
    median: IntArray = key[begin + (size - 1) // 2] & ((1 << bits) - 1)
    return median


def _best_runs(rows: IntArray, usual: BoolArray, begin: IntArray, size: IntArray) -> tuple[IntArray, IntArray]:
    """For each name the run, first to last index, with most usual and fewest other distances: the largest sum of a
    slice. Distances used before count as unusual."""
    skipped = np.diff(rows, prepend=rows[:1] - 1) - 1
    skipped[begin] = 0
    gain = np.where(usual, 1.0, -UNUSUAL)
    fall = 2.0 * len(rows) + float(skipped.sum()) + 2.0
    loss = UNUSUAL * skipped
    loss[begin] = fall  # no run reaches over the border of two names
    after = np.cumsum(gain - loss)
    before = after - gain
    lowest = np.minimum.accumulate(before)
    rise = after - lowest
    best = np.maximum.reduceat(rise, begin)
    at_best = np.flatnonzero(rise == np.repeat(best, size))
    high = at_best[np.searchsorted(at_best, begin)]
    fresh = np.flatnonzero(before <= lowest)  # where a run may begin
    low = fresh[np.searchsorted(fresh, high, side="right") - 1]
    return low, high


def _sums(values: IntArray, low: IntArray, high: IntArray) -> IntArray:
    total = np.append(0, np.cumsum(values))
    result: IntArray = total[high + 1] - total[low]
    return result


def _alternating(distance: IntArray, typical: IntArray, low: IntArray, high: IntArray, doubted: BoolArray) -> BoolArray:
    """Whether every second or every third distance is another one, always: slow repeats at a fixed period."""
    result = np.zeros(len(low), dtype=np.bool_)
    for at in np.flatnonzero(doubted)[:MOST_ALTERNATING].tolist():
        mine = distance[low[at] : high[at] + 1]
        limit = ALIKE * float(typical[low[at]])
        result[at] = any(
            len(mine) > 2 * lag
            and float((np.abs(mine[lag:] - mine[:-lag]) <= np.maximum(limit, ALIKE * mine[:-lag])).mean())
            >= LEAST_ALTERNATING
            for lag in (2, 3)
        )
    return result


def core(distance: IntArray, median: int) -> tuple[int, int]:
    """The part of a stretch, from its first to after its last distance, without distances that fit by chance at its
    ends: a distance is usual if it deviates by little more than others do."""
    most = max(MOST_SPREADS * spread_of(distance, median), int(LEAST_BAND * median))
    usual = np.abs(distance - median) <= most
    one = np.zeros(1, dtype=np.int64)
    low, high = _best_runs(np.arange(len(distance)), usual, one, np.array([len(distance)]))
    return int(low[0]), int(high[0]) + 1
