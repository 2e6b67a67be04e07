"""A small trace with rows in every table that the program reads and a value in every column: what is damaged.

```
thread   [range step N ...........................................................]
         [launch][launch][graph] [copy] [nccl] [sync ...] [mpi] [off the CPU in read]
stream       [kernel][kernel][graph][copy]  [nccl]
```

Columns have no type and no NOT NULL, so that a cell takes whatever is put there.
"""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

from nsysdiag.events.nvtx import FIELD
from nsysdiag.trace.tables import OPENACC_TABLES, OPENMP_TABLES, TABLES
from tests.builder import global_pid, global_tid

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, object]
STEPS, PIDS, STEP_NS = 8, (4242, 4343), 2_000_000
WORKER = 7
NAMES = (
    "[Unknown]",
    "cudaLaunchKernel_v7000",
    "cudaMemcpyAsync_v3020",
    "cudaGraphLaunch_v10000",
    "cudaStreamSynchronize_v3020",
    "cudaLaunchHostFunc_v10000",
    "cudaEventRecord_v3020",
    "cudaMemsetAsync_v3020",
    "read",
    "pthread_cond_wait",
    "gemm(float *, int)",
    "gemm",
    "ncclDevKernel_AllReduce_Sum_f32(float *)",
    "main",
    "/usr/bin/app",
    "python3",
    "MPI_Allreduce",
    "MPI_Send",
    "MPI_Wait",
    "MPI_Barrier",
    "cublasSgemm_v2",
    "cudnnConvolutionForward",
    "Driver JIT Compiler",
    "CUPTI: Buffer flush",
    "cudaGraphCreate",
    "train.py",
    "train.forward:7",
    "lock.acquire",
    "pt_data_worker",
    "Compute construct",
    "/src/solver.f90",
)
_ID = {name: number for number, name in enumerate(NAMES)}


def write_every_table(path: Path) -> Path:
    """Write the trace; raises AssertionError where a declared table or column has no value in it."""
    rows = _rows()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = OFF")
        for name, spec in TABLES.items():
            columns = [column.name for column in spec.columns if not column.parts]
            given = {column for row in rows[name] for column, value in row.items() if value is not None}
            assert given == set(columns), (name, given ^ set(columns))
            declared = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({declared})')
            values = [[row.get(column) for column in columns] for row in rows[name]]
            connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', values)
    return path


def _rows() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    _names(rows)
    for gpu, pid in enumerate(PIDS):
        _process(rows, gpu, pid)
        for step in range(STEPS):
            _step(rows, gpu, pid, step)
    return rows


def _names(rows: dict[str, list[Row]]) -> None:
    rows["StringIds"] += [{"id": number, "value": name} for name, number in _ID.items()]
    versions = {"EXPORT_PRODUCT_VERSION": "2025.6.1.190", "EXPORT_SCHEMA_VERSION": "3.24.8"}
    rows["META_DATA_EXPORT"] += [{"name": name, "value": value} for name, value in versions.items()]
    length = (STEPS + 2) * STEP_NS
    rows["ANALYSIS_DETAILS"].append({"globalVid": 1 << 48, "duration": length, "startTime": 1, "stopTime": length})
    rows["TARGET_INFO_SESSION_START_TIME"].append({"utcEpochNs": 1_700_000_000 * 10**9})
    text = "CUPTI: 12 events were dropped because the buffer was full"
    event = {"timestamp": 5, "timestampType": 1, "source": 2, "globalPid": global_pid(PIDS[0]), "text": text}
    rows["DIAGNOSTIC_EVENT"].append({**event, "severity": 2})
    rows["TARGET_INFO_WDDM_CONTEXTS"].append({"context": 1, "engineType": 1, "nodeOrdinal": 0})
    entry = {"domainId": 3, "schemaId": 9, "offset": 0, "name": FIELD}
    rows["NVTX_PAYLOAD_SCHEMA_ENTRIES"].append(entry)
    rows["NVTX_EXPORT_TRANSLATION"].append({"originalName": FIELD, "sanitizedName": "communicator"})
    for number, metric in enumerate(("SMs Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]")):
        known = {"metricId": number, "sourceId": 0x1122, "typeName": "General Metrics", "metricName": metric}
        rows["TARGET_INFO_GPU_METRICS"] += [{**known, "typeId": 0x112200 | gpu} for gpu in range(len(PIDS))]


