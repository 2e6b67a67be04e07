"""What the profiler itself took: its overhead rows, on the thread they name and, for CUPTI's, beyond it."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import AT_ONCE, Intervals, pieces, union
from nsysdiag.events.axis import CallTable, Lane, ThreadAxis
from nsysdiag.events.calls import coded_names
from nsysdiag.events.identity import process_of
from nsysdiag.events.streams import distinct_values
from nsysdiag.trace.enums import OverheadType
from nsysdiag.trace.trace import Trace

# PROFILER_OVERHEAD rows have no type of their own up to schema 3.23: they get one of these by their name.
PROFILER = 100
PROFILER_OF_CUPTI = 101
UNKNOWN_LOADING = 102
OF_CUPTI = (OverheadType.BUFFER_FLUSH, OverheadType.INSTRUMENTATION, OverheadType.RESOURCE, PROFILER_OF_CUPTI)


def read_overhead(trace: Trace) -> CallTable:
    """CUPTI's and the profiler's overhead rows in one table; `kind` is CUPTI's type or one of ours by name."""
    cupti = trace.read("CUPTI_ACTIVITY_KIND_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    profiler = trace.read("PROFILER_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    name, names = coded_names(trace, np.concatenate((cupti["nameId"], profiler["nameId"])))
    # The column overheadType came when CUPTI's rows got a table of their own: before, loading hid in `Unknown`.
    named = [_kind_by_name(text, typed=profiler.present("overheadType")) for text in names]
    kinds = np.array(named, dtype=np.int64)[name[len(cupti) :]] if len(profiler) else np.empty(0, dtype=np.int64)
    thread, start, end = (np.concatenate((cupti[key], profiler[key])) for key in ("globalTid", "start", "end"))
    return CallTable(thread, start, end, name, names, np.concatenate((cupti["overheadType"], kinds)))


def _kind_by_name(name: str, *, typed: bool) -> int:
    if name == "Unknown" and not typed:
        return UNKNOWN_LOADING
    return PROFILER_OF_CUPTI if name.startswith("CUPTI") else PROFILER


def cupti_inside_calls(axis: ThreadAxis, table: CallTable, api: Lane, latest: int) -> Intervals:
    """The time that each launching thread spent inside CUDA calls while CUPTI was at work anywhere in its process, a
    set on the axis: only then can the thread have waited for it."""
    valid = (table.start >= 0) & (table.start <= table.end) & (table.end <= latest) & np.isin(table.kind, OF_CUPTI)
    # All threads of a process see the same work of CUPTI: it is looked up on an axis that has a lane for each process.
    processes = ThreadAxis(distinct_values(process_of(axis.threads)), axis.origin, axis.span)
    rank = processes.rank(process_of(table.thread))
    rows = np.flatnonzero(valid & (rank >= 0))
    busy = union(processes.place(rank[rows], Intervals(table.start[rows], table.end[rows])))
    # From the lane of each thread to that of its process.
    shift = (processes.rank(process_of(axis.threads)) - np.arange(len(axis.threads))) * axis.stride
    found = [Intervals.empty()]
    for at in range(0, len(api.spans) if len(busy) else 0, AT_ONCE):
        part = slice(at, at + AT_ONCE)
        calls = api.spans[part][api.outermost[part]]
        moved = shift[calls.start // axis.stride]
        call, inside = pieces(busy, Intervals(calls.start + moved, calls.end + moved))
        found.append(Intervals(inside.start - moved[call], inside.end - moved[call]))
    return union(*found)
