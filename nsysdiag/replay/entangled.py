"""Threads that take turns in ways that the trace does not tell: who is faster may wait longer for the others, or may be
out of their way.

```
T        [prepares][lock .....][launch, wait][prepares][lock .....][launch, wait]
other    [launch, wait ][....][lock ........][launch, wait ][....][lock ........]
```

T may prepare in half of the time: nothing is saved while the other holds the lock, and all of that if it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, union
from nsysdiag.events.calls import named_like
from nsysdiag.events.identity import process_of
from nsysdiag.replay.beside import StepWork, as_often, counts_in_steps
from nsysdiag.replay.changes import SURE, Changes
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.moments import OF_OPERATIONS, EdgeKind
from nsysdiag.replay.pacing import WAITED_NS
from nsysdiag.replay.run import Run, as_run, run_of
from nsysdiag.replay.sources import answers
from nsysdiag.replay.wakes import LOCKS, SEMAPHORE
from nsysdiag.replay.work import LEAST_ERROR, keyed
from nsysdiag.wakeups.waits import is_timed

# How much changes can save if it is not known what threads waited for.
#
# A wait whose end is not known may become shorter with the work of any other thread. But no chain of waits becomes
# shorter by more than what is taken out of it:
#
# ```
# A    [decode ....][waits for ? ............][decode ....]
# B    [waits for ? ............][decode ....][waits for ?   both decode in half the time: at most half of both is saved
# ```


def most_removed_ns(every: Sequence[Changes]) -> int:
    """The most that any of these changes takes out of a step, or of the window, in ns: time of all threads and
    operations, and waits that no longer are. 0 if all is known that threads waited for, and for changes in the order
    of operations."""
    known = not dependent(every[0].model).any()
    return 0 if known or any(map(_reordered, every)) else max(map(_removed_ns, every))


@once
def unknown_ns(model: Model) -> int:
    """For how long any thread waits in a step, or in the window, if it is not known who ends it, in ns: at each
    moment a step waits for one of them at most."""
    return model.ever(dependent(model)) // model.stretch.count


@once
def dependent(model: Model) -> BoolArray:
    """Which pieces of host time are waits of which it is not known who ends them, and that may end sooner."""
    return model.unresolved & answers(model)


def _reordered(changes: Changes) -> bool:
    kind = changes.model.graph.edges.kind
    order = bool((kind[changes.dropped] != EdgeKind.WAKE).any())
    others = (changes.eager, changes.prompt, changes.more != 0, changes.counted[1:] > 1)
    return order or any(bool(each.any()) for each in others)


def _removed_ns(changes: Changes) -> int:
    """Other threads may end all waits of which the end is not known. Those of the graph may end the ones that also end
    when a time is over: who collects requests up to a time goes on once there are enough."""
    model, threads, gone = changes.model, changes.model.threads, changes.not_woken
    pieces, unknown = model.pieces, dependent(model)
    ns = taken_ns(changes, changes.time, changes.length, gone)
    ns += float(np.maximum(model.cost - changes.cost, 0).sum())
    may_end = unknown & (changes.elsewhere[0] | np.append(is_timed(model.named.calls) == 1, False)[pieces.call])
    # A thread that does not wait for some may not wait for others, of which it is not known who ended them.
    of_thread = unknown & np.isin(model.program.thread[pieces.owner], threads.woken.thread[gone])
    ns += _total(pieces.start, pieces.end, may_end) + _total(pieces.start, pieces.end, of_thread)
    return round(ns / model.stretch.count)


def taken_ns(changes: Changes, time: FloatArray, length: IntArray, gone: BoolArray) -> float:
    """How much changes take out of all threads and operations, and of the waits that no longer are, in ns. `time` are
    the factors of pieces of host time, `length` the lengths of operations in ns, `gone` marks waits for threads."""
    model, threads, program = changes.model, changes.model.threads, changes.model.program
    ns = float((model.pieces.length * np.maximum(1 - time, 0)).sum())
    ns += float((model.unseen * np.maximum(1 - changes.unseen, 0)).sum())
    ns += float((program.lag * np.maximum(1 - changes.lag, 0)).sum() + np.maximum(model.length - length, 0).sum())
    waits = ((threads.held, ~(changes.held & changes.others)), (threads.full, ~changes.full), (threads.woken, gone))
    return ns + sum(_total(each.begin, each.end, chosen) for each, chosen in waits)


def _total(begin: IntArray, end: IntArray, chosen: BoolArray) -> int:
    return int((end - begin)[chosen].sum())


def loosened(changes: Changes) -> Changes | None:
    """The same changes without waits for a lock, or for a thread that is not known or not sure. Threads at a pace of
    their own do nothing on devices. None if there is no such wait or thread. A lock stays if its holder's own
    time is changed, and it waits for none: that one releases it sooner, and no other takes it before."""
    model, graph = changes.model, changes.model.graph
    woken, pieces = model.threads.woken, model.pieces
    fixed = distinct_values(model.program.thread[pieces.owner[changes.time < 1]])
    holding = np.setdiff1d(fixed, woken.thread[woken.lock > 0])
    turns = met_by_chance(model) & ~((woken.lock > 0) & np.isin(woken.waker, holding))
    at_once = (woken.end - woken.begin < WAITED_NS) & (woken.loader == 0)
    waits = (turns | at_once | (woken.confidence < SURE)) & changes.woken
    unknown = model.unknown_waits
    others = model.others_work < StepWork.OWN
    if not (waits.any() or unknown.any() or others.any()):
        return None
    dropped = changes.dropped | graph.of_rows(EdgeKind.WAKE, waits) | graph.of_rows(EdgeKind.LAUNCH, others)
    time = np.where(unknown, 0.0, changes.time)
    return replace(changes, dropped=dropped, time=time, length=np.where(others, 0, changes.length), loose=True)


@once
def met_by_chance(model: Model) -> BoolArray:
    """The waits for another thread at what both take in turns. These are the waits for locks; and those in some steps
    only, of two threads that wait for each other, or of which one launches at a pace of its own. A thread that loads
    data is not one of these: it may be ahead in some steps."""
    woken = model.threads.woken
    own_pace = distinct_values(model.launched_by[model.others_work < StepWork.OWN])
    there, back = keyed((woken.thread, woken.waker), (woken.waker, woken.thread))
    mutual = np.isin(there, back) | np.isin(woken.thread, own_pace) | np.isin(woken.waker, own_pace)
    return (woken.lock > 0) | (mutual & (woken.loader == 0) & _now_and_then(model, distinct(there)[1]))


def _now_and_then(model: Model, pair: IntArray) -> BoolArray:
    """Which waits are of a `pair` of threads that does not wait as often in each step. Of a thread that ends waits in
    one step only, as of one that is born for it, nothing is known."""
    stretch, woken = model.stretch, model.threads.woken
    count = counts_in_steps(stretch, pair, woken.end, int(pair.max(initial=-1)) + 1)
    return (~as_often(count) & ((count > 0).sum(axis=1) > 1))[pair] & stretch.stepwise


@once
def others_work_ns(model: Model) -> int:
    """For how long in a step, in ns, the threads of the steps may wait for others that take turns with them: at locks,
    and on devices for what threads at a pace of their own launch in their streams."""
    others = model.others_work < StepWork.OWN
    awaited = np.isin(model.work.stream, model.work.stream[~others])
    # Who waits for a whole device waits for all its streams.
    awaited |= others[model.threads.held.target].any()
    rows = np.flatnonzero(others & awaited)
    step = np.clip(model.stretch.step(model.work.start[rows]), 0, None)
    return _holding_ns(model) + int(np.bincount(step, model.length[rows]).max(initial=0))


def _holding_ns(model: Model) -> int:
    """For how long in a step, in ns, threads that take turns work or wait for a lock: they may hold it as long, once
    they get it. It is that of all such threads of a process but the one that does most."""
    stretch, woken, axis = model.stretch, model.threads.woken, model.host.host.axis
    turns, unknown = met_by_chance(model), model.unknown_waits
    pieces = Intervals(model.pieces.start[unknown], model.pieces.end[unknown])
    threads = np.concatenate((woken.waker[turns], woken.thread[turns], axis.threads[pieces.start // axis.stride]))
    if (unknown & model.in_calls(LOCKS)).any():  # any of those that launch may have held it
        threads = np.concatenate((threads, model.launched_by[model.launched_by >= 0]))
    launching = process_of(model.launched_by)
    threads = distinct_values(threads[np.isin(process_of(threads), launching)])
    begin, end = (np.full(len(threads), each) for each in (stretch.begin, stretch.end))
    spans = model.on_axis(threads, begin, end)
    # Who waits for a semaphore may wait for a message: it holds nothing meanwhile.
    other = woken.take((woken.lock == 0) | (woken.lock == SEMAPHORE))
    waits = union(model.on_axis_of(other), pieces)
    working = (end - begin) - coverage(waits, spans)
    _, process = distinct(process_of(threads))
    most = np.zeros(int(process.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, process, working)
    others = np.bincount(process, working, len(most)) - most
    return int(others.max(initial=0)) // max(stretch.count, 1)


def taken_out(changes: Changes) -> float:
    """How much time the changes take out of a step at most, in ns, in all threads and on all devices. It is without end
    if they change more than times, such as the order on a device."""
    model, edges = changes.model, changes.model.graph.edges
    if changes.eager.any() or changes.more.any() or changes.counted.tolist() != [-1, 1]:
        return np.inf
    if np.isin(edges.kind[changes.dropped], OF_OPERATIONS).any():
        return np.inf
    # It is not known what the thread does that ends such a wait: all of that may be taken out.
    time = np.where(model.unknown_waits, 0.0, changes.time)
    # What a thread at a pace of its own does on a device may be behind the steps.
    length = np.where(model.others_work < StepWork.OWN, 0, changes.length)
    # Who takes a lock at another time may find it free.
    ns = taken_ns(changes, time, length, changes.not_woken | met_by_chance(model))
    return ns / max(model.stretch.count, 1)


class BoundCase(Struct, frozen=True, dict=True):
    """Changes, and the same ones made in `others` ways: the steps as they were (`now`), with the changes (`run`), and
    with those others (`runs`)."""

    changes: Changes
    now: Run
    run: Run
    others: Sequence[Changes]
    runs: Sequence[Run]

    @classmethod
    def of(cls, changes: Changes, others: Sequence[Changes] = ()) -> BoundCase:
        """Replays all of them."""
        model = changes.model
        now = as_run(model, model.graph.time, model.length)
        return cls(changes, now, run_of(changes), others, [run_of(each) for each in others])

    @property
    def model(self) -> Model:
        """The model that is changed."""
        return self.changes.model

    @property
    def saves(self) -> bool:
        """Whether a step is shorter by more than no model can tell."""
        return self.run.ns < (1 - LEAST_ERROR) * self.now.ns

    @cached_property
    def lengths(self) -> IntArray:
        """The lengths of the edges with the changes, in ns."""
        return self.changes.edges()[0]

    @cached_property
    def apart(self) -> Run | None:
        """The steps if kernels meet none of another process; None if none do."""
        left = 1 - self.model.beside_others / np.maximum(self.model.work.length, 1)
        length = np.round(self.changes.length * left).astype(np.int64)
        return run_of(replace(self.changes, length=length)) if (left < 1).any() else None

    @cached_property
    def unobserved(self) -> Sequence[Run]:
        """The steps with the changes, made in each way, without order and waits that were only observed; none if all
        is known."""
        every = () if self.changes.complete else (self.changes, *self.others)
        return [_unobserved(each) for each in every]

    @cached_property
    def loose(self) -> Changes | None:
        """The changes if no thread waits where threads take turns; None if none take turns."""
        return loosened(self.changes)

    @cached_property
    def free(self) -> Run | None:
        """The steps with `loose` changes; None if that saves nothing."""
        found = None if self.loose is None else run_of(self.loose)
        return found if found is not None and found.ns < (1 - LEAST_ERROR) * self.run.ns else None

    def ns(self, **changed: Any) -> int:
        """The length of a step in ns if these fields of the changes are others."""
        return run_of(replace(self.changes, **changed)).ns


def turns(case: BoundCase) -> Sequence[int]:
    """Who is faster waits for all that the others do in a step, at most until nothing is saved; or no thread waits
    where threads take turns, but no more is saved than the changes take out."""
    model = case.model
    if case.loose is None and case.saves and _met_elsewhere(model):
        return [case.now.ns]
    if case.free is None:
        # Who is faster may wait for a lock more often.
        meet = met_by_chance(model).any() or (model.unknown_waits & model.in_calls(LOCKS)).any()
        return [min(case.now.ns, case.run.ns + others_work_ns(model))] if case.loose is not None and meet else []
    held = min(case.now.ns, max(case.run.ns, case.free.ns + others_work_ns(model)))
    return [held, round(max(case.now.ns - taken_out(case.changes), case.free.ns))]


@once
def _met_elsewhere(model: Model) -> bool:
    """Whether two threads of a process that launch waited for locks before or behind the replayed time: with shorter
    steps they may meet again. Locks of the driver, in CUDA calls, say nothing of the program."""
    calls, axis = model.host.host.os_calls, model.host.host.axis
    rows = np.flatnonzero(np.append(named_like(calls.names, LOCKS), False)[calls.name])
    spans = calls.spans[rows]
    spans = spans[(spans.end - spans.start >= WAITED_NS) & (coverage(union(model.host.host.api.spans), spans) == 0)]
    threads = np.intersect1d(axis.threads[spans.start // axis.stride], model.launched_by)
    return len(distinct_values(process_of(threads))) < len(threads)


def followed(case: BoundCase) -> Sequence[int]:
    """Operations do not wait for work that they only followed, and threads not for unknown ones; but no more is saved
    than is taken out."""
    changes, now = case.changes, case.now
    if changes.complete:
        return []
    every = (changes, *case.others)
    least = min(each.ns for each in case.unobserved)
    alike = now.ns - _all_unobserved_ns(case.model) + least
    # Of threads that are known by some of their waits alone, the others are not in the replay.
    least = min(least, case.run.ns - unknown_ns(case.model))
    return [min(alike, case.run.ns), min(max(least, now.ns - most_removed_ns(every)), case.run.ns)]


def _unobserved(changes: Changes) -> Run:
    """The steps, if no operation waits for work that it only followed, and no thread for unknown ones."""
    time = np.where(changes.model.asks_again, 0.0, changes.time)
    return run_of(replace(changes, time=time, observed=False))


@once
def _all_unobserved_ns(model: Model) -> int:
    """The length of such a step of the program as it is, in ns."""
    return _unobserved(Changes.none(model)).ns
