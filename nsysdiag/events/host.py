"""What threads did: OS, library and MPI calls, profiler overhead, scheduling and samples. The tables are read once; the
rows of chosen threads are put on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces, stretches, union
from nsysdiag.events.callchains import file_name
from nsysdiag.events.calls import CALLS, ApiCalls, call_columns, coded_names
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import RANGE_COLUMNS, RANGES, NvtxRanges
from nsysdiag.events.operations import TABLES, Category, operation_columns
from nsysdiag.events.rows import CallTable, NamedRows, ThreadAxis, combinations, place_calls, within
from nsysdiag.events.samples import SAMPLE_COLUMNS, SAMPLES, SampleRows, Samples, SampleSteps, read_samples, samples_of
from nsysdiag.events.scheduling import (
    SWITCH_COLUMNS,
    SWITCHES,
    Cpus,
    Scheduling,
    SwitchRows,
    read_switches,
    scheduling_of,
)
from nsysdiag.trace.columns import joined
from nsysdiag.trace.enums import OverheadType
from nsysdiag.trace.tables import OPENACC_TABLES, OPENMP_TABLES
from nsysdiag.typed import say

if TYPE_CHECKING:
    from nsysdiag.events.device import DeviceActivity
    from nsysdiag.fields import Sentence
    from nsysdiag.trace.ahead import Request
    from nsysdiag.trace.trace import Trace

OS_CALLS = "OSRT_API"
OS_CALL_COLUMNS = ("start", "end", "globalTid", "nameId", "returnValue")
WAITS, FUNCTIONS = "PROFILER_WAITS", "PROFILER_FUNCTIONS"
"""Of traces of the PyTorch profiler: functions of Python that wait, and what else threads were in."""
_LIBRARY_TABLES = ("CUBLAS_EVENTS", "CUDNN_EVENTS")
MPI_TABLES = (
    "MPI_COLLECTIVES_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
    "NVTX_EVENTS",
)
"""Where MPI calls are: with --trace=mpi in the first four, else as ranges of a domain of NVTX."""
# PROFILER_OVERHEAD rows have no type of their own up to schema 3.23: they get one of these by their name.
OVERHEAD_OF_NSYS = 100
"""The kind of overhead of nsys itself. Kinds from here on are this program's own: CUPTI's types are smaller."""
OVERHEAD_OF_CUPTI = 101
"""The kind of overhead rows whose name begins with CUPTI."""
UNKNOWN_LOADING = 102
"""The kind of rows named `Unknown` in old exports: loading of modules is among them."""
COMPILED = 103
"""A row of a JIT compiler, which has a table of its own since schema 3.28."""
OVERHEAD_COLUMNS = ("globalTid", "start", "end", "nameId")
OF_CUPTI = (OverheadType.BUFFER_FLUSH, OverheadType.INSTRUMENTATION, OverheadType.RESOURCE, OVERHEAD_OF_CUPTI)


class HostTables(Struct, frozen=True):
    """OS calls, recorded functions, library and MPI calls, events of OpenACC and OpenMP, overhead, context switches and
    CPU samples of all threads; the order of samples in each; who held each CPU. `openacc_shown` are the names of
    OpenACC events as sentences."""

    os_calls: CallTable
    functions: CallTable
    libraries: CallTable
    mpi: CallTable
    openacc: CallTable
    openacc_shown: list[Sentence]
    openmp: CallTable
    overhead: CallTable
    switches: SwitchRows
    cpus: Cpus
    samples: SampleRows
    sample_steps: SampleSteps


def read_host_tables(trace: Trace, ranges: NvtxRanges) -> HostTables:
    """Reads them all."""
    switches, samples = read_switches(trace), read_samples(trace)
    openacc, openacc_shown = _openacc(trace)
    return HostTables(
        os_calls=_table(trace, (OS_CALLS if trace.has(OS_CALLS) else WAITS,), *OS_CALL_COLUMNS[3:]),
        functions=_table(trace, (FUNCTIONS,), "nameId"),
        libraries=_table(trace, _LIBRARY_TABLES, "nameId"),
        mpi=_mpi_calls(trace, ranges),
        openacc=openacc,
        openacc_shown=openacc_shown,
        openmp=_table(trace, OPENMP_TABLES, "nameId"),
        overhead=read_overhead(trace),
        switches=switches,
        cpus=Cpus.of(switches),
        samples=samples,
        sample_steps=SampleSteps.of(samples),
    )


def _table(trace: Trace, tables: tuple[str, ...], name_column: str, kind_column: str | None = None) -> CallTable:
    """Several tables of the same shape as one; without a column for it, `kind` is the place of a row's table."""
    columns = ("start", "end", "globalTid", name_column, *((kind_column,) if kind_column else ()))
    parts = [trace.read(table, *columns) for table in tables]
    rows = joined(parts)
    name, names = coded_names(trace, rows[name_column])
    kind = rows[kind_column] if kind_column else np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return CallTable(rows["globalTid"], rows["start"], rows["end"], name, names, kind)


