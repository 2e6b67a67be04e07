"""Wakers that were there by chance: a thread that ends waits of a kind is there whenever one of them ends.

```
T          [ sem_wait ---)   [ sem_wait ---)   [ sem_wait ---)   [ sem_wait ---)      119 times
waker      runs, posts ->|   runs, posts ->|   runs, posts ->|   runs, posts ->|      there 110 times
passer-by                       [== runs ==]                                          there 12 times, as at any moment
```
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import RowsOf, distinct
from nsysdiag.wakeups.candidates import How, Wakers
from nsysdiag.wakeups.waits import Ends, Waits

LEAST = 10
"""Fewer waits of a kind have no rate."""
MOST = 0.5
"""A waker is there when at least so many of them end; of a pool of threads, these together."""
TIMES, DEVIATIONS = 2.0, 2.5
"""A thread of a pool is there so many times as often as at any moment, or by so many standard deviations more often."""
SAMPLED = 1_000
"""As many of a kind are enough for a rate."""
_DOUBTED = (How.CALL, How.CALL_OF_SEVERAL, How.RAN, How.RAN_NEAREST, How.RETURNED)


class Presence(Struct, frozen=True):
    """Threads around the ends of waits. `there` is True for the waits at some rows if a thread ran until the end or
    made a call then; `chance` (0 to 1) is the probability of that for a thread at any moment. `unclear` marks waits
    without a search for a waker: they ended long before, or the call returned at once, like a read with available
    data."""

    there: Callable[[int, IntArray], BoolArray]
    chance: Callable[[int], float]
    unclear: BoolArray


def passers_by(waits: Waits, group: IntArray, found: Wakers, presence: Presence) -> IntArray:
    """The rows of the waits whose waker in `found` does not end most waits of their group, neither alone nor as one of
    a pool. Waits that may end by themselves are not judged, and groups of fewer than ten."""
    judged = (waits.timed == 0) & np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE, Ends.WRITE))
    judged &= ~(presence.unclear & (found.how == How.NOTHING))
    rows = np.flatnonzero(judged)
    size = np.bincount(group[rows], minlength=int(group.max(initial=0)) + 1)
    rows = rows[size[group[rows]] >= LEAST]
    doubted = rows[np.isin(found.how[rows], _DOUBTED)]
    if len(doubted) == 0:
        return doubted
    threads, thread = distinct(found.thread[doubted])
    keys, key = distinct(joint(group[doubted], thread, len(threads)))
    of_group = RowsOf(group[rows])
    pairs = [divmod(each, len(threads)) for each in keys.tolist()]
    rated = [_rate(int(threads[at]), rows[of_group[kind]], found, presence) for kind, at in pairs]
    alone = np.array([rate >= MOST for rate, _ in rated], dtype=np.bool_)
    more = np.array([often for _, often in rated], dtype=np.bool_)
    # Of all waits of a group those with a waker, of the doubted ones only those whose waker is there often enough.
    sure = rows[(found.thread[rows] > 0) & ~np.isin(found.how[rows], _DOUBTED)]
    explained = np.bincount(group[np.append(sure, doubted[(alone | more)[key]])], minlength=len(size))
    together = explained / np.maximum(np.bincount(group[rows], minlength=len(size)), 1) >= MOST
    result: IntArray = doubted[~(alone[key] | (more[key] & together[group[doubted]]))]
    return result


def _rate(thread: int, rows: IntArray, found: Wakers, presence: Presence) -> tuple[float, bool]:
    """At how many of the waits the thread is there, and whether that is more than by chance."""
    rows = rows[:: -(-len(rows) // SAMPLED)]
    there = presence.there(thread, rows) | (found.thread[rows] == thread)
    hits, count = int(np.count_nonzero(there)), len(rows)
    expected = count * presence.chance(thread)
    spread = math.sqrt(expected * (1 - expected / count))
    return hits / count, hits >= TIMES * expected or hits >= expected + DEVIATIONS * spread
