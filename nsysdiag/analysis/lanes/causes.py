"""What the longest gaps divide into, slice by slice, as a lane."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.lanes.source import Source, codes_of, reach_of
from nsysdiag.timeline.intervals import IntArray


def cause_source(slices: Slices, gaps: IntArray, count: int, most: int) -> Source | None:
    """The slices of the chosen `gaps` out of `count`, the longest `most` of them; None where there are none."""
    wanted = np.zeros(count, dtype=np.bool_)
    wanted[gaps] = True
    rows = np.flatnonzero(wanted[slices.rows.gap] & (slices.ns > 0))
    rows = rows[np.argsort(-slices.lengths(rows), kind="stable")][:most]
    rows = rows[np.argsort(slices.rows.start[rows], kind="stable")]
    if len(rows) == 0:
        return None
    start, end, text = slices.rows.start[rows], slices.rows.end[rows], slices.rows.text[rows]
    return Source(
        kind="causes",
        label="",
        thread=None,
        depth=0,
        start=start,
        end=end,
        reach=reach_of(end),
        named=codes_of(text + 1, ["", *slices.texts]),
        kinds=slices.rows.cause[rows],
        shares=False,
    )
