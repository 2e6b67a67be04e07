"""How much changes can save where it is not known what threads waited for.

A wait whose end is not known may become shorter with the work of any other thread. But no chain of waits becomes
shorter by more than what is taken out of it:

```
A    [decode ....][waits for ? ............][decode ....]
B    [waits for ? ............][decode ....][waits for ?    both decode in half the time: at most half of both is saved
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.sources import answers
from nsysdiag.wakeups.waits import is_timed


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
