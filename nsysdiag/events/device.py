"""What each physical GPU did: the operations of all processes on it, in order, each with its launch."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import count_of_each, least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, contains, searched, union
from nsysdiag.arrays.nesting import is_ordered
from nsysdiag.arrays.spill import laid
from nsysdiag.events.calls import ApiCalls, CallRows, match_launches
from nsysdiag.events.event_waits import HostFunctions, StreamWaits, Synchronized, read_stream_waits
from nsysdiag.events.gpus import DeviceKeys, Gpu, TimeSlices, busiest, describe, device_keys, read_time_slices
from nsysdiag.events.identity import once, pid_of, process_of
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.operations import Category, LaunchShapes, Operations, RecordedOperations
from nsysdiag.events.rows import RowsOf, Streams, combinations, describe_streams, picked

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.trace import Trace


# Which device each synchronization call waited for.

_UNKNOWN = -1
"""The device of a call or a context if the trace does not show it: numbers of devices are at least 0."""


def synchronized_devices(
    trace: Trace, api_calls: ApiCalls, operations: Operations, device: IntArray, number_of: dict[tuple[int, int], int]
) -> IntArray:
    """For each call the number of the device that it synchronized with; -1 if unknown.

    A context belongs to one device, that of its operations: `device` has its number. The device number of the row
    itself is 0 for every context in most exports (nsys 2021 to 2026). So it counts only for contexts without operations
    that are in `number_of`: it maps (pid, the process's device number) to the number of the device.
    """
    result = np.full(len(api_calls.rows), _UNKNOWN, dtype=np.int32)
    sync = trace.read("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "globalPid", "deviceId", "contextId", "correlationId")
    call = match_launches(sync["globalPid"], sync["correlationId"], api_calls.rows)
    found = _by_context(sync, operations, device)
    said = np.full(len(sync), _UNKNOWN, dtype=np.int64)
    pids = pid_of(sync["globalPid"])
    for (pid, ordinal), number in number_of.items():
        said[(pids == pid) & (sync["deviceId"] == ordinal)] = number
    # Rows are believed in processes none of whose rows names another device than the one on which the operations of its
    # context ran.
    wrong = (found != _UNKNOWN) & (found != said)
    believed = ~np.isin(sync["globalPid"], distinct_values(sync["globalPid"][wrong]))
    found = np.where((found == _UNKNOWN) & believed, said, found)
    matched = call >= 0
    result[call[matched]] = found[matched]
    return result


def _by_context(sync: Columns, operations: Operations, device: IntArray) -> IntArray:
    """The device on which all operations of each row's context ran, -1 if none did, or several."""
    works = picked(~operations.migration)
    columns = (operations.process, operations.context, device)
    _, (process, context, worked) = combinations(*(taken(column, works) for column in columns))
    asked = ((process, sync["globalPid"]), (context, sync["contextId"]))
    key, keys = combinations(*map(np.concatenate, asked))
    own, of_row = np.split(key, [len(worked)])
    of_key = np.full(len(keys[0]), _UNKNOWN)
    of_key[own] = np.where(count_of_each(own, len(of_key))[own] == 1, worked, _UNKNOWN)
    return of_key[of_row]


class DeviceTimeline(Struct, frozen=True):
    """Operations of one GPU, sorted by start; those that start together: launched ones first, then by launch time,
    correlation id and stream. `launch` is the row of the launching call, -1 if the trace has none.

    `running` marks operations with a length above zero: only they make the device busy. `malformed` counts rows that
    were left out.
    """

    number: int
    key: str
    gpu: Gpu
    gpu_id: int | None
    ids: list[tuple[int, int]]
    operations: Operations
    launch: IntArray
    communication: BoolArray
    running: BoolArray
    stream_code: IntArray
    malformed: int


class DeviceActivity(Struct, frozen=True):
    """All GPUs of a trace with what they share. `operations`, `launch`, `communication` and `device` (an index into
    `devices`) describe the operations of all GPUs, one GPU after another; those of a timeline are a part of them, not a
    copy. `streams` is by stream code.
    `synchronized` is the number of the device that each call waited for, -1 if unknown or where there is one device
    only; `synchronized_streams` the same of streams and events. `host_functions` hold streams. `left_out_gpus` is how
    many GPUs were too many to be analyzed."""

    devices: list[DeviceTimeline]
    api_calls: ApiCalls
    operations: Operations
    launch: IntArray
    communication: BoolArray
    device: IntArray
    streams: Streams
    waits: StreamWaits
    time_slices: TimeSlices
    first_correlation: dict[int, int]
    synchronized: IntArray
    synchronized_streams: Synchronized
    host_functions: HostFunctions
    duration_ns: int | None
    latest_ns: int
    assumed_apart: bool
    shapes: LaunchShapes
    left_out_gpus: int


class GpuOperations(Struct, frozen=True):
    """The operations that can be, sorted as in `DeviceActivity`: the rows of `recorded`, whose `wrong` is empty here.
    `launch` is the row of the call that launched each, -1 for none. `device` is an index into `keys`, whose own index
    is empty here; `lost` counts, for each key, the rows that were left out."""

    recorded: RecordedOperations
    launch: IntArray
    device: IntArray
    keys: DeviceKeys
    lost: IntArray


def operations_by_gpu(
    trace: Trace, recorded: RecordedOperations, api_calls: ApiCalls, *, same_gpu: bool
) -> GpuOperations:
    """Joins operations with the calls that launched them, and sorts them by GPU and time."""
    every, wrong = _with_process(recorded.rows, api_calls), recorded.wrong
    keys = busiest(device_keys(trace, every.process, every.device, same_gpu=same_gpu))
    index = keys.index
    lost = np.bincount(index[wrong & (index >= 0)], minlength=len(keys.keys))
    wrong = wrong | (index < 0)
    if wrong.any():
        every, index = every.take(~wrong), taken(index, ~wrong)
    launch = match_launches(every.process, every.correlation, api_calls.rows)
    order = _order(every, launch, api_calls.rows, index)
    if order is not None:
        every, index, launch = every.take(order), taken(index, order), launch[order]
    keys = replace(keys, index=index[:0].copy())
    return GpuOperations(replace(recorded, rows=every, wrong=wrong[:0].copy()), launch, index, keys, lost)


def device_activity(
    trace: Trace,
    ranges: NvtxRanges,
    api_calls: ApiCalls,
    operations: GpuOperations,
    communication_patterns: tuple[str, ...],
) -> DeviceActivity:
    """Divides operations by GPU, with their streams and what waited for them."""
    recorded, launch, index, keys = operations.recorded, operations.launch, operations.device, operations.keys
    every = recorded.rows
    communication = laid(_is_communication(trace, every, launch, api_calls.rows, ranges, communication_patterns))
    if len(keys.keys) < 2:
        synchronized: IntArray = np.broadcast_to(np.int32(-1), len(api_calls.rows))
    else:
        number_of = {pair: number for number, pairs in enumerate(keys.ids) for pair in pairs}
        synchronized = synchronized_devices(trace, api_calls, every, index, number_of)
    waited = laid(read_stream_waits(trace, api_calls, every, launch))
    return DeviceActivity(
        devices=_timelines(trace, operations, communication, waited.operations),
        api_calls=api_calls,
        operations=every,
        launch=launch,
        communication=communication,
        device=index,
        streams=describe_streams(trace, waited.streams),
        waits=waited.waits,
        time_slices=read_time_slices(trace),
        first_correlation=_first_correlations(api_calls.rows),
        synchronized=synchronized,
        synchronized_streams=waited.synchronized,
        host_functions=waited.functions,
        duration_ns=recorded.duration_ns,
        latest_ns=recorded.latest_ns,
        assumed_apart=keys.assumed_apart,
        shapes=recorded.shapes,
        left_out_gpus=keys.left_out,
    )


def _first_correlations(calls: CallRows) -> dict[int, int]:
    """The lowest correlation id that each process's calls recorded."""
    numbered = picked(calls.correlation > 0)
    correlation = calls.correlation[numbered]
    processes, process = distinct(taken(calls.process, numbered))
    if len(processes) == 1:
        return {int(processes[0]): int(correlation.min())}
    lowest = least_of_each(process, correlation, len(processes))
    return dict(zip(processes.tolist(), lowest.tolist(), strict=True))


def _timelines(
    trace: Trace, operations: GpuOperations, communication: BoolArray, stream_code: IntArray
) -> list[DeviceTimeline]:
    """The operations cut into those of each GPU."""
    keys, found = operations.keys, []
    borders = np.searchsorted(operations.device, np.arange(len(keys.keys) + 1))
    for number, (begin, end) in enumerate(itertools.pairwise(borders.tolist())):
        part = slice(begin, end)
        rows = operations.recorded.rows.take(part)
        found.append(
            DeviceTimeline(
                number=number,
                key=keys.keys[number],
                gpu=describe(trace, keys.gpu_id[number], keys.ids[number]),
                gpu_id=keys.gpu_id[number],
                ids=keys.ids[number],
                operations=rows,
                launch=operations.launch[part],
                communication=communication[part],
                running=rows.end > rows.start,
                stream_code=stream_code[part],
                malformed=int(operations.lost[number]),
            )
        )
    return found


def _with_process(operations: Operations, api_calls: ApiCalls) -> Operations:
    """Exports before 2021 have no globalPid: where only one process made API calls, it launched everything."""
    unknown = once(operations.process, lambda each: each <= 0)
    if not unknown.any():
        return operations
    processes = distinct_values(process_of(api_calls.rows.thread))
    if len(processes) != 1:
        return operations
    return replace(operations, process=np.where(unknown, processes[0], operations.process))


def _is_communication(
    trace: Trace,
    operations: Operations,
    launch: IntArray,
    calls: CallRows,
    ranges: NvtxRanges,
    patterns: tuple[str, ...],
) -> BoolArray:
    """Kernels whose short name begins with a pattern, or that were launched inside a range of the domain NCCL."""
    kernel: BoolArray = operations.category == Category.KERNEL
    starts = tuple(pattern.lower() for pattern in patterns)
    named = trace.strings.ids_where(
        lambda text: text.lower().startswith(starts), distinct_values(operations.short_name)
    )
    result: BoolArray = kernel & np.isin(operations.short_name, named)
    inside = ranges.rows.take(ranges.rows.communication)
    launched = np.flatnonzero(kernel & (launch >= 0)) if len(inside) else np.empty(0, dtype=np.int64)
    of_thread = RowsOf(inside.thread)
    launched_by = RowsOf(calls.thread[launch[launched]], of_thread.values())
    for thread in of_thread.values():
        mine = inside.take(of_thread[thread])
        spans = union(Intervals(mine.start, mine.end))
        its = launched[launched_by[thread]]
        result[its] |= contains(spans, calls.start[launch[its]])
    return result


def _order(operations: Operations, launch: IntArray, calls: CallRows, device: IntArray) -> IntArray | None:
    """The order of the rows by device, then by start; ties by launched first, launch time, correlation id, stream. None
    where they are in that order."""
    start = operations.start
    order = None if is_ordered((start, device)) else np.lexsort((start, device))
    starts, devices = (start, device) if order is None else (start[order], device[order])
    same = (starts[1:] == starts[:-1]) & (devices[1:] == devices[:-1])
    if not same.any():
        return order
    order = np.arange(len(start)) if order is None else order
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = order[tied]
    # -1 would pick the last call; what has no launch is behind everything that has one.
    api_start = np.where(launch[group] >= 0, calls.start[launch[group]], 0) if len(calls) else np.zeros(len(group))
    keys = (
        operations.stream[group],
        operations.correlation[group],
        api_start,
        launch[group] < 0,
        start[group],
        device[group],
    )
    order[tied] = group[np.lexsort(keys)]
    return order


# NVTX ranges on the GPU: each from the first to the last operation that its thread launched inside it.


def project(
    device: DeviceTimeline, calls: CallRows, ranges: RangeRows, counted: BoolArray
) -> tuple[IntArray, Intervals]:
    """The rows of `ranges` that launched any of the operations that are `counted`, and the time of each on the
    device."""
    launched = np.flatnonzero(counted & (device.launch >= 0)).astype(np.int32)
    launch = device.launch[picked(launched)]
    index, parts = [np.empty(0, dtype=np.int64)], []
    of_thread = RowsOf(ranges.thread, calls.threads_at(launch))
    issued_by = RowsOf(taken(calls.thread, launch) if of_thread.values() else launch[:0])
    for thread in issued_by.values():
        mine = of_thread[thread]
        if len(mine) == 0:
            continue
        holds, spans = _extents(device, calls, launched[issued_by[thread]], ranges.take(mine))
        index.append(mine[holds])
        parts.append(spans)
    return np.concatenate(index), Intervals.concatenate(parts)


def of_processes(device: DeviceTimeline, calls: CallRows, ranges: RangeRows) -> tuple[CallRows, RangeRows]:
    """The ranges of threads that launch nothing on the device, and all calls, each with its process in place of its
    thread: such ranges then hold what other threads of their process launch meanwhile."""
    launched = device.launch[device.launch >= 0]
    launching = distinct_values(taken(calls.thread, launched)) if len(launched) else launched
    silent = ranges.take(~np.isin(ranges.thread, launching))
    thread, around = (process_of(rows.thread) for rows in (calls, silent))
    return replace(calls, thread=thread), replace(silent, thread=around)


def _extents(device: DeviceTimeline, calls: CallRows, rows: IntArray, ranges: RangeRows) -> tuple[BoolArray, Intervals]:
    """Which ranges hold any of the operations `rows`, and the extents of these."""
    issued = taken(calls.start, taken(device.launch, rows))
    if np.any(issued[1:] < issued[:-1]):
        order = np.argsort(issued, kind="stable")
        rows, issued = rows[order], issued[order]
    first = searched(issued, ranges.start, "left")
    behind = searched(issued, ranges.end, "left")
    holds: BoolArray = behind > first
    first, behind = first[holds], behind[holds]
    start, end = taken(device.operations.start, rows), taken(device.operations.end, rows)
    if len(first) == 0 or (ascending(start) and ascending(end)):  # as work of one stream does
        return holds, Intervals(start[first], end[behind - 1])
    bounds = np.column_stack((first, behind)).ravel()
    # reduceat takes a bound equal to the length badly: one neutral value behind the last.
    begun = np.minimum.reduceat(np.append(start, np.iinfo(np.int64).max), bounds)[::2]
    over = np.maximum.reduceat(np.append(end, np.iinfo(np.int64).min), bounds)[::2]
    return holds, Intervals(begun.copy(), over.copy())