def _openacc(trace: Trace) -> tuple[CallTable, list[Sentence]]:
    """Events of OpenACC, and how each name is shown: `Compute construct at solver.f90:55`. The compilers of NVIDIA use
    the same runtime for OpenMP target regions and for standard parallelism."""
    columns = ("start", "end", "globalTid", "nameId", "srcFile", "lineNo")
    rows = joined([trace.read(table, *columns) for table in OPENACC_TABLES])
    name, (ids, sources, lines) = combinations(*(rows[column] for column in columns[3:]))
    names, files = trace.strings.texts(ids), trace.strings.texts(sources)
    shown: list[Sentence] = [
        say("{} at {}:{}", typed.api(each), typed.file(file_name(file)), line) if source >= 0 else typed.api(each)
        for each, file, source, line in zip(names, files, sources.tolist(), lines.tolist(), strict=True)
    ]
    kind = np.zeros(len(rows), dtype=np.int64)
    plain = [*map(typed.plain, shown)]
    return CallTable(rows["globalTid"], rows["start"], rows["end"], name, plain, kind), shown


def _mpi_calls(trace: Trace, ranges: NvtxRanges) -> CallTable:
    """MPI calls by the tables that --trace=mpi fills, and the ranges of the NVTX domain MPI; `kind` is the place of the
    table in MPI_TABLES."""
    traced = _table(trace, MPI_TABLES[:-1], "textId")
    rows = ranges.rows.take(ranges.rows.mpi)
    return CallTable(
        thread=np.append(traced.thread, rows.thread),
        start=np.append(traced.start, rows.start),
        end=np.append(traced.end, rows.end),
        name=np.append(traced.name, rows.name + len(traced.names)),
        names=[*traced.names, *ranges.names],
        kind=np.append(traced.kind, np.full(len(rows), len(MPI_TABLES) - 1)),
    )


