"""What the launching threads did: API calls, OS calls, library calls, overhead, scheduling and samples, on one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.calls import ApiCalls, coded_names
from nsysdiag.activity.identity import BoolArray, process_of
from nsysdiag.activity.lane import CallTable, Lane, place_calls, within
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.activity.overhead import cupti_inside_calls, read_overhead
from nsysdiag.activity.samples import Samples, read_samples
from nsysdiag.activity.scheduling import Scheduling, read_switches, scheduling_of
from nsysdiag.activity.streams import distinct_values
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.trace import Trace

_LIBRARY_TABLES = ("CUBLAS_EVENTS", "CUDNN_EVENTS")
_MPI_TABLES = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")


@dataclass(frozen=True, slots=True)
class HostActivity:
    """Everything known of the threads of `axis`. `cupti` is the time in which a thread may have waited for CUPTI inside
    a CUDA call; `os_traced` says for each lane whether OS calls of its process were captured at all; `malformed` counts
    rows left out, by table. OS, library and MPI calls are the outermost ones."""

    axis: ThreadAxis
    api_calls: ApiCalls
    api: Lane
    os_calls: Lane
    libraries: Lane
    mpi: Lane
    overhead: Lane
    cupti: Intervals
    scheduling: Scheduling
    samples: Samples
    os_traced: BoolArray
    malformed: dict[str, int]


def read_host_activity(
    trace: Trace, api_calls: ApiCalls, ranges: NvtxRanges, axis: ThreadAxis, latest: int
) -> HostActivity:
    """Reads the tables of the host side and keeps what concerns the threads of `axis`; rows that end after `latest`
    cannot be."""
    calls = api_calls.rows
    table = CallTable(calls.thread, calls.start, calls.end, calls.name, api_calls.names, calls.returned)
    api, _ = place_calls(axis, table, latest)
    os_table = _table(trace, ("OSRT_API",), "nameId", "returnValue")
    os_calls, lost_os = place_calls(axis, os_table, latest)
    os_calls = os_calls.take(os_calls.outermost)
    libraries, _ = place_calls(axis, _table(trace, _LIBRARY_TABLES, "nameId"), latest)
    libraries = libraries.take(libraries.outermost)
    mpi, _ = place_calls(axis, _mpi_calls(trace, ranges), latest)
    overheads = read_overhead(trace)
    overhead, lost_overhead = place_calls(axis, overheads, latest)
    traced = np.isin(process_of(axis.threads), distinct_values(process_of(os_table.thread)))
    return HostActivity(
        axis=axis,
        api_calls=api_calls,
        api=within(api, libraries),
        os_calls=os_calls,
        libraries=libraries,
        mpi=mpi.take(mpi.outermost),
        overhead=overhead,
        cupti=cupti_inside_calls(axis, overheads, api, latest),
        scheduling=scheduling_of(axis, read_switches(trace)),
        samples=read_samples(axis, trace, union(api.spans, os_calls.spans)),
        os_traced=traced,
        malformed={"API call": api_calls.malformed, "OS call": lost_os, "profiler overhead": lost_overhead},
    )


def _table(trace: Trace, tables: tuple[str, ...], name_column: str, kind_column: str | None = None) -> CallTable:
    """Several tables of the same shape as one."""
    columns = ("start", "end", "globalTid", name_column, *((kind_column,) if kind_column else ()))
    parts = [trace.read(table, *columns) for table in tables]
    start, end, thread, ids = (np.concatenate([part[column] for part in parts]) for column in columns[:4])
    name, names = coded_names(trace, ids)
    kind = parts[0][kind_column] if kind_column else np.zeros(len(start), dtype=np.int64)
    return CallTable(thread, start, end, name, names, kind)


def _mpi_calls(trace: Trace, ranges: NvtxRanges) -> CallTable:
    """MPI calls by the tables that --trace=mpi fills, and the ranges of the NVTX domain MPI."""
    traced = _table(trace, _MPI_TABLES, "textId")
    rows = ranges.rows.take(ranges.rows.mpi)
    return CallTable(
        thread=np.append(traced.thread, rows.thread),
        start=np.append(traced.start, rows.start),
        end=np.append(traced.end, rows.end),
        name=np.append(traced.name, rows.name + len(traced.names)),
        names=[*traced.names, *ranges.names],
        kind=np.zeros(len(traced.start) + len(rows), dtype=np.int64),
    )
