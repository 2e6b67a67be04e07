"""Time cut into equal buckets: how much of each a set covers, and coarser levels from finer ones."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage


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
        inside, covered = (np.add.reduceat(each, first) for each in (self.inside, self.covered))
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
    start = low + length * np.arange(-(-(high - low) // length), dtype=np.int64)
    each = Intervals(start, np.append(start[1:], high))
    return Periods(low, length, coverage(parts, each), coverage(covered, each))


def bucket_edges(low: int, high: int, exponent: int) -> IntArray:
    """The 2^exponent + 1 edges of equal buckets over [low, high), each rounded down to a whole ns."""
    steps = np.arange((1 << exponent) + 1, dtype=np.int64)
    span = high - low
    # In two parts, so that a span of days does not overflow.
    return low + (span >> exponent) * steps + (((span & ((1 << exponent) - 1)) * steps) >> exponent)


def bucket_coverage(s: Intervals, edges: IntArray) -> IntArray:
    """The ns of each bucket that the set `s` covers."""
    return coverage(s, Intervals(edges[:-1], edges[1:]))


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
