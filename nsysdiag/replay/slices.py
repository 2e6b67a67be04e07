"""Kernels of several processes that run at once on one GPU: each takes the longer the more the others run meanwhile.

```
trainer    [== step 1 =====)   [== step 2 =====)      time slices: who has less idle time meets more of the others
inference       [====)      [====)   [====)
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, union
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import distinct_values
from nsysdiag.replay.stretch import LEAST_ERROR
from nsysdiag.replay.work import Class, Work


def beside_others(work: Work, thread: IntArray) -> IntArray:
    """For how long kernels of other processes run on the same device during each operation, in ns; 0 for all where that
    is too little to matter. `thread` launched it (-1: unknown)."""
    process, shared = process_of(thread), np.zeros(len(work), dtype=np.int64)
    computes = (work.kind == Class.COMPUTE) & (thread >= 0)
    for device in distinct_values(work.device).tolist():
        mine = computes & (work.device == device)
        for each in distinct_values(process[mine]).tolist():
            its, others = mine & (process == each), mine & (process != each)
            running = union(Intervals(work.start[others], work.end[others]))
            shared[its] = coverage(running, Intervals(work.start[its], work.end[its]))
    return shared if shared.sum() > LEAST_ERROR * work.length[computes].sum() else np.zeros_like(shared)