def _process(rows: dict[str, list[Row]], gpu: int, pid: int) -> None:
    process, thread, worker = global_pid(pid), global_tid((pid, pid)), global_tid((pid, pid + WORKER))
    rows["PROCESSES"].append({"globalPid": process, "pid": pid, "name": "/usr/bin/python3"})
    named = {"priority": 20}
    rows["ThreadNames"].append({**named, "nameId": _ID["python3"], "globalTid": thread})
    rows["ThreadNames"].append({**named, "nameId": _ID["pt_data_worker"], "globalTid": worker})
    rows["MPI_RANKS"].append({"globalTid": thread, "rank": gpu})
    rows["MPI_COMMUNICATORS"].append({"size": len(PIDS)})
    chip = {"vmId": 1 << 48, "id": gpu, "pwGpuId": gpu, "cuDevice": gpu, "isDiscrete": 1, "smCount": 108}
    chip |= {
        "totalMemory": 80 << 30,
        "memoryBandwidth": 2 * 10**12,
        "clockRate": 1_410_000_000,
        "l2CacheSize": 40 << 20,
    }
    chip |= {"maxWarpsPerSm": 64, "maxBlocksPerSm": 32, "maxThreadsPerBlock": 1024, "maxRegistersPerSm": 65536}
    chip |= {"maxShmemPerSm": 167936, "threadsPerWarp": 32, "asyncEngines": 3, "computeMajor": 8, "computeMinor": 0}
    texts = {"name": "NVIDIA A100", "busLocation": f"0000:{gpu:02x}:00.0", "uuid": f"uuid-{gpu}", "chipName": "GA100"}
    rows["TARGET_INFO_GPU"].append({**chip, **texts})
    rows["TARGET_INFO_CUDA_DEVICE"].append(
        {"cudaId": gpu, "pid": pid, "gpuId": gpu, "numMultiprocessors": 108, "uuid": f"uuid-{gpu}"}
    )
    old = {"deviceId": gpu, "vmId": 1, "pid": pid, "numMultiprocessors": 108, "maxWarpsPerMultiprocessor": 64}
    old |= {"coreClockRate": 1_410_000, "maxBlocksPerMultiprocessor": 32, "maxRegistersPerMultiprocessor": 65536}
    old |= {"maxSharedMemoryPerMultiprocessor": 167936, "numThreadsPerWarp": 32, "globalMemoryBandwidth": 10**12}
    old |= {"globalMemorySize": 80 << 30, "computeCapabilityMajor": 8, "computeCapabilityMinor": 0}
    rows["TARGET_INFO_CUDA_GPU"].append({**old, "name": "NVIDIA A100", "pciBusId": f"0000:{gpu:02x}:00.0"})
    place = {"hwId": 1, "vmId": 1, "processId": pid, "contextId": 1}
    rows["TARGET_INFO_CUDA_STREAM"].append({**place, "streamId": 13, "flag": 2, "priority": 0})
    rows["TARGET_INFO_CUDA_NULL_STREAM"].append({**place, "streamId": 7, "deviceId": gpu})
    info = {"nullStreamId": 7, "deviceId": gpu, "parentContextId": 0, "isGreenContext": 0, "numMultiprocessors": 108}
    rows["TARGET_INFO_CUDA_CONTEXT_INFO"].append({**place, **info})
    access = {"fileAccessId": gpu, "processId": process, "openedAt": 1, "closedAt": STEPS * STEP_NS}
    rows["OSRT_FILE_ACCESS_DESCRIPTORS"].append({**access, "filePath": "/data/train.bin"})
    domains = ((3, "NCCL"), (5, "MPI"), (6, "GIL Trace"), (7, "Python Backtrace"))
    for domain, text in domains:
        event = {"start": 1, "eventType": 75, "globalTid": thread, "domainId": domain}
        rows["NVTX_EVENTS"].append({**event, "text": text})


def _step(rows: dict[str, list[Row]], gpu: int, pid: int, step: int) -> None:
    at = (step + 1) * STEP_NS + gpu * 1_000
    thread = global_tid((pid, pid))
    _device(rows, gpu, pid, step, at)
    _waiting(rows, gpu, pid, step, at)
    _ranges(rows, thread, step, at)
    _host(rows, gpu, pid, step, at)
    _memory(rows, gpu, pid, step, at)


