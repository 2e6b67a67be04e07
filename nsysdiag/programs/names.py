"""The names in a trace that tell of frameworks: those of the programs that used a GPU, and no more than are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    """The names of the processes (globalPids) that made CUDA calls or have work on a GPU, or, where none did, of all
    that have ranges. Kernels by their whole and their short names, where the trace has them."""
    operations = activity.operations
    callers = distinct_values(process_of(activity.api_calls.rows.thread)).tolist()
    working = {*callers, *distinct_values(operations.process).tolist()} - {-1, 0}
    processes = working or set(distinct_values(process_of(ranges.rows.thread)).tolist())
    programs, threads = process_names(trace), thread_names(trace)
    kernel = operations.category == Category.KERNEL
    kernels = np.union1d(operations.name[kernel], operations.short_name[kernel])
    named, most = ranges.names, min(len(ranges.names), MOST_RANGES)
    return Names(
        kernels=tuple(sorted(set(trace.strings.texts(kernels[kernels >= 0])))),
        ranges=tuple(named[len(named) * at // most] for at in range(most)),
        domains=tuple(sorted(set(ranges.domains))),
        modules=_modules(trace, activity, samples, processes),
        processes=tuple(sorted({file_name(name) for process, name in programs.items() if process in processes})),
        threads=tuple(sorted({name for thread, name in threads.items() if process_of(thread) in processes})),
        tables=tuple(name for name, rows in trace.tables().items() if rows),
    )


def _modules(trace: Trace, activity: DeviceActivity, samples: SampleRows, processes: set[int]) -> tuple[str, ...]:
    """The file names of the modules in call chains of CUDA calls and of CPU samples of these processes."""
    chains = activity.api_calls.chain
    mine = np.isin(process_of(samples.thread), np.array(sorted(processes), dtype=np.int64))
    by_table = {"CUDA_CALLCHAINS": np.unique(chains[chains > NO_CHAIN]), "SAMPLING_CALLCHAINS": samples.id[mine]}
    found: set[str] = set()
    for table, ids in by_table.items():
        chosen = ids[np.linspace(0, len(ids) - 1, min(len(ids), MOST_CHAINS)).astype(np.int64)]
        modules = np.unique(trace.read_chosen(table, "id", chosen, "module")["module"])
        found |= {file_name(path) for path in trace.strings.texts(modules[modules >= 0])}
    return tuple(sorted(found))
