"""Launching threads that share their CPUs with other threads, which preempt them or run while they wait.

```
thread   [prepares].......[prepares][launch][synchronizes ...............][prepares]
other              [packs]                            [packs]
                   delays the launch                  delays nothing; which of both happens depends on the step length
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.causes import PLACE, PREEMPTION
from nsysdiag.causes.thread_states import untraced_code
from nsysdiag.replay.changes import Changes


def off_cpu_ns(changes: Changes) -> tuple[int, int]:
    """For how long in a step launching threads have no CPU while they work, and how much longer that may be, in ns.
    Others may take it in waits as well, and seldom do at all. Both are 0 where that time is taken out."""
    model, pieces = changes.model, changes.model.pieces
    taken = (pieces.cause == PLACE[PREEMPTION]) & np.isin(model.program.thread[pieces.owner], model.launching)
    taken &= pieces.label != untraced_code(model.named.labels)
    if not taken.any() or (changes.time[taken] < 1).any():
        return 0, 0
    ns = int((pieces.end - pieces.start)[taken].sum()) // model.stretch.count
    count = int(taken.sum())
    return ns, round(ns * (2 * np.sqrt(count) + 2) / count)