def _device(rows: dict[str, list[Row]], gpu: int, pid: int, step: int, at: int) -> None:
    place = {"deviceId": gpu, "contextId": 1, "greenContextId": 1, "streamId": 7, "globalPid": global_pid(pid)}
    shape = {"gridX": 108, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 2, "blockZ": 1, "registersPerThread": 32}
    shape |= {"staticSharedMemory": 1024, "dynamicSharedMemory": 2048, "sharedMemoryExecuted": 8192, "gridId": step}
    shape |= {"localMemoryPerThread": 0, "localMemoryTotal": 0, "clusterX": 1, "clusterY": 1, "clusterZ": 1}
    shape |= {"launchType": 1, "graphNodeId": None, "graphId": None, "mangledName": _ID["gemm"]}
    calls = step * 20
    for number, name in enumerate(("gemm(float *, int)", "gemm", "ncclDevKernel_AllReduce_Sum_f32(float *)")):
        start = at + 100_000 + number * 150_000
        _call(rows, pid, "cudaLaunchKernel_v7000", start - 20_000, start - 10_000, calls + number)
        times = {"start": start, "end": start + 90_000, "correlationId": calls + number}
        node = {"graphNodeId": 77, "graphId": 5} if number == 1 else {}
        names = {"shortName": _ID["gemm"], "demangledName": _ID[name]}
        rows["CUPTI_ACTIVITY_KIND_KERNEL"].append({**place, **shape, **names, **times, **node})
    _call(rows, pid, "cudaMemcpyAsync_v3020", at + 500_000, at + 510_000, calls + 4)
    copy = {"start": at + 520_000, "end": at + 600_000, "correlationId": calls + 4, "bytes": 1 << 20, "copyCount": 1}
    copy |= {"copyKind": 1, "srcKind": 0, "dstKind": 2, "migrationCause": 2, "graphNodeId": 7, "virtualAddress": 4096}
    copy |= {"srcDeviceId": gpu, "srcContextId": 1, "dstDeviceId": gpu, "dstContextId": 1}
    rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append({**place, **copy})
    moved = {"copyKind": 11, "start": at + 900_000, "end": at + 950_000, "correlationId": 0}
    rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append({**place, **copy, **moved})
    _call(rows, pid, "cudaMemsetAsync_v3020", at + 610_000, at + 615_000, calls + 5)
    fill = {"start": at + 620_000, "end": at + 640_000, "correlationId": calls + 5, "bytes": 4096, "value": 0}
    rows["CUPTI_ACTIVITY_KIND_MEMSET"].append({**place, **fill, "graphNodeId": 8, "memKind": 2})
    _call(rows, pid, "cudaGraphLaunch_v10000", at + 650_000, at + 660_000, calls + 6)
    graph = {"start": at + 670_000, "end": at + 750_000, "correlationId": calls + 6, "graphId": 5, "graphExecId": 6}
    rows["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"].append({**place, **graph})
    _call(rows, pid, "cudaLaunchHostFunc_v10000", at + 661_000, at + 665_000, calls + 9)
    function = {"start": at + 751_000, "end": at + 759_000, "correlationId": calls + 9, "graphNodeId": 9, "graphId": 5}
    rows["CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"].append({**place, **function})


def _waiting(rows: dict[str, list[Row]], gpu: int, pid: int, step: int, at: int) -> None:
    place = {"deviceId": gpu, "contextId": 1, "greenContextId": 1, "streamId": 7, "globalPid": global_pid(pid)}
    calls = step * 20
    _call(rows, pid, "cudaEventRecord_v3020", at + 760_000, at + 765_000, calls + 7)
    event = {"eventId": 3, "correlationId": calls + 7, "eventSyncId": step, "timestamp": at + 766_000}
    rows["CUPTI_ACTIVITY_KIND_CUDA_EVENT"].append({**place, **event})
    _call(rows, pid, "cudaStreamSynchronize_v3020", at + 770_000, at + 880_000, calls + 8)
    wait = {"start": at + 771_000, "end": at + 879_000, "correlationId": calls + 8, "syncType": 3, "eventId": 3}
    rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"].append({**place, **wait, "eventSyncId": step})


def _call(rows: dict[str, list[Row]], pid: int, name: str, start: int, end: int, correlation: int) -> None:
    chain = len(rows["CUPTI_ACTIVITY_KIND_RUNTIME"]) + 1
    call = {"start": start, "end": end, "globalTid": global_tid((pid, pid)), "nameId": _ID[name], "eventClass": 0}
    call |= {"correlationId": correlation, "returnValue": 0, "callchainId": chain}
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call)
    _chain(rows, "CUDA_CALLCHAINS", chain)


