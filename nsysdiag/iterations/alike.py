"""Steps that take turns with kernels of other names, as those of a solver with two buffers: a repeat may be several.

```
launches    |graph A   |graph B   |graph A   |graph B   |
found       |                     |                     |       two steps, or four
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.operations import Category
from nsysdiag.iterations.begins import REGULAR
from nsysdiag.iterations.happened import Happened, category_of
from nsysdiag.iterations.loop import NVTX, Inner, Loop
from nsysdiag.iterations.replays import Replays

MOST_PARTS = 4
AS_LONG = 1.25
"""Parts are alike where none takes so many times as long as another."""
_KERNEL, _LAUNCH = -1, -2


def perhaps_several(loop: Loop, replays: Replays, happened: Happened) -> Loop:
    """The loop, in doubt where each repeat has several parts alike, but for the names of their kernels. Each part
    launches a graph, or reads something back: kernels in a row are no steps without either."""
    if loop.source == NVTX or not loop.certain or loop.inner is not None:
        return loop
    time = happened.time[: len(happened.end)]
    borders = np.searchsorted(time, loop.starts)
    size = np.diff(borders)
    usual = int(np.median(size)) if len(size) else 0
    same = np.flatnonzero(size == usual)
    if not usual or len(same) < REGULAR * len(size):
        return loop
    first = borders[same]
    kinds = _kinds(first[len(first) // 2] + np.arange(usual), replays, happened)
    for parts in (parts for parts in range(2, MOST_PARTS + 1) if usual % parts == 0):
        each = kinds.reshape(parts, -1)
        if (each != each[0]).any() or not np.isin(each[0], [_LAUNCH, *happened.downloads]).any():
            continue
        begins = time[first[:, None] + each.shape[1] * np.arange(parts)]
        length = np.median(np.diff(np.column_stack((begins, loop.starts[same + 1]))), axis=0)
        if length.max() <= AS_LONG * length.min():
            return replace(loop, inner=Inner(loop.called, parts, int(np.median(length))), certain=False)
    return loop


def _kinds(rows: IntArray, replays: Replays, happened: Happened) -> IntArray:
    """What operations are, whatever their names: kernels, launches of graphs, or copies by their direction."""
    code = happened.code[rows]
    begins = np.isin(happened.operations[rows], replays.rows[replays.first]) | (category_of(code) == Category.GRAPH)
    kernel = np.isin(code, list(happened.kernels))
    return np.where(begins, _LAUNCH, np.where(kernel, _KERNEL, code))
