"""What streams wait for: events (cudaStreamWaitEvent), and with them which operation; and host functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces, rows_from, union
from nsysdiag.events.calls import ApiCalls, CallRows, issue_times, match_launches, named_like
from nsysdiag.events.identity import joint, once, process_of
from nsysdiag.events.operations import Operations
from nsysdiag.events.rows import Rows, coded_tuples, combinations, last_before
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.enums import NO_EVENT

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


# What a stream waits for through another one: an event that is recorded behind waits stands for theirs, too.

NEVER = np.iinfo(np.int64).min


class RecordedWaits(Rows, frozen=True):
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


def through_others(waits: RecordedWaits) -> Through:
    """Each wait, and waits of the stream that its event was recorded on: those with no operation behind them until the
    record. Of several for one stream, that of the last event. What the waiting stream itself did is left out.

    ```
    stream 7   [===== A ======)
    stream 8   wait for A
                   record E        no operation behind the wait
    stream 9          wait for E   [== B ==)     B waits for A
    ```
    """
    search = _EventSearch(waits)
    seen = Through.empty()
    rows = search.behind_waits()
    front = Through(rows, rows)
    while len(front):
        found = search.before(front)
        found = found.take(waits.of[found.other] != waits.stream[found.wait])
        seen, front = _with_new(waits, seen, found)
    return seen


def _with_new(waits: RecordedWaits, seen: Through, found: Through) -> tuple[Through, Through]:
    """What is known now, and what of it is new: for each wait and stream the event recorded last."""
    every = Through.concatenate([seen, found])
    new = np.arange(len(every)) >= len(seen)
    of = waits.of[every.other]
    order = np.lexsort((new, -waits.recorded[every.other], of, every.wait))
    wait, of = every.wait[order], of[order]
    kept = order[(np.diff(wait, prepend=-1) != 0) | (np.diff(of, prepend=-1) != 0)]
    return every.take(kept), every.take(kept[new[kept]])


class _EventSearch:
    """Finds waits by the stream that they were issued to and the stream of their event."""

    def __init__(self, waits: RecordedWaits) -> None:
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


UNKNOWN_PRODUCER = -1
"""The producer of a wait if the trace does not show what its event was recorded behind."""
NO_PRODUCER = -2
"""The producer of a wait if its event was recorded with nothing before it: such a wait explains nothing."""
STREAM_WAITS = re.compile(r"cu(da)?StreamWaitEvent")
_EVENT_SYNCS = re.compile(r"cu(da)?EventSynchronize")
_STREAM_SYNCS = re.compile(r"cu(da)?StreamSynchronize")


class StreamWaits(Rows, frozen=True):
    """Waits sorted by stream code, then by the time at which they were issued. `producer` is the row of the operation
    waited for among all operations, UNKNOWN_PRODUCER, or NO_PRODUCER if the event had nothing before it. A wait for
    an event that was recorded behind other waits has a row for the operation of each of them, too."""

    stream: IntArray
    issued: IntArray
    producer: IntArray


class Synchronized(Struct, frozen=True):
    """What each call waited for: the code of a stream, -1 if unknown, and of it what was issued before this time in ns,
    -1 for all until the call."""

    stream: IntArray
    until: IntArray

    @classmethod
    def of(cls, calls: int, rows: IntArray, stream: IntArray, until: IntArray) -> Synchronized:
        """Of so many calls these `rows` are known."""
        if len(rows) == 0:
            return cls(constant(np.full(1, -1, np.int32), calls), constant(np.full(1, -1, np.int64), calls))
        found = cls(np.full(calls, -1, np.int32), np.full(calls, -1, np.int64))
        found.stream[rows], found.until[rows] = stream, until
        return found


class StreamsWaited(Struct, frozen=True):
    """The waits of streams, and of calls for streams; the stream code of every operation, and the stream of each
    code as (process, context, stream)."""

    waits: StreamWaits
    synchronized: Synchronized
    functions: HostFunctions
    operations: IntArray
    streams: list[tuple[int, int, int]]


def read_stream_waits(trace: Trace, api_calls: ApiCalls, operations: Operations, launch: IntArray) -> StreamsWaited:
    """What streams and calls waited for, as the tables of synchronizations and of event records have it.

    Waits are known by the name of their API call: syncType is wrong in some versions. `launch` is the row of the call
    that launched each operation, -1 for none.
    """
    sync = trace.read(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        *("globalPid", "contextId", "streamId", "correlationId", "eventId", "eventSyncId"),
    )
    records = trace.read(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        *("globalPid", "contextId", "streamId", "correlationId", "eventId", "eventSyncId"),
    )
    functions = read_host_functions(trace)
    parts = [(operations.process, operations.context, operations.stream)]
    others = [table for table in (sync, records, functions) if len(table)]
    parts += [(table["globalPid"], table["contextId"], table["streamId"]) for table in others]
    code, keys = coded_tuples(*(np.concatenate(each) if others else each[0] for each in zip(*parts, strict=True)))
    borders = np.cumsum([len(operations), len(sync), len(records)])
    # Copies: a part, even an empty one, would keep all of `code` in memory.
    op_code, sync_code, record_code, function_code = (
        once(part, lambda codes: codes.astype(np.int32)) for part in np.split(code, borders)
    )
    call = match_launches(sync["globalPid"], sync["correlationId"], api_calls.rows)
    recorded_by = match_launches(records["globalPid"], records["correlationId"], api_calls.rows)
    record_time = issue_times(recorded_by, api_calls.rows, -1)

    def asked(names: re.Pattern[str]) -> tuple[IntArray, IntArray, IntArray]:
        rows = _made_by(names, call, api_calls)
        time = api_calls.rows.start[call[rows]] if len(rows) else rows
        return rows, time, _record_of(sync, rows, time, records, record_time)

    rows, time, record = asked(STREAM_WAITS)
    issued = issue_times(launch, api_calls.rows, operations.start) if len(rows) else operations.start
    producer = _producers(record, record_time, record_code, op_code, issued)
    waits = StreamWaits(sync_code[rows], time, producer)
    waits = _through_others(waits, record, record_time, record_code, issued)
    waits = waits.take(np.lexsort((waits.issued, waits.stream)))
    streams = _made_by(_STREAM_SYNCS, call, api_calls)
    events, _, record = asked(_EVENT_SYNCS)
    known = np.append(record_time, -1)[record] >= 0
    events, record = events[known], record[known]
    synchronized = Synchronized.of(
        len(api_calls.rows),
        call[np.concatenate((streams, events))],
        np.concatenate((sync_code[streams], record_code[record])),
        np.concatenate((np.full(len(streams), -1), record_time[record])),
    )
    put = match_launches(functions["globalPid"], functions["correlationId"], api_calls.rows)
    function_time = issue_times(put, api_calls.rows, -1)
    held = functions_of(trace, functions, function_code, function_time)
    return StreamsWaited(waits, synchronized, held, op_code, keys)


def _made_by(names: re.Pattern[str], call: IntArray, api_calls: ApiCalls) -> IntArray:
    """The rows whose call, -1 if there is none, has such a name."""
    codes = np.flatnonzero(named_like(api_calls.names, names))
    rows = np.flatnonzero(call >= 0)
    return rows[np.isin(api_calls.rows.name[call[rows]], codes)] if len(rows) else rows


def _record_of(sync: Columns, waits: IntArray, time: IntArray, records: Columns, record_time: IntArray) -> IntArray:
    """The row of the event record that each wait waits for: the last one of its event before it, by eventSyncId too
    where both tables have it; -1 if there is none."""
    by_event = _last_record(sync, waits, time, records, record_time, ("eventId",))
    if not (records.present("eventSyncId") and sync.present("eventSyncId")):
        return by_event
    exact = _last_record(sync, waits, time, records, record_time, ("eventId", "eventSyncId"))
    return np.where(exact >= 0, exact, by_event)


def _last_record(
    sync: Columns, waits: IntArray, time: IntArray, records: Columns, record_time: IntArray, keys: tuple[str, ...]
) -> IntArray:
    """The last record before each wait with the same process and `keys`, whose values must be real ids."""
    count = len(records)
    columns = {key: np.concatenate((records[key], sync[key][waits])) for key in ("globalPid", *keys)}
    group, _ = combinations(*columns.values())
    real = np.ones(count + len(waits), dtype=np.bool_)
    for key in keys:
        real &= (columns[key] >= (0 if key == "eventId" else 1)) & (columns[key] != NO_EVENT)
    usable = np.flatnonzero(real[:count])
    row = last_before(group[usable], record_time[usable], group[count:], time)
    return np.where(real[count:], np.append(usable, -1)[row], -1)


def _through_others(
    waits: StreamWaits, record: IntArray, record_time: IntArray, record_code: IntArray, issued: IntArray
) -> StreamWaits:
    """With a row for each operation that a wait is for through the waits of another stream."""
    known = np.flatnonzero((record >= 0) & (waits.producer != UNKNOWN_PRODUCER))
    if len(known) == 0:
        return waits
    row, producer = record[known], waits.producer[known]
    last = np.where(producer >= 0, np.append(issued, 0)[producer], NEVER)
    recorded = RecordedWaits(waits.stream[known], waits.issued[known], record_code[row], record_time[row], last)
    found = through_others(recorded)
    made = producer[found.other] >= 0
    wait, other = known[found.wait[made]], known[found.other[made]]
    return StreamWaits.concatenate([waits, StreamWaits(waits.stream[wait], waits.issued[wait], waits.producer[other])])


def _producers(
    record: IntArray, record_time: IntArray, record_code: IntArray, op_code: IntArray, issued: IntArray
) -> IntArray:
    """The last operation issued to the record's stream before the record."""
    known = np.flatnonzero(record >= 0)
    if not len(known):
        return np.full(len(record), UNKNOWN_PRODUCER, dtype=np.int64)
    time, stream = record_time[record[known]], record_code[record[known]]
    producer = last_before(op_code, issued, stream, time - 1)
    result = np.full(len(record), UNKNOWN_PRODUCER, dtype=np.int64)
    result[known] = np.select([time < 0, producer < 0], [UNKNOWN_PRODUCER, NO_PRODUCER], producer)
    return result


