"""Ranks whose captures began or ended at other collectives: the longer row is moved along the shorter one until the
ends of both keep their distance.

```
rank 0             [1)  [2) [3)     [4)          ends at 10, 15, 19, 27
rank 1     [0)     [1)  [2) [3)     [4)          the first one left out: always the same distance; with it: never
```

Steps that are all alike fit everywhere, and then nothing is said: one place must fit far better than all others.
"""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.identity import IntArray

FEWEST, MOST_MOVES, CLEARLY, ALIKE_NS = 8, 256, 4, 1_000
MOST_COMPARED = 1_000


def place_of(short: IntArray, long: IntArray) -> int | None:
    """Where the ends `short` belong in the ends `long`, both in order and in ns: long[place : place + len(short)]. None
    where that is not clear."""
    moves = len(long) - len(short) + 1
    if len(short) < FEWEST or not 1 < moves <= MOST_MOVES:
        return None
    some = np.unique(np.linspace(0, len(short) - 1, min(len(short), MOST_COMPARED)).astype(np.int64))
    unsteady = np.array([_unsteadiness(long[some + place] - short[some]) for place in range(moves)])
    best, second = np.partition(unsteady, 1)[:2]
    clear = CLEARLY * max(best, ALIKE_NS) < second
    return int(np.argmin(unsteady)) if clear else None


def _unsteadiness(apart: IntArray) -> float:
    """The median distance from the median distance."""
    return float(np.median(np.abs(apart - np.median(apart))))
