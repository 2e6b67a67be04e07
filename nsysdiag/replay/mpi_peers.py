"""Calls of MPI that wait for one other rank: the trace does not say which call of that rank they are for.

```
rank 0   [MPI_Sendrecv ====)      ends sooner, or as it did, once rank 1 is faster
rank 1   [computes    ][===)
```
"""

from __future__ import annotations

import re

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.axis import Lane
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.stretch import LEAST_ERROR

_EXCHANGES = re.compile(r"MPI_(Sendrecv\w*|[BRS]?send|Send|M?Recv|M?Probe|Wait(all|any|some)?)", re.IGNORECASE)


def without_waits(changes: Changes) -> Changes | None:
    """The same if no such call of a rank waits: each takes as long as the shortest one of its name, except for those
    that are changed themselves. None where hardly any waits."""
    model, lane = changes.model, changes.model.host.host.mpi
    calls = lane.take(_exchanging(lane))
    if not len(calls) or not len(model.pieces):
        return None
    length = calls.spans.end - calls.spans.start
    least = np.full(len(calls.names), np.iinfo(np.int64).max)
    np.minimum.at(least, calls.name, length)
    left = np.append(least[calls.name] / np.maximum(length, 1), 1.0)[model.row_of_piece(calls.spans)]
    left = np.where(changes.time < 1, 1.0, left)
    waited = float(((model.pieces.end - model.pieces.start) * (1 - left)).sum())
    if waited < LEAST_ERROR * (model.stretch.end - model.stretch.begin):
        return None
    return replace(changes, time=changes.time * left)


def most_sooner(changes: Changes) -> float:
    """By how much such calls of a step end sooner at most, in ns: what the changes take away from the thread and the
    device that they take most from. No limit is known where they end waits."""
    model, pieces = changes.model, changes.model.pieces
    kept = (changes.held, changes.others, changes.full, changes.woken, ~changes.dropped)
    if not all(each.all() for each in kept):
        return float("inf")
    lane = pieces.start // model.host.host.axis.stride
    host = np.bincount(lane, (pieces.end - pieces.start) * (1 - changes.time)).max(initial=0)
    unseen = (model.unseen * (1 - changes.unseen)).sum()
    work = np.bincount(model.work.device, model.length - changes.length).max(initial=0)
    return float(host + unseen + work) / max(model.stretch.count, 1)


def _exchanging(lane: Lane) -> IntArray:
    """The rows of outermost calls that wait for one rank."""
    named = np.array([_EXCHANGES.fullmatch(each) is not None for each in lane.names], dtype=np.bool_)
    return np.flatnonzero(named[lane.name] & lane.outermost) if len(lane) else np.empty(0, dtype=np.int64)
