"""Sends that always last the same: a message takes that time, and no fix of something else makes it shorter."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, Intervals, contains, intersect, subtract, union
from nsysdiag.communication.communication import launching_lanes
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import NamedRows, ThreadAxis, distinct

FEWEST, MOST_APART = 4, 0.01
"""Calls, and the largest difference of their lengths, a share of the shortest: a wait for a peer varies with what that
one does."""
_SENDS = re.compile(r"P?MPI_[BRS]?send", re.IGNORECASE)


def steady_sends(mpi: NamedRows, axis: ThreadAxis, chosen: BoolArray) -> BoolArray:
    """Which of the `chosen` calls send a message, and last as long as all of the same function in their thread.

    ```
    MPI_Send    [= 11.1 ms =)  [= 11.1 ms =)      the message
    MPI_Recv    [= 19.0 ms ====)  [12.5 ms)       the message, and a wait for its sender
    ```
    """
    sends = np.array([_SENDS.fullmatch(each) is not None for each in mpi.names], dtype=np.bool_)
    found = np.zeros(len(mpi), dtype=np.bool_)
    rows = np.flatnonzero(sends[mpi.name] & chosen) if len(mpi) else np.empty(0, dtype=np.int64)
    if not len(rows):
        return found
    ns = mpi.spans.end[rows] - mpi.spans.start[rows]
    keys, key = distinct(joint(mpi.spans.start[rows] // axis.stride, mpi.name[rows].astype(np.int64), len(mpi.names)))
    least, most = np.full(len(keys), np.iinfo(np.int64).max), np.zeros(len(keys), dtype=np.int64)
    np.minimum.at(least, key, ns)
    np.maximum.at(most, key, ns)
    steady = (np.bincount(key) >= FEWEST) & (most - least <= MOST_APART * least)
    found[rows] = steady[key]
    return found


def idle_in_steady_sends(
    device: DeviceTimeline, calls: CallRows, mpi: NamedRows, axis: ThreadAxis, parts: Intervals
) -> int:
    """For how long, in ns, the device is idle in `parts` while threads that launch on it are in such sends."""
    mine = np.isin(mpi.spans.start // axis.stride, launching_lanes(device, calls, axis))
    start = axis.time(mpi.spans.start)
    sends = np.flatnonzero(steady_sends(mpi, axis, mine & contains(parts, start)))
    sent = Intervals(start[sends], start[sends] + mpi.spans.end[sends] - mpi.spans.start[sends])
    operations = device.operations
    busy = union(Intervals(operations.start[device.running], operations.end[device.running]))
    return subtract(intersect(union(sent), parts), busy).total()
