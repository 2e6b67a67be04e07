"""Who is behind the waits of threads: the threads that ended them, those that these waited for in turn, and when."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces, union
from nsysdiag.replay.model import Model
from nsysdiag.replay.wakes import Wakes
from nsysdiag.wakeups.levels import MOST_HOPS


def loaders(woken: Wakes) -> IntArray:
    """The threads that load data: those that end waits for input, and those that they wait for in turn, such as the
    worker behind the thread that feeds its queue. A thread that only waits for input is none, though it may tell the
    worker what to load."""
    found = np.unique(woken.waker[woken.loader > 0])
    served = np.setdiff1d(woken.thread[woken.loader > 0], found)
    behind = found
    while len(behind):
        behind = np.setdiff1d(woken.waker[np.isin(woken.thread, behind)], np.union1d(found, served))
        found = np.union1d(found, behind)
    return found


def time_behind(model: Model, chosen: BoolArray, followed: BoolArray | None = None) -> Intervals:
    """The time of other threads behind the `chosen` waits, a set on the axis of threads: of the threads that ended
    them, and where these waited meanwhile, of the threads that ended those waits, if they are `followed` (None: all).
    It begins at the last wait of the same thread that they ended: they may work ahead.

    ```
    A   ---[= waits for B =]---------------[========= waits for B =========]---
    B   -------------------]-------------------[== waits for C ==]----------]
                           [...................]                 [..........]   behind A's second wait
    C                                          [.................]              behind A's second wait
    ```
    """
    woken = model.threads.woken
    through = np.arange(len(woken)) if followed is None else np.flatnonzero(followed)
    waits = model.on_axis(woken.thread, woken.begin, woken.at)[through]
    row = np.flatnonzero(chosen)
    begin, end = _since_the_last(woken)[row], woken.at[row]
    found: list[Intervals] = []
    for _hop in range(MOST_HOPS):
        found.append(union(model.on_axis(woken.waker[row], begin, end)))
        part, meanwhile = pieces(found[-1], waits)
        if len(part) == 0:
            break
        row, shift = through[part], woken.begin[through[part]] - waits.start[part]
        begin, end = meanwhile.start + shift, meanwhile.end + shift
    return union(*found)


def _since_the_last(woken: Wakes) -> IntArray:
    """When the waker of each wait ended a wait of the same thread before; where it did not, when the wait begins."""
    order = np.lexsort((woken.at, woken.thread, woken.waker))
    found = woken.begin.copy()
    same = (np.diff(woken.waker[order]) == 0) & (np.diff(woken.thread[order]) == 0)
    found[order[1:][same]] = np.minimum(found[order[1:]], woken.at[order[:-1]])[same]
    return found
