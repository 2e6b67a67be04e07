"""Which bottleneck each nanosecond of a device is charged to: the rows of its table of time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.constant import constant, taken
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    coverage,
    intersect,
    nearest_before,
    subtract,
    union,
)
from nsysdiag.arrays.matching import matching
from nsysdiag.arrays.spill import laid
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER, BottleneckId
from nsysdiag.causes import BLOCKED, FALLBACK, PLACE, PREEMPTION, UNTRACED_GRAPH, places
from nsysdiag.causes.blocking_copy import READS_BACK
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import ThreadAxis, picked
from nsysdiag.fields import Sentence
from nsysdiag.ledger.ledger import LayerRows, Slices, WindowSplit
from nsysdiag.time.facts import STATES
from nsysdiag.time.table import IDLE, TimeTable

# Idle time that synchronizations made: what the host did after a wait, and could have done during it.


class DeviceWaitCalls(Struct, frozen=True):
    """Calls in which threads waited for the device, by where they begin on the thread axis, one after another in each
    lane. `credit_ns` is how long the device worked meanwhile; 0 for blocking copies of data, which have to wait. Waits
    in a row with no launch between them wait for the same work: `leading` is the row of the longest of them, which has
    the credit of all. `copies` is True for blocking copies. `name` is an index into `names`."""

    spans: Intervals
    credit_ns: IntArray
    leading: IntArray
    copies: BoolArray
    name: IntArray
    names: list[Sentence]

    @classmethod
    def of(
        cls,
        synchronizations: list[EvidenceLayer],
        copies: list[EvidenceLayer],
        device: int,
        busy: Intervals,
        launches: IntArray,
        axis: ThreadAxis,
    ) -> DeviceWaitCalls:
        """The synchronizations that wait for this device, as far as the trace shows it, and all blocking copies. Copies
        that read back a few bytes are waits as well. `busy` is the set of time in which the device worked, `launches`
        are the starts of its launch calls on the axis, sorted."""
        layers = [*(layer for layer in synchronizations if layer.device in (None, device)), *copies]
        rows, is_copy = LayerRows.of(layers), np.arange(len(layers)) >= len(layers) - len(copies)
        copied, reads_back = is_copy[rows.layer], np.array([each.label is READS_BACK for each in layers], np.bool_)
        spans, waits = rows.spans, (~is_copy | reads_back)[rows.layer]
        begun = axis.time(spans.start)
        worked = coverage(busy, Intervals(begun, begun + (spans.end - spans.start)))
        leading, credit = _in_a_row(spans, np.where(waits, worked, 0), waits, launches, axis)
        return cls(spans, credit, leading, copied, rows.name, rows.names)


def _in_a_row(
    spans: Intervals, credit: IntArray, waits: BoolArray, launches: IntArray, axis: ThreadAxis
) -> tuple[IntArray, IntArray]:
    """Of waits in a row the row of the one with most credit, and the credits, if that one has those of all.

    ```
    thread   [launch]  [copy of 4 bytes to the host      )[sync)   host     [launch]
    credit              100                               0.1      100.1 of the copy
    ```
    """
    if len(spans) == 0:
        return np.empty(0, dtype=np.int64), credit
    lane = spans.start // axis.stride
    same = waits[1:] & waits[:-1] & (lane[1:] == lane[:-1])
    same &= np.searchsorted(launches, spans.start[1:]) == np.searchsorted(launches, spans.end[:-1])
    group = np.append(0, np.cumsum(~same))
    leads = np.lexsort((-credit, group))[np.flatnonzero(np.append(True, ~same))]
    together = credit.copy()
    together[leads] = np.add.reduceat(credit, np.flatnonzero(np.append(True, ~same)))
    return leads[group], together


class Made(Struct, frozen=True):
    """Idle time caused by waits: parts of slices, each from the beginning of its slice. `slice` is the row of the
    slice, `wait` the row of the wait. `counts`: the time is charged to the wait. What the thread may have waited for
    instead is not."""

    slice: IntArray
    wait: IntArray
    spans: Intervals
    counts: BoolArray


def made_by_waits(
    waits: DeviceWaitCalls, spans: Intervals, lane: IntArray, eligible: BoolArray, axis: ThreadAxis
) -> Made:
    """The idle time of the `eligible` slices that was caused by the last wait of their thread.

    ```
    device   [====A====).....host.....[==B==)........host.......
    thread   [-- wait --][   host    ][w][   host               ]
    credit   10          uses 10          3 uses 3; what was left of the first wait is gone
    ```

    Without the wait, the thread would have done its next work while the device was busy, and the device would not have
    been idle. So a wait causes no more idle time than its own length, and none after the next wait of the same thread
    for later work.
    `spans` are the slices in time, `lane` is the thread that launched next, -1 for none.
    """
    chosen = np.flatnonzero(eligible & (lane >= 0)) if len(waits.spans) else np.empty(0, dtype=np.int64)
    begins = axis.position(lane[chosen], spans.start[chosen])
    order = np.argsort(begins, kind="stable")
    chosen, begins = chosen[order], begins[order]
    wait = nearest_before(waits.spans.start, begins)
    last = np.maximum(wait, 0)
    over = (wait >= 0) & (waits.spans.end[last] <= begins) if len(chosen) else np.empty(0, dtype=np.bool_)
    over &= waits.spans.start[last] // axis.stride == lane[chosen]
    chosen, wait = chosen[over], waits.leading[wait[over]]
    ns = _used(wait, waits.credit_ns[wait], (spans.end - spans.start)[chosen])
    used = ns > 0
    begun = spans.start[chosen[used]]
    return Made(chosen[used], wait[used], Intervals(begun, begun + ns[used]), np.ones(len(begun), dtype=np.bool_))


def _used(wait: IntArray, credit: IntArray, length: IntArray) -> IntArray:
    """How many ns of each length are covered by the remaining credit of its wait. Lengths of one wait are adjacent, in
    order."""
    before = np.cumsum(length) - length
    first = np.flatnonzero(np.append(True, wait[1:] != wait[:-1]))[: len(wait)]
    before = before - np.repeat(before[first], np.diff(np.append(first, len(wait))))
    return np.clip(credit - before, 0, length)


WAITING_FOR_A_SYNC = ("host", "launch", "unknown")
"""Bottlenecks of work that a thread does after a wait and could have done during it. Input is left out: it has its own
root cause."""
ON_ITS_OWN = places(lambda cause: not cause.follows_wakeups and cause.id not in (PREEMPTION, BLOCKED, UNTRACED_GRAPH))
"""Causes of what a thread does itself. Waits for locks, files and other threads, or in calls that were not traced, are
not over any sooner if it comes to them earlier. Nor is time without a CPU. They are their own causes. So are graphs
whose kernels are not in the trace: the GPU was probably busy with them."""
MAY_WAIT_NS = 100_000
"""Time from here on of which nothing is known may be such a wait, if the trace does not show these. A read from a
disk or a network takes as long, and a timer of Linux is up to 50 µs late. Python between two launches takes 5 to 50
µs."""


class TimePiece(NamedTuple):
    """Parts of a device's time: their bottlenecks, the slices that they are parts of (-1: work), and the state of the
    device, which all share."""

    spans: Intervals
    code: IntArray
    slice: IntArray
    state: int

    def with_length(self) -> TimePiece:
        """Without those that are empty."""
        rows = picked(self.spans.end > self.spans.start)
        return TimePiece(self.spans[rows], self.code[rows], self.slice[rows], self.state)


class IdlePieces(Struct, frozen=True):
    """The idle time in pieces, each of one bottleneck, and the part of it that synchronizations made."""

    pieces: list[TimePiece]
    made: Made


def idle_pieces(
    slices: Slices,
    bottleneck: IntArray,
    own: IntArray,
    lane: IntArray,
    waits: DeviceWaitCalls,
    foreign: Intervals,
    axis: ThreadAxis,
    compiles: Intervals | None = None,
    *,
    waits_seen: bool = True,
) -> IdlePieces:
    """Divides the idle time. `bottleneck` is that of each slice by its cause, `own` the cause of what its thread itself
    did, by its place in the registry. `lane` is the thread that launched after each slice's gap (-1: unknown),
    `compiles` the time inside ranges that compile, on the thread axis. `foreign` is the set of time in which the
    GPU worked for another program. `waits_seen`: the trace shows when threads wait outside of CUDA calls.

    ```
    slice                 [host                       ][launch]
    inside compile                    [------)
    made by a wait        [---)
    charged to            [sync)[host][startup)[host][launch]
    ```
    """
    every, ns = Intervals(slices.rows.start, slices.rows.end), slices.ns
    row = np.arange(len(every), dtype=np.int32)
    # In any order: what cuts them sorts them first.
    builds = _among(bottleneck, [BOTTLENECK_NUMBER[name] for name in BUILDING]) & (lane >= 0)
    built, outside = _cut(Owned(every, row), builds, lane, Intervals.empty() if compiles is None else compiles, axis)
    eligible = _among(bottleneck, [BOTTLENECK_NUMBER[name] for name in WAITING_FOR_A_SYNC])
    eligible &= _among(own, ON_ITS_OWN)
    eligible = taken(eligible, outside.owner) & (coverage(foreign, outside.spans) == 0)
    made = made_by_waits(waits, outside.spans, taken(lane, outside.owner), eligible, axis)
    begins = outside.spans.start.copy()
    owner = outside.owner[made.slice]
    counts = np.full(len(owner), True) if waits_seen else (own[owner] != PLACE[FALLBACK]) | (ns[owner] < MAY_WAIT_NS)
    begins[made.slice[counts]] = made.spans.end[counts]
    made = replace(made, slice=owner, counts=counts)
    idle = [
        (built.spans, _codes("startup", len(built)), built.owner),
        (made.spans[counts], _codes("sync", int(counts.sum())), owner[counts]),
        (Intervals(begins, outside.spans.end), taken(bottleneck, outside.owner), outside.owner),
    ]
    return IdlePieces([piece for each in idle for piece in _of_others(*each, foreign)], made)


def busy_pieces(
    split: WindowSplit, migrations: Intervals, hollow: Intervals, moved: Intervals | None = None
) -> list[TimePiece]:
    """Divides the time in which the device worked. In the time `migrations`, a set, pages of unified memory moved as
    something touched them; in the time `moved` they moved for any reason. What was prefetched holds up no kernel that
    runs. `hollow` is the time in which kernels left most of the chip empty."""
    compute, communication, copies = split.parts
    moved = migrations if moved is None else union(migrations, moved)
    paged, fetched = intersect(compute, migrations), intersect(copies, moved)
    working = subtract(compute, paged)
    parts: list[tuple[BottleneckId, str, Intervals]] = [
        ("memory", "compute", paged),
        ("memory", "exposed_copy", fetched),
        ("parallelism", "compute", intersect(working, hollow)),
        ("kernels", "compute", subtract(working, hollow)),
        ("communication", "exposed_comm", communication),
        ("copies", "exposed_copy", subtract(copies, fetched)),
    ]
    return [
        TimePiece(part, _codes(name, len(part)), np.full(len(part), -1, dtype=np.int32), STATES.index(state))
        for name, state, part in parts
    ]


def in_order(idle: IdlePieces, busy: list[TimePiece], other: IntArray, own: IntArray, root: IntArray) -> TimeTable:
    """All pieces that have a length, by start. `other` is the device that each slice waited for (-1: none), `own` and
    `root` are its causes."""
    parts = [each.with_length() for each in (*idle.pieces, *busy)]
    end = max((int(each.spans.end.max()) for each in parts if len(each.spans)), default=0)
    borders = np.concatenate([*(each.spans.start for each in parts), [np.int64(end)]])
    order = np.argsort(borders, kind="stable")
    borders, order = borders[order], order[:-1]  # column by column: a trace of millions of gaps has to fit
    if borders[-1] - borders[0] == sum(each.spans.total() for each in parts):
        borders = laid(borders)
        spans = Intervals(borders[:-1], borders[1:])  # without a hole the end of each is the start of the next
    else:
        spans = Intervals(borders[:-1], np.concatenate([each.spans.end for each in parts])[order])
    state = np.concatenate([np.full(len(each.spans), each.state, dtype=np.int8) for each in parts])[order]
    code = np.concatenate([each.code.astype(np.int8) for each in parts])[order]
    row = np.concatenate([each.slice.astype(np.int32) for each in parts])[order]
    asked = constant(np.full(1, -1, dtype=np.int16), len(row))
    if (other >= 0).any():
        waiting = (row >= 0) & (code == BOTTLENECK_NUMBER["sync"])
        asked = np.where(waiting, np.append(other, -1)[row], -1).astype(np.int16)
    return TimeTable(spans, state, code, row, asked, own, root)


def _among(code: IntArray, chosen: Iterable[int]) -> BoolArray:
    """Which codes, from 0 up and below 128, are among the chosen ones: np.isin takes far longer."""
    flags = np.zeros(128, dtype=np.bool_)
    flags[list(chosen)] = True
    return flags.take(code)


def _codes(name: BottleneckId, count: int) -> IntArray:
    return np.full(count, BOTTLENECK_NUMBER[name], dtype=np.int8)


def _cut(pieces: Owned, able: BoolArray, lane: IntArray, borders: Intervals, axis: ThreadAxis) -> tuple[Owned, Owned]:
    """Pieces of slices cut where their thread was inside `borders`, a set on the axis: what is inside, and what is not;
    `owner` is the slice. Only the slices that are `able` are cut."""
    cuts = taken(able, pieces.owner)
    if len(borders) == 0 or not cuts.any():
        return Owned.empty(), pieces
    spans, row = pieces.spans, pieces.owner
    inside, left, _ = claim(Owned.of(axis.place(lane[row[cuts]], spans[cuts]), row[cuts]), borders)
    outside = _in_time(left, axis)
    start = np.append(outside.spans.start, spans.start[~cuts])
    end = np.append(outside.spans.end, spans.end[~cuts])
    return _in_time(inside, axis), Owned.of(Intervals(start, end), np.append(outside.owner, row[~cuts]))


def _of_others(spans: Intervals, code: IntArray, row: IntArray, foreign: Intervals) -> list[TimePiece]:
    """Pieces of idle time cut where another program had the GPU."""
    if len(foreign) == 0:
        return [TimePiece(spans, code, row, IDLE)]
    taken, rest, _ = claim(Owned.of(spans, np.arange(len(spans))), foreign)
    other = _codes("other_process", len(taken))
    return [
        TimePiece(taken.spans, other, row[taken.owner], IDLE),
        TimePiece(rest.spans, code[rest.owner], row[rest.owner], IDLE),
    ]


def _in_time(placed: Owned, axis: ThreadAxis) -> Owned:
    begun = axis.time(placed.spans.start)
    return Owned(Intervals(begun, begun + (placed.spans.end - placed.spans.start)), placed.owner)


# Idle time in which the program builds the code that it launches next.

MADE_AT_RUN_TIME = re.compile(r"compil|nvrtc|\bjit\b|\bptxas\b|autotun|codegen", re.IGNORECASE)
"""Ranges in which programs build the code that they launch next: NVRTC, XLA, Triton, fusion compilers."""
BUILDING = ("host", "unknown")


def compiling(ranges: NvtxRanges, axis: ThreadAxis) -> Intervals:
    """The set of time inside ranges that compile, each on the lane of its thread. Host code in it is start-up."""
    compiles = matching(MADE_AT_RUN_TIME, ranges.names)
    if not compiles.any():
        return Intervals.empty()
    rows = np.flatnonzero(compiles[ranges.rows.name])
    lane = axis.lane(ranges.rows.thread[rows])
    rows, lane = rows[lane >= 0], lane[lane >= 0]
    return union(axis.place(lane, Intervals(ranges.rows.start[rows], ranges.rows.end[rows])))
