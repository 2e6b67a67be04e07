"""What a stream waits for through another one: an event that is recorded behind waits stands for theirs, too."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, rows_from
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct

NEVER = np.iinfo(np.int64).min


class Recorded(Rows, frozen=True):
    """Waits for events: issued at `issued` ns to `stream`, for an event recorded at `recorded` ns on stream `of`. The
    last operation of that stream was issued at `last` ns, NEVER without one. Times are 0 or later, streams too."""

    stream: IntArray
    issued: IntArray
    of: IntArray
    recorded: IntArray
    last: IntArray


class Through(Rows, frozen=True):
    """`wait` is for what `other` is for, too; both are rows of Recorded."""

    wait: IntArray
    other: IntArray


def through_others(waits: Recorded) -> Through:
    """Each wait, and waits of the stream that its event was recorded on: those with no operation behind them until the
    record. Of several for one stream, that of the last event. What the waiting stream itself did is left out.

    ```
    stream 7   [===== A ======)
    stream 8   wait for A
                   record E        no operation behind the wait
    stream 9          wait for E   [== B ==)     B waits for A
    ```
    """
    search = _Search(waits)
    seen = Through.empty()
    rows = search.behind_waits()
    front = Through(rows, rows)
    while len(front):
        found = search.before(front)
        found = found.take(waits.of[found.other] != waits.stream[found.wait])
        seen, front = _with_new(waits, seen, found)
    return seen


def _with_new(waits: Recorded, seen: Through, found: Through) -> tuple[Through, Through]:
    """What is known now, and what of it is new: for each wait and stream the event recorded last."""
    every = Through.concatenate([seen, found])
    new = np.arange(len(every)) >= len(seen)
    of = waits.of[every.other]
    order = np.lexsort((new, -waits.recorded[every.other], of, every.wait))
    wait, of = every.wait[order], of[order]
    kept = order[(np.diff(wait, prepend=-1) != 0) | (np.diff(of, prepend=-1) != 0)]
    return every.take(kept), every.take(kept[new[kept]])


class _Search:
    """Finds waits by the stream that they were issued to and the stream of their event."""

    def __init__(self, waits: Recorded) -> None:
        self.waits = waits
        self.width = int(max(waits.stream.max(initial=-1), waits.of.max(initial=-1))) + 1
        self.pairs, pair = distinct(joint(waits.stream, waits.of, self.width))
        moments, rank = distinct(np.concatenate((waits.issued, waits.recorded)))
        self.moments, (issued, self.recorded) = len(moments), np.split(rank, 2)
        position = joint(pair, issued, self.moments)
        order = np.argsort(position, kind="stable")
        self.position = position[order]
        # Of the waits of a pair until each, the one whose event was recorded last.
        latest = np.maximum.accumulate(joint(pair[order], self.recorded[order], self.moments) * len(waits) + order)
        self.latest = latest % max(len(waits), 1)
        self.by_stream = np.sort(joint(waits.stream, issued, self.moments))
        self.moment = moments

    def behind_waits(self) -> IntArray:
        """The waits whose event was recorded with a wait, and no operation, last on its stream. Only these are looked
        at for each stream that theirs waited for, which would be many rows for all."""
        waits = self.waits
        asked = joint(waits.of, self.recorded, self.moments)
        latest = np.append(self.by_stream, -1)[np.searchsorted(self.by_stream, asked) - 1]
        same = (latest >= 0) & (latest // self.moments == waits.of)
        issued = np.append(self.moment, NEVER)[np.where(same, latest % max(self.moments, 1), -1)]
        return np.flatnonzero(issued > waits.last)

    def before(self, front: Through) -> Through:
        """For the event of each `other`: the waits that its stream had behind its last operation when it was recorded.
        Of those for one stream, the wait for the event recorded last."""
        waits, via = self.waits, front.other
        of = waits.of[via]
        first, behind = (np.searchsorted(self.pairs, joint(of + more, 0, self.width)) for more in (0, 1))
        asking = np.repeat(np.arange(len(front)), behind - first)
        pair = rows_from(first, behind - first)
        via = via[asking]
        at = np.searchsorted(self.position, joint(pair, self.recorded[via], self.moments)) - 1
        row = self.latest[np.maximum(at, 0)]
        fits = (at >= 0) & (self.position[at] // self.moments == pair) & (waits.issued[row] > waits.last[via])
        return Through(front.wait[asking[fits]], row[fits])
