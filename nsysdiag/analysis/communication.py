"""Communication by kind: how much of it computing hides, and what MPI calls of the host cost the device."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.collectives import KINDS, Collectives
from nsysdiag.activity.identity import BoolArray, IntArray
from nsysdiag.activity.lane import Lane
from nsysdiag.analysis.busy import WindowSplit
from nsysdiag.analysis.gaps import Gaps
from nsysdiag.analysis.grouping import group_durations
from nsysdiag.model import CollectiveKind, MpiCall
from nsysdiag.timeline.intervals import Intervals, coverage, intersect, subtract, union


def collective_kinds(found: Collectives, inside: BoolArray, split: WindowSplit) -> list[CollectiveKind]:
    """One row a kind, most time first. `inside` tells for each operation of the device whether tables count it.

    ```
    compute     [------)
    AllReduce      [--------------)        most time in all: takes what it covers
    AllGather               [-----------)  takes the rest
    exposed            [AllReduce)[Gather)
    ```
    """
    compute, exposed = split.parts[0], split.parts[1]
    spans = Intervals(found.start, found.end)
    hidden = intersect(compute, union(spans))
    counted = np.flatnonzero(inside[found.row])
    groups = group_durations(found.kind[counted], (found.end - found.start)[counted])
    count, total = (np.zeros(len(KINDS), dtype=np.int64) for _ in range(2))
    count[groups.code], total[groups.code] = groups.count, groups.total
    rows = []
    # Kinds of which nothing begins inside come last: their ends may reach into the window.
    present = np.flatnonzero(np.bincount(found.kind, minlength=len(KINDS)))
    for kind in present[np.lexsort((present, -total[present]))].tolist():
        time = union(spans[found.kind == kind])
        shown, covered = intersect(exposed, time), intersect(hidden, time)
        exposed, hidden = subtract(exposed, shown), subtract(hidden, covered)
        if count[kind] or len(shown) or len(covered):
            rows.append(
                CollectiveKind(
                    kind=KINDS[kind],
                    count=int(count[kind]),
                    total_ns=int(total[kind]),
                    exposed_ns=shown.total(),
                    overlapped_ns=covered.total(),
                )
            )
    return rows


def mpi_calls(mpi: Lane, gaps: Gaps, lane: IntArray, threads: IntArray, axis: ThreadAxis) -> list[MpiCall]:
    """One row a function, most time first. `lane` is that of the thread behind each gap, `threads` are the lanes of all
    that launched on the device.

    ```
    device  ==A==)........................[==next==
    T          [MPI_Wait       ][launch]
                 ^---- idle ---^
    ```
    """
    its = np.flatnonzero(np.isin(mpi.spans.start // axis.stride, threads) & (mpi.spans.end > mpi.spans.start))
    spans, name = mpi.spans[its], mpi.name[its]
    behind = np.flatnonzero(lane >= 0)
    waited = Intervals(*(axis.position(lane[behind], side[behind]) for side in (gaps.start, gaps.end)))
    idle = coverage(union(waited), spans)
    groups = group_durations(name, spans.end - spans.start)
    return [
        MpiCall(
            name=mpi.names[code],
            count=int(groups.count[at]),
            total_ns=int(groups.total[at]),
            idle_ns=int(idle[name == code].sum()),
        )
        for at, code in enumerate(groups.code.tolist())
    ]
