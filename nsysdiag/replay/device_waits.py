"""Calls in which a thread waits for a device, the operation that ended each wait, and the others that it was for. Also
functions that a stream calls on the host."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.causes import ALLOCATION, BLOCKING_COPY, PLACE, SYNCHRONIZATION, blocking_copy, sync
from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.event_waits import SLACK_NS, HostFunctions
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import Rows, first_since, last_before, previous_on_stream
from nsysdiag.replay.orders import (
    LATENCY_NS,
    NONE,
    HostWaits,
    Issued,
    awaited_events,
    following,
    last_of_each_kind,
    last_to_end,
    producers,
    targets,
)
from nsysdiag.replay.work import Class, Work, row_of
from nsysdiag.wakeups.loaders import HostTrace

FREES = re.compile(r"cuda(Free|FreeHost|HostUnregister)|cuMem(Free|FreeHost|HostUnregister)")
"""Calls that wait for the device, though their names do not say so, if one of its operations ended in them."""
OF_DEVICE = re.compile(rf"cuda(Device|Thread)Synchronize|cuCtxSynchronize|{FREES.pattern}")
"""Calls that wait for all streams of a device."""


NEVER = np.iinfo(np.int64).min


class DeviceWaits(Rows, frozen=True):
    """Waits [begin, end) in ns of `thread` (globalTid) for the operation at `target`, a place in `Work`, NONE if
    not known; `cause` is an index into the registry, `call` the row of the waiting call, -1 for several."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    cause: IntArray
    call: IntArray
    target: IntArray


class Finished(Rows, frozen=True):
    """Other operations for which a wait was, too, and which had finished before it ended: the row of the `wait` in
    `DeviceWaits`, the `operation`, a place in `Work`, and whether that is of the stream of the target (`own`). If its
    target were shorter, or ran elsewhere, or a wait before it were gone, the wait would be for these."""

    wait: IntArray
    operation: IntArray
    own: BoolArray


class DeviceWaitTable(Struct, frozen=True):
    """The waits of threads for devices, and for what they were besides their targets. A wait is for all that the waits
    before it of its `group` were for: a stream, a device or a process. `in_order` has the waits group by group, those
    for an event in order of its record. `whole` marks those that are for all of their group, as far as is known; others
    are for the stream of their target."""

    held: DeviceWaits
    finished: Finished
    group: IntArray
    in_order: IntArray
    whole: BoolArray

    def ended(self, work: Work) -> IntArray:
        """When all had ended that each wait, and those before it, were for besides its target; NEVER if that is
        nothing."""
        ended = np.full(len(self.held), NEVER)
        np.maximum.at(ended, self.finished.wait, work.end[self.finished.operation])
        ended[self.in_order] = ended[last_to_end(self.group, ended, self.in_order)]
        return ended


def device_waits(evidence: HostEvidence, asked: DeviceWaits, work: Work, activity: DeviceActivity) -> DeviceWaitTable:
    """Those that have a target, of the waits that threads `asked` for."""
    streams = activity.synchronized_streams
    stream, until, device = (
        np.where(asked.call >= 0, each[asked.call] if len(asked) else asked.call, -1)
        for each in (streams.stream, streams.until, activity.synchronized)
    )
    if len(activity.devices) == 1:
        device = np.zeros(len(asked), dtype=np.int64)
    own = _own_stream(work, asked)
    stream = np.where(own >= 0, own, stream)
    issued, operation, group = _groups(work, activity, process_of(asked.thread), stream, device)
    mine = np.flatnonzero(np.isin(issued.group, group))
    issued, operation = issued.take(mine), operation[mine]
    waits = HostWaits(group, np.where(until >= 0, until, asked.begin), asked.end)
    target = np.append(operation, -1)[targets(issued, waits)]
    kept = target >= 0
    # A free of a kind that does not always wait for the device waits only if it did.
    asynchronous = _asynchronous(evidence, work, issued, operation, waits, asked)
    kept &= ~asynchronous | (work.end[target] > asked.begin) if len(work) else kept
    rows = asked.take(kept)
    held = replace(rows, target=target[kept])
    waits, whole = waits.take(kept), (stream[kept] >= 0) | _of_device(evidence, rows)
    in_order = np.lexsort((waits.begin, waits.group))
    finished = _finished(work, issued, operation, held, waits, in_order)
    return DeviceWaitTable(held, finished, waits.group, in_order, whole)