def read_overhead(trace: Trace) -> CallTable:
    """CUPTI's and the profiler's overhead rows, and those of JIT compilers, in one table; `kind` is CUPTI's type or one
    of ours."""
    cupti = trace.read("CUPTI_ACTIVITY_KIND_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    profiler = trace.read("PROFILER_OVERHEAD", "start", "end", "globalTid", "nameId", "overheadType")
    jit = trace.read("CUPTI_ACTIVITY_KIND_JIT", "start", "end", "globalTid", "nameId")
    parts = (cupti, profiler, jit)
    thread, start, end, ids = (np.concatenate([part[key] for part in parts]) for key in OVERHEAD_COLUMNS)
    name, names = coded_names(trace, ids)
    # The column overheadType came when CUPTI's rows got a table of their own: before, loading hid in `Unknown`.
    other = {} if profiler.present("overheadType") else {"Unknown": UNKNOWN_LOADING}
    named = [other.get(text, OVERHEAD_OF_CUPTI if text.startswith("CUPTI") else OVERHEAD_OF_NSYS) for text in names]
    ours = name[len(cupti) : len(cupti) + len(profiler)]
    kinds = (cupti["overheadType"], np.array([*named, 0])[ours], np.full(len(jit), COMPILED))
    return CallTable(thread, start, end, name, names, np.concatenate(kinds))


def recorded_time(tables: HostTables, activity: DeviceActivity, ranges: NvtxRanges) -> tuple[int, int]:
    """When the first event of any kind begins and the last one ends, in ns; (0, 0) without events. Malformed times, and
    marks before the capture, do not count."""
    calls, operations = activity.api_calls.rows, activity.operations
    host = (tables.os_calls, tables.libraries, tables.mpi)
    times = [calls.start, calls.end, operations.start, operations.end, ranges.rows.start, ranges.rows.end]
    times += [each for table in host for each in (table.start, table.end)] + [tables.switches.time, tables.samples.time]
    reach = [found for each in times if (found := _reach(each, activity.latest_ns)) is not None]
    return min((low for low, _ in reach), default=0), max((high for _, high in reach), default=0)


def _reach(times: IntArray, latest: int) -> tuple[int, int] | None:
    """The first and the last of the times that are neither negative nor after `latest`; None without any."""
    if not len(times):
        return None
    low, high = int(times.min()), int(times.max())
    return (low, high) if low >= 0 and high <= latest else _reach(times[(times >= 0) & (times <= latest)], latest)


def large_tables(trace: Trace) -> list[Request]:
    """The large tables that every analysis reads, with their columns, in the order of reading."""
    return [
        (TABLES[Category.KERNEL], operation_columns(Category.KERNEL)),
        (CALLS, call_columns(trace)),
        (RANGES, RANGE_COLUMNS),
        (SWITCHES, SWITCH_COLUMNS),
        (OS_CALLS, OS_CALL_COLUMNS),
        (SAMPLES, SAMPLE_COLUMNS),
    ]


class HostActivity(Struct, frozen=True):
    """All events of the threads of `axis`. `cupti` is the time in which a thread may have waited for CUPTI inside a
    CUDA call. `os_traced`: for each lane, whether OS calls of its process were captured at all. `malformed` counts rows
    left out, by table. OS, library and MPI calls are the outermost ones, events of OpenACC and OpenMP all of
    them; `functions` do not overlap."""

    axis: ThreadAxis
    api_calls: ApiCalls
    api: NamedRows
    os_calls: NamedRows
    functions: NamedRows
    libraries: NamedRows
    mpi: NamedRows
    openacc: NamedRows
    openmp: NamedRows
    overhead: NamedRows
    cupti: Intervals
    scheduling: Scheduling
    samples: Samples
    os_traced: BoolArray
    malformed: dict[str, int]


def place_api_calls(axis: ThreadAxis, api_calls: ApiCalls, latest: int, some: IntArray | None = None) -> NamedRows:
    """API calls of the threads of `axis`: all, or those of `some` rows. Rows that end after `latest` cannot be."""
    calls = api_calls.rows if some is None else api_calls.rows.take(some)
    table = CallTable(calls.thread, calls.start, calls.end, calls.name, api_calls.names, calls.returned)
    placed = place_calls(axis, table, latest)[0]
    return placed if some is None else replace(placed, row=some[placed.row])


def place_os_calls(axis: ThreadAxis, tables: HostTables, latest: int) -> tuple[NamedRows, int]:
    """The outermost OS calls of the threads of `axis`, and how many of all were left out; see `place_calls`."""
    calls, lost = place_calls(axis, tables.os_calls, latest)
    return calls.take(calls.outermost), lost


def host_activity(
    tables: HostTables,
    api_calls: ApiCalls,
    axis: ThreadAxis,
    api: NamedRows,
    os_calls: tuple[NamedRows, int],
    latest: int,
) -> HostActivity:
    """What concerns the threads of `axis`, whose API and OS calls are placed; rows that end after `latest` cannot
    be."""
    outermost, lost_os = os_calls
    libraries, _ = place_calls(axis, tables.libraries, latest)
    libraries = libraries.take(libraries.outermost)
    mpi, _ = place_calls(axis, tables.mpi, latest)
    overhead, lost_overhead = place_calls(axis, tables.overhead, latest)
    traced = np.isin(process_of(axis.threads), distinct_values(process_of(tables.os_calls.thread)))
    return HostActivity(
        axis=axis,
        api_calls=api_calls,
        api=within(api, libraries),
        os_calls=outermost,
        functions=_functions(axis, tables.functions, latest),
        libraries=libraries,
        mpi=mpi.take(mpi.outermost),
        openacc=replace(place_calls(axis, tables.openacc, latest)[0], shown_names=tables.openacc_shown),
        openmp=place_calls(axis, tables.openmp, latest)[0],
        overhead=overhead,
        cupti=cupti_inside_calls(axis, tables.overhead, api, latest),
        scheduling=scheduling_of(axis, tables.switches, tables.cpus),
        samples=samples_of(axis, tables.samples, tables.sample_steps, (api.spans[api.outermost], outermost.spans)),
        os_traced=traced,
        malformed={"API call": api_calls.malformed, "OS call": lost_os, "profiler overhead": lost_overhead},
    )


def _functions(axis: ThreadAxis, table: CallTable, latest: int) -> NamedRows:
    """Recorded functions of the threads of `axis`."""
    functions, _ = place_calls(axis, table, latest)
    return replace(functions, shown_names=[typed.symbol(each) for each in table.names])


def cupti_inside_calls(axis: ThreadAxis, table: CallTable, api: NamedRows, latest: int) -> Intervals:
    """The time that each launching thread spent inside CUDA calls while CUPTI was active anywhere in its process, a set
    on the axis. Only then can the thread have waited for CUPTI."""
    valid = (table.start >= 0) & (table.start <= table.end) & (table.end <= latest) & np.isin(table.kind, OF_CUPTI)
    # All threads of a process see the same work of CUPTI: it is looked up on an axis that has a lane for each process.
    processes = ThreadAxis(distinct_values(process_of(axis.threads)), axis.origin, axis.span)
    rank = processes.lane(process_of(table.thread))
    rows = np.flatnonzero(valid & (rank >= 0))
    busy = union(processes.place(rank[rows], Intervals(table.start[rows], table.end[rows])))
    # From the lane of each thread to that of its process.
    shift = (processes.lane(process_of(axis.threads)) - np.arange(len(axis.threads))) * axis.stride
    found = [Intervals.empty()]
    for part in stretches(len(api.spans) if len(busy) else 0):
        calls = api.spans[part][api.outermost[part]]
        moved = shift[calls.start // axis.stride]
        call, inside = pieces(busy, Intervals(calls.start + moved, calls.end + moved))
        found.append(Intervals(inside.start - moved[call], inside.end - moved[call]))
    return union(*found)
