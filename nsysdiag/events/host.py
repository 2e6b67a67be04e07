"""What chosen threads did: API calls, OS calls, library calls, overhead, scheduling and samples, on one axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, Intervals
from nsysdiag.events.axis import CallTable, Lane, ThreadAxis, place_calls, within
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.host_tables import HostTables
from nsysdiag.events.identity import process_of
from nsysdiag.events.overhead import cupti_inside_calls
from nsysdiag.events.samples import Samples, samples_of
from nsysdiag.events.scheduling import Scheduling, scheduling_of
from nsysdiag.events.streams import distinct_values


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


def host_activity(tables: HostTables, api_calls: ApiCalls, axis: ThreadAxis, latest: int) -> HostActivity:
    """What concerns the threads of `axis`; rows that end after `latest` cannot be."""
    calls = api_calls.rows
    table = CallTable(calls.thread, calls.start, calls.end, calls.name, api_calls.names, calls.returned)
    api, _ = place_calls(axis, table, latest)
    os_calls, lost_os = place_calls(axis, tables.os_calls, latest)
    os_calls = os_calls.take(os_calls.outermost)
    libraries, _ = place_calls(axis, tables.libraries, latest)
    libraries = libraries.take(libraries.outermost)
    mpi, _ = place_calls(axis, tables.mpi, latest)
    overhead, lost_overhead = place_calls(axis, tables.overhead, latest)
    traced = np.isin(process_of(axis.threads), distinct_values(process_of(tables.os_calls.thread)))
    return HostActivity(
        axis=axis,
        api_calls=api_calls,
        api=within(api, libraries),
        os_calls=os_calls,
        libraries=libraries,
        mpi=mpi.take(mpi.outermost),
        overhead=overhead,
        cupti=cupti_inside_calls(axis, tables.overhead, api, latest),
        scheduling=scheduling_of(axis, tables.switches, tables.cpus),
        samples=samples_of(axis, tables.samples, (api.spans[api.outermost], os_calls.spans)),
        os_traced=traced,
        malformed={"API call": api_calls.malformed, "OS call": lost_os, "profiler overhead": lost_overhead},
    )
