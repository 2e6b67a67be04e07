"""The model of a stretch of a trace: its graph, and what may be changed in it.

```
thread     L-------L----------W(sync)---L
           |       |          ^         |        L: a launch call begins    W: a wait ends
device     S==A==) S====B=====)         S==C==)  S: an operation starts
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes import PLACE
from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.causes.lock_wait import CAUSE as LOCK_WAIT
from nsysdiag.events.device import DeviceActivity
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.replay.device_waits import device_waits, full_queues
from nsysdiag.replay.edges import (
    Program,
    after_end,
    launch_cost,
    launched,
    of_devices,
    program_order,
    releases,
)
from nsysdiag.replay.graph import Edges, Graph, Kind
from nsysdiag.replay.host_time import HostTime, host_time, on_axis
from nsysdiag.replay.moments import DEVICE, Moments, Places, Threads, moments_of
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import wakes
from nsysdiag.replay.work import Pace, Work, observed_order, pace_of
from nsysdiag.wakeups.host_trace import Finder, HostTrace, WaitingThreads


@dataclass(frozen=True, slots=True)
class Model:
    """The graph of a stretch. `alone` are its residuals without the edges of observed order; `pace` is that of the
    devices.

    `program` has a row for each PROGRAM edge, and `pieces` what its host time was, on the axis of `host`; `labels` are
    the texts of their labels. `cost` is how long the launch call of each operation takes before it is on its way."""

    stretch: Stretch
    work: Work
    threads: Threads
    places: Places
    graph: Graph
    alone: IntArray
    pace: Pace
    program: Program
    pieces: HostTime
    labels: list[str]
    host: LayeredEvidence
    cost: IntArray


def model_of(
    stretch: Stretch,
    activity: DeviceActivity,
    evidence: HostEvidence,
    layered: LayeredEvidence,
    launching: WaitingThreads,
    host_trace: HostTrace,
    finder: Finder,
    floor: float,
) -> Model:
    """The model of a stretch; wake-ups less sure than `floor` are left out."""
    calls = activity.api_calls.rows
    work = Work.of(activity, stretch)
    threads = _threads(work, activity, evidence, launching, host_trace, finder, floor, stretch)
    moments, places = moments_of(work, threads, calls)
    cost = launch_cost(work, threads, calls)
    pace = pace_of(work, work.issued + cost, len(activity.devices))
    program, in_order = program_order(moments)
    edges = Edges.concatenate(
        [
            in_order,
            releases(work, threads, places, moments),
            launched(work, threads, places, cost, pace),
            of_devices(work, places, activity, pace),
        ]
    )
    time = np.append(min(stretch.begin, int(moments.time[0])), moments.time)
    known = Graph.of(time, edges.take(edges.source < edges.target))
    late = known.residual[places.operation] > 0
    seen = after_end(work, places, observed_order(work, late), Kind.OBSERVED)
    as_asked = replace(known.edges, ns=known.asked)
    graph = Graph.of(time, Edges.concatenate([as_asked, seen.take(seen.source < seen.target)]))
    host = _layers(moments, layered, launching, host_trace)
    spans = on_axis(host.host.axis, program.thread, program.start, program.end)
    pieces, labels = host_time(spans, host, threads.launches)
    return Model(stretch, work, threads, places, graph, known.residual, pace, program, pieces, labels, host, cost)


def _threads(
    work: Work,
    activity: DeviceActivity,
    evidence: HostEvidence,
    launching: WaitingThreads,
    host_trace: HostTrace,
    finder: Finder,
    floor: float,
    stretch: Stretch,
) -> Threads:
    calls = activity.api_calls.rows
    launches = np.unique(work.launch[work.launch >= 0])
    begun = calls.start[launches]
    lo = min(int(begun.min(initial=stretch.begin)), stretch.begin)
    hi = int(begun.max(initial=stretch.begin)) + 1
    own = np.unique(calls.thread[launches])
    woken = wakes(launching, own, host_trace, finder, lo, hi, floor)
    return Threads(
        launches=launches,
        held=device_waits(evidence, work, activity, lo, hi),
        full=full_queues(work, calls),
        woken=woken,
        woken_cause=np.full(len(woken), PLACE[LOCK_WAIT.id]),
    )


def _layers(
    moments: Moments, layered: LayeredEvidence, launching: WaitingThreads, host_trace: HostTrace
) -> LayeredEvidence:
    """The layers of all threads that have moments."""
    threads = np.unique(moments.thread[moments.thread != DEVICE])
    if np.isin(threads, launching.host.axis.threads).all():
        return layered
    view = host_trace.waiting(threads)
    return layer_evidence(HostEvidence.of(view.host, view.facts))
