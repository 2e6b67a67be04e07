"""Repeats that do a part of what others do, in runs between these: evaluations between the steps of a training.

Here six steps are followed, each third one, by three evaluations:

```
repeats   |f b u |f b u |f b u |f |f |f |f b u |f b u |f b u |f |f |f |
steps     |      |      |               |      |      |
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import FEWEST, Loop, loop_of, pauses
from nsysdiag.iterations.segments import RepeatCounts
from nsysdiag.iterations.specials import REGULAR
from nsysdiag.iterations.which_step import LIGHT_KERNELS

OFTEN = 0.2
"""Of the repeats: kernels of so many belong to what the loop does."""
WHOLE, PART = 0.8, 0.7
"""Of the kernel names of the loop: a whole repeat has so many at least, a part of one so many at most."""
SHORTEST_RUN = 2


class _Names(Struct, frozen=True):
    """Which kernels are in which repeats: `present[name, repeat]`; `often`: those of the loop, `updates`: those that
    update weights."""

    present: BoolArray
    often: BoolArray
    updates: BoolArray

    @classmethod
    def of(cls, found: RepeatCounts, happened: Happened) -> _Names:
        codes = [code for code in found.count if code in happened.kernels]
        present = np.array([found.count[code] > 0 for code in codes], np.bool_).reshape(len(codes), found.size)
        updates = np.array([code in happened.updates for code in codes], np.bool_)
        return cls(present, present.mean(axis=1) >= OFTEN, updates)

    def parts(self) -> BoolArray:
        """Which repeats do only a part of what the others do; none where some are neither a part nor whole. The last
        one is like the one before: it may be cut."""
        share = self.present[self.often].sum(axis=0) / max(int(self.often.sum()), 1)
        share[-1] = share[-2]
        whole, part = share >= WHOLE, share <= PART
        both = (self.present & whole).any(axis=1)
        apart = bool((whole | part).all()) and np.count_nonzero(whole) >= FEWEST
        few = self.present[~both][:, part].sum(axis=0)
        return part if apart and (few <= LIGHT_KERNELS).all() else np.zeros_like(part)

    def update_only(self, whole: BoolArray) -> bool:
        """Whether all of these repeats update weights, and no other does."""
        updated = (self.present & self.updates[:, None]).any(axis=0)
        return bool((updated == whole)[:-1].all())


def without_other_work(loop: Loop, happened: Happened, end: int) -> Loop:
    """The loop without repeats that are an evaluation between its steps: the step before them lasts until the next."""
    if len(loop) < FEWEST:
        return loop
    names = _Names.of(RepeatCounts.of(happened, loop.starts, None, end), happened)
    part = names.parts()
    if not part.any() or not (names.update_only(~part) or _in_regular_runs(part)):
        return loop
    starts = loop.starts[~part]
    length = np.diff(starts)
    left = pauses(length, float(np.median(length)), int(length.sum()))
    made = loop_of(loop.called, starts, left, None, end)
    return replace(made, inner=loop.inner, certain=loop.certain, kind=loop.kind)


def _in_regular_runs(part: BoolArray) -> bool:
    """Whether they come in runs of one length at one distance; an end of the trace may cut one."""
    first = np.flatnonzero(part & ~np.append(False, part[:-1]))
    behind = np.flatnonzero(part & ~np.append(part[1:], False)) + 1
    length, distance = behind - first, np.diff(first)
    inside = length[: len(length) - int(behind[-1] == len(part))]
    if not len(distance) or not len(inside) or int(np.median(inside)) < SHORTEST_RUN:
        return False
    return _one_value(inside) and _one_value(distance)


def _one_value(values: IntArray) -> bool:
    return float((values == np.median(values)).mean()) >= REGULAR
