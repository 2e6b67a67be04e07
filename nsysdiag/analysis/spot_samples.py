"""What host code a spot was in, by the CPU samples inside its slices."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.details import GapContext
from nsysdiag.timeline.intervals import IntArray

MOST_SAMPLES = 5_000


def symbols_in(context: GapContext, slices: IntArray) -> dict[str, int]:
    """The innermost functions of the samples inside the longest of `slices`, with the number of samples, most first."""
    ns = context.slices.lengths(slices)
    chosen = slices[np.argsort(-ns, kind="stable")[:MOST_SAMPLES]]
    rows = context.slices.rows.take(chosen)
    lane = context.lane[rows.gap]
    low, high = (context.axis.position(np.maximum(lane, 0), side) for side in (rows.start, rows.end))
    first, behind = (np.searchsorted(context.samples.position, side) for side in (low, high))
    count = np.where(lane >= 0, behind - first, 0)
    # Whole slices in order, as many as fit.
    count = np.where(np.cumsum(count) <= MOST_SAMPLES, count, 0)
    sample = np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)
    if len(sample) == 0:
        return {}
    code, names = context.leaf_symbols(context.samples.id[sample])
    present, number = np.unique(code[code >= 0], return_counts=True)
    found = {names[each]: times for each, times in zip(present.tolist(), number.tolist(), strict=True)}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