def _asynchronous(
    evidence: HostEvidence, work: Work, issued: Issued, operation: IntArray, waits: HostWaits, asked: DeviceWaits
) -> BoolArray:
    """Which of them are frees by a call that has returned while something issued before it ran."""
    without_end = HostWaits(waits.group, waits.begin, np.full(len(waits), np.iinfo(np.int64).max))
    latest = np.append(operation, -1)[targets(issued, without_end)]
    ran = (latest >= 0) & (np.append(work.end, 0)[latest] > waits.end)
    free = asked.cause == PLACE[ALLOCATION]
    found = np.zeros(len(asked), dtype=np.bool_)
    name = evidence.host.api_calls.rows.name[asked.call[free]]
    found[free] = np.isin(name, name[ran[free]])
    return found


def with_waiting(evidence: HostEvidence, launching: IntArray, wakers: IntArray, host_trace: HostTrace) -> HostEvidence:
    """The evidence of the `launching` threads, with those of the `wakers` that wait for a device, too."""
    calls = host_trace.activity.api_calls
    names = np.flatnonzero(named_like(calls.names, sync.CALLS) | named_like(calls.names, FREES))
    others = np.setdiff1d(wakers, launching)
    if len(others) == 0 or len(names) == 0:
        return evidence
    others = np.intersect1d(others, calls.rows.thread[np.isin(calls.rows.name, names)])
    if len(others) == 0:
        return evidence
    view = host_trace.waiting(np.union1d(launching, others))
    return HostEvidence.of(view.host, view.facts)


def _of_device(evidence: HostEvidence, asked: DeviceWaits) -> BoolArray:
    """Which of them are calls that wait for all streams of a device."""
    calls = evidence.host.api_calls
    waits = np.append(named_like(calls.names, OF_DEVICE), False)
    name = calls.rows.name[np.maximum(asked.call, 0)] if len(calls.rows) else np.full(len(asked), -1)
    return waits[np.where(asked.call >= 0, name, -1)]


def _finished(
    work: Work, issued: Issued, operation: IntArray, held: DeviceWaits, waits: HostWaits, in_order: IntArray
) -> Finished:
    """What was issued since the wait before of the same group, and that one's target."""
    wait, row = last_of_each_kind(issued, joint(work.stream[operation], work.kind[operation], len(Class)), waits)
    found = operation[row]
    kept = found != held.target[wait]
    before, later = following(waits.group, in_order)
    passed = held.target[before]
    over = work.end[passed] <= held.end[later]
    wait, found = np.append(wait[kept], later[over]), np.append(found[kept], passed[over])
    return Finished(wait, found, work.stream[found] == work.stream[held.target[wait]])


def asked_in(evidence: HostEvidence, lo: int, hi: int) -> DeviceWaits:
    """Calls that begin in [lo, hi) and may wait for a device, and spins on a query, whose `call` is -1. The cause of
    those that sleep between queries is that they return late."""
    copies = evidence.calls(blocking_copy.COPIES)
    lanes = (
        (SYNCHRONIZATION, evidence.calls(sync.CALLS)),
        (BLOCKING_COPY, copies.take(blocking_copy.is_blocking(evidence, copies))),
        (ALLOCATION, evidence.calls(FREES)),
    )
    spins, polls = sync.query_waits(evidence)
    parts = [_begun_in(lo, hi, evidence, lane.spans, lane.row, PLACE[cause]) for cause, lane in lanes]
    for asked, cause in ((spins[~polls], SYNCHRONIZATION), (spins[polls], SLEEP.id)):
        parts.append(_begun_in(lo, hi, evidence, asked, np.full(len(asked), -1), PLACE[cause]))
    return DeviceWaits.concatenate(parts)


