"""Host functions in streams (cudaLaunchHostFunc, host nodes of CUDA graphs): when a stream waits for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces, union
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import Rows, distinct, last_before

if TYPE_CHECKING:
    from nsysdiag.events.calls import CallRows
    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.trace import Trace

HOST_FUNCTIONS = "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"
"""Since schema 3.28. The device does nothing for these rows: work behind them on the stream waits."""
CALLBACKS = "CUDA_HOST_CALLBACK"
"""The same functions as the threads of the driver ran them."""
SLACK_NS = 50_000
"""A function may end this long before the work behind it begins: a copy that is staged begins late. Clocks of the host
and the device differ by less."""
_NO_STREAM = -1


class HostFunctions(Rows, frozen=True):
    """`stream` is the code of the stream that waits in [start, end) ns; `issued` is when the call that put the function
    there began, `thread` (globalTid) ran it, for `ran` ns; -1 where that is not known."""

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
        stride = int(max(self.end.max(), closed.max(initial=0))) + SLACK_NS + 1
        order = np.lexsort((self.end, self.stream))
        ends = joint(self.stream, self.end, stride)[order]
        at = np.searchsorted(ends, joint(stream, closed + SLACK_NS, stride), side="right") - 1
        row = order[np.maximum(at, 0)]
        near = (at >= 0) & (self.stream[row] == stream) & (self.end[row] >= closed - SLACK_NS)
        held: BoolArray = near & (self.start[row] < closed) & (self.end[row] > opened)
        return held


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
    _, process = distinct(np.concatenate((functions["globalPid"], process_of(rows["globalTid"].astype(np.int64)))))
    _, correlation = distinct(np.concatenate((functions["correlationId"], rows["correlationId"])))
    launch = joint(process, correlation, count + len(rows))
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
    processes = np.unique(functions.process)
    streams = int(max(functions.stream.max(), synchronized.max(initial=_NO_STREAM))) + 1
    owner = process_of(calls.thread)
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
