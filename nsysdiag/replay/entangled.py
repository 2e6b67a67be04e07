"""Threads that take turns in ways that the trace does not tell: who is faster may wait longer for the others, or may be
out of their way.

```
T        [prepares][lock .....][launch, wait][prepares][lock .....][launch, wait]
other    [launch, wait ][....][lock ........][launch, wait ][....][lock ........]
```

T may prepare in half of the time: nothing is saved while the other holds the lock, and all of that where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, union
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import distinct, distinct_values
from nsysdiag.replay.changes import OF_OPERATIONS, SURE, Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.pacing import WAITED_NS
from nsysdiag.replay.sources import answers
from nsysdiag.replay.step_work import REGULAR, StepWork
from nsysdiag.replay.wakes import LOCKS, SEMAPHORE
from nsysdiag.wakeups.waits import is_timed

# How much changes can save where it is not known what threads waited for.
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
    operations, and waits that no longer are. 0 where all is known that threads waited for, and for changes in the order
    of operations."""
    known = not dependent(every[0].model).any()
    return 0 if known or any(map(_reordered, every)) else max(map(_removed_ns, every))


@once
def unknown_ns(model: Model) -> int:
    """For how long any thread waits in a step, or in the window, where it is not known who ends it, in ns: at each
    moment a step waits for one of them at most."""
    return model.ever(dependent(model)) // model.stretch.count


@once
def dependent(model: Model) -> BoolArray:
    """Which pieces of host time are waits of which it is not known who ends them, and that may end sooner."""
    found: BoolArray = model.unresolved & answers(model)
    return found


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
    ns = float(((model.pieces.end - model.pieces.start) * np.maximum(1 - time, 0)).sum())
    ns += float((model.unseen * np.maximum(1 - changes.unseen, 0)).sum())
    ns += float((program.lag * np.maximum(1 - changes.lag, 0)).sum() + np.maximum(model.length - length, 0).sum())
    waits = ((threads.held, ~(changes.held & changes.others)), (threads.full, ~changes.full), (threads.woken, gone))
    return ns + sum(_total(each.begin, each.end, chosen) for each, chosen in waits)


def _total(begin: IntArray, end: IntArray, chosen: BoolArray) -> int:
    return int((end - begin)[chosen].sum())


def loosened(changes: Changes) -> Changes | None:
    """The same changes without waits for a lock, or for a thread that is not known or not sure. Threads at a pace of
    their own do nothing on devices. None where there is no such wait or thread. A lock stays where its holder's own
    time is changed: that one releases it sooner."""
    model, edges = changes.model, changes.model.graph.edges
    woken, pieces = model.threads.woken, model.pieces
    fixed = distinct_values(model.program.thread[pieces.owner[changes.time < 1]])
    turns = met_by_chance(model) & ~((woken.lock > 0) & np.isin(woken.waker, fixed))
    at_once = (woken.end - woken.begin < WAITED_NS) & (woken.loader == 0)
    waits = (turns | at_once | (woken.confidence < SURE)) & changes.woken
    unknown = model.unknown_waits
    others = model.others_work < StepWork.OWN
    if not (waits.any() or unknown.any() or others.any()):
        return None
    wakes = np.flatnonzero(edges.kind == EdgeKind.WAKE)
    dropped = changes.dropped.copy()
    dropped[wakes[waits[edges.row[wakes]]]] = True
    launches = np.flatnonzero(edges.kind == EdgeKind.LAUNCH)
    dropped[launches[others[edges.row[launches]]]] = True
    time = np.where(unknown, 0.0, changes.time)
    return replace(changes, dropped=dropped, time=time, length=np.where(others, 0, changes.length), loose=True)


@once
def met_by_chance(model: Model) -> BoolArray:
    """The waits for another thread at what both take in turns. These are the waits for locks; and those in some steps
    only, of two threads that wait for each other, or of which one launches at a pace of its own. A thread that loads
    data is no such one: it may be ahead in some steps."""
    woken = model.threads.woken
    own_pace = distinct_values(model.launched_by[model.others_work < StepWork.OWN])
    there = joint(*_numbered(woken.thread, woken.waker), max(2 * len(woken), 1))
    back = joint(*_numbered(woken.waker, woken.thread), max(2 * len(woken), 1))
    mutual = np.isin(there, back) | np.isin(woken.thread, own_pace) | np.isin(woken.waker, own_pace)
    found: BoolArray = (woken.lock > 0) | (mutual & (woken.loader == 0) & _now_and_then(model, distinct(there)[1]))
    return found


def _numbered(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    known = np.union1d(one, other)
    return np.searchsorted(known, one), np.searchsorted(known, other)


def _now_and_then(model: Model, pair: IntArray) -> BoolArray:
    """Which waits are of a `pair` of threads that does not wait as often in each step. Of a thread that ends waits in
    one step only, as of one that is born for it, nothing is known."""
    stretch, woken = model.stretch, model.threads.woken
    steps = len(stretch.borders) - 1
    step = np.clip(np.searchsorted(stretch.borders, woken.end, side="right") - 1, 0, steps - 1)
    count = np.zeros((int(pair.max(initial=-1)) + 1, steps), dtype=np.int64)
    np.add.at(count, (pair, step), 1)
    usual = np.round(count.mean(axis=1, keepdims=True))
    # A wait near the border of two steps may be charged to either.
    ahead = np.cumsum(count - usual, axis=1)
    regular = (np.abs(ahead - np.median(ahead, axis=1, keepdims=True)) <= 1).mean(axis=1) >= REGULAR
    found: BoolArray = (~(regular & (usual[:, 0] > 0)) & ((count > 0).sum(axis=1) > 1))[pair]
    return found & stretch.stepwise


@once
def others_work_ns(model: Model) -> int:
    """For how long in a step, in ns, the threads of the steps may wait for others that take turns with them: at locks,
    and on devices for what threads at a pace of their own launch in their streams."""
    others = model.others_work < StepWork.OWN
    awaited = np.isin(model.work.stream, model.work.stream[~others])
    # Who waits for a whole device waits for all its streams.
    awaited |= others[model.threads.held.target].any()
    rows = np.flatnonzero(others & awaited)
    step = np.clip(np.searchsorted(model.stretch.borders, model.work.start[rows], side="right") - 1, 0, None)
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
    waits = union(model.on_axis(other.thread, other.begin, other.end), pieces)
    working = (end - begin) - coverage(waits, spans)
    _, process = distinct(process_of(threads))
    most = np.zeros(int(process.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, process, working)
    others = np.bincount(process, working, len(most)) - most
    return int(others.max(initial=0)) // max(stretch.count, 1)


def taken_out(changes: Changes) -> float:
    """How much time the changes take out of a step at most, in ns, in all threads and on all devices. It is without end
    where they change more than times, such as the order on a device."""
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
