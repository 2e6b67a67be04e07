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

from nsysdiag.communication.communication import steady_sends
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import NamedRows, distinct
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.stretch import LEAST_ERROR

_EXCHANGES = re.compile(r"MPI_(Sendrecv\w*|[BRS]?send|Send|M?Recv|M?Probe|Wait(all|any|some)?)", re.IGNORECASE)


def without_waits(changes: Changes) -> Changes | None:
    """The same if such calls of a rank take no time, except for those that are changed themselves. Messages that
    always take the same time stay, too. A peer that is always late makes even the shortest one wait. None where they
    hardly take any."""
    model, calls = changes.model, exchanging(changes.model)
    axis, stretch = model.host.host.axis, model.stretch
    begun = axis.time(calls.spans.start)
    calls = calls.take(~steady_sends(calls, axis, (begun >= stretch.begin) & (begun < stretch.end)))
    if not len(calls) or not len(model.pieces):
        return None
    waits = (model.row_of_piece(calls.spans) >= 0) & (changes.time >= 1)
    waited = int((model.pieces.end - model.pieces.start)[waits].sum())
    if waited < LEAST_ERROR * (model.stretch.end - model.stretch.begin):
        return None
    return replace(changes, time=np.where(waits, 0.0, changes.time))


def most_sooner(changes: Changes) -> float:
    """By how much the changes make a peer sooner in a step, in ns: what they take away from the process and the device
    that they take most from."""
    model, pieces = changes.model, changes.model.pieces
    axis = model.host.host.axis
    _, process = distinct(process_of(axis.threads[pieces.start // axis.stride].astype(np.int64)))
    host = np.bincount(process, (pieces.end - pieces.start) * (1 - changes.time)).max(initial=0)
    unseen = (model.unseen * (1 - changes.unseen)).sum()
    work = np.bincount(model.work.device, model.length - changes.length).max(initial=0)
    return float(host + unseen + work) / max(model.stretch.count, 1)


def in_a_row(model: Model) -> int:
    """How many ranks may wait for each other in a row: all others of the trace that make such calls, at least one."""
    calls, axis = exchanging(model), model.host.host.axis
    return max(len(np.unique(process_of(axis.threads[calls.spans.start // axis.stride].astype(np.int64)))) - 1, 1)


def takes_out_waits(changes: Changes) -> bool:
    """Whether any wait is gone, or any order of work."""
    kept = (changes.held, changes.others, changes.full, changes.woken, ~changes.dropped)
    return not all(each.all() for each in kept)


def exchanging(model: Model) -> NamedRows:
    """The outermost calls that wait for one rank of which it is not known what it does."""
    lane, met = model.host.host.mpi, model.threads.mpi
    named = np.array([_EXCHANGES.fullmatch(each) is not None for each in lane.names], dtype=np.bool_)
    rows = np.flatnonzero(named[lane.name] & lane.outermost) if len(lane) else np.empty(0, dtype=np.int64)
    calls, left = lane.take(rows), met.take(met.leaves)
    known = model.on_axis(left.thread, left.begin, left.end)
    return calls.take(~np.isin(calls.spans.start, known.start))
