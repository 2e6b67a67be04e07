"""A large trace for benchmarks: no truth, but the shape of a long training run, written in bulk.

    T        [l][q][l][q][l][q] ... [sync ....][cond wait][l][q]...      1,000 kernels a step
    streams     [k]   [k]   [k] ...                          [k]
    workers  [read][read][read][read][read][read][read][read]

For N kernels there are 2 N API rows, N scheduling rows, and N / 2 each of OS calls, samples of 10 frames, NVTX ranges
and values of GPU metrics.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tests.builder import METRICS_TYPE, TraceBuilder, global_pid, global_tid
from tests.schemas import Column, tables

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

IntArray = npt.NDArray[np.int64]
Values = dict[str, "IntArray | int | None"]

SCHEMA = "3.24.8"
PID, STEP, STREAMS, WORKERS = 4242, 1_000, 4, 3
_CHUNK = 100_000
_FRAMES = (
    *("cudaLaunchKernel", "at::native::gpu_kernel_impl", "at::_ops::add::call", "THPVariable_add", "method_vectorcall"),
    *("_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall", "PyObject_Call", "Py_RunMain", "main"),
)
_METRICS = (
    *("SMs Active [Throughput %]", "SM Issue [Throughput %]", "Tensor Active [Throughput %]"),
    *("DRAM Read Bandwidth [Throughput %]", "GPC Clock Frequency [MHz]"),
)
_KEYS = {"SAMPLING_CALLCHAINS": "PRIMARY KEY (id, stackDepth)"}  # nsys makes an index by it
_KERNELS = ("ampere_sgemm_128x64_tn", "vectorized_elementwise_kernel", "softmax_warp_forward", "layer_norm_kernel")


def write_large(path: str | os.PathLike[str], kernels: int, *, steps: bool = False) -> Path:
    """Write a trace with this many kernels; the same number gives the same rows. With `steps` each STEP kernels have an
    NVTX range of their own, so that it has iterations."""
    chance = np.random.default_rng(kernels)
    trace = TraceBuilder(schema=SCHEMA).process(PID).gpu(0).cuda_device(0, 0, PID).null_stream(7, pid=PID)
    trace.thread_name("python3", thread=(PID, PID))
    launches = _launches(kernels, chance)
    contents = {
        "CUPTI_ACTIVITY_KIND_KERNEL": _kernels(trace, launches, chance),
        "CUPTI_ACTIVITY_KIND_RUNTIME": _calls(trace, launches),
        "SCHED_EVENTS": _scheduling(launches),
        "OSRT_API": _os_calls(trace, launches),
        "NVTX_EVENTS": _ranges(trace, launches, steps=steps),
        "GPU_METRICS": _metrics(trace, launches, chance),
    }
    contents["COMPOSITE_EVENTS"], contents["SAMPLING_CALLCHAINS"] = _samples(trace, launches)
    trace.duration = int(launches[-1]) + 10**9
    return write_tables(trace, path, contents)


def write_tables(trace: TraceBuilder, path: str | os.PathLike[str], contents: dict[str, Values]) -> Path:
    """Write a trace, and rows of tables into it."""
    target = trace.write(path)
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table, values in contents.items():
            insert_rows(connection, table, values)
    return target


def _launches(kernels: int, chance: np.random.Generator) -> IntArray:
    """When each launch call starts: about 12 µs apart, and a pause of 2 ms after every step."""
    between: IntArray = chance.integers(9_000, 15_000, kernels)
    between[STEP::STEP] += 2_000_000
    starts: IntArray = np.cumsum(between, dtype=np.int64)
    starts += 10**9
    return starts


def _kernels(trace: TraceBuilder, launches: IntArray, chance: np.random.Generator) -> Values:
    count = len(launches)
    duration = chance.lognormal(9.2, 0.6, count).astype(np.int64) + 1_000
    stream = np.arange(count) % STREAMS
    start = np.empty(count, dtype=np.int64)
    for number in range(STREAMS):
        mine = stream == number
        start[mine] = _in_order(launches[mine] + 7_000, duration[mine] + 1_200)
    name = np.array([trace.string(text) for text in _KERNELS])[chance.integers(0, len(_KERNELS), count)]
    return {
        "start": start,
        "end": start + duration,
        "contextId": 1,
        "streamId": stream + 13,
        "correlationId": np.arange(count) * 2 + 1,
        "globalPid": global_pid(PID),
        "demangledName": name,
        "shortName": name,
        "registersPerThread": 32,
        "gridX": 108,
        "gridY": 1,
        "gridZ": 1,
        "blockX": 256,
        "blockY": 1,
        "blockZ": 1,
    }


def _in_order(ready: IntArray, length: IntArray) -> IntArray:
    """Starts of jobs that run one after another, each when it is ready and the one before it is over."""
    before = np.cumsum(length) - length
    starts: IntArray = np.maximum.accumulate(ready - before)
    return starts + before


def _calls(trace: TraceBuilder, launches: IntArray) -> Values:
    """A launch and an event query for each kernel; at the end of a step a synchronization takes the query's place."""
    count = len(launches)
    query = launches + 6_000
    query_end = query + 1_000
    query_end[STEP - 1 :: STEP] += 60_000
    name = np.full(2 * count, trace.string("cudaEventQuery_v3020"), dtype=np.int64)
    name[::2] = trace.string("cudaLaunchKernel_v7000")
    name[2 * STEP - 1 :: 2 * STEP] = trace.string("cudaStreamSynchronize_v3020")
    return {
        "start": interleaved(launches, query),
        "end": interleaved(launches + 5_000, query_end),
        "globalTid": global_tid((PID, PID)),
        "correlationId": np.arange(2 * count) + 1,
        "nameId": name,
        "returnValue": 0,
    }


