"""Many durations as a few numbers: percentiles that are values of the data, and a histogram on a logarithmic scale."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.report import Distribution

PERCENTILES = (5, 25, 50, 75, 95, 99)
EDGES = np.array([0, *(step * 10**power for power in range(2, 18) for step in (1, 2, 5))], dtype=np.int64)


def distribution(values: IntArray) -> Distribution | None:
    """Of values from 0 up, in ns; None without any. Percentile p is the smallest value that p % do not exceed."""
    if len(values) == 0:
        return None
    ranks = [-(-len(values) * percent // 100) - 1 for percent in PERCENTILES]
    ordered = np.partition(values, [*ranks, len(values) - 1])
    found = [int(ordered[rank]) for rank in ranks]
    return Distribution(
        count=len(values),
        total_ns=int(values.sum()),
        p5_ns=found[0],
        p25_ns=found[1],
        p50_ns=found[2],
        p75_ns=found[3],
        p95_ns=found[4],
        p99_ns=found[5],
        max_ns=int(ordered[-1]),
        bins=_bins(values),
    )


def _bins(values: IntArray) -> list[tuple[int, int]]:
    first, behind = np.searchsorted(EDGES, [values.min(), values.max()], side="right") - (1, 0)
    edges = EDGES[first:behind]
    counts = np.bincount(np.searchsorted(edges, values, side="right") - 1)
    return list(zip(edges.tolist(), counts.tolist(), strict=True))
