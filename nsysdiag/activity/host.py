"""What the launching threads did: API calls, OS calls, library calls, overhead, scheduling and samples, on one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.calls import ApiCalls, coded_names
from nsysdiag.activity.identity import BoolArray, IntArray, process_of
from nsysdiag.activity.samples import sampled_time
from nsysdiag.activity.scheduling import Scheduling, read_switches, scheduling_of
from nsysdiag.activity.streams import distinct_values
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.timeline.nesting import outermost
from nsysdiag.trace.enums import OverheadType
from nsysdiag.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Lane:
    """Named rows on the thread axis, sorted by start. `row` is the row's place in its own table; `kind` a number whose
    meaning the table gives (overhead type, return value), 0 where it has none."""

    spans: Intervals
    name: IntArray
    names: list[str]
    row: IntArray
    kind: IntArray
    outermost: BoolArray

    def __len__(self) -> int:
        return len(self.spans)

    def take(self, index: IntArray | BoolArray) -> Lane:
        """The rows at `index`."""
        return Lane(
            self.spans[index],
            self.name[index],
            self.names,
            self.row[index],
            self.kind[index],
            self.outermost[index],
        )


@dataclass(frozen=True, slots=True)
class HostActivity:
    """Everything known of the threads of `axis`. `os_traced` says for each lane whether OS calls of its process were
    captured at all; `api_calls` is the table that `api.row` points into."""

    axis: ThreadAxis
    api_calls: ApiCalls
    api: Lane
    os_calls: Lane
    libraries: Lane
    overhead: Lane
    foreign_overhead: Lane
    scheduling: Scheduling
    sampled: Intervals
    os_traced: BoolArray


# PROFILER_OVERHEAD rows have no type of their own up to schema 3.23: they get one of these by their name.
PROFILER = 100
PROFILER_OF_CUPTI = 101
UNKNOWN_LOADING = 102
OF_CUPTI = (OverheadType.BUFFER_FLUSH, OverheadType.INSTRUMENTATION, OverheadType.RESOURCE, PROFILER_OF_CUPTI)


def read_host_activity(trace: Trace, api_calls: ApiCalls, axis: ThreadAxis) -> HostActivity:
    """Reads the tables of the host side and keeps what concerns the threads of `axis`."""
    calls = api_calls.rows
    api = _lane(axis, calls.thread, calls.start, calls.end, calls.name, api_calls.names, calls.returned)
    os_calls, os_traced = _os_calls(trace, axis)
    overhead, foreign = _overhead(trace, axis)
    return HostActivity(
        axis=axis,
        api_calls=api_calls,
        api=api,
        os_calls=os_calls,
        libraries=_libraries(trace, axis),
        overhead=overhead,
        foreign_overhead=foreign,
        scheduling=scheduling_of(axis, read_switches(trace)),
        sampled=sampled_time(axis, trace),
        os_traced=os_traced,
    )


def _lane(
    axis: ThreadAxis,
    thread: IntArray,
    start: IntArray,
    end: IntArray,
    name: IntArray,
    names: list[str],
    kind: IntArray | None = None,
) -> Lane:
    """The rows of the axis's threads with 0 <= start <= end, sorted by position, outer rows before inner ones."""
    rank = axis.rank(thread)
    row = np.flatnonzero((rank >= 0) & (start >= 0) & (start <= end))
    spans = axis.place(rank[row], Intervals(start[row], end[row]))
    if len(row) > 1 and not _ordered(spans):
        order = np.lexsort((-spans.end, spans.start))
        row, spans = row[order], spans[order]
    kinds = np.zeros(len(row), dtype=np.int64) if kind is None else kind[row]
    return Lane(spans, name[row], names, row, kinds, outermost(spans))


def _ordered(spans: Intervals) -> bool:
    step = np.diff(spans.start)
    return bool(np.all((step > 0) | ((step == 0) & (spans.end[1:] <= spans.end[:-1]))))


def _os_calls(trace: Trace, axis: ThreadAxis) -> tuple[Lane, BoolArray]:
    columns = trace.read("OSRT_API", "start", "end", "globalTid", "nameId", "returnValue")
    thread = columns["globalTid"]
    name, names = coded_names(trace, columns["nameId"])
    lane = _lane(axis, thread, columns["start"], columns["end"], name, names, columns["returnValue"])
    captured = distinct_values(process_of(thread))
    return lane.take(lane.outermost), np.isin(process_of(axis.threads), captured)


def _libraries(trace: Trace, axis: ThreadAxis) -> Lane:
    """cuBLAS and cuDNN calls: they lend their name to time in which no CUDA row of their own lies."""
    parts = [trace.read(table, "start", "end", "globalTid", "nameId") for table in ("CUBLAS_EVENTS", "CUDNN_EVENTS")]
    start, end, thread, ids = (
        np.concatenate([part[column] for part in parts]) for column in ("start", "end", "globalTid", "nameId")
    )
    name, names = coded_names(trace, ids)
    lane = _lane(axis, thread, start, end, name, names)
    return lane.take(lane.outermost)


def _overhead(trace: Trace, axis: ThreadAxis) -> tuple[Lane, Lane]:
    """The overhead rows of the axis's threads, and CUPTI's own on other threads of their processes.

    A row of another thread is put on the lane of every launching thread of its process: it counts only while that
    thread is inside a CUDA call, which the rule sees to.
    """
    thread, start, end, name, names, kind = _overhead_rows(trace)
    own = _lane(axis, thread, start, end, name, names, kind)
    cuptis = np.isin(kind, OF_CUPTI)
    rows = np.flatnonzero(cuptis & np.isin(process_of(thread), process_of(axis.threads)))
    lane_process = process_of(axis.threads)
    pair_lane, pair_row = np.nonzero(
        (lane_process[:, None] == process_of(thread[rows])[None, :]) & (axis.threads[:, None] != thread[rows][None, :])
    )
    rows = rows[pair_row]
    foreign = _lane(axis, axis.threads[pair_lane], start[rows], end[rows], name[rows], names, kind[rows])
    return own, foreign


def _overhead_rows(
    trace: Trace,
) -> tuple[IntArray, IntArray, IntArray, IntArray, list[str], IntArray]:
    """CUPTI's and the profiler's overhead rows in one table; `kind` is CUPTI's type or one of ours by name."""
    cupti = trace.read("CUPTI_ACTIVITY_KIND_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    profiler = trace.read("PROFILER_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    name, names = coded_names(trace, np.concatenate((cupti["nameId"], profiler["nameId"])))
    # The column overheadType came when CUPTI's rows got a table of their own: before, loading hid in `Unknown`.
    named = [_kind_by_name(text, typed=profiler.present("overheadType")) for text in names]
    kinds = np.array(named, dtype=np.int64)[name[len(cupti) :]] if len(profiler) else np.empty(0, dtype=np.int64)
    thread, start, end = (np.concatenate((cupti[key], profiler[key])) for key in ("globalTid", "start", "end"))
    return thread, start, end, name, names, np.concatenate((cupti["overheadType"], kinds))


def _kind_by_name(name: str, *, typed: bool) -> int:
    if name == "Unknown" and not typed:
        return UNKNOWN_LOADING
    return PROFILER_OF_CUPTI if name.startswith("CUPTI") else PROFILER
