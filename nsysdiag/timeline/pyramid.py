"""Levels of detail: how much of each of 2^n equal buckets a set covers, coarser levels from finer ones."""

from __future__ import annotations

import numpy as np

from nsysdiag.timeline.intervals import IntArray, Intervals, coverage


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
