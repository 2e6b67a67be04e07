"""TraceBuilder: an nsys-shaped SQLite export in a few lines.

    TraceBuilder().kernel(100, 200, name="gemm", launch=(50, 60)).sched(0, True).write(path)

Times are nanoseconds since the session start. Threads are `(pid, tid)`; the default is the main thread of process
4242. Tables appear as soon as they hold a row, as in nsys; `lazy=False` makes all of them, most empty. Column sets,
the version table and the names of overhead follow the export schema version asked for.
"""

from __future__ import annotations

import random
import sqlite3
import struct
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tests.schemas import ENUMS, SCHEMAS, tables

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

Value = int | float | str | bytes | None
ThreadId = tuple[int, int]
Function = str | tuple[str, str]
"""A function in a call chain: its symbol, or its symbol and module."""

MAIN: ThreadId = (4242, 4242)
VM = 1

_SUFFIXES = {
    "cudaLaunchKernel": "_v7000",
    "cudaLaunchKernelExC": "_v11060",
    "cudaGraphLaunch": "_v10000",
    "cudaGraphInstantiate": "_v12000",
    "cudaStreamBeginCapture": "_v10000",
    "cudaStreamEndCapture": "_v10000",
    "cudaMemPrefetchAsync": "_v8000",
    "cudaMallocManaged": "_v6000",
    "cudaEventCreateWithFlags": "_v3020",
    "cudaHostAlloc": "_v3020",
    "cudaFuncGetAttributes": "_v3020",
    "cudaGetDeviceProperties": "_v3020",
    "cudaLibraryLoadData": "_v12080",
}
_OS_CALL, _OVERHEAD_CLASS = 27, 103
_COPY_KINDS = {
    "HtoD": 1,
    "DtoH": 2,
    "DtoD": 8,
    "HtoH": 9,
    "PtoP": 10,
    "UM HtoD": 11,
    "UM DtoH": 12,
    "UM DtoD": 13,
}
_MEMORY_KINDS = {"pageable": 0, "pinned": 1, "device": 2, "array": 3, "managed": 4}
_MIGRATION_CAUSES = {"prefetch": 1, "fault": 2, "speculative": 3, "eviction": 4, "counters": 5}
_COPY_SIDES = {"HtoD": (None, "device"), "DtoH": ("device", None), "DtoD": ("device", "device")}
SYNC_TYPES = {"event": 1, "wait": 2, "stream": 3, "context": 4}
OVERHEAD_TYPES = {
    "unknown": (1, "Unknown"),
    "jit": (2, "Driver JIT Compiler"),
    "flush": (3, "Buffer Flush"),
    "instrumentation": (4, "Instrumentation"),
    "resource": (5, "Resource Management"),
    "module_load": (6, "Runtime Triggered Module Loading"),
    "lazy_load": (7, "Lazy Function Loading"),
    "buffer_full": (8, "Command Buffer Full"),
}
CONTEXT_START, SAVE_END = 9, 7
_TIMES = {"start", "end", "timestamp"}
METRICS_TYPE = 0x112233


def global_pid(pid: int, vm: int = VM) -> int:
    """The serialized id of a process, as nsys writes it."""
    return vm << 48 | pid << 24


def global_tid(thread: ThreadId, vm: int = VM) -> int:
    """The serialized id of a thread, as nsys writes it."""
    return global_pid(thread[0], vm) | thread[1]


def recorded_name(api: str) -> str:
    """A CUDA API name as CUPTI writes it: `cudaMalloc` becomes `cudaMalloc_v3020`; driver calls stay."""
    if not api.startswith("cuda") or "_v" in api:
        return api
    base, _, per_thread = api.partition("_ptsz")
    return base + _SUFFIXES.get(base, "_v3020") + ("_ptsz" if per_thread or api.endswith("_ptsz") else "")


