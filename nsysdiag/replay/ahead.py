"""Threads that launch next to those of the steps, and what may be waited for of them: such as copies of next batches.

```
helper  [copies 3][copies 4]...........[copies 5].....      ahead of the steps: no wait for it is in the trace
T       [step 1         ][step 2         ][step 3
faster  [step 1 ][step 2 ]....[step 3 ]....[step 4 ]         as often as the helper copies
```

A synchronization is for what other threads have launched by then, which is another operation once either is faster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.replay.beside import ANSWER_NS
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.run import Run, run_of
from nsysdiag.replay.step_work import REGULAR
from nsysdiag.replay.stretch import LEAST_ERROR
from nsysdiag.replay.work import LONGEST_GAP_NS, SHORTEST_GAP_NS

FEWEST_WAITS = 1 - REGULAR
"""Of the steps: a thread that waits less often for others that launch does not follow them."""
MOST_TURNS = 4
"""So often it is tried again which operations a synchronization is for."""


def of_helpers(changes: Changes, now: Run) -> int:
    """The length of a step in ns if it has to wait for threads that launch next to the steps; 0 without such. These are
    as fast as if they waited neither for each other nor for unknown threads. Who waits for one has to return."""
    model, woken = changes.model, changes.model.threads.woken
    helpers = _helpers(model)
    if not len(helpers):
        return 0
    edges = model.graph.edges
    wakes = np.flatnonzero(edges.kind == EdgeKind.WAKE)
    dropped = changes.dropped.copy()
    dropped[wakes[_between_launching(model)[edges.row[wakes]]]] = True
    alone = run_of(replace(changes, dropped=dropped, time=np.where(model.unknown_waits, 0.0, changes.time)))
    found = []
    for each in helpers.tolist():
        place = model.places.woken[woken.thread == each]
        was, took = (int(np.ptp(times[place])) for times in (model.graph.time, alone.times))
        returns = 0 if np.isin(each, woken.waker) else ANSWER_NS
        found.append(round(now.ns * took / max(was, 1)) + returns)
    return max(found)


def _between_launching(model: Model) -> BoolArray:
    """The waits of threads that launch for others that do, but at locks."""
    woken, launching = model.threads.woken, model.launching
    found: BoolArray = np.isin(woken.thread, launching) & np.isin(woken.waker, launching) & (woken.lock == 0)
    return found


@once
def _helpers(model: Model) -> IntArray:
    """Threads that launch, and wait now and then for others that do."""
    threads, count = np.unique(model.threads.woken.thread[_between_launching(model)], return_counts=True)
    return threads[count > max(FEWEST_WAITS * model.stretch.count, 1)]


def of_other_targets(changes: Changes, run: Run) -> Sequence[int]:
    """The lengths of a step in ns if synchronizations are not for what other threads launch later in the replay, tried
    again and again. None where all is as it was."""
    race = _Race.of(changes.model)
    if race is None:
        return []
    found: list[int] = []
    made, latest = changes, run
    for _turn in range(MOST_TURNS):
        later = race.launched_later(made, latest)
        if not later.any():
            break
        made = replace(made, dropped=made.dropped | later)
        latest = run_of(made)
        found.append(latest.ns)
    return found


class _Race(Struct, frozen=True):
    """The edges by which threads wait for operations that other threads have launched: their rows among all edges, and
    the operation and the wait of each."""

    model: Model
    edge: IntArray
    operation: IntArray
    wait: IntArray

    @classmethod
    def of(cls, model: Model) -> _Race | None:
        """None where no thread waits for what another one has launched."""
        edges, held = model.graph.edges, model.threads.held
        edge = np.flatnonzero(np.isin(edges.kind, (EdgeKind.DEVICE_WAIT, EdgeKind.FINISHED)))
        of = np.full(len(model.graph.time), -1)
        known = np.flatnonzero(model.places.finished >= 0)
        of[model.places.finished[known]] = known
        of[model.places.held] = np.arange(len(held))
        wait, row = of[edges.target[edge]], edges.row[edge]
        direct = edges.kind[edge] == EdgeKind.DEVICE_WAIT
        operation = np.where(direct, held.target[wait], row)
        others = (model.launched_by[operation] >= 0) & (model.launched_by[operation] != held.thread[wait])
        return cls(model, edge[others], operation[others], wait[others]) if others.any() else None

    def launched_later(self, changes: Changes, run: Run) -> BoolArray:
        """The edges that are not there, as the thread comes to its wait before the operation is launched. It may come
        in the middle of the launch, but sooner than it did."""
        model, held, found = self.model, self.model.threads.held, np.zeros(len(self.model.graph.edges), dtype=np.bool_)
        ahead = arrivals(changes, run)[self.wait] - self._launched(run)[self.operation]
        sooner = ahead < held.begin[self.wait] - model.work.issued[self.operation]
        found[self.edge[sooner & (ahead < changes.cost[self.operation])]] = True
        return found & ~changes.dropped

    def _launched(self, run: Run) -> IntArray:
        """When each operation is launched in a replay, in ns."""
        call = self.model.call_of_operation
        return np.where(call >= 0, run.times[np.append(self.model.places.launch, 0)[call]], run.start)


def arrivals(changes: Changes, run: Run) -> IntArray:
    """When the thread comes to each wait for a device in a replay, in ns."""
    model = changes.model
    edges, program, ns = model.graph.edges, model.program, changes.edges()[0]
    mine, comes = edges.kind == EdgeKind.PROGRAM, np.zeros(len(program) + 1, dtype=np.int64)
    comes[edges.row[mine]] = run.times[edges.source[mine]] + ns[mine]
    comes[:-1] -= np.round(program.lag * changes.lag).astype(np.int64)
    row = model.program_into[model.places.held]
    return np.where(row >= 0, comes[row], model.threads.held.begin)


# The gap between queued operations where none was queued: it decides how fast they run once the host is ahead.
#
# ```
# recorded    [launch A][launch B]          the device waits for each launch
# device               [A=)      [B=)
# changed     [A][B]
# device         [A=)??[B=)                 what lies between is not in the trace
# ```


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
