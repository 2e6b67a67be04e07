"""Another large trace for benchmarks: one thread launches without a pause, a second one reads and is scheduled.

    T        [l][q][l][q][l][q][l][q][l][q]...           1,000 steps, an NVTX range each
    stream     [=k=].[=k=].[=k=].[=k=]....               gaps of a microsecond between most kernels
    reader   [read]....[read]....[read]...               off the CPU in each read

For N kernels there are 2 N API rows, N / 2 OS calls and N scheduling rows: two million kernels make a file of 425 MB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.builder import TraceBuilder, global_pid, global_tid
from tests.simulator.large import PID, SCHEMA, interleaved, write_tables

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tests.simulator.large import IntArray, Values

STEPS, KERNEL_NS, GAP_NS = 1_000, 9_000, 1_000
READER = global_tid((PID, PID + 3))


def write_two_threads(path: str | os.PathLike[str], kernels: int) -> Path:
    """Write a trace with this many kernels; the same number gives the same rows."""
    trace = TraceBuilder(schema=SCHEMA).process(PID).gpu(0).cuda_device(0, 0, PID).null_stream(7, pid=PID)
    trace.thread_name("solver", thread=(PID, PID)).thread_name("reader", thread=(PID, PID + 3))
    launches = 10**9 + np.arange(kernels, dtype=np.int64) * (KERNEL_NS + GAP_NS)
    contents = {
        "CUPTI_ACTIVITY_KIND_KERNEL": _kernels(trace, launches),
        "CUPTI_ACTIVITY_KIND_RUNTIME": _calls(trace, launches),
        "OSRT_API": _reads(trace, launches),
        "SCHED_EVENTS": _scheduling(launches),
        "NVTX_EVENTS": _steps(trace, launches),
    }
    trace.duration = int(launches[-1]) + 10**9
    return write_tables(trace, path, contents)


def _kernels(trace: TraceBuilder, launches: IntArray) -> Values:
    count = len(launches)
    names = np.array([trace.string(f"kernel_{number}") for number in range(20)])
    start = launches + 6_000 + np.random.default_rng(count).integers(0, GAP_NS, count)
    return {
        "start": start,
        "end": start + KERNEL_NS,
        "contextId": 1,
        "streamId": 7,
        "correlationId": np.arange(count) * 2 + 1,
        "globalPid": global_pid(PID),
        "demangledName": names[np.arange(count) % len(names)],
        "shortName": names[np.arange(count) % len(names)],
        **dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1),
        "gridX": 108,
        "blockX": 256,
    }


def _calls(trace: TraceBuilder, launches: IntArray) -> Values:
    name = np.tile([trace.string("cudaLaunchKernel_v7000"), trace.string("cudaEventQuery_v3020")], len(launches))
    return {
        "start": interleaved(launches, launches + 6_500),
        "end": interleaved(launches + 5_000, launches + 7_500),
        "globalTid": global_tid((PID, PID)),
        "correlationId": np.arange(2 * len(launches)) + 1,
        "nameId": name,
        "returnValue": 0,
    }


def _reads(trace: TraceBuilder, launches: IntArray) -> Values:
    start = launches[::2]
    return {
        "start": start,
        "end": start + 12_000,
        "eventClass": 27,
        "globalTid": READER,
        "nameId": trace.string("read"),
    }


def _scheduling(launches: IntArray) -> Values:
    """Out behind the start of each read, and in again before it ends."""
    out = launches[::2] + 1_000
    count = len(out)
    return {
        "start": interleaved(out, out + 10_000),
        "cpu": 2,
        "isSchedIn": np.tile([0, 1], count),
        "globalTid": READER,
        "threadState": 0,
    }


def _steps(trace: TraceBuilder, launches: IntArray) -> Values:
    first = np.unique(np.linspace(0, len(launches), min(STEPS, len(launches)), endpoint=False).astype(np.int64))
    last = np.append(first[1:], len(launches)) - 1
    return {
        "start": launches[first] - 200,
        "end": launches[last] + 7_700,
        "eventType": 59,
        "textId": trace.string("step"),
        "globalTid": global_tid((PID, PID)),
        "domainId": 0,
    }
