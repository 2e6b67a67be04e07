"""Captures that began or ended at other collectives: one row is moved along the other until the ends of both keep their
distance.

```
rank 0             [1)  [2) [3)     [4)          ends at 10, 15, 19, 27
rank 1     [0)     [1)  [2) [3)                  moved by one: always the same distance; as they are: never
```

Steps that are all alike fit everywhere, and then nothing is moved: one place must fit far better than all others.
"""

from __future__ import annotations

import numpy as np

from nsysdiag.timeline.intervals import IntArray

FEWEST, MOST_MOVES, CLEARLY, ALIKE_NS = 8, 256, 4, 1_000
MOST_COMPARED = 1_000


def move_of(first: IntArray, other: IntArray) -> int | None:
    """By how much to move: other[k + move] is what first[k] is. Both are ends in ns, in order. 0 where both are as many
    and fit as they are; None where no place, or more than one, fits well."""
    if len(first) == len(other) and _fits_as_it_is(first, other):
        return 0
    low, high = -min(MOST_MOVES, len(first) - 1), min(MOST_MOVES, len(other) - 1)
    unsteady = {move: _unsteadiness(first, other, move) for move in range(low, high + 1)}
    best, *others = sorted(unsteady, key=lambda move: unsteady[move])
    if len(first) == len(other) and unsteady[0] <= CLEARLY * max(unsteady[best], ALIKE_NS):
        return 0
    clear = not others or CLEARLY * max(unsteady[best], ALIKE_NS) < unsteady[others[0]]
    return best if clear and np.isfinite(unsteady[best]) else None


def _fits_as_it_is(first: IntArray, other: IntArray) -> bool:
    """Without a look at all places: far better than one place before or behind, or as well as clocks can tell."""
    here = CLEARLY * _unsteadiness(first, other, 0)
    return here <= CLEARLY * ALIKE_NS or here < min(_unsteadiness(first, other, move) for move in (-1, 1))


def _unsteadiness(first: IntArray, other: IntArray, move: int) -> float:
    """The median distance of all distances from the median one; infinite where too few collectives stand opposite each
    other to tell."""
    low, high = max(0, -move), min(len(first), len(other) - move)
    if high - low < max(FEWEST, min(len(first), len(other)) // 2):
        return np.inf
    some = np.unique(np.linspace(low, high - 1, min(high - low, MOST_COMPARED)).astype(np.int64))
    apart = other[some + move] - first[some]
    return float(np.median(np.abs(apart - np.median(apart))))