def asked_at_once(evidence: HostEvidence, lo: int, hi: int) -> DeviceWaits:
    """Queries that begin in [lo, hi) and found at once that their target was done, as waits."""
    spans = sync.queries_at_once(evidence)
    return _begun_in(lo, hi, evidence, spans, np.full(len(spans), -1), PLACE[SYNCHRONIZATION])


def _begun_in(lo: int, hi: int, evidence: HostEvidence, spans: Intervals, call: IntArray, cause: int) -> DeviceWaits:
    """Those of the spans that begin in [lo, hi), as waits."""
    axis = evidence.host.axis
    begin = axis.time(spans.start)
    rows = np.flatnonzero((begin >= lo) & (begin < hi))
    spans, begin = spans[rows], begin[rows]
    thread = axis.threads[spans.start // axis.stride] if len(axis.threads) else spans.start
    end, target = begin + spans.end - spans.start, np.full(len(spans), NONE)
    return DeviceWaits(thread, begin, end, np.full(len(spans), cause), call[rows].astype(np.int64), target)


def _own_stream(work: Work, asked: DeviceWaits) -> IntArray:
    """The stream of the copy that each blocking copy call made, of several the last; -1 for other calls."""
    found = np.full(len(asked), -1)
    copies = np.flatnonzero(asked.cause == PLACE[BLOCKING_COPY])
    row = row_of(asked.call[copies], work.launch[::-1])
    found[copies[row >= 0]] = work.stream[::-1][row[row >= 0]]
    return found


def _groups(
    work: Work, activity: DeviceActivity, process: IntArray, stream: IntArray, device: IntArray
) -> tuple[Issued, IntArray, IntArray]:
    """What waits may be for, as groups of operations: a stream, a device of a process, all of a process. Every
    operation once for each of these, its place in `Work`, and the group of each wait: its stream if that is known, else
    its device, else all of its process. What a stream waits for by an event is of its group, too."""
    processes, code = distinct(np.concatenate((activity.operations.process[work.row], process)))
    of_work, of_waits = np.split(code, [len(work)])
    streams = int(max(each.max(initial=-1) for each in (work.stream, activity.waits.stream, stream))) + 1
    devices = len(activity.devices)
    behind = streams + len(processes) * devices
    event = producers(work, activity.waits, len(activity.operations))
    waiting = np.flatnonzero(event >= 0)
    parts = (work.stream, streams + of_work * devices + work.device, behind + of_work, activity.waits.stream[waiting])
    operation = np.append(np.tile(np.arange(len(work)), 3), event[waiting])
    # A copy that blocks is issued when its call begins, which is when the wait for it does.
    issued = np.append(np.tile(work.issued - 1, 3), activity.waits.issued[waiting])
    of_device = np.where(device >= 0, streams + of_waits * devices + device, behind + of_waits)
    group = np.where(stream >= 0, stream, of_device)
    return Issued(np.concatenate(parts).astype(np.int64), issued, work.end[operation]), operation, group


# Host functions in streams: what operations and waits of threads are behind them in a replay.
#
# ```
# thread    [launch A][function f][launch B][sync                        )
# stream              [== A ==)(f                 )[== B ==)
# edges                       A ----- f's time ----> B       what was issued before A ended: f follows A
#                   [launch B] ------ f's time ----> B       else f begins when it is issued
# ```
#
# A wait with nothing behind the function is released when that returns.

_FAR = 1 << 62
"""Stands for the end of an operation that does not exist, negated, in ns: before any time of a trace. The difference to
such a time fits in 64 bits."""


class Behind(Rows, frozen=True):
    """Rows that are behind functions: `before` is the operation that these follow in their stream, a place in `Work`,
    -1 for none. The first of them was issued at `issued`; they ran in [start, end), all in ns."""

    row: IntArray
    before: IntArray
    issued: IntArray
    start: IntArray
    end: IntArray

    @classmethod
    def of(
        cls, functions: HostFunctions, stream: IntArray, before: IntArray, since: IntArray, until: IntArray
    ) -> Behind:
        """For each row of a stream the functions between `since` and `until` in it."""
        first = first_since(functions.stream, functions.start, stream, since - SLACK_NS)
        row = np.flatnonzero((first >= 0) & (np.append(functions.start, 0)[first] < until))
        last = last_before(functions.stream, functions.start, stream[row], until[row] - 1)
        start, end = functions.start[first[row]], functions.end[last]
        found = cls(row, before[row], functions.issued[first[row]], start, end)
        return found.take(end <= until[row] + SLACK_NS)

    def begins_after(self, work: Work) -> tuple[IntArray, IntArray]:
        """How long after the end of the operation before, and after its issue, the first function begins, in ns."""
        ended = np.append(work.end, -_FAR)[self.before]
        known = self.issued > 0
        queued = known & (self.issued <= ended)
        after_end = np.where(queued, np.maximum(self.start - ended, 0), np.clip(self.start - ended, 0, LATENCY_NS))
        after_issue = np.where(known & ~queued, np.maximum(self.start - self.issued, 0), LATENCY_NS)
        return after_end, after_issue


LAUNCHES = re.compile(r"(cuda|cu)(LaunchHostFunc|StreamAddCallback)(_pts[dz])?(_v\d+)?")
"""Calls that let a stream wait until a thread of the driver has run a function."""


def functions_in(activity: DeviceActivity, work: Work) -> HostFunctions:
    """Those of the trace. Without rows, as before schema 3.28, they are known by the calls that launch them: an
    operation behind such a call is late by the function."""
    functions = activity.host_functions
    issued = _launched(work, activity) if not len(functions) else np.empty(0, dtype=np.int64)
    row = np.flatnonzero(issued >= 0)
    if not len(row):
        return functions
    before, event = previous_on_stream(work.stream)[row], np.zeros(len(work), dtype=np.bool_)
    event[awaited_events(work, activity.waits, len(activity.operations)).after] = True
    start = np.maximum(np.append(work.end, 0)[before], issued[row] + LATENCY_NS)
    kept = (start < work.start[row]) & ~event[row]
    process = activity.operations.process[work.row[row]]
    unknown = np.full(len(row), -1)
    return HostFunctions(start, work.start[row], process, work.stream[row], issued[row], unknown, unknown).take(kept)


def _launched(work: Work, activity: DeviceActivity) -> IntArray:
    """For each operation when its thread last launched a host function since it launched the one before it in the
    stream, in ns; -1 if it did not."""
    calls, found = activity.api_calls, np.full(len(work), -1)
    names, asked = np.flatnonzero(named_like(calls.names, LAUNCHES)), np.flatnonzero(work.launch >= 0)
    mine = np.flatnonzero(np.isin(calls.rows.name, names)) if len(names) else names
    if not len(asked) or not len(mine):
        return found
    begun, issued = calls.rows.start[mine], work.issued[asked]
    row = last_before(calls.rows.thread[mine], begun, calls.rows.thread[work.launch[asked]], issued)
    before = previous_on_stream(work.stream)[asked]
    since = np.append(work.issued, 0)[before]
    fits = (row >= 0) & (begun[row] > since)
    found[asked[fits]] = begun[row[fits]]
    return found


def operations_behind(functions: HostFunctions, work: Work) -> Behind:
    """The operations that are behind functions in their streams."""
    return Behind.of(functions, work.stream, previous_on_stream(work.stream), work.ended_before(), work.start)


def waits_behind_functions(functions: HostFunctions, work: Work, held: DeviceWaits) -> Behind:
    """The waits for a stream that functions behind their targets hold."""
    found = Behind.of(functions, work.stream[held.target], held.target, work.end[held.target], held.end)
    return found.take((found.issued <= held.begin[found.row]) & (found.end > held.begin[found.row]))