# Host functions in streams (cudaLaunchHostFunc, host nodes of CUDA graphs): when a stream waits for one.

HOST_FUNCTIONS = "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"
"""Since schema 3.28. The device does nothing for these rows: work behind them on the stream waits."""
CALLBACKS = "CUDA_HOST_CALLBACK"
"""The same functions as the threads of the driver ran them."""
SLACK_NS = 50_000
"""A function may end this long before the work behind it begins: a copy that is staged begins late. Clocks of the host
and the device differ by less."""
_NO_STREAM = -1
"""The key of a call that no function can hold: codes of streams are at least 0."""


class HostFunctions(Rows, frozen=True):
    """`stream` is the code of the stream that waits in [start, end) ns; `issued` is when the call that put the function
    there began, `thread` (globalTid) ran it, for `ran` ns; -1 if that is not known."""

    start: IntArray
    end: IntArray
    process: IntArray
    stream: IntArray
    issued: IntArray
    thread: IntArray
    ran: IntArray

    def just_before(self, stream: IntArray, opened: IntArray, closed: IntArray) -> BoolArray:
        """Whether a function holds this stream in each [opened, closed), until near its end.

        ```
        stream 7  [==A==)(host function    )[==B==)
        gap             [-------------------)
        ```
        """
        if len(self) == 0:
            return np.zeros(len(stream), dtype=np.bool_)
        row = last_before(self.stream, self.end, stream, closed + SLACK_NS)
        near = (row >= 0) & (self.end[row] >= closed - SLACK_NS)
        return near & (self.start[row] < closed) & (self.end[row] > opened)


