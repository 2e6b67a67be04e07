"""The tables of the host side, read once, and the tables that take long, in the order in which they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.axis import CallTable
from nsysdiag.events.calls import CALLS, call_columns, coded_names
from nsysdiag.events.nvtx import RANGE_COLUMNS, RANGES, NvtxRanges
from nsysdiag.events.operations import TABLES, Category, operation_columns
from nsysdiag.events.overhead import read_overhead
from nsysdiag.events.samples import SAMPLE_COLUMNS, SAMPLES, SampleRows, read_samples
from nsysdiag.events.scheduling import SWITCH_COLUMNS, SWITCHES, Cpus, SwitchRows, read_switches
from nsysdiag.trace.trace import Trace

if TYPE_CHECKING:
    from nsysdiag.trace.ahead import Request

OS_CALLS = "OSRT_API"
OS_CALL_COLUMNS = ("start", "end", "globalTid", "nameId", "returnValue")
_LIBRARY_TABLES = ("CUBLAS_EVENTS", "CUDNN_EVENTS")
_MPI_TABLES = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")


@dataclass(frozen=True, slots=True)
class HostTables:
    """OS calls, library and MPI calls, overhead, context switches and CPU samples of all threads; who held each CPU."""

    os_calls: CallTable
    libraries: CallTable
    mpi: CallTable
    overhead: CallTable
    switches: SwitchRows
    cpus: Cpus
    samples: SampleRows


def read_host_tables(trace: Trace, ranges: NvtxRanges) -> HostTables:
    """Reads them all."""
    switches = read_switches(trace)
    return HostTables(
        os_calls=_table(trace, (OS_CALLS,), *OS_CALL_COLUMNS[3:]),
        libraries=_table(trace, _LIBRARY_TABLES, "nameId"),
        mpi=_mpi_calls(trace, ranges),
        overhead=read_overhead(trace),
        switches=switches,
        cpus=Cpus.of(switches),
        samples=read_samples(trace),
    )


def _table(trace: Trace, tables: tuple[str, ...], name_column: str, kind_column: str | None = None) -> CallTable:
    """Several tables of the same shape as one."""
    columns = ("start", "end", "globalTid", name_column, *((kind_column,) if kind_column else ()))
    parts = [trace.read(table, *columns) for table in tables]
    start, end, thread, ids = (_joined([part[column] for part in parts]) for column in columns[:4])
    name, names = coded_names(trace, ids)
    kind = parts[0][kind_column] if kind_column else np.zeros(len(start), dtype=np.int64)
    return CallTable(thread, start, end, name, names, kind)


def _joined(parts: list[IntArray]) -> IntArray:
    """All parts, without a copy where there is one alone."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


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


def large_tables(trace: Trace) -> list[Request]:
    """What the analysis of any trace reads of them."""
    return [
        (TABLES[Category.KERNEL], operation_columns(Category.KERNEL)),
        (CALLS, call_columns(trace)),
        (RANGES, RANGE_COLUMNS),
        (SWITCHES, SWITCH_COLUMNS),
        (OS_CALLS, OS_CALL_COLUMNS),
        (SAMPLES, SAMPLE_COLUMNS),
    ]
