"""Threads that ask for a device again and again, and sleep between: a wait ends with the sleep in which the work does.

```
thread   [query][sleep ....][query][sleep ....][query]       kernels that are a third shorter bring nothing,
device   [== kernels ========)                               or all of a sleep
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, coverage, union
from nsysdiag.causes import PLACE
from nsysdiag.causes.evidence import named_rows
from nsysdiag.causes.sync import PAUSES
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.replay.ahead import arrivals
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.pacing import NOISE_NS
from nsysdiag.replay.run import Run, run_of

ENDS = (EdgeKind.DEVICE_WAIT, EdgeKind.FINISHED, EdgeKind.RELEASED)


def with_other_sleeps(changes: Changes, run: Run) -> list[int]:
    """The lengths of a step in ns if waits end with the work that they are for, and if they end a whole sleep later.
    But no wait for shorter work is longer. There are none where no thread sleeps between queries, or where all come to
    their waits as long before the end as ever."""
    model, held, naps = changes.model, changes.model.threads.held, nap_ns(changes.model)
    row = model.program_into[model.places.held]
    lag = np.where(row >= 0, np.append(model.program.lag * changes.lag, 0)[row], 0)
    was = model.work.end[held.target] - held.begin
    took = run.end[held.target] - arrivals(changes, run)
    other = (naps > 0) & changes.held & (lag > 0) & (np.abs(took - was) > NOISE_NS)
    if not other.any():
        return []
    later = np.minimum(np.maximum(naps - lag, 0), np.where(took < was, was - took, naps))
    # Who comes after the work is done does not sleep at all.
    kept = changes.lag.copy()
    kept[row[other & (row >= 0)]] = 0
    sooner = replace(_ending(changes, np.where(other, -lag, 0).astype(np.int64)), lag=kept)
    return [run_of(each).ns for each in (sooner, _ending(changes, np.where(other, later, 0).astype(np.int64)))]


def _ending(changes: Changes, later_ns: IntArray) -> Changes:
    """The same with waits for devices that end so much later."""
    model, edges = changes.model, changes.model.graph.edges
    more = np.zeros(len(model.graph.time), dtype=np.int64)
    more[model.places.held] = later_ns
    ends: BoolArray = np.isin(edges.kind, ENDS)
    return replace(changes, more=changes.more + np.where(ends, more[edges.target], 0))


@once
def nap_ns(model: Model) -> IntArray:
    """How long a thread sleeps between two queries in each wait for a device, in ns; 0 for those that are no polls."""
    held, found = model.threads.held, np.zeros(len(model.threads.held), dtype=np.int64)
    polls = np.flatnonzero((held.cause == PLACE[SLEEP.id]) & (held.call < 0))
    if not len(polls):
        return found
    sleeps = union(named_rows(model.host.host.os_calls, PAUSES).spans)
    waits = model.on_axis(held.thread[polls], held.begin[polls], held.end[polls])
    count = np.searchsorted(sleeps.start, waits.end) - np.searchsorted(sleeps.start, waits.start)
    found[polls] = coverage(sleeps, waits) // np.maximum(count, 1)
    return found