class HeldCalls(Struct, frozen=True):
    """The times in which synchronization calls wait for a host function, ns, with the row of each call."""

    row: IntArray
    spans: Intervals


def read_host_functions(trace: Trace) -> Columns:
    """The rows as recorded."""
    return trace.read(HOST_FUNCTIONS, "start", "end", "globalPid", "contextId", "streamId", "correlationId")


def functions_of(trace: Trace, columns: Columns, stream: IntArray, issued: IntArray) -> HostFunctions:
    """The valid rows, whose streams have these codes, and which were issued at these times."""
    thread, ran = _callbacks(trace, columns) if len(columns) else (stream, stream)
    rows = HostFunctions(columns["start"], columns["end"], columns["globalPid"], stream, issued, thread, ran)
    return rows.take((rows.start > 0) & (rows.end > rows.start))


def _callbacks(trace: Trace, functions: Columns) -> tuple[IntArray, IntArray]:
    """The thread that ran each function and for how long, -1 for none: the last callback of its launch to begin before
    its end. A graph with several host nodes has several."""
    rows = trace.read(CALLBACKS, "start", "end", "globalTid", "correlationId")
    count, valid = len(functions), rows["end"] >= rows["start"]
    process = np.concatenate((functions["globalPid"], process_of(rows["globalTid"].astype(np.int64))))
    launch, _ = combinations(process, np.concatenate((functions["correlationId"], rows["correlationId"])))
    row = last_before(launch[count:], rows["start"], launch[:count], functions["end"])
    known = np.append(valid, False)[row]
    known &= np.append(rows["end"], -1)[row] > functions["start"] - SLACK_NS
    ran = np.append(rows["end"] - rows["start"], -1)[row]
    return np.where(known, np.append(rows["globalTid"], -1)[row], -1), np.where(known, ran, -1)


