"""Host functions in streams: what operations and waits of threads are behind them in a replay.

```
thread    [launch A][function f][launch B][sync                        )
stream              [== A ==)(f                 )[== B ==)
edges                       A ----- f's time ----> B       what was issued before A ended: f follows A
                  [launch B] ------ f's time ----> B       else f begins when it is issued
```

A wait with nothing behind the function is released when that returns.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.event_waits import SLACK_NS, HostFunctions
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import last_before, previous_on_stream
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.work import LATENCY_NS, Work, awaited_events

_FAR = 1 << 62


class Behind(Struct, frozen=True):
    """Rows that are behind functions: `before` is the operation that these follow in their stream, a place in `Work`,
    -1 for none. The first of them was issued at `issued`; they ran in [start, end), all in ns."""

    row: IntArray
    before: IntArray
    issued: IntArray
    start: IntArray
    end: IntArray

    @classmethod
    def nothing(cls) -> Behind:
        """No rows."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none, none, none)

    @classmethod
    def of(
        cls, functions: HostFunctions, stream: IntArray, before: IntArray, since: IntArray, until: IntArray
    ) -> Behind:
        """For each row of a stream the functions between `since` and `until` in it."""
        order = np.lexsort((functions.start, functions.stream))
        sorted_ = functions.take(order)
        stride = int(max(sorted_.end.max(initial=0), until.max(initial=0))) + 2 * SLACK_NS
        place = joint(sorted_.stream, sorted_.start, stride)
        first = np.searchsorted(place, joint(stream, np.maximum(since - SLACK_NS, 0), stride))
        last = np.searchsorted(place, joint(stream, until, stride)) - 1
        kept = last >= first
        kept[kept] &= sorted_.end[last[kept]] <= until[kept] + SLACK_NS
        row = np.flatnonzero(kept)
        one, other = first[row], last[row]
        return cls(row, before[row], sorted_.issued[one], sorted_.start[one], sorted_.end[other])

    def begins_after(self, work: Work) -> tuple[IntArray, IntArray]:
        """How long after the end of the operation before, and after its issue, the first function begins, in ns."""
        ended = np.append(work.end, -_FAR)[self.before]
        known = self.issued > 0
        queued = known & (self.issued <= ended)
        after_end = np.where(queued, np.maximum(self.start - ended, 0), np.clip(self.start - ended, 0, LATENCY_NS))
        after_issue = np.where(known & ~queued, np.maximum(self.start - self.issued, 0), LATENCY_NS)
        return after_end, after_issue


LAUNCHES = re.compile(r"(cuda|cu)LaunchHostFunc(_v\d+)?")


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
    start = np.maximum(np.where(before >= 0, np.append(work.end, 0)[before], 0), issued[row] + LATENCY_NS)
    kept = (start < work.start[row]) & ~event[row]
    process = activity.operations.process[work.row[row]]
    unknown = np.full(len(row), -1)
    return HostFunctions(start, work.start[row], process, work.stream[row], issued[row], unknown, unknown).take(kept)


def _launched(work: Work, activity: DeviceActivity) -> IntArray:
    """For each operation when its thread last launched a host function since it launched the one before it in the
    stream, in ns; -1 where it did not."""
    calls, found = activity.api_calls, np.full(len(work), -1)
    names, asked = np.flatnonzero(named_like(calls.names, LAUNCHES)), np.flatnonzero(work.launch >= 0)
    mine = np.flatnonzero(np.isin(calls.rows.name, names)) if len(names) else names
    if not len(asked) or not len(mine):
        return found
    begun, issued = calls.rows.start[mine], work.issued[asked]
    row = last_before(calls.rows.thread[mine], begun, calls.rows.thread[work.launch[asked]], issued)
    before = previous_on_stream(work.stream)[asked]
    since = np.where(before >= 0, np.append(work.issued, 0)[before], 0)
    fits = (row >= 0) & (begun[row] > since)
    found[asked[fits]] = begun[row[fits]]
    return found


def operations_behind(functions: HostFunctions, work: Work) -> Behind:
    """The operations that are behind functions in their streams."""
    before = previous_on_stream(work.stream)
    since = np.where(before >= 0, np.append(work.end, 0)[before], 0)
    return Behind.of(functions, work.stream, before, since, work.start)


def waits_behind_functions(functions: HostFunctions, work: Work, held: DeviceWaits) -> Behind:
    """The waits for a stream that functions behind their targets hold."""
    found = Behind.of(functions, work.stream[held.target], held.target, work.end[held.target], held.end)
    issued = (found.issued <= held.begin[found.row]) & (found.end > held.begin[found.row])
    return Behind(*(getattr(found, name)[issued] for name in Behind.__struct_fields__))
