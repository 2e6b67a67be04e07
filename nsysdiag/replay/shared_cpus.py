"""Launching threads that share their CPUs: others take these at a pace of their own, in a wait or while there is work.

```
thread   [prepares].......[prepares][launch][waits for the device .......][prepares]
other              [packs]                            [packs]
                   in the way                         in nobody's way: with other steps it is the other way round
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.causes import PLACE, PREEMPTION
from nsysdiag.causes.off_cpu import UNTRACED
from nsysdiag.replay.changes import Changes


def off_cpu_ns(changes: Changes) -> tuple[int, int]:
    """For how long in a step launching threads have no CPU while they work, and how much longer that may be, in ns.
    Others may take it in waits as well, and seldom do at all. Both are 0 where that time is taken out."""
    model, pieces, labels = changes.model, changes.model.pieces, changes.model.named.labels
    taken = (pieces.cause == PLACE[PREEMPTION]) & np.isin(model.program.thread[pieces.owner], model.launching)
    taken &= pieces.label != (labels.index(UNTRACED) if UNTRACED in labels else -2)
    if not taken.any() or (changes.time[taken] < 1).any():
        return 0, 0
    ns = int((pieces.end - pieces.start)[taken].sum()) // model.stretch.count
    count = int(taken.sum())
    return ns, round(ns * (2 * np.sqrt(count) + 2) / count)