def _scheduling(launches: IntArray) -> Values:
    """Out and in again, in turn for the main thread (in its pauses where there are any) and the workers."""
    count = len(launches) // 2
    out = launches[: 2 * count : 2] + 8_000
    thread = np.arange(count) % (WORKERS + 1)
    return {
        "start": interleaved(out, out + 500),
        "cpu": np.repeat(thread, 2),
        "isSchedIn": np.tile(np.array([0, 1]), count),
        "globalTid": np.repeat(_threads()[thread], 2),
        "threadState": 0,
    }


def _os_calls(trace: TraceBuilder, launches: IntArray) -> Values:
    """Workers read all the time; at the end of each step the main thread waits on a condition variable."""
    start = launches[::2].copy()
    end = start + 15_000
    thread = _threads()[1 + np.arange(len(start)) % WORKERS]
    name = np.full(len(start), trace.string("read"), dtype=np.int64)
    last = np.arange(STEP // 2 - 1, len(start), STEP // 2)
    start[last] = launches[2 * last + 1] + 100_000
    end[last] = start[last] + 1_800_000
    thread[last] = global_tid((PID, PID))
    name[last] = trace.string("pthread_cond_wait")
    return {"start": start, "end": end, "eventClass": 27, "globalTid": thread, "nameId": name, "nestingLevel": 0}


def _ranges(trace: TraceBuilder, launches: IntArray, *, steps: bool) -> Values:
    """One range around each ten launches, and in it four around two launches each; around all of a step another."""
    phases = np.array([trace.string(text) for text in ("forward", "backward", "optimizer")])
    operators = np.array([trace.string(text) for text in ("aten::linear", "aten::add_", "aten::softmax")])
    outer = np.arange(0, len(launches), 10)
    inner = np.arange(0, len(launches), 2)
    inner = inner[inner % 10 != 8]
    whole = np.arange(0, len(launches) if steps else 0, STEP)
    first = np.concatenate([whole, outer, inner])
    last = np.minimum(np.concatenate([whole + STEP - 1, outer + 9, inner + 1]), len(launches) - 1)
    named = np.array([trace.string(f"step {number}") for number in range(len(whole))], dtype=np.int64)
    kinds = np.concatenate([named, phases[np.arange(len(outer)) % 3], operators[np.arange(len(inner)) % 3]])
    margin = np.repeat([900, 500, 200], [len(whole), len(outer), len(inner)])
    order = np.argsort(launches[first] - margin, kind="stable")
    return {
        "start": (launches[first] - margin)[order],
        "end": (launches[last] + 7_000 + margin)[order],
        "eventType": 59,
        "textId": kinds[order],
        "globalTid": global_tid((PID, PID)),
        "domainId": 0,
    }


def _samples(trace: TraceBuilder, launches: IntArray) -> tuple[Values, Values]:
    time = launches[::2] + 5_500
    number = np.arange(len(time)) + 1
    samples: Values = {"id": number, "start": time, "cpu": 0, "threadState": 1, "globalTid": global_tid((PID, PID))}
    frames = np.array([trace.string(text) for text in _FRAMES])
    chains: Values = {
        "id": np.repeat(number, len(frames)),
        "symbol": np.tile(frames, len(time)),
        "module": trace.string("/usr/bin/python3"),
        "stackDepth": np.tile(np.arange(len(frames)), len(time)),
    }
    return samples, chains


def _metrics(trace: TraceBuilder, launches: IntArray, chance: np.random.Generator) -> Values:
    """All metrics of the GPU after every tenth launch."""
    for name in _METRICS:
        trace.gpu_metric(name, ())
    time = np.repeat(launches[::10] + 1_000, len(_METRICS))
    metric = np.tile(np.arange(len(_METRICS)), len(launches[::10]))
    share = chance.integers(20, 100, len(time))
    clock = _METRICS.index("GPC Clock Frequency [MHz]")
    return {
        "timestamp": time,
        "typeId": METRICS_TYPE << 8,
        "metricId": metric,
        "value": np.where(metric == clock, 1_755_000_000, share),
    }


def _threads() -> IntArray:
    return np.array([global_tid((PID, PID + 3 * number)) for number in range(WORKERS + 1)])


def interleaved(first: IntArray, second: IntArray) -> IntArray:
    """The first of one, the first of the other, the second of one, and so on."""
    return np.stack([first, second], axis=1).ravel()


def insert_rows(connection: sqlite3.Connection, table: str, values: Values) -> None:
    """Rows of a table, which is made where it is not there; a number stands for all rows."""
    columns = tables(SCHEMA)[table]
    declared = [*(column.declaration for column in columns), *filter(None, [_KEYS.get(table)])]
    connection.execute(f'CREATE TABLE IF NOT EXISTS "{table}" ({", ".join(declared)})')
    statement = f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})'
    count = max(len(value) for value in values.values() if isinstance(value, np.ndarray))
    for begin in range(0, count, _CHUNK):
        chunk = slice(begin, min(begin + _CHUNK, count))
        connection.executemany(statement, zip(*_chunk(columns, values, chunk), strict=True))


def _chunk(columns: tuple[Column, ...], values: Values, chunk: slice) -> list[Iterable[object]]:
    length = chunk.stop - chunk.start
    found: list[Iterable[object]] = []
    for column in columns:
        value = values.get(column.name, column.default)
        found.append(value[chunk].tolist() if isinstance(value, np.ndarray) else repeat(value, length))
    return found
