"""Communication by kind: how much of it computing hides, what MPI calls of the host cost the device, and sends that
always last the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import group_totals, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, coverage, intersect, subtract, union
from nsysdiag.events.calls import CallRows
from nsysdiag.events.collectives import KINDS, MEETINGS, SEND_RECEIVE, Collectives, kind_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import NamedRows, ThreadAxis
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.kernels.facts import CollectiveKind, MpiCall
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.peaks import link_of, switch_adds
from nsysdiag.record import records
from nsysdiag.units import format_rate


def collective_kinds(found: Collectives, inside: BoolArray, split: WindowSplit, gpu: str = "") -> list[CollectiveKind]:
    """One row a kind, most time first. `inside` tells for each operation of the device whether tables count it; `gpu`
    is the name of the device.

    ```
    compute     [------)
    AllReduce      [--------------)        most time in all: takes what it covers
    AllGather               [-----------)  takes the rest
    exposed            [AllReduce)[Gather)
    ```
    """
    spans = Intervals(found.start, found.end)
    exposed, hidden = split.parts[1], intersect(split.parts[0], union(spans))
    counted = np.flatnonzero(inside[found.row])
    count = np.bincount(found.kind[counted], minlength=len(KINDS))
    total = sum_of_each(found.kind[counted], (found.end - found.start)[counted], len(KINDS))
    rows = []
    # Kinds of which nothing begins inside come last: their ends may reach into the window.
    present = np.flatnonzero(np.bincount(found.kind, minlength=len(KINDS)))
    for kind in present[np.lexsort((present, -total[present]))].tolist():
        time = union(spans[found.kind == kind])
        shown, covered = intersect(exposed, time), intersect(hidden, time)
        exposed, hidden = subtract(exposed, shown), subtract(hidden, covered)
        mine = counted[found.kind[counted] == kind]
        row = CollectiveKind(
            **_rates(found.take(mine), KINDS[kind], link_of(gpu), switch=switch_adds(gpu)),
            kind=KINDS[kind],
            count=int(count[kind]),
            total_ns=int(total[kind]),
            exposed_ns=shown.total(),
            overlapped_ns=covered.total(),
        )
        if row.count or row.exposed_ns or row.overlapped_ns:
            rows.append(row)
    return rows


# Rates as nccl-tests define them (doc/PERFORMANCE.md): by the size of the operation, and by what each rank has to send.
#
#     AllReduce of S bytes on n ranks      algorithm S / t    bus S / t * 2 (n - 1) / n
#     AllGather of S bytes, S / n a rank   algorithm S / t    bus S / t *   (n - 1) / n
#
# If switches of NVLink add up (NVLink SHARP, NCCL's NVLS), a rank of an AllReduce sends S + S / n bytes. The bus
# bandwidth stays that of nccl-tests, and may exceed what NVLink carries: 480 GB/s on 8 H100 with 450 GB/s each. The
# name of the kernel seldom says so: NCCL has one kernel for several algorithms.

LARGE = 1 << 20
"""Bytes that each rank sends: smaller operations are limited by latency."""
PERCENTILE = 95
"""Percentile of the rates of large operations that is called the best. With 100, one operation whose size is not of its
kernel would be the best; with less, operations that waited for late ranks lower it."""
_A_RANK = frozenset({"AllGather", "ReduceScatter", "AllToAll", "Gather", "Scatter"})
"""The kinds whose message is the part of one rank."""
_ONE_WAY = frozenset({"Broadcast", "Reduce", SEND_RECEIVE})
_SIZED = _A_RANK | _ONE_WAY | {"AllReduce"}


def _rates(found: Collectives, kind: str, link: float | None, *, switch: bool = False) -> dict[str, Any]:
    """The fields of rates of a kind. `link` is what NVLink carries each way, in bytes a second: each rate is refused
    if it carries less than the fastest. `switch`: the switches of the GPU can add up."""
    rank = found.ranks
    known = (found.message > 0) & ((rank > 1) | (kind in _ONE_WAY)) & (found.end > found.start) & (kind in _SIZED)
    if not known.any():
        return {}
    mine, n = found.take(known), np.maximum(rank[known], 1)
    size = mine.message * np.where(kind in _A_RANK, n, 1.0)
    bus = size * (1.0 if kind in _ONE_WAY else (1 + (kind == "AllReduce")) * (n - 1) / n)
    ns = mine.end - mine.start
    mean, best = _mean_and_best(bus, ns)
    added = mine.in_switch & (kind == "AllReduce")
    in_switch = size * (n + 1) / n
    on_link = _mean_and_best(np.where(added, in_switch, bus), ns)
    if link is not None and _fastest(on_link) > link and switch and kind == "AllReduce":
        added = np.ones(len(mine), dtype=np.bool_)
        on_link = _mean_and_best(np.minimum(bus, in_switch), ns)
    if link is not None and _fastest(on_link) > link:
        carries = f"{format_rate(_fastest(on_link))} is more than NVLink carries each way ({format_rate(link)})"
        return {"sized": len(mine), "refused": f"no rate: {carries}"}
    return {
        "sized": len(mine),
        "algorithm_bytes_per_second": float(size.sum() / ns.sum() * 1e9),
        "bus_bytes_per_second": mean,
        "best_bus_bytes_per_second": best,
        "best_link_bytes_per_second": on_link[1],
        "in_switch": int(np.count_nonzero(added)),
    }


def _mean_and_best(sent: npt.NDArray[Any], ns: IntArray) -> tuple[float, float | None]:
    """Bytes a second of all of them together, and the 95th percentile of large ones."""
    large = np.sort((sent / ns * 1e9)[sent >= LARGE])
    best = float(large[(PERCENTILE * len(large) + 99) // 100 - 1]) if len(large) else None
    return float(sent.sum() / ns.sum() * 1e9), best


def _fastest(rates: tuple[float, float | None]) -> float:
    return max(rates[0], rates[1] or 0.0)


def launching_lanes(device: DeviceTimeline, calls: CallRows, axis: ThreadAxis) -> IntArray:
    """The lanes of the threads that launched on the device."""
    launch = device.launch[device.launch >= 0]
    return axis.lane(calls.threads_at(launch))


def mpi_meetings(mpi: NamedRows, threads: IntArray, axis: ThreadAxis) -> Collectives:
    """The blocking MPI calls of these lanes that no rank leaves before all have entered. They align ranks if there are
    no communication kernels."""
    kind_of_name = np.array([_meeting(name) for name in mpi.names], dtype=np.int64)
    lane, length = mpi.spans.start // axis.stride, mpi.spans.end - mpi.spans.start
    kind = kind_of_name[mpi.name] if len(kind_of_name) else mpi.name
    row = np.flatnonzero(np.isin(lane, threads) & (length > 0) & (kind >= 0))
    start = axis.time(mpi.spans.start[row])
    row = row[np.argsort(start, kind="stable")]
    start = axis.time(mpi.spans.start[row])
    nothing = np.zeros(len(row), dtype=np.int64)
    return Collectives(
        row, start, start + length[row], kind[row], nothing, lane[row], nothing, nothing, nothing.astype(np.bool_)
    )


def time_in_mpi(mpi: NamedRows, threads: IntArray, axis: ThreadAxis) -> Intervals:
    """The set of time in which any of these lanes is in a call of MPI."""
    mine = mpi.spans[np.isin(mpi.spans.start // axis.stride, threads)]
    start = axis.time(mine.start)
    return union(Intervals(start, start + (mine.end - mine.start)))


def _meeting(name: str) -> int:
    """The kind of a blocking MPI call; -1 for all that may leave early: MPI_Iallreduce, MPI_Send, MPI_Init."""
    kind = kind_of(name)
    blocking = name.startswith("MPI_") and not name.startswith("MPI_I") and not name.endswith("_init")
    return kind if blocking and KINDS[kind] in MEETINGS else -1


def mpi_calls(mpi: NamedRows, gaps: Gaps, lane: IntArray, threads: IntArray, axis: ThreadAxis) -> list[MpiCall]:
    """One row a function, most time first. `lane` is that of the thread behind each gap, `threads` are the lanes of all
    that launched on the device.

    ```
    device  ==A==)........................[==next==
    T          [MPI_Wait       ][launch]
                 ^---- idle ---^
    ```
    """
    its = np.flatnonzero(np.isin(mpi.spans.start // axis.stride, threads) & (mpi.spans.end > mpi.spans.start))
    if not len(its):
        return []
    spans, name = mpi.spans[its], mpi.name[its]
    behind = np.flatnonzero(lane >= 0)
    waited = Intervals(*(axis.position(lane[behind], side[behind]) for side in (gaps.start, gaps.end)))
    idle = coverage(union(waited), spans)
    groups = group_totals(name, spans.end - spans.start)
    return records(
        MpiCall,
        name=[mpi.names[each] for each in groups.code.tolist()],
        count=groups.count,
        total_ns=groups.total,
        idle_ns=sum_of_each(name, idle, len(mpi.names))[groups.code],
    )


# Sends that always last the same: a message takes that time, and no fix of something else makes it shorter.

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
    if not len(sends):
        return 0
    sent = Intervals(start[sends], start[sends] + mpi.spans.end[sends] - mpi.spans.start[sends])
    operations = device.operations
    busy = union(Intervals(operations.start[device.running], operations.end[device.running]))
    return subtract(intersect(union(sent), parts), busy).total()
