"""The names in a trace that tell of frameworks: those of the programs that used a GPU, and no more than are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.callchains import NO_CHAIN
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_names, process_of, thread_names
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.program_code import file_name
from nsysdiag.events.rows import distinct_values
from nsysdiag.events.samples import SampleRows
from nsysdiag.programs.detection import Names

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

MOST_CHAINS = 500
"""Call chains that are looked at, spread evenly over all: a framework is in most chains of a program that uses it."""
MOST_RANGES = 10_000
"""Names of ranges that are looked at, spread evenly: PyTorch numbers its operators, so that each has a name."""


def names_of(trace: Trace, activity: DeviceActivity, ranges: NvtxRanges, samples: SampleRows) -> Names:
    """The names of the processes that launched something, or, where none did, of all that have ranges."""
    processes = _programs(activity, ranges)
    programs, threads = process_names(trace), thread_names(trace)
    return Names(
        kernels=_kernels(trace, activity),
        ranges=tuple(_evenly(ranges.names, MOST_RANGES)),
        domains=tuple(sorted(set(ranges.domains))),
        modules=_modules(trace, activity, samples, processes),
        processes=tuple(sorted({file_name(name) for process, name in programs.items() if process in processes})),
        threads=tuple(sorted({name for thread, name in threads.items() if process_of(thread) in processes})),
        tables=tuple(name for name, rows in trace.tables().items() if rows),
    )


def _programs(activity: DeviceActivity, ranges: NvtxRanges) -> set[int]:
    """The processes (globalPids) that made CUDA calls or have work on a GPU; else those with ranges."""
    calls, operations = activity.api_calls.rows.thread, activity.operations.process
    working = {*distinct_values(process_of(calls)).tolist(), *distinct_values(operations).tolist()} - {-1, 0}
    return working or set(distinct_values(process_of(ranges.rows.thread)).tolist())


def _kernels(trace: Trace, activity: DeviceActivity) -> tuple[str, ...]:
    """Every kernel's name, the whole one and the short one, where the trace has them."""
    operations = activity.operations
    kernel = operations.category == Category.KERNEL
    ids = np.union1d(operations.name[kernel], operations.short_name[kernel])
    return tuple(sorted(set(trace.strings.texts(ids[ids >= 0]))))


def _modules(trace: Trace, activity: DeviceActivity, samples: SampleRows, processes: set[int]) -> tuple[str, ...]:
    """The file names of the modules in call chains of CUDA calls and of CPU samples of these processes."""
    chains = activity.api_calls.chain
    mine = np.isin(process_of(samples.thread), np.array(sorted(processes), dtype=np.int64))
    by_table = {"CUDA_CALLCHAINS": np.unique(chains[chains > NO_CHAIN]), "SAMPLING_CALLCHAINS": samples.id[mine]}
    return tuple(sorted({file_name(path) for table, ids in by_table.items() for path in _paths(trace, table, ids)}))


def _paths(trace: Trace, table: str, ids: IntArray) -> list[str]:
    chosen = ids[np.linspace(0, len(ids) - 1, min(len(ids), MOST_CHAINS)).astype(np.int64)]
    rows = trace.read_chosen(table, "id", chosen, "module")
    modules = np.unique(rows["module"])
    return trace.strings.texts(modules[modules >= 0])


def _evenly(names: list[str], most: int) -> list[str]:
    return names if len(names) <= most else [names[len(names) * at // most] for at in range(most)]
