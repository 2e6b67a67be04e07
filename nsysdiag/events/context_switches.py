"""Whose time slice a GPU was in (GPU_CONTEXT_SWITCH_EVENTS, earlier FECS_EVENTS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.events.rows import Rows
from nsysdiag.trace.trace import Trace

SAVE_END, RESTORE_START, CONTEXT_START = 7, 8, 9  # ENUM_GPU_CTX_SWITCH


@dataclass(frozen=True, slots=True)
class TimeSlices(Rows):
    """Time slices [start, end) that a GPU gave to a process (globalPid)."""

    start: IntArray
    end: IntArray
    process: IntArray
    gpu: IntArray


def read_time_slices(trace: Trace) -> TimeSlices:
    """Slices from a context's restore or start to the next start or save on its GPU; unknown processes are left out."""
    columns = trace.read("GPU_CONTEXT_SWITCH_EVENTS", "tag", "seqNo", "timestamp", "globalPid", "gpuId")
    telling = np.isin(columns["tag"], (SAVE_END, RESTORE_START, CONTEXT_START))
    tag, time, process, gpu, number = (
        columns[name][telling] for name in ("tag", "timestamp", "globalPid", "gpuId", "seqNo")
    )
    order = np.lexsort((number, time, gpu))
    tag, time, process, gpu = tag[order], time[order], process[order], gpu[order]
    begins = (tag[:-1] != SAVE_END) & (gpu[1:] == gpu[:-1]) & (process[:-1] > 0) if len(tag) else np.zeros(0, bool)
    return TimeSlices(time[:-1][begins], time[1:][begins], process[:-1][begins], gpu[:-1][begins])


def slices_of_others(slices: TimeSlices, gpu_id: int | None, process: int) -> Intervals:
    """The time that the GPU spent in slices of other processes, a set. Without a GPU id the trace must be of one."""
    if gpu_id is None and len(np.unique(slices.gpu)) > 1:
        return Intervals.empty()
    others = slices.process != process
    if gpu_id is not None:
        others &= slices.gpu == gpu_id
    return union(Intervals(slices.start[others], slices.end[others]))
