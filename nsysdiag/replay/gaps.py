"""The gap between queued operations where none was queued: it decides how fast they run once the host is ahead.

```
recorded    [launch A][launch B]          the device waits for each launch
device               [A=)      [B=)
changed     [A][B]
device         [A=)??[B=)                 what lies between is not in the trace
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.run import Run, run_of
from nsysdiag.replay.stretch import LEAST_ERROR
from nsysdiag.replay.work import LONGEST_GAP_NS, SHORTEST_GAP_NS


def with_other_gaps(changes: Changes, run: Run) -> Sequence[int]:
    """The lengths of a step in ns with the shortest and the longest gap that may be, where no gap is known; `run` is
    the one with the usual gap. None where that says the same."""
    more = _more_ns(changes.model)
    if more is None or _most_ns(changes, run, more) < LEAST_ERROR * run.ns * run.count:
        return []
    return [run_of(replace(changes, more=changes.more + each)).ns for each in more]


@once
def _more_ns(model: Model) -> Sequence[IntArray] | None:
    """What the shortest and the longest gap add to the length of each edge, in ns; None where each gap is known. An
    edge that decided when its operation started is known, and none is longer than it was."""
    edges, time = model.graph.edges, model.graph.time
    known = np.ones(len(time), dtype=np.bool_)
    known[model.places.operation] = model.pace.known[model.work.device, model.work.kind]
    slack = time[edges.target] - time[edges.source] - edges.ns
    unknown = (edges.kind == EdgeKind.STREAM) & ~known[edges.target] & (slack > 0)
    if not unknown.any():
        return None
    usual = np.zeros(len(time), dtype=np.int64)
    usual[model.places.operation] = model.pace.gap[model.work.device, model.work.kind]
    return [
        np.where(unknown, np.minimum(ns - usual[edges.target], slack), 0) for ns in (SHORTEST_GAP_NS, LONGEST_GAP_NS)
    ]


def _most_ns(changes: Changes, run: Run, more: Sequence[IntArray]) -> int:
    """By how much other gaps change all of the replayed time at most, in ns: those that decide when operations start
    may be shorter, and others may come to decide."""
    shorter, longer = more
    edges, (ns, _) = changes.model.graph.edges, changes.edges()
    slack = run.times[edges.target] - run.times[edges.source] - ns
    decide = (slack <= 0) & (shorter < 0)
    return max(int(-shorter[decide].sum()), int(np.maximum(longer - slack, 0)[longer > 0].sum()))