def _chain(rows: dict[str, list[Row]], table: str, number: int) -> None:
    frame = {"id": number, "module": _ID["/usr/bin/app"], "originalIP": 4096, "unwindMethod": 1, "kernelMode": 0}
    for depth, symbol in enumerate(("gemm", "main")):
        flags = {"unresolved": 0, "specialEntry": 0}
        rows[table].append({**frame, **flags, "symbol": _ID[symbol], "stackDepth": depth})


def _ranges(rows: dict[str, list[Row]], thread: int, step: int, at: int) -> None:
    event = {
        "globalTid": thread,
        "endGlobalTid": thread,
        "eventId": step,
        "rangeId": step,
        "category": 1,
        "domainId": 0,
        "color": 255,
    }
    event |= dict.fromkeys(("uint64Value", "int64Value", "uint32Value", "int32Value"), 4)
    event |= {"doubleValue": 0.5, "floatValue": 0.5, "jsonTextId": _ID["main"], "jsonText": "{}"}
    ranges = rows["NVTX_EVENTS"]
    ranges.append({**event, "start": at, "end": at + 1_500_000, "eventType": 59, "text": f"step {step}"})
    ranges.append({**event, "start": at + 50_000, "end": at + 300_000, "eventType": 60, "textId": _ID["main"]})
    payload = struct.pack("<IIIIQQq", 3, 0, 9, 0, 8, 40, 1234)
    nccl = {"start": at + 370_000, "end": at + 400_000, "eventType": 70, "domainId": 3, "text": "ncclAllReduce"}
    ranges.append({**event, **nccl, "binaryData": payload})
    ranges.append({**event, "start": at, "end": at + 9_000, "eventType": 59, "domainId": 6, "text": "Holding GIL"})
    frame = struct.pack("<QQII", _ID["main"], _ID["train.py"], 12, 0)
    stack = struct.pack("<IIIIQQ", 1, 0, 3, 1, 40, 72) + struct.pack("<4I", 1, 1, 1, 0) + frame
    ranges.append({**event, "start": at + 790_000, "eventType": 34, "domainId": 7, "binaryData": stack})


def _host(rows: dict[str, list[Row]], gpu: int, pid: int, step: int, at: int) -> None:
    thread, worker = global_tid((pid, pid)), global_tid((pid, pid + WORKER))
    number = len(rows["OSRT_API"]) + 1
    call = {"globalTid": thread, "eventClass": 27, "returnValue": 0, "nestingLevel": 0, "correlationId": 0}
    call |= {"callchainId": number, "argumentsId": number}
    rows["OSRT_API"].append({**call, "start": at + 1_000_000, "end": at + 1_900_000, "nameId": _ID["read"]})
    rows["OSRT_API"].append(
        {**call, "start": at, "end": at + 990_000, "nameId": _ID["pthread_cond_wait"], "globalTid": worker}
    )
    _chain(rows, "OSRT_CALLCHAINS", number)
    access = {"fileAccessId": gpu, "threadId": thread, "startedAt": at + 1_000_000, "endedAt": at + 1_900_000}
    rows["OSRT_FILE_ACCESS_EVENTS"].append({**access, "eventType": 1, "apiCallId": 1, "bytesProcessed": 4096})
    state = {"threadState": 0, "threadBlock": 0, "cpu": gpu}
    for owner, out, back in ((thread, 1_001_000, 1_899_000), (worker, 1_000, 989_000)):
        rows["SCHED_EVENTS"].append({**state, "start": at + out, "isSchedIn": 0, "globalTid": owner})
        rows["SCHED_EVENTS"].append({**state, "start": at + back, "isSchedIn": 1, "globalTid": owner})
    for offset in (10_000, 450_000, 1_950_000):
        sample = len(rows["COMPOSITE_EVENTS"]) + 1
        taken = {"id": sample, "start": at + offset, "cpu": gpu, "threadState": 1, "cpuCycles": 100}
        rows["COMPOSITE_EVENTS"].append({**taken, "globalTid": thread})
        _chain(rows, "SAMPLING_CALLCHAINS", sample)
    held = {"globalTid": thread, "eventClass": 52}
    for table, name, start in (
        ("CUBLAS_EVENTS", "cublasSgemm_v2", 70_000),
        ("CUDNN_EVENTS", "cudnnConvolutionForward", 80_000),
        ("CUDA_GRAPH_EVENTS", "cudaGraphCreate", 640_000),
        ("CUDA_GRAPH_NODE_EVENTS", "cudaGraphCreate", 641_000),
        ("CUPTI_ACTIVITY_KIND_OVERHEAD", "Driver JIT Compiler", 645_000),
        ("PROFILER_OVERHEAD", "CUPTI: Buffer flush", 646_000),
        ("CUPTI_ACTIVITY_KIND_JIT", "Driver JIT Compiler", 648_000),
        ("CUDA_HOST_CALLBACK", "main", 752_000),
        ("PROFILER_FUNCTIONS", "train.forward:7", 650_000),
        ("PROFILER_WAITS", "lock.acquire", 654_000),
    ):
        row = {**held, "start": at + start, "end": at + start + 3_000, "nameId": _ID[name]}
        declared = [column.name for column in TABLES[table].columns]
        rest = {"graphId": 5, "originalGraphId": 4, "graphExecId": 6, "graphNodeId": 77, "originalGraphNodeId": 76}
        rest |= {"overheadType": 2, "correlationId": step * 20 + 6, "returnValue": 0}
        rows[table].append({name: value for name, value in {**row, **rest}.items() if name in declared})
    _mpi(rows, thread, at)