def held_calls(functions: HostFunctions, calls: CallRows, synchronized: IntArray, *, one_device: bool) -> HeldCalls:
    """The parts of the calls that wait for a stream in which a host function runs. `synchronized` is the code of the
    stream that each call waits for, -1 for none. Where there is one device, other calls wait for all streams of their
    process: the caller knows which of them synchronize.

    ```
    stream 7  [==A==)(host function     )..[==B==)
    thread      [cudaStreamSynchronize      ]
    held               [----------------)
    ```
    """
    if len(functions) == 0:
        return HeldCalls(np.empty(0, dtype=np.int64), Intervals.empty())
    processes = distinct_values(functions.process)
    streams = int(max(functions.stream.max(), synchronized.max(initial=_NO_STREAM))) + 1
    owner = calls.process
    any_stream = streams + np.searchsorted(processes, owner)
    known = np.isin(owner, processes) & one_device
    key = np.where(synchronized >= 0, synchronized, np.where(known, any_stream, _NO_STREAM))
    row = np.flatnonzero((key >= 0) & (calls.end > calls.start))
    stride = int(max(functions.end.max(), calls.end.max(initial=0))) + 1
    of_function = [functions.stream, streams + np.searchsorted(processes, functions.process)]
    ran = Intervals(functions.start, functions.end)
    placed = union(*(_on_lanes(each, ran, stride) for each in of_function))
    call, held = pieces(placed, _on_lanes(key[row], Intervals(calls.start[row], calls.end[row]), stride))
    start = held.start % stride
    return HeldCalls(row[call], Intervals(start, start + held.end - held.start))


def _on_lanes(lane: IntArray, spans: Intervals, stride: int) -> Intervals:
    return Intervals(joint(lane, spans.start, stride), joint(lane, spans.end, stride))
