"""What a device waits for in a replay: its idle time by cause, with the rules by which threads are looked at.

```
device   [==A==)..........................[==B==)     B starts when its launch arrives
thread         [ sync )[ host code ][ launch ]        what the thread does until then is what A to B is lost to
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals, complement, union
from nsysdiag.causes import CAUSES, EVENT_WAIT, FALLBACK, LAUNCH_LATENCY, PLACE
from nsysdiag.causes.device_stall import CAUSE as DEVICE_STALL
from nsysdiag.causes.dispatch import CAUSE as DISPATCH
from nsysdiag.causes.stream_barrier import CAUSE as STREAM_BARRIER
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.graph import Kind
from nsysdiag.replay.run import Run

OF_KIND = {
    Kind.LAUNCH: LAUNCH_LATENCY,
    Kind.STREAM: DISPATCH.id,
    Kind.CLASS: DISPATCH.id,
    Kind.OBSERVED: DEVICE_STALL.id,
    Kind.EVENT: EVENT_WAIT,
    Kind.BARRIER: STREAM_BARRIER.id,
}
"""What is behind idle time in which no thread is late, by the edge that decides when the next operation starts."""
BEHIND = np.array([PLACE[OF_KIND.get(kind, FALLBACK)] for kind in Kind], dtype=np.int64)


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
    decided = _deciding(changes, times, ns)[model.places.operation[closing]]
    thread, until = _late_threads(changes, times, closing, decided)
    spans, cause = _timelines(changes, times)
    axis = model.host.host.axis
    rank = np.where(thread > 0, axis.rank(thread), -1)
    late = np.flatnonzero(rank >= 0)
    # Replayed times may leave the recorded ones, so lanes are apart by the whole length of the replay here.
    origin, stride = int(times.min()), int(times.max() - times.min()) + 2
    begin, stop = gaps.start[late], np.clip(until[late], gaps.start[late], gaps.end[late])
    asked = Owned.of(Intervals(rank[late] * stride + begin - origin, rank[late] * stride + stop - origin), late)
    told, _, source = claim(asked, spans)
    total = np.bincount(cause[source], told.spans.end - told.spans.start, len(CAUSES)).astype(np.int64)
    by_gap = np.bincount(told.owner, told.spans.end - told.spans.start, len(gaps)).astype(np.int64)
    rest = gaps.end - gaps.start - by_gap
    total += np.bincount(BEHIND[decided], rest, len(CAUSES)).astype(np.int64)
    return {each: int(total[at]) for at, each in enumerate(CAUSES) if total[at]}


def _deciding(changes: Changes, times: IntArray, ns: IntArray) -> IntArray:
    """The kind of the edge that decided when each moment is."""
    edges = changes.model.graph.edges
    arrives = times[edges.source] + ns
    order = np.lexsort((arrives, edges.target))
    last = np.append(edges.target[order][1:] != edges.target[order][:-1], True)
    kind = np.full(len(times), Kind.START, dtype=np.int64)
    kind[edges.target[order][last]] = edges.kind[order][last]
    return kind


def _late_threads(changes: Changes, times: IntArray, closing: IntArray, decided: IntArray) -> tuple[IntArray, IntArray]:
    """For operations that waited for their launch: the thread, 0 for others, and when the launch was on its way."""
    model = changes.model
    call = model.call_of_operation[closing]
    known = (decided == Kind.LAUNCH) & (call >= 0)
    row = model.work.launch[closing]
    thread = np.where(known, np.append(model.host.host.api_calls.rows.thread, 0)[row], 0)
    launched = times[np.append(model.places.launch, 0)[call]] + changes.costs()[closing]
    # A call that waits for its copy holds its thread until that has begun, and longer.
    held = known & np.isin(row, model.threads.held.call[changes.held])
    return thread, np.where(held, times[model.places.operation[closing]], np.where(known, launched, 0))


def _timelines(changes: Changes, times: IntArray) -> tuple[Intervals, IntArray]:
    """What every thread does in the replay, in consecutive lanes, and the cause (index into the registry) of each
    piece: its host time in order, then the wait."""
    model = changes.model
    program, pieces, edges = model.program, model.pieces, model.graph.edges
    mine = edges.kind == Kind.PROGRAM
    begin, until = np.zeros((2, len(program)), dtype=np.int64)
    begin[edges.row[mine]], until[edges.row[mine]] = times[edges.source[mine]], times[edges.target[mine]]
    order = model.pieces_in_order
    owner = pieces.owner[order]
    kept = np.round((pieces.end - pieces.start) * changes.time).astype(np.int64)[order]
    done = np.cumsum(kept)
    first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    base = np.maximum.accumulate(np.where(first, done - kept, 0)) if len(owner) else done
    offset = done - kept - base
    worked = begin + np.bincount(owner, kept, len(program)).astype(np.int64)
    worked += np.round(model.unseen * changes.unseen).astype(np.int64)
    start = np.concatenate((begin[owner] + offset, worked))
    end = np.concatenate((begin[owner] + offset + kept, np.maximum(until, worked)))
    cause = np.concatenate((pieces.cause[order], np.where(program.cause >= 0, program.cause, PLACE[FALLBACK])))
    rank = model.host.host.axis.rank(np.concatenate((program.thread[owner], program.thread)))
    origin, stride = int(times.min()), int(times.max() - times.min()) + 2
    spans = Intervals(rank * stride + start - origin, rank * stride + end - origin)
    some = np.flatnonzero((spans.end > spans.start) & (rank >= 0))
    some = some[np.argsort(spans.start[some], kind="stable")]
    return _apart(spans[some]), cause[some]


def _apart(spans: Intervals) -> Intervals:
    """Sorted intervals without their overlaps, which rounding makes: each ends where the next begins, at the latest."""
    end = np.minimum(spans.end, np.append(spans.start[1:], np.iinfo(np.int64).max))
    return Intervals(spans.start, np.maximum(end, spans.start))
