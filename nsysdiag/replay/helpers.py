"""Threads that launch next to the steps, and are ahead of them: with shorter steps these may wait for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.identity import process_of
from nsysdiag.replay.beside import ANSWER_NS, StepWork
from nsysdiag.replay.entangled import BoundCase
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.moments import EdgeKind
from nsysdiag.replay.run import run_of
from nsysdiag.replay.work import Class

FEWEST_WAITS = 2
"""A thread that waits less often for others that launch does not follow them. One that is several steps ahead, and has
work for several in one turn, waits a few times only."""


def helpers(case: BoundCase) -> Sequence[int]:
    """Threads that launch next to the steps, such as copies of next batches, and work ahead of them, are waited for.

    ```
    helper  [copies 3][copies 4]...........[copies 5].....      ahead of the steps: no wait for it is in the trace
    T       [step 1         ][step 2         ][step 3
    faster  [step 1 ][step 2 ]....[step 3 ]....[step 4 ]         as often as the helper copies
    ```
    """
    threads = _next_to_steps(case.model)
    if not case.saves or not len(threads):
        return []
    model, woken = case.model, case.model.threads.woken
    # They are as fast as if they waited neither for each other nor for unknown threads.
    dropped = case.changes.dropped | model.graph.of_rows(EdgeKind.WAKE, _between_launching(model))
    time = np.where(model.unknown_waits, 0.0, case.changes.time)
    alone, found = run_of(replace(case.changes, dropped=dropped, time=time)), []
    for each in threads.tolist():
        place = model.places.woken[woken.thread == each]
        was, took = (int(np.ptp(times[place])) for times in (model.graph.time, alone.times))
        returns = 0 if np.isin(each, woken.waker) else ANSWER_NS  # who waits for one has to return
        found.append(round(case.now.ns * took / max(was, 1)) + returns)
    return _longest(case, found)


def unseen_helpers(case: BoundCase) -> Sequence[int]:
    """The same if OS calls were not captured: what such threads wait for is not known. At best they take no longer
    between two calls than they usually do.

    ```
    helper   [copy][?   ][copy][?   ][copy][? ...............][copy][?   ][copy][?   ]      writes, and waits
    faster   [copy][?   ][copy][?   ][copy][?   ][copy][?   ]
    ```
    """
    threads = _unseen_next_to_steps(case.model)
    if not case.saves or not len(threads):
        return []
    model, found = case.model, []
    alone = run_of(replace(case.changes, time=np.minimum(case.changes.time, _usual_part(model))))
    thread = model.host.host.api_calls.rows.thread[model.threads.launches]
    for each in threads.tolist():
        place = model.places.launch[thread == each]
        was, took = (int(np.ptp(times[place])) for times in (model.graph.time, alone.times))
        found.append(round(case.now.ns * took / max(was, 1)))
    return _longest(case, found)


def _longest(case: BoundCase, found: Sequence[int]) -> Sequence[int]:
    longest = min(max(found), case.now.ns)
    return [longest] if longest > case.run.ns else []


@once
def _unseen_next_to_steps(model: Model) -> IntArray:
    """Threads that launch no kernels of the steps, but other work of their process, and have host time that may be
    waits for anything."""
    kernels = (model.step_work == StepWork.OWN) & (model.work.kind == Class.COMPUTE)
    mine, pieces = distinct_values(model.launched_by[kernels]), model.pieces
    unseen = distinct_values(model.program.thread[pieces.owner[model.without_evidence]])
    others = np.setdiff1d(np.intersect1d(unseen, model.launching), mine)
    return others[np.isin(process_of(others), process_of(mine))]


@once
def _usual_part(model: Model) -> FloatArray:
    """The part of each piece of host time that is left if those without evidence take no longer than is usual for
    their thread."""
    pieces = model.pieces
    length = np.maximum(pieces.length, 1)
    part, thread = np.ones(len(pieces)), model.program.thread[pieces.owner]
    for each in distinct_values(thread[model.without_evidence]).tolist():
        rows = np.flatnonzero(model.without_evidence & (thread == each))
        part[rows] = np.minimum(np.median(length[rows]) / length[rows], 1.0)
    return part


def _between_launching(model: Model) -> BoolArray:
    """The waits of threads that launch for others that do, but at locks."""
    woken, launching = model.threads.woken, model.launching
    return np.isin(woken.thread, launching) & np.isin(woken.waker, launching) & (woken.lock == 0)


@once
def _next_to_steps(model: Model) -> IntArray:
    """Threads that launch, and wait now and then for others that do."""
    threads, count = np.unique(model.threads.woken.thread[_between_launching(model)], return_counts=True)
    return threads[count >= FEWEST_WAITS]
