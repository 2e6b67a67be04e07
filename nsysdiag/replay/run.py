"""One replay of a model with changes: when everything starts and ends, and how long its steps are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import Owned, within
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, complement, intersect, subtract, union
from nsysdiag.causes import BLOCKING_COPY, CAUSES, EVENT_WAIT, FALLBACK, LAUNCH_LATENCY, PLACE
from nsysdiag.causes.device_side import DEVICE_STALL, DISPATCH, HOST_FUNCTION, STREAM_BARRIER
from nsysdiag.replay.beside import StepWork
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import FourParts
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.moments import EdgeKind, Graph, replay
from nsysdiag.replay.work import Class, first_border

LEAST_WORK = 0.05
"""Of the busiest device's work: the steps of one with less say nothing."""


class Run(Struct, frozen=True):
    """One replay: the `times` of all moments; the start and end of each operation; the `borders` of the counted steps,
    in ns, at the end of their work; or those of the window, from its begin to the last end. `longer` is by how much the
    whole judged time needs a step to be longer, in ns, as its kernels take more of it. Between two borders are `each`
    steps."""

    times: IntArray
    start: IntArray
    end: IntArray
    borders: IntArray
    longer: int = 0
    each: int = 1

    @property
    def steps(self) -> IntArray:
        """The lengths between the borders."""
        return np.diff(self.borders)

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.steps) * self.each

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last border."""
        return int(self.borders[0]), int(self.borders[-1])

    @property
    def ns(self) -> int:
        """The mean length of a step, or the length of the window."""
        return round(float(self.steps.mean()) / self.each) + self.longer


def run_of(changes: Changes) -> Run:
    """Replay a model with changes."""
    ns, residual = changes.edges()
    first, each = changes.counted.tolist()
    return as_run(changes.model, replay(changes.model.graph, ns, residual), changes.length, first, each)


@once
def unchanged(model: Model) -> Run:
    """The replay of a model with nothing changed."""
    return run_of(Changes.none(model))


def as_run(model: Model, times: IntArray, length: IntArray, first: int = -1, each: int = 1) -> Run:
    """The run in which the moments are at `times` and the operations last for `length`, both in ns."""
    start, end = times[model.places.operation], times[model.places.end] + length
    return Run(times, start, end, borders_of(model, start, end, first, each), each=each)


def borders_of(
    model: Model, start: IntArray, end: IntArray, first: int, each: int, least: StepWork = StepWork.OWN
) -> IntArray:
    """When the work of each step and of all before it is done, on the device that takes longest; from the `first` on,
    after `each` so many. That is work which is at `least` so much of the steps."""
    work, stretch = model.work, model.stretch
    inside = work.start < stretch.end
    # From a time that no change moves: else a window is longer once its first operation is earlier.
    whole = np.array([stretch.begin, end[inside].max()])
    if not stretch.stepwise:
        return whole
    inside &= model.step_work >= least
    busy = np.bincount(work.device, work.length * inside)
    step = stretch.step(work.start)
    found: list[IntArray] = []
    for device in np.flatnonzero(busy >= LEAST_WORK * busy.max()).tolist():
        mine = np.flatnonzero(inside & (work.device == device))
        done = np.full(stretch.count, start[mine].min(initial=whole[0]))
        np.maximum.at(done, step[mine], end[mine])
        borders = np.maximum.accumulate(done)
        found.append(borders[first_border(len(borders)) if first < 0 else first :: each])
    return max((each for each in found if len(each) > 1), key=mean_step, default=whole)


def mean_step(borders: IntArray) -> float:
    """The mean time in ns between borders."""
    return float(borders[-1] - borders[0]) / (len(borders) - 1)


def busy(model: Model, run: Run, device: int, kinds: Sequence[Class], among: BoolArray | bool = True) -> Intervals:
    """When a device is busy with operations of these kinds in the counted time of a replay, a set; `among` marks those
    that are looked at."""
    work = model.work
    mine = (work.device == device) & np.isin(work.kind, kinds) & (run.end > run.start) & among
    return intersect(union(Intervals(run.start[mine], run.end[mine])), Intervals.of([run.span]))


# What a device waits for in a replay: its idle time by cause, with the rules by which threads are looked at.
#
# ```
# device   [==A==)..........................[==B==)     B starts when its launch arrives
# thread         [ sync )[ host code ][ launch ]        what the thread does until then is what A to B is lost to
# ```

OF_KIND = {
    EdgeKind.LAUNCH: LAUNCH_LATENCY,
    EdgeKind.STREAM: DISPATCH.id,
    EdgeKind.CLASS: DISPATCH.id,
    EdgeKind.OBSERVED: DEVICE_STALL.id,
    EdgeKind.EVENT: EVENT_WAIT,
    EdgeKind.BARRIER: STREAM_BARRIER.id,
    EdgeKind.FUNCTION: HOST_FUNCTION.id,
}
"""What is behind idle time in which no thread is late, by the edge that decides when the next operation starts."""
BEHIND = np.array([PLACE[OF_KIND.get(kind, FALLBACK)] for kind in EdgeKind], dtype=np.int64)


def behind(model: Model, kind: IntArray, operation: IntArray) -> IntArray:
    """The place of the cause of time that edges of each `kind` take, to these operations (-1: none). The driver stages
    an upload from pageable memory before it starts: that is not the dispatch of what was queued."""
    staged = (kind == EdgeKind.STREAM) & np.append(model.uploads, False)[operation]
    return np.where(staged, PLACE[BLOCKING_COPY], BEHIND[kind])


def idle_by_cause(changes: Changes, run: Run, device: int) -> dict[str, int]:
    """The idle time of a device in the replay `run` of some changes by cause; it sums to all of that."""
    model, times, start, end = changes.model, run.times, run.start, run.end
    ns, _ = changes.edges()
    mine = np.flatnonzero(model.work.device == device)
    gaps = complement(union(Intervals(start[mine], end[mine])), *run.span)
    if len(gaps) == 0:
        return {}
    first = mine[np.argsort(start[mine], kind="stable")]
    closing = first[np.minimum(np.searchsorted(start[first], gaps.end), len(first) - 1)]
    edge = deciding_edges(model.graph, times, ns)[model.places.operation[closing]]
    decided = np.append(model.graph.edges.kind, EdgeKind.START)[edge]
    thread, until = late_threads(changes, times, closing, decided)
    late = Intervals(gaps.start, np.clip(until, gaps.start, gaps.end))
    total, by_gap = causes_in(changes, times, thread, late)
    total += sum_of_each(behind(model, decided, closing), gaps.end - gaps.start - by_gap, len(CAUSES))
    return {each: int(total[at]) for at, each in enumerate(CAUSES) if total[at]}


def deciding_edges(graph: Graph, times: IntArray, ns: IntArray) -> IntArray:
    """The row of the edge that decided when each moment is, -1 for none: of several the one that asked for most time
    before it was shortened to what was recorded."""
    edges = graph.edges
    begun = times[edges.source]
    order = np.lexsort((begun + graph.asked, begun + ns, edges.target))
    last = np.append(edges.target[order][1:] != edges.target[order][:-1], True)
    found = np.full(len(times), -1)
    found[edges.target[order][last]] = order[last]
    return found


def late_threads(changes: Changes, times: IntArray, closing: IntArray, decided: IntArray) -> tuple[IntArray, IntArray]:
    """For operations that waited for their launch: the thread, 0 for others, and when the launch was on its way."""
    model = changes.model
    call = model.call_of_operation[closing]
    known = (decided == EdgeKind.LAUNCH) & (call >= 0)
    row = model.work.launch[closing]
    thread = np.zeros(len(row), dtype=np.int64)
    thread[known] = model.host.host.api_calls.rows.thread[row[known]]
    launched = times[np.append(model.places.launch, 0)[call]] + changes.costs()[closing]
    # A call that waits for its copy holds its thread until that has begun, and longer.
    held = known & np.isin(row, model.threads.held.call[changes.held])
    return thread, np.where(held, times[model.places.operation[closing]], np.where(known, launched, 0))


def causes_in(changes: Changes, times: IntArray, thread: IntArray, time: Intervals) -> tuple[IntArray, IntArray]:
    """What threads did in some `time` of a replay: the ns of each cause, and how much of each row that is, in ns. Other
    threads, and 0, did nothing. Between two moments a thread has its host time in order, then the wait. Replayed times
    may leave the recorded ones, so lanes are apart by the whole length of the replay."""
    model = changes.model
    program, pieces, edges = model.program, model.pieces, model.graph.edges
    mine = model.graph.rows[EdgeKind.PROGRAM]
    begin, until = np.zeros((2, len(program)), dtype=np.int64)
    begin[edges.row[mine]], until[edges.row[mine]] = times[edges.source[mine]], times[edges.target[mine]]
    order = model.pieces_in_order
    owner = pieces.owner[order]
    kept = np.round(pieces.length * changes.time).astype(np.int64)[order]
    done = np.cumsum(kept)
    first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    base = np.maximum.accumulate(np.where(first, done - kept, 0)) if len(owner) else done
    offset = done - kept - base
    worked = begin + np.bincount(owner, kept, len(program)).astype(np.int64)
    worked += np.round(model.unseen * changes.unseen).astype(np.int64)
    start = np.concatenate((begin[owner] + offset, worked))
    end = np.concatenate((begin[owner] + offset + kept, np.maximum(until, worked)))
    cause = np.concatenate((pieces.cause[order], np.where(program.cause >= 0, program.cause, PLACE[FALLBACK])))
    rank = model.host.host.axis.lane(np.concatenate((program.thread[owner], program.thread)))
    origin, stride = int(times.min()), int(times.max() - times.min()) + 2
    spans = Intervals(rank * stride + start - origin, rank * stride + end - origin)
    some = np.flatnonzero((spans.end > spans.start) & (rank >= 0))
    some = some[np.argsort(spans.start[some], kind="stable")]
    lane = np.where(thread > 0, model.host.host.axis.lane(thread), -1)
    row = np.flatnonzero(lane >= 0)
    place = lane[row] * stride - origin
    asked = Owned.of(Intervals(place + time.start[row], place + time.end[row]), row)
    told, source = within(asked, _apart(spans[some]))
    ns = told.spans.end - told.spans.start
    return sum_of_each(cause[some][source], ns, len(CAUSES)), sum_of_each(told.owner, ns, len(time))


def _apart(spans: Intervals) -> Intervals:
    """Sorted intervals without their overlaps, which rounding makes: each ends where the next begins, at the latest."""
    end = np.minimum(spans.end, np.append(spans.start[1:], np.iinfo(np.int64).max))
    return Intervals(spans.start, np.maximum(end, spans.start))


# What a device does in a step of a replay: its four parts, and its idle time by cause.


def step_idle(changes: Changes, run: Run, device: int) -> dict[str, int]:
    """The idle time of a device by cause in ns, a mean over the counted steps, or of the window. It adds up to the idle
    part of the four."""
    total = four_parts(changes.model, run, device).idle_ns
    idle = idle_by_cause(changes, run, device)
    return adding_up(idle or {DISPATCH.id: total}, total) if total else {}


def adding_up(parts: dict[str, int], total: int) -> dict[str, int]:
    """Parts in proportion, as whole numbers that add up to `total`."""
    whole = max(sum(parts.values()), 1)
    until = [0, *(ns * total // whole for ns in accumulate(parts.values()))]
    return dict(zip(parts, (end - start for start, end in pairwise(until)), strict=True))


def four_parts(model: Model, run: Run, device: int) -> FourParts:
    """What a device does in a step, a mean over the steps that count, or in the window."""
    compute, communication, copies = (busy(model, run, device, [kind]) for kind in Class)
    exposed_comm = subtract(communication, compute)
    exposed_copy = subtract(copies, union(compute, communication))
    until = accumulate(each.total() for each in (compute, exposed_comm, exposed_copy))
    # The borders between the parts are rounded, not the parts: they add up.
    borders = [0, *(round(ns / run.count) for ns in until), run.ns]
    ns = [end - start for start, end in pairwise(borders)]
    return FourParts(compute_ns=ns[0], exposed_comm_ns=ns[1], exposed_copy_ns=ns[2], idle_ns=ns[3])