def _mpi(rows: dict[str, list[Row]], thread: int, at: int) -> None:
    call = {"globalTid": thread, "commHandle": 1, "requestHandle": 3, "rootRank": 0, "size": 4096, "recvSize": 4096}
    call |= {"tag": 1, "remoteRank": 1}
    for table, name, start in (
        ("MPI_COLLECTIVES_EVENTS", "MPI_Allreduce", 960_000),
        ("MPI_P2P_EVENTS", "MPI_Send", 970_000),
        ("MPI_START_WAIT_EVENTS", "MPI_Wait", 980_000),
        ("MPI_OTHER_EVENTS", "MPI_Barrier", 990_000),
    ):
        declared = [column.name for column in TABLES[table].columns]
        row = {**call, "start": at + start, "end": at + start + 8_000, "textId": _ID[name]}
        rows[table].append({column: value for column, value in row.items() if column in declared})
    for table in (*OPENACC_TABLES, *OPENMP_TABLES):
        span = {"start": at + 640_000, "end": at + 660_000, "globalTid": thread, "nameId": _ID["Compute construct"]}
        place = {"srcFile": _ID["/src/solver.f90"], "lineNo": 55} if table in OPENACC_TABLES else {"eventClass": 5}
        rows[table].append({**span, **place})


def _memory(rows: dict[str, list[Row]], gpu: int, pid: int, step: int, at: int) -> None:
    process = {"globalPid": global_pid(pid), "deviceId": gpu}
    pool = {"localMemoryPoolAddress": 4096, "localMemoryPoolSize": 1 << 20, "localMemoryPoolUtilizedSize": 1 << 19}
    given = {"start": at, "contextId": 1, "address": 4096 * (step // 2), "memKind": 2, "bytes": 1 << 20}
    given |= {"memoryOperationType": step % 2, "correlationId": step * 20, "name": "weights"}
    rows["CUDA_GPU_MEMORY_USAGE_EVENTS"].append({**process, **pool, **given})
    fault = {"globalPid": global_pid(pid), "address": 4096}
    rows["CUDA_UM_CPU_PAGE_FAULT_EVENTS"].append(
        {**fault, "start": at + 905_000, "CpuInstruction": 64, "module": _ID["/usr/bin/app"]}
    )
    group = {"start": at + 900_000, "end": at + 910_000, "faultAccessType": 1, "numberOfPageFaults": 4}
    rows["CUDA_UM_GPU_PAGE_FAULT_EVENTS"].append({**fault, "deviceId": gpu, **group})
    switch = {"vmId": 1 << 48, "seqNo": step, "contextId": 1, "globalPid": global_pid(pid), "gpuId": gpu}
    rows["GPU_CONTEXT_SWITCH_EVENTS"].append({**switch, "timestamp": at + 60_000, "tag": 9})
    rows["GPU_CONTEXT_SWITCH_EVENTS"].append({**switch, "timestamp": at + 700_000, "tag": 7})
    for tick in range(20):
        sample = {"timestamp": at + tick * 100_000, "typeId": 0x112200 | gpu}
        rows["GPU_METRICS"] += [{**sample, "metricId": metric, "value": 40 + tick} for metric in (0, 1)]