class TraceBuilder:
    """Collects rows; `write` makes the file. Every method that adds rows returns the builder."""

    def __init__(self, *, schema: str = "3.13.2", lazy: bool = True, duration: int | None = None) -> None:
        self.schema = schema
        self.lazy = lazy
        self.duration = duration
        self._columns = tables(schema)
        self._rows: dict[str, list[dict[str, Value]]] = {}
        self._strings: dict[str, int] = {"[Unknown]": 0}
        self._correlations: Counter[int] = Counter()
        self._extra_columns: dict[str, list[str]] = {}
        self._dropped: set[str] = set()

    def knows(self, table: str) -> bool:
        """Whether the schema version has such a table."""
        return table in self._columns

    def row(self, table: str, values: dict[str, Value]) -> TraceBuilder:
        """Add one row as it is; columns without a value are NULL, or 0 where NULL is not allowed."""
        if table not in self._columns:
            raise ValueError(f"schema {self.schema} has no table {table}")
        self._rows.setdefault(table, []).append(values)
        return self

    def string(self, text: str) -> int:
        """The id of a string in StringIds."""
        return self._strings.setdefault(text, len(self._strings))

    def _known(self, table: str, **values: Value) -> dict[str, Value]:
        """Those of the values for which the table has a column in this schema version."""
        names = {column.name for column in self._columns[table]}
        return {name: value for name, value in values.items() if name in names}

    def correlation(self, pid: int) -> int:
        """A correlation id that the process has not used yet; ids of different processes repeat."""
        self._correlations[pid] += 1
        return 100 + self._correlations[pid]

    # ---- device operations ---------------------------------------------------------------------------------

    def kernel(
        self,
        start: int,
        end: int,
        *,
        stream: int = 7,
        name: str = "gemm",
        launch: tuple[int, int] | None = None,
        api: str = "cudaLaunchKernel",
        thread: ThreadId = MAIN,
        device: int = 0,
        context: int = 1,
        correlation: int | None = None,
        demangled: str | None = None,
        graph_node: int | None = None,
        shape: dict[str, Value] | None = None,
    ) -> TraceBuilder:
        """A kernel; with `launch=(start, end)` its API row too. `shape` changes columns of its launch shape: 108 blocks
        of 256 threads with 32 registers."""
        names: dict[str, Value] = {
            "shortName": self.string(name),
            "demangledName": self.string(demangled or f"{name}(float *, int)"),
        }
        names |= self._known("CUPTI_ACTIVITY_KIND_KERNEL", mangledName=self.string(f"_Z{len(name)}{name}Pfi"))
        plain: dict[str, Value] = {"registersPerThread": 32, "gridX": 108, "blockX": 256, "launchType": 1}
        plain |= dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1) | {"graphNodeId": graph_node}
        return self._operation(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            (start, end),
            where=(device, context, stream),
            issued=(thread, api, launch, correlation),
            values=names | plain | (shape or {}),
        )

    def memcpy(
        self,
        start: int,
        end: int,
        *,
        kind: str = "HtoD",
        host: str = "pinned",
        size: int = 4096,
        stream: int = 7,
        launch: tuple[int, int] | None = None,
        api: str = "cudaMemcpyAsync",
        thread: ThreadId = MAIN,
        device: int = 0,
        context: int = 1,
        correlation: int | None = None,
        cause: str = "prefetch",
        address: int | None = None,
    ) -> TraceBuilder:
        """A copy; `kind` as in `HtoD` or `UM HtoD`, `host` the kind of memory on the host's side. `cause` and `address`
        are those of a migration."""
        source, target = (side or host for side in _COPY_SIDES.get(kind, ("managed", "managed")))
        values: dict[str, Value] = {"bytes": size, "copyKind": _COPY_KINDS[kind]}
        values |= {"srcKind": _MEMORY_KINDS[source], "dstKind": _MEMORY_KINDS[target]}
        if kind.startswith("UM"):
            values |= {"migrationCause": _MIGRATION_CAUSES[cause]}
            block = 0x7F0000000000 + start if address is None else address
            values |= self._known("CUPTI_ACTIVITY_KIND_MEMCPY", virtualAddress=block)
            stream, context, correlation, launch = 0, 0, 0, None
        return self._operation(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            (start, end),
            where=(device, context, stream),
            issued=(thread, api, launch, correlation),
            values=values,
        )

    def memset(
        self,
        start: int,
        end: int,
        *,
        size: int = 4096,
        stream: int = 7,
        launch: tuple[int, int] | None = None,
        api: str = "cudaMemsetAsync",
        thread: ThreadId = MAIN,
        device: int = 0,
        context: int = 1,
        correlation: int | None = None,
    ) -> TraceBuilder:
        """A fill of device memory."""
        values: dict[str, Value] = {"bytes": size, "value": 0, "memKind": 2}
        return self._operation(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            (start, end),
            where=(device, context, stream),
            issued=(thread, api, launch, correlation),
            values=values,
        )

    def allocate(
        self,
        time: int,
        size: int,
        address: int,
        *,
        free: bool = False,
        memory: str = "device",
        pid: int = MAIN[0],
        device: int = 0,
        correlation: int | None = None,
        pool: tuple[int, int] | None = None,
    ) -> TraceBuilder:
        """Memory given out, or with `free` taken back; `pool` is what a pool held and had in use then."""
        table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
        values: dict[str, Value] = {"start": time, "globalPid": global_pid(pid), "deviceId": device, "contextId": 1}
        values |= {"address": address, "bytes": size, "memKind": _MEMORY_KINDS[memory]}
        values |= {"memoryOperationType": int(free)}
        values |= {"correlationId": self.correlation(pid) if correlation is None else correlation}
        if pool is not None:
            held, used = pool
            values |= self._known(table, localMemoryPoolAddress=0xA000, localMemoryPoolSize=held)
            values |= self._known(table, localMemoryPoolUtilizedSize=used)
        return self.row(table, values)

    def cpu_fault(self, time: int, address: int = 0x7F00, *, pid: int = MAIN[0]) -> TraceBuilder:
        """A page fault of a CPU on managed memory."""
        values: dict[str, Value] = {"start": time, "globalPid": global_pid(pid), "address": address}
        return self.row("CUDA_UM_CPU_PAGE_FAULT_EVENTS", values)

    def gpu_fault(
        self, start: int, end: int, faults: int, *, access: int = 1, pid: int = MAIN[0], device: int = 0
    ) -> TraceBuilder:
        """A group of page faults of a GPU; `access`: 1 read, 2 write, 3 atomic, 4 prefetch."""
        values: dict[str, Value] = {"start": start, "end": end, "globalPid": global_pid(pid), "deviceId": device}
        values |= {"address": 0x7F00, "numberOfPageFaults": faults, "faultAccessType": access}
        return self.row("CUDA_UM_GPU_PAGE_FAULT_EVENTS", values)

    def graph_trace(
        self,
        start: int,
        end: int,
        *,
        graph: int = 1,
        stream: int = 7,
        launch: tuple[int, int] | None = None,
        api: str = "cudaGraphLaunch",
        thread: ThreadId = MAIN,
        device: int = 0,
        context: int = 1,
        correlation: int | None = None,
    ) -> TraceBuilder:
        """A whole graph launch as one row (graph mode)."""
        values: dict[str, Value] = {"graphId": graph, "graphExecId": graph + 1}
        return self._operation(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            (start, end),
            where=(device, context, stream),
            issued=(thread, api, launch, correlation),
            values=values,
        )

    def host_function(
        self,
        start: int,
        end: int,
        *,
        node: int | None = None,
        stream: int = 7,
        launch: tuple[int, int] | None = None,
        thread: ThreadId = MAIN,
        device: int = 0,
        context: int = 1,
        correlation: int | None = None,
    ) -> TraceBuilder:
        """A stream waits for a host function, a node of a graph if `node` is given."""
        return self._operation(
            "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH",
            (start, end),
            where=(device, context, stream),
            issued=(thread, "cudaLaunchHostFunc", launch, correlation),
            values={"graphNodeId": node},
        )

    def _operation(
        self,
        table: str,
        times: tuple[int, int],
        *,
        where: tuple[int, int, int],
        issued: tuple[ThreadId, str, tuple[int, int] | None, int | None],
        values: dict[str, Value],
    ) -> TraceBuilder:
        device, context, stream = where
        thread, api, launch, correlation = issued
        if correlation is None:
            correlation = self.correlation(thread[0])
        if launch is not None:
            self.api(api, *launch, thread=thread, correlation=correlation)
        place: dict[str, Value] = {"deviceId": device, "contextId": context, "streamId": stream}
        place |= {"globalPid": global_pid(thread[0]), "correlationId": correlation}
        return self.row(table, {"start": times[0], "end": times[1], **place, **values})

    # ---- host side -----------------------------------------------------------------------------------------

    def api(
        self,
        name: str,
        start: int,
        end: int,
        *,
        thread: ThreadId = MAIN,
        correlation: int | None = None,
        returned: int = 0,
        chain: Sequence[Function] = (),
    ) -> TraceBuilder:
        """A CUDA runtime or driver call; a known name without its suffix gets it."""
        if correlation is None:
            correlation = self.correlation(thread[0])
        values = {
            "start": start,
            "end": end,
            "eventClass": 0 if name.startswith("cuda") else 1,
            "globalTid": global_tid(thread),
            "correlationId": correlation,
            "nameId": self.string(recorded_name(name)),
            "returnValue": returned,
            "callchainId": self.call_chain("CUDA_CALLCHAINS", chain) if chain else None,
        }
        return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", dict(values))

    def osrt(
        self,
        name: str,
        start: int,
        end: int,
        *,
        thread: ThreadId = MAIN,
        nesting: int = 0,
        chain: Sequence[Function] = (),
    ) -> TraceBuilder:
        """A call of the OS runtime library; id 0 is that of a call whose chain was not recorded."""
        values = {"start": start, "end": end, "eventClass": _OS_CALL, "globalTid": global_tid(thread)}
        number = self.call_chain("OSRT_CALLCHAINS", chain) if chain else 0
        values |= {"nameId": self.string(name), "nestingLevel": nesting, "callchainId": number}
        return self.row("OSRT_API", dict(values))

    def call_chain(self, table: str, chain: Sequence[Function], number: int | None = None) -> int:
        """The rows of a call chain, innermost first, under the next free id; a symbol alone is one of /usr/bin/app."""
        if number is None:
            number = 1 + max((int(row["id"] or 0) for row in self._rows.get(table, ())), default=0)
        for depth, function in enumerate(chain):
            symbol, module = (function, "/usr/bin/app") if isinstance(function, str) else function
            values: dict[str, Value] = {"symbol": self.string(symbol), "module": self.string(module)}
            values |= {"unresolved": 1} if symbol.startswith("0x") else {}
            self.row(table, {"id": number, "stackDepth": depth, **values})
        return number

    def library(self, name: str, start: int, end: int, *, thread: ThreadId = MAIN) -> TraceBuilder:
        """A cuBLAS or cuDNN call, by the name's beginning."""
        table = "CUDNN_EVENTS" if name.startswith("cudnn") else "CUBLAS_EVENTS"
        values = {"start": start, "end": end, "eventClass": 52, "globalTid": global_tid(thread)}
        return self.row(table, {**values, "nameId": self.string(name)})

    def sched(
        self,
        time: int,
        scheduled_in: bool,
        *,
        cpu: int = 0,
        thread: ThreadId = MAIN,
        state: int | None = None,
    ) -> TraceBuilder:
        """A thread put on a CPU or taken off it."""
        values: dict[str, Value] = {"start": time, "cpu": cpu, "isSchedIn": int(scheduled_in)}
        values["globalTid"] = 0 if thread == (0, 0) else global_tid(thread)
        return self.row("SCHED_EVENTS", values | self._known("SCHED_EVENTS", threadState=state or 0))

    def sample(
        self,
        time: int,
        *,
        symbols: Sequence[Function] = ("main",),
        module: str = "/usr/bin/app",
        cpu: int = 0,
        thread: ThreadId = MAIN,
    ) -> TraceBuilder:
        """A CPU sample with its call chain, leaf first."""
        number = len(self._rows.get("COMPOSITE_EVENTS", ())) + 1
        values = {
            "id": number,
            "start": time,
            "cpu": cpu,
            "threadState": 1,
            "globalTid": global_tid(thread),
            "cpuCycles": 1,
        }
        functions = [(each, module) if isinstance(each, str) else each for each in symbols]
        self.call_chain("SAMPLING_CALLCHAINS", functions, number)
        return self.row("COMPOSITE_EVENTS", dict(values))

    def nvtx(
        self,
        name: str,
        start: int,
        end: int | None,
        *,
        thread: ThreadId = MAIN,
        domain: int = 0,
        event_type: int = 59,
        interned: bool = False,
        end_thread: ThreadId | None = None,
    ) -> TraceBuilder:
        """An NVTX event; 59 is a push/pop range, 60 start/end, 34 a mark, 75 the name of a domain."""
        named: dict[str, Value] = {"textId": self.string(name)} if interned else {"text": name}
        values: dict[str, Value] = {"start": start, "end": end, "eventType": event_type, "domainId": domain}
        values |= {"endGlobalTid": global_tid(end_thread)} if end_thread else {}
        return self.row("NVTX_EVENTS", {**values, "globalTid": global_tid(thread), **named})

    def python_stack(
        self,
        time: int,
        frames: Sequence[tuple[str, str, int]],
        *,
        thread: ThreadId = MAIN,
        category: int = 1,
        count_at: int = 8,
    ) -> TraceBuilder:
        """A Python stack, innermost first: function, file and line of each frame; `thread` is the one that wrote it.

        Schemas from 3.16 on have the payload: a header of 32 bytes, four numbers, one of them the count, the frames."""
        lead = [1, 1, 0, 0]
        lead[count_at // 4] = len(frames)
        body = struct.pack("<4I", *lead)
        for function, file, line in frames:
            # What pads a line to eight bytes is whatever was there before.
            body += struct.pack("<QQII", self.string(function), self.string(file), line, 0x3FD)
        header = struct.pack("<IIIIQQ", 1, 0, 3, 1, len(body), 32 + len(body))
        values = {"start": time, "eventType": 34, "globalTid": global_tid(thread), "domainId": 7, "category": category}
        return self.row("NVTX_EVENTS", {**values, "binaryData": header + body})

    def python_domain(self, *, pid: int = MAIN[0]) -> TraceBuilder:
        """The NVTX domain of the Python stacks of a process."""
        return self.nvtx("Python Backtrace", 0, None, thread=(pid, pid), domain=7, event_type=75)

    def sync_row(
        self,
        start: int,
        end: int,
        *,
        correlation: int,
        kind: str = "stream",
        stream: int = 7,
        event: int = 0xFFFFFFFF,
        event_sync: int = 0xFFFFFFFF,
        pid: int = MAIN[0],
        device: int = 0,
        context: int = 1,
    ) -> TraceBuilder:
        """What CUPTI says about a synchronization call; `kind`: event, wait, stream or context."""
        values: dict[str, Value] = {
            "start": start,
            "end": end,
            "syncType": SYNC_TYPES[kind],
            "eventId": event,
        }
        values |= {"deviceId": device, "contextId": context, "streamId": stream, "correlationId": correlation}
        values |= self._known("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", eventSyncId=event_sync)
        return self.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {**values, "globalPid": global_pid(pid)})

    def event_row(
        self,
        *,
        correlation: int,
        event: int,
        stream: int = 7,
        event_sync: int = 0xFFFFFFFF,
        timestamp: int | None = None,
        pid: int = MAIN[0],
        device: int = 0,
        context: int = 1,
    ) -> TraceBuilder:
        """Where a CUDA event was recorded."""
        values: dict[str, Value] = {
            "deviceId": device,
            "contextId": context,
            "streamId": stream,
            "eventId": event,
        }
        values |= self._known("CUPTI_ACTIVITY_KIND_CUDA_EVENT", eventSyncId=event_sync, timestamp=timestamp)
        values |= {"correlationId": correlation, "globalPid": global_pid(pid)}
        return self.row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", values)

    def overhead(
        self,
        start: int,
        end: int,
        *,
        kind: str = "flush",
        thread: ThreadId = MAIN,
        correlation: int | None = None,
    ) -> TraceBuilder:
        """A row of CUPTI_ACTIVITY_KIND_OVERHEAD; `kind` is a key of OVERHEAD_TYPES."""
        number, name = OVERHEAD_TYPES[kind]
        values = {"start": start, "end": end, "eventClass": _OVERHEAD_CLASS, "globalTid": global_tid(thread)}
        named = {"nameId": self.string(name), "overheadType": number, "correlationId": correlation}
        return self.row("CUPTI_ACTIVITY_KIND_OVERHEAD", {**values, **named})

    def profiler_overhead(
        self, start: int, end: int, *, name: str = "CUPTI: Buffer flush", thread: ThreadId = MAIN
    ) -> TraceBuilder:
        """A row of PROFILER_OVERHEAD; from schema 3.24 on it has overheadType 1."""
        values: dict[str, Value] = {"start": start, "end": end, "globalTid": global_tid(thread)}
        values |= self._known("PROFILER_OVERHEAD", overheadType=1)
        return self.row("PROFILER_OVERHEAD", {**values, "nameId": self.string(name)})

    def context_switch(
        self, time: int, tag: int = CONTEXT_START, *, pid: int = MAIN[0], context: int = 1, gpu: int = 0
    ) -> TraceBuilder:
        """A change of the context that a GPU works for: CONTEXT_START opens a slice, SAVE_END closes it."""
        table = "GPU_CONTEXT_SWITCH_EVENTS" if self.knows("GPU_CONTEXT_SWITCH_EVENTS") else "FECS_EVENTS"
        values: dict[str, Value] = {
            "tag": tag,
            "vmId": global_pid(0),
            "seqNo": len(self._rows.get(table, ())),
        }
        values |= {"contextId": context, "timestamp": time, "globalPid": global_pid(pid), "gpuId": gpu}
        return self.row(table, values)

    def gpu_metric(
        self, name: str, samples: Iterable[tuple[int, Value]], *, gpu: int = 0, kind: int = METRICS_TYPE
    ) -> TraceBuilder:
        """Samples of a metric of one GPU, (timestamp, value) each; its name gets the next free id of the GPU's type.

        `kind` are the upper bits of the typeId, whose low byte is the GPU.
        """
        type_id = kind << 8 | gpu
        known = {
            (row["typeId"], row["metricName"]): row["metricId"] for row in self._rows.get("TARGET_INFO_GPU_METRICS", ())
        }
        if (type_id, name) not in known:
            number = sum(other == type_id for other, _ in known)
            values: dict[str, Value] = {"typeId": type_id, "sourceId": kind, "typeName": "General Metrics"}
            self.row("TARGET_INFO_GPU_METRICS", {**values, "metricId": number, "metricName": name})
            known[type_id, name] = number
        number_of = known[type_id, name]
        for time, value in samples:
            times = {"timestamp": time, "typeId": type_id, "metricId": number_of, "value": value}
            self.row("GPU_METRICS", times)
        return self

    # ---- names and trust -----------------------------------------------------------------------------------

    def process(self, pid: int = MAIN[0], name: str = "/usr/bin/python3") -> TraceBuilder:
        """A process with its name; schemas of 2020-21 have no such table and take no row."""
        if not self.knows("PROCESSES"):
            return self
        return self.row("PROCESSES", {"globalPid": global_pid(pid), "pid": pid, "name": name})

    def thread_name(self, name: str, *, thread: ThreadId = MAIN) -> TraceBuilder:
        """A thread with its name."""
        return self.row("ThreadNames", {"nameId": self.string(name), "priority": 20, "globalTid": global_tid(thread)})

    def gpu(
        self,
        number: int = 0,
        name: str = "NVIDIA A100-SXM4-80GB",
        *,
        sm_count: int = 108,
        ordinal: int | None = None,
        clock: int | None = None,
        memory: int | None = 80 << 30,
        bandwidth: int | None = None,
        limits: dict[str, Value] | None = None,
    ) -> TraceBuilder:
        """A physical GPU of the machine; its CUDA number is `number` unless `ordinal` says otherwise. The highest clock
        in Hz, its memory in bytes and bytes a second; `limits` are columns about what one of its SMs holds."""
        values: dict[str, Value] = {"vmId": global_pid(0), "id": number, "name": name, "smCount": sm_count}
        values |= {"busLocation": f"0000:{0xC1 + number:02x}:00.0", "isDiscrete": 1}
        values |= {"cuDevice": number if ordinal is None else ordinal, "clockRate": clock}
        values |= {"totalMemory": memory, "memoryBandwidth": bandwidth}
        values |= {"uuid": f"cf6b97c0-bf53-a39e-febd-{number:012x}"}
        declared = [column.name for column in self._columns["TARGET_INFO_GPU"]]
        declared += self._extra_columns.get("TARGET_INFO_GPU", [])
        for column in limits or ():
            if column not in declared:
                self.add_column("TARGET_INFO_GPU", column)
        return self.row("TARGET_INFO_GPU", values | (limits or {}))

    def cuda_device(self, gpu: int = 0, ordinal: int = 0, pid: int = MAIN[0]) -> TraceBuilder:
        """Which GPU a process means by its device number (schema 3.17 on)."""
        return self.row("TARGET_INFO_CUDA_DEVICE", {"gpuId": gpu, "cudaId": ordinal, "pid": pid})

    def stream_info(self, stream: int, flag: int, *, pid: int = MAIN[0], context: int = 1) -> TraceBuilder:
        """A stream's kind: 1 default (blocking), 2 non-blocking, 3 the null stream."""
        values: dict[str, Value] = {
            "streamId": stream,
            "vmId": VM,
            "processId": pid,
            "contextId": context,
            "flag": flag,
        }
        return self.row("TARGET_INFO_CUDA_STREAM", values)

    def null_stream(self, stream: int = 7, *, pid: int = MAIN[0], device: int = 0, context: int = 1) -> TraceBuilder:
        """The legacy default stream of a context."""
        values: dict[str, Value] = {"vmId": VM, "processId": pid, "deviceId": device, "contextId": context}
        if self.knows("TARGET_INFO_CUDA_CONTEXT_INFO"):
            return self.row("TARGET_INFO_CUDA_CONTEXT_INFO", {"nullStreamId": stream, **values})
        return self.row("TARGET_INFO_CUDA_NULL_STREAM", {"streamId": stream, **values})

    def diagnostic(self, text: str, *, severity: int = 2, time: int = 0) -> TraceBuilder:
        """What nsys says about its own capture: severity 1 info, 2 warning, 3 error."""
        values: dict[str, Value] = {"timestamp": time, "timestampType": 1, "source": 2, "severity": severity}
        return self.row("DIAGNOSTIC_EVENT", {**values, "text": text})

    def session_start(self, utc_ns: int) -> TraceBuilder:
        """When the session began, in ns of UTC: what other traces of the same machines can be laid beside."""
        return self.row("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs": utc_ns})

    def later(self, ns: int) -> TraceBuilder:
        """All rows so far at times later by `ns`, as if the session had begun that much earlier."""
        for rows in self._rows.values():
            for row in rows:
                for column in _TIMES & row.keys():
                    row[column] = row[column] + ns if isinstance(row[column], int) else row[column]
        if self.duration is not None:
            self.duration += ns
        return self

    def between(self, start: int, end: int) -> TraceBuilder:
        """Only rows that begin in [start, end), as an export of a part of a capture has them; those without a time
        stay."""
        for table, rows in self._rows.items():
            self._rows[table] = [row for row in rows if start <= _began(row, start) < end]
        return self

    def thin_out(self, table: str, every: int) -> TraceBuilder:
        """Lose every so many rows of a table."""
        self._rows[table] = [row for at, row in enumerate(self._rows[table]) if at % every != every - 1]
        return self

    # ---- the file ------------------------------------------------------------------------------------------

    def drop_table(self, name: str) -> TraceBuilder:
        """Leave a table out of the file, with whatever it holds."""
        self._dropped.add(name)
        return self

    def add_column(self, table: str, column: str) -> TraceBuilder:
        """A column of the user's own, as `ALTER TABLE` leaves it; NULL unless `row` gives a value."""
        self._extra_columns.setdefault(table, []).append(column)
        return self

    def write(self, path: str | os.PathLike[str], *, shuffle_seed: int | None = None) -> Path:
        """Make the file, which must not exist yet; with a seed its rows come in random order."""
        target = Path(path)
        with closing(sqlite3.connect(target)) as connection, connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            for table, rows in self._contents().items():
                if table not in self._dropped:
                    self._write_table(connection, table, rows, shuffle_seed)
            if _version_of(self.schema) >= 3:
                _write_enums(connection)
        return target

    def _contents(self) -> dict[str, list[dict[str, Value]]]:
        contents: dict[str, list[dict[str, Value]]] = {} if self.lazy else {table: [] for table in self._columns}
        contents |= self._rows
        contents["StringIds"] = [{"id": number, "value": text} for text, number in self._strings.items()]
        if (version := SCHEMAS[self.schema]) is not None:
            name = "META_DATA_EXPORT" if "META_DATA_EXPORT" in self._columns else "EXPORT_META_DATA"
            contents[name] = _version_rows(self.schema, version)
            contents["ANALYSIS_DETAILS"] = [self._analysis_details()]
        return contents

    def _analysis_details(self) -> dict[str, Value]:
        duration = self.duration if self.duration is not None else self._last_time() + 1_000_000
        return {"globalVid": VM << 48, "duration": duration, "startTime": 10**9, "stopTime": 10**9 + duration}

    def _last_time(self) -> int:
        times: Iterable[Value] = (
            row.get("end") or row.get("start") for rows in self._rows.values() for row in rows if "start" in row
        )
        return max((time for time in times if isinstance(time, int)), default=0)

    def _write_table(
        self,
        connection: sqlite3.Connection,
        table: str,
        rows: list[dict[str, Value]],
        shuffle_seed: int | None,
    ) -> None:
        columns = self._columns[table]
        extra = self._extra_columns.get(table, [])
        declared = [column.declaration for column in columns] + [f'"{name}" INTEGER' for name in extra]
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(declared)})')
        defaults = {column.name: column.default for column in columns} | dict.fromkeys(extra)
        if unknown := {name for row in rows for name in row} - set(defaults):
            raise ValueError(f"{table} of schema {self.schema} has no column {sorted(unknown)}")
        ordered = list(rows)
        if shuffle_seed is not None:
            random.Random(f"{shuffle_seed} {table}").shuffle(ordered)
        places = ", ".join("?" * len(defaults))
        values = [tuple(row.get(name, default) for name, default in defaults.items()) for row in ordered]
        connection.executemany(f'INSERT INTO "{table}" VALUES ({places})', values)


def _began(row: dict[str, Value], otherwise: int) -> int:
    value = row.get("start", row.get("timestamp", otherwise))
    return value if isinstance(value, int) else otherwise


def _version_of(schema: str) -> int:
    return 0 if schema == "2020" else int(schema.partition(".")[0])


def _version_rows(schema: str, product: str) -> list[dict[str, Value]]:
    major, minor, micro = schema.split(".")
    values = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": product,
        "EXPORT_SCHEMA_VERSION": schema,
        "EXPORT_SCHEMA_VERSION_MAJOR": major,
        "EXPORT_SCHEMA_VERSION_MINOR": minor,
        "EXPORT_SCHEMA_VERSION_MICRO": micro,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _write_enums(connection: sqlite3.Connection) -> None:
    for table, entries in ENUMS.items():
        connection.execute(f'CREATE TABLE "{table}" (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)')
        connection.executemany(f'INSERT INTO "{table}" VALUES (?, ?, ?)', entries)
