"""Large traces of many shapes for benchmarks: each is heavy in something else. A benchmark of one shape measures it.

```
one-thread     [l][q][l][q]...        launches and queries of one thread, nothing else
two-threads    [read]....[read]...    a second one reads, and is off the CPU in each read
graphs         [launch]               one launch of a CUDA graph for each 50 small kernels
eight-gpus     [l] [l] [l] [l] ...    eight threads and GPUs; every 20th kernel is a collective
deep-ranges    [[[[[[l l l]]]]]]      24 NVTX ranges around each ten launches
streams        10,000 streams
threads        800 threads that are scheduled and wait
samples        CPU samples with 40 frames each
names          [a][b][c]..[a][d][b]   2,000 kernels, most of which come in some of many short repeats
week           the same work, a hundredth as dense, over a week
```
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tests.builder import TraceBuilder, global_pid, global_tid
from tests.simulator.large import PID, SCHEMA, interleaved, write_tables

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from tests.simulator.large import IntArray, Values

PERIOD_NS, KERNEL_NS, STEP = 12_000, 9_000, 1_000
GRAPH, GPUS, DEPTH, STREAMS, THREADS, FRAMES, NAMES = 50, 8, 24, 10_000, 800, 40, 2_000
WEEK_NS = 7 * 24 * 3600 * 10**9
MAIN = global_tid((PID, PID))
Contents = dict[str, "Values"]
KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def write_shape(shape: str, path: str | os.PathLike[str], kernels: int) -> Path:
    """Write a trace of this shape with about this many kernels; the same number gives the same rows."""
    trace = TraceBuilder(schema=SCHEMA).process(PID)
    for gpu in range(GPUS if shape == "eight-gpus" else 1):
        trace.gpu(gpu).cuda_device(gpu, gpu, PID)
    kernels = max(kernels // 100, 1) if shape == "week" else kernels
    period = WEEK_NS // kernels if shape == "week" else PERIOD_NS
    launches = 10**9 + np.arange(kernels, dtype=np.int64) * period
    contents = _base(trace, launches)
    CHANGES[shape](trace, launches, contents)
    trace.duration = int(launches[-1]) + 10**9
    return write_tables(trace, path, contents)


def _base(trace: TraceBuilder, launches: IntArray) -> Contents:
    """A launch and a query for each kernel, and a range around each step."""
    count = len(launches)
    names = np.array([trace.string(f"kernel_{number}") for number in range(20)])
    start = launches + 6_000 + np.random.default_rng(count).integers(0, 900, count)
    calls = np.tile([trace.string("cudaLaunchKernel_v7000"), trace.string("cudaEventQuery_v3020")], count)
    kernels: Values = {
        "start": start,
        "end": start + KERNEL_NS,
        "deviceId": 0,
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
    return {
        KERNEL: kernels,
        CALL: {
            "start": interleaved(launches, launches + 6_500),
            "end": interleaved(launches + 5_000, launches + 7_500),
            "globalTid": MAIN,
            "correlationId": np.arange(2 * count) + 1,
            "nameId": calls,
            "returnValue": 0,
        },
        "NVTX_EVENTS": _ranges(trace, launches, STEP, 1),
    }


def _ranges(trace: TraceBuilder, launches: IntArray, every: int, depth: int) -> Values:
    """So many ranges around each `every` launches, one in the other."""
    first = np.arange(0, len(launches), every)
    last = np.minimum(first + every, len(launches)) - 1
    level = np.tile(np.arange(depth), len(first))
    names = np.array([trace.string(f"level {number}") for number in range(depth)])
    return {
        "start": np.repeat(launches[first] - 400, depth) + level * 10,
        "end": np.repeat(launches[last] + 8_000, depth) - level * 10,
        "eventType": 59,
        "textId": names[level],
        "globalTid": MAIN,
        "domainId": 0,
    }


def _two_threads(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    start, reader = launches[::2], global_tid((PID, PID + 3))
    contents["OSRT_API"] = {
        "start": start,
        "end": start + 14_000,
        "eventClass": 27,
        "globalTid": reader,
        "nameId": trace.string("read"),
    }
    contents["SCHED_EVENTS"] = {
        "start": interleaved(start + 1_000, start + 11_000),
        "cpu": 2,
        "isSchedIn": np.tile([0, 1], len(start)),
        "globalTid": reader,
        "threadState": 0,
    }


def _graphs(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    count = len(launches)
    node, first = np.arange(count) % GRAPH, np.arange(0, count, GRAPH)
    contents[KERNEL] |= {
        "start": launches[first][np.arange(count) // GRAPH] + 8_000 + node * 2_000,
        "end": launches[first][np.arange(count) // GRAPH] + 9_800 + node * 2_000,
        "correlationId": np.arange(count) // GRAPH + 1,
        "graphNodeId": node + 10,
    }
    contents[CALL] = {
        "start": launches[first],
        "end": launches[first] + 7_000,
        "globalTid": MAIN,
        "correlationId": np.arange(len(first)) + 1,
        "nameId": trace.string("cudaGraphLaunch_v10000"),
        "returnValue": 0,
    }


def _eight_gpus(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    gpu = np.arange(len(launches)) % GPUS
    collective = np.arange(len(launches)) // GPUS % 20 == 0
    name = np.where(collective, trace.string("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), contents[KERNEL]["shortName"])
    contents[KERNEL] |= {"deviceId": gpu, "contextId": gpu + 1, "demangledName": name, "shortName": name}
    contents[CALL]["globalTid"] = np.repeat(_thread(gpu), 2)


def _deep_ranges(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    contents["NVTX_EVENTS"] = _ranges(trace, launches, 10, DEPTH)


def _streams(_trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    contents[KERNEL]["streamId"] = np.arange(len(launches)) % STREAMS + 13


def _threads(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    thread = _thread(np.arange(len(launches)) % THREADS + 1)
    contents["OSRT_API"] = {
        "start": launches,
        "end": launches + 500 * PERIOD_NS,
        "eventClass": 27,
        "globalTid": thread,
        "nameId": trace.string("pthread_cond_wait"),
    }
    contents["SCHED_EVENTS"] = {
        "start": np.sort(np.concatenate([launches + 1_000, launches + 400 * PERIOD_NS])),
        "cpu": np.arange(2 * len(launches)) % 64,
        "isSchedIn": np.tile([0, 1], len(launches)),
        "globalTid": np.tile(thread, 2),
        "threadState": 0,
    }


def _samples(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    number = np.arange(len(launches) // 2) + 1
    frames = np.array([trace.string(f"function_{depth}") for depth in range(FRAMES)])
    time = launches[: 2 * len(number) : 2] + 5_500
    contents["COMPOSITE_EVENTS"] = {"id": number, "start": time, "cpu": 0, "threadState": 1, "globalTid": MAIN}
    contents["SAMPLING_CALLCHAINS"] = {
        "id": np.repeat(number, FRAMES),
        "symbol": np.tile(frames, len(number)),
        "module": trace.string("/usr/bin/solver"),
        "stackDepth": np.tile(np.arange(FRAMES), len(number)),
    }


def _names(trace: TraceBuilder, launches: IntArray, contents: Contents) -> None:
    place, number = np.arange(len(launches)), np.random.default_rng(len(launches)).integers(0, NAMES, len(launches))
    every = 2 + number % 7
    comes = (place % 10 > 0) & (place // 10 % every == number % every)
    names = np.array([trace.string(f"kernel_{each}<float>") for each in range(NAMES)])
    name = np.where(comes, names[number], trace.string("kernel_of_most"))
    name[::10] = trace.string("kernel_of_all")
    contents[KERNEL] |= {"demangledName": name, "shortName": name}
    del contents["NVTX_EVENTS"]  # what repeats is found by the kernels


def _thread(number: IntArray) -> IntArray:
    """The ids of the threads of these numbers; 0 is the main one."""
    known = np.array([global_tid((PID, PID + 3 * each)) for each in range(int(number.max()) + 1)])
    return known[number]


def _as_it_is(_trace: TraceBuilder, _launches: IntArray, _contents: Contents) -> None:
    """One thread."""


CHANGES: dict[str, Callable[[TraceBuilder, IntArray, Contents], None]] = {
    "one-thread": _as_it_is,
    "two-threads": _two_threads,
    "graphs": _graphs,
    "eight-gpus": _eight_gpus,
    "deep-ranges": _deep_ranges,
    "streams": _streams,
    "threads": _threads,
    "samples": _samples,
    "names": _names,
    "week": _as_it_is,
}
SHAPES = {shape: partial(write_shape, shape) for shape in CHANGES}
"""What writes each shape: a function of a path and a number of kernels."""
