"""Captures that begin in the middle of a run, and from when on they show what held the GPU.

```
run        [work of before   ==========)[==A==)[==B==) ...
capture            |--------------------------------------
thread             | [A][B] ...                                 launched at once, and queued
device             | ..................[==A==)[==B==) ...       what ran here is not in the file
known from         |                   ^
```
"""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, union
from nsysdiag.events.calls import ApiCalls, CallRows, named_like
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import distinct, distinct_values

LONG_NS = 1_000_000
"""The call that creates a context takes at least as long."""
HELD_NS = 100_000
"""An operation that starts so long after its launch was held: ten times the longest usual latency."""
MOST_IDLE, MOST_BEFORE = 0.9, 0.05
"""Of its wait: how long the device does nothing of the file. Of the device's work: what comes before, at most."""
_STARTS = re.compile(
    r"cuInit|cudaInitDevice|cuDevicePrimaryCtx(Retain|Reset)\w*|cu(Green)?CtxCreate\w*|cuModuleGetLoadingMode"
    r"|cu(da)?(Module|Library)Load\w*|cu(da)?\w*(Malloc|Alloc(?!ator)|Free|StreamCreate|HostRegister)\w*"
)
"""Calls that a program makes as it starts, and a step hardly."""
_USES = re.compile(r"(cuda|cu)\w*(Launch|Memcpy|Memset)\w*")
_WAITS = re.compile(r"\w*Synchronize\w*")


def beginning_of(device: DeviceTimeline, api_calls: ApiCalls, *, cut: bool) -> tuple[bool, int | None]:
    """Whether the capture begins in the middle of a run, and if so from when on it shows what held the GPU.

    Its format says so (`cut`), or some work was launched before it, or waited for such. And the process that works on
    the device had a context: nothing initializes CUDA before the first operation, and the first call that needs a
    context takes no time to create one."""
    if not _had_context(device, api_calls):
        return False, None
    known = known_from(device, api_calls.rows)
    inside = cut or known is not None or launched_before(device, api_calls.rows)
    return inside, known


def launched_before(device: DeviceTimeline, calls: CallRows) -> bool:
    """Whether operations have lower correlation ids than all calls."""
    number = device.operations.correlation[(device.launch < 0) & device.running]
    return bool(len(calls) and ((number > 0) & (number < calls.correlation.min())).any())


def _had_context(device: DeviceTimeline, api_calls: ApiCalls) -> bool:
    calls = api_calls.rows
    launch = device.launch[device.launch >= 0]
    if not len(launch):
        return False
    processes, which = distinct(process_of(calls.thread[launch]))
    process = processes[np.argmax(np.bincount(which))]
    first = int(device.operations.start[device.launch >= 0].min())
    mine = _rows_of(calls, process, np.flatnonzero(calls.start <= first))
    uses = _named(api_calls, mine, _USES)
    if not len(uses):  # later calls only matter without an earlier one
        mine = _rows_of(calls, process, np.arange(len(calls)))
        uses = _named(api_calls, mine, _USES)
    starts, waits = (_named(api_calls, mine, each) for each in (_STARTS, _WAITS))
    if (calls.start[starts] < first).any() or not len(uses):
        return False
    long = np.setdiff1d(mine[calls.end[mine] - calls.start[mine] >= LONG_NS], waits)
    return not (calls.start[long] <= calls.start[uses].min()).any()


def _rows_of(calls: CallRows, process: int, rows: IntArray) -> IntArray:
    mine: IntArray = rows[process_of(calls.thread[rows]) == process]
    return mine


def _named(api_calls: ApiCalls, rows: IntArray, pattern: re.Pattern[str]) -> IntArray:
    return rows[named_like(api_calls.names, pattern)[api_calls.rows.name[rows]]]


def known_from(device: DeviceTimeline, calls: CallRows) -> int | None:
    """When the last first operation of a stream starts that waited for work outside of the file; None without any. Work
    of a stream runs in order, so only the first operation can have waited for that."""
    firsts = _first_of_streams(device)
    if not len(firsts):
        return None
    operations = device.operations
    waits = Intervals(calls.end[device.launch[firsts]], operations.start[firsts])
    held = waits.end - waits.start > HELD_NS
    firsts, waits = firsts[held], waits[held]
    busy = union(Intervals(operations.start[device.running], operations.end[device.running]))
    idle = coverage(busy, waits) <= (1 - MOST_IDLE) * (waits.end - waits.start)
    before = coverage(busy, Intervals(np.full(len(waits), operations.start[0]), waits.end))
    known = waits.end[idle & (before <= MOST_BEFORE * busy.total())]
    return int(known.max()) if len(known) else None


def launches_begin(device: DeviceTimeline) -> IntArray:
    """When the first operation starts whose launch is in the file, behind others; empty without others before it."""
    rows = np.flatnonzero(device.running & ~device.operations.migration)
    known = device.launch[rows] >= 0
    first = int(np.argmax(known)) if known.any() else 0
    return device.operations.start[rows[first : first + 1]] if first else np.empty(0, np.int64)


def _first_of_streams(device: DeviceTimeline) -> IntArray:
    """The first operation of each stream, where its launch is in the file."""
    rows = np.flatnonzero(device.running & ~device.operations.migration)
    streams = distinct_values(device.stream_code[rows])
    order = np.searchsorted(streams, device.stream_code[rows])
    first = rows[np.unique(order, return_index=True)[1]]
    return first[device.launch[first] >= 0]
