"""Traces of absurd shapes: as many streams, threads, processes, devices or nested ranges as rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from tests.builder import TraceBuilder, global_tid
from tests.simulator.large import insert_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    Column = npt.NDArray[np.int64] | int | None
    Table = dict[str, Column]
    Contents = dict[str, Table]

SCHEMA = "3.24.8"
PID, VM, STREAM = 4242, 1 << 48, 7
STEP_NS, FEW = 200_000, 1_000
KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def write_streams(path: Path, count: int) -> Path:
    """Each step on a stream of its own."""
    return _written(path, _steps(count, stream=np.arange(count) + 13))


def write_threads(path: Path, count: int) -> Path:
    """Each step by a thread of its own, which has a name."""
    thread = global_tid((PID, 0)) + np.arange(count) + 1
    names: Table = {"nameId": 1, "priority": 20, "globalTid": thread}
    contents = _steps(count, thread=thread) | {"ThreadNames": names}
    contents["SCHED_EVENTS"]["isSchedIn"] = 1  # all of them at once, on one CPU
    return _written(path, contents)


def write_processes(path: Path, count: int, *, mapped: bool = True) -> Path:
    """Each step by a process of its own, with an NVTX domain for NCCL; all on one GPU where the trace says so."""
    pid = np.arange(count) + 1_000
    process = VM | pid << 24
    contents = _steps(count, thread=process | pid)
    contents["PROCESSES"] = {"globalPid": process, "pid": pid, "name": None}
    if mapped:
        contents["TARGET_INFO_CUDA_DEVICE"] = {"gpuId": 0, "cudaId": 0, "pid": pid}
    return _written(path, contents)


def write_devices(path: Path, count: int) -> Path:
    """Each step on a GPU of its own."""
    contents = _steps(count)
    contents[KERNEL]["deviceId"] = np.arange(count)
    return _written(path, contents)


def write_nested(path: Path, count: int) -> Path:
    """`count` ranges on one thread, each inside the one before."""
    inner = np.arange(count)
    ranges: Table = {"start": inner + 1, "end": 2 * FEW * STEP_NS - inner, "eventType": 59, "textId": 1 + inner % 4}
    ranges |= {"globalTid": global_tid((PID, PID)), "domainId": 0}
    return _written(path, _steps(FEW) | {"NVTX_EVENTS": ranges})


def write_open_ranges(path: Path, count: int) -> Path:
    """`count` ranges on one thread that were pushed and never popped."""
    ranges: Table = {"start": np.arange(count) * 10, "end": None, "eventType": 59, "textId": 1}
    ranges |= {"globalTid": global_tid((PID, PID)), "domainId": 0}
    return _written(path, _steps(FEW) | {"NVTX_EVENTS": ranges})


def write_nested_calls(path: Path, count: int) -> Path:
    """`count` OS calls on one thread, each inside the one before."""
    inner = np.arange(count)
    calls: Table = {"start": inner + 1, "end": FEW * STEP_NS - inner, "eventClass": 27, "nameId": 6}
    calls |= {"globalTid": global_tid((PID, PID)), "nestingLevel": inner, "callchainId": 0, "returnValue": 0}
    return _written(path, _steps(FEW) | {"OSRT_API": calls})


def write_names(path: Path, count: int) -> Path:
    """Each kernel and each range with a name of its own."""
    contents = _steps(count)
    contents[KERNEL] |= {"shortName": np.arange(count) + 7, "demangledName": np.arange(count) + 7}
    contents["NVTX_EVENTS"]["textId"] = np.arange(count) + 7
    return _written(path, contents, count)


WRITERS: dict[str, Callable[[Path, int], Path]] = {
    "streams": write_streams,
    "threads": write_threads,
    "processes": write_processes,
    "nested ranges": write_nested,
    "open ranges": write_open_ranges,
    "nested calls": write_nested_calls,
    "names": write_names,
}


def _steps(count: int, *, thread: Column = None, stream: Column = STREAM) -> Contents:
    """`count` steps: a range around a launch, a graph of which nothing was traced and a synchronization, the work, and
    an OS call behind it. `thread` is the main one where not given."""
    main = global_tid((PID, PID))
    owner: npt.NDArray[np.int64] = np.full(count, main) if thread is None else np.asarray(thread)
    at = np.arange(1, count + 1, dtype=np.int64) * STEP_NS
    number = np.arange(count) + 1
    three = np.tile([0, 1, 2], count)
    begun, took = np.array([0, 4_000, 6_000]), np.array([2_000, 1_000, 4_000])
    calls: Table = {"start": np.repeat(at, 3) + begun[three], "end": np.repeat(at, 3) + (begun + took)[three]}
    calls |= {"nameId": 1 + three, "globalTid": np.repeat(owner, 3), "correlationId": np.repeat(3 * number, 3) + three}
    place: Table = {"streamId": stream, "contextId": 1, "deviceId": 0, "globalPid": owner & ~0xFFFFFF}
    kernels: Table = {**place, "start": at + 3_000, "end": at + 9_000, "correlationId": 3 * number, "shortName": 4}
    syncs: Table = {**place, "start": at + 6_100, "end": at + 9_900, "correlationId": 3 * number + 2, "syncType": 3}
    ranges: Table = {"start": at - 1_000, "end": at + 15_000, "eventType": 59, "textId": 4, "globalTid": owner}
    osrt: Table = {"start": at + 11_000, "end": at + 190_000, "nameId": 6, "globalTid": owner, "callchainId": 0}
    turns: Table = {"start": np.repeat(at, 2) + np.tile([-2_000, 12_000], count), "isSchedIn": np.tile([1, 0], count)}
    return {
        KERNEL: {**kernels, "demangledName": 4},
        CALL: {**calls, "eventClass": 0, "returnValue": 0},
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": {**syncs, "eventId": 0xFFFFFFFF},
        "NVTX_EVENTS": {**ranges, "domainId": 0},
        "OSRT_API": {**osrt, "eventClass": 27, "returnValue": 0, "nestingLevel": 0},
        "SCHED_EVENTS": {**turns, "cpu": 0, "globalTid": np.repeat(owner, 2)},
        "CUPTI_ACTIVITY_KIND_OVERHEAD": {
            "start": at + 500,
            "end": at + 900,
            "eventClass": 103,
            "globalTid": owner,
            "nameId": 5,
            "overheadType": 3,
        },
    }


def _written(path: Path, contents: Contents, names: int = 8) -> Path:
    trace = TraceBuilder(schema=SCHEMA).gpu(0).null_stream(STREAM, pid=PID)
    for name in ("cudaLaunchKernel_v7000", "cudaGraphLaunch_v10000", "cudaStreamSynchronize_v3020"):
        trace.string(name)
    for name in ("gemm", "Buffer Flush", "pthread_cond_wait", *(f"name {number}" for number in range(names))):
        trace.string(name)
    if "PROCESSES" not in contents:
        trace.process(PID).cuda_device(0, 0, PID)
    trace.duration = 2 * max(int(np.max(np.asarray(contents[KERNEL]["end"]))), 10**9)
    target = trace.write(path)
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table, columns in contents.items():
            insert_rows(connection, table, columns)
    return target
