"""Reports made by hand for the output tests: small, consistent, one for each thing to cope with."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from functools import cache

import msgspec
import numpy as np

from nsysdiag.cost.facts import Amount, Cost, CostSaving, TotalCost
from nsysdiag.critical_path.facts import CriticalPath, PathPart, PathWork
from nsysdiag.diagnosis.facts import Saves
from nsysdiag.findings.facts import EvidenceRow, Finding
from nsysdiag.iterations.facts import InnerLoop, Iteration, IterationReport, SlowIteration
from nsysdiag.kernels.facts import CollectiveKind, Communication, FamilyKernel, FamilyTime, KernelRow, MpiCall
from nsysdiag.launches.facts import (
    ApiRow,
    Distribution,
    GraphLaunches,
    GraphRow,
    Launch,
    LaunchBound,
    LaunchBoundPhase,
    QueueDepth,
    QueueDrains,
)
from nsysdiag.memory.facts import Copies, CopyRow
from nsysdiag.phrases import Phrases
from nsysdiag.report import (
    SCHEMA_VERSION,
    CallSite,
    Capability,
    CauseInfo,
    CodeFrame,
    CodeShare,
    DeviceId,
    DeviceReport,
    Gap,
    GapsPacked,
    NotRecorded,
    OpCounts,
    Operation,
    Outlook,
    Report,
    Root,
    SignatureRow,
    Slice,
    Thread,
    Tool,
    TraceInfo,
    Verdict,
    Window,
)
from tests.output.diagnosis_samples import sample_diagnosis, sample_phases
from tests.output.flame_samples import flame_graph
from tests.output.gpu_metric_samples import clock, gpu_metrics
from tests.output.host_samples import host_report
from tests.output.memory_samples import MEMORY, UNIFIED, hostile_copies, hostile_unified, in_full
from tests.output.range_samples import range_tree
from tests.output.rank_samples import comparison
from tests.output.timeline.samples import timeline
from tests.output.utilization_samples import hostile_utilization, long_utilization, measured_utilization, utilization_of

US, MS = 1_000, 1_000_000
PACKED_CAUSES = ["sync", "host_compute", "dispatch"]

CAUSES = [
    CauseInfo(id="sync", title="Waiting in a synchronisation", meaning="The host waited for the GPU.", color="#d1495b"),
    CauseInfo(
        id="blocking_copy", title="Blocking copy", meaning="A copy that returns when it is done.", color="#edae49"
    ),
    CauseInfo(id="host_compute", title="Host computing", meaning="The launching thread ran on a CPU.", color="#2a9d8f"),
    CauseInfo(
        id="lock_wait", title="Waiting for a lock", meaning="The thread waited for another one.", color="#6d597a"
    ),
    CauseInfo(id="io_wait", title="Waiting for I/O", meaning="The thread read or wrote.", color="#457b9d"),
    CauseInfo(id="data_loading", title="Data loading", meaning="A worker had no batch ready.", color="#8ab17d"),
    CauseInfo(id="launch_call", title="Launch call", meaning="The call that launches took long.", color="#3d5a80"),
    CauseInfo(id="launch_latency", title="Launch latency", meaning="From call to start.", color="#98c1d9"),
    CauseInfo(id="dispatch", title="Device dispatch", meaning="Gaps between queued operations.", color="#adb5bd"),
    CauseInfo(id="uncovered", title="Unexplained", meaning="Nothing is known.", color="#6c757d", unresolved=True),
]

CAPABILITIES = [
    Capability(id="cuda_kernels", available=True, why="4,012 rows"),
    Capability(id="osrt", available=True, why="1,200 rows"),
    Capability(
        id="scheduling", available=False, why="the table SCHED_EVENTS is absent", recapture="--cpuctxsw=process-tree"
    ),
    Capability(id="cpu_samples", available=False, why="the table is empty", recapture="--sample=process-tree"),
]

RECAPTURE = "nsys profile --trace=cuda,nvtx,osrt --sample=process-tree --cpuctxsw=process-tree -o trace python train.py"


def pack(gaps: list[tuple[int, int, int]], cause_ids: list[str]) -> GapsPacked:
    """Gaps as (start, length, index of cause), packed as the model documents it."""
    starts = np.array([gap[0] for gap in gaps], dtype="<i8")
    lengths = np.array([gap[1] for gap in gaps], dtype="<i8")
    causes = np.array([gap[2] for gap in gaps], dtype=np.uint8)
    return GapsPacked(
        count=len(gaps),
        starts=squeeze(np.diff(starts, prepend=np.int64(0))),
        lengths=squeeze(lengths),
        causes=squeeze(causes),
        cause_ids=cause_ids,
    )


def squeeze(values: np.ndarray) -> str:
    return _squeezed(values.tobytes())


@cache
def _squeezed(values: bytes) -> str:
    return base64.b64encode(zlib.compress(values, 9)).decode()


def operation(name: str, start_ns: int, end_ns: int, category: str = "kernel") -> Operation:
    return Operation(name=name, category=category, start_ns=start_ns, end_ns=end_ns, stream=7)


def gap(index: int = 0, *, name: str = "ampere_sgemm_128x64_tn", length: int = 400 * US) -> Gap:
    """A gap with four slices that add up to its length; the later its index, the later and shorter it is."""
    start = 100 * MS + index * 2 * MS
    length -= index * US
    sync, copy, call = length // 2, length // 4, length // 8
    return Gap(
        start_ns=start,
        end_ns=start + length,
        slices=[
            Slice(cause="launch_call", ns=call, evidence="cudaLaunchKernel, its part of the launch"),
            Slice(cause="sync", ns=sync, evidence=f"cudaStreamSynchronize on thread 4242, row {index}"),
            Slice(cause="host_compute", ns=copy, evidence="14 CPU samples, most in _PyEval_EvalFrameDefault"),
            Slice(cause="uncovered", ns=length - sync - copy - call, evidence=""),
        ],
        thread=Thread(pid=4200, tid=4242, name="python"),
        previous_op=operation(name, start - 50 * US, start),
        next_op=operation(
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)",
            start + length,
            start + length + 9 * US,
        ),
        nvtx=["train", f"step {index}", "forward"],
        sync_drained=index % 2 == 0,
        drained_by="cudaStreamSynchronize" if index % 2 == 0 else None,
        root=Root(chain=["python 4242 waited for a lock", "worker 4250 read a file"], confidence=0.7)
        if index == 0
        else None,
        confidence=0.85,
        call_site=call_site("load_batch") if index == 0 else None,
        nvtx_elsewhere=["prefetch"] if index == 1 else [],
    )


def call_site(symbol: str, module: str = "solver", source: str = "sampling") -> CallSite:
    """A native function and its callers, as the samples have them."""
    frames = [CodeFrame(symbol=name, module=module) for name in (symbol, "train", "main")]
    return CallSite(frames=frames, source=source, chains=12, of=20)


def kernel(name: str, total_ns: int, communication: bool = False) -> KernelRow:
    return KernelRow(
        name=f"void {name}<float, 4>(float const*, float*, int)",
        short_name=name,
        count=100,
        total_ns=total_ns,
        mean_ns=total_ns // 100,
        median_ns=total_ns // 110,
        min_ns=total_ns // 300,
        max_ns=total_ns // 20,
        communication=communication,
    )


def iteration(index: int, length: int, *, steady: bool = True, **ledger: int) -> Iteration:
    """Half of it compute, a tenth each of exposed communication and copies, the causes named, the rest synchronization;
    each index has a place of its own in time."""
    work, other = length // 2, length // 10
    rest = length - work - 2 * other - sum(ledger.values())
    start = 90 * MS + index * 5 * MS
    return Iteration(
        index=index,
        start_ns=start,
        end_ns=start + length,
        steady=steady,
        compute_ns=work,
        exposed_comm_ns=other,
        exposed_copy_ns=other,
        ledger={name: ns for name, ns in {**ledger, "sync": rest}.items() if ns},
    )


def iterations(**changes: object) -> IterationReport:
    """Twenty iterations of about 4 ms: the first and the last left out, two slow ones."""
    rows = [iteration(index, 4 * MS + index % 3 * US) for index in range(20)]
    rows[0] = iteration(0, 5 * MS, steady=False, host_compute=MS)
    rows[6] = iteration(6, 5 * MS, lock_wait=700 * US)
    rows[13] = iteration(13, 4500 * US, host_compute=200 * US, uncovered=100 * US)
    rows[19] = iteration(19, MS, steady=False)
    made = IterationReport(
        source="nvtx",
        name="step #",
        count=20,
        steady=18,
        left_out=[0, 19],
        p50_ns=4 * MS + US,
        p95_ns=4500 * US,
        worst_ns=5 * MS,
        median_index=4,
        rows=rows,
        slow=[
            SlowIteration(index=6, extra_ns=MS - US, more={"lock_wait": 700 * US, "compute": 499_500}),
            SlowIteration(
                index=13,
                extra_ns=499 * US,
                more={"compute": 249_500, "host_compute": 200 * US, "uncovered": 100 * US, "exposed_comm": 49_900},
            ),
        ],
        inner=InnerLoop(source="nvtx", name="micro batch #", per_iteration=4, median_ns=900 * US),
        slow_count=2,
        slow_extra_ns=MS + 498 * US,
    )
    return msgspec.structs.replace(made, **changes)


LAUNCH = Launch(
    launched_ops=4012,
    unlaunched_ops=3,
    found_device_idle=912,
    median_queue_delay_ns=4200,
    median_interval_ns=15_300,
    median_kernel_ns=9_800,
    api=[
        ApiRow(
            name="cudaStreamSynchronize",
            cause="sync",
            count=90,
            total_ns=22 * MS,
            mean_ns=244_444,
            median_ns=230_000,
            min_ns=2_000,
            max_ns=900_000,
        ),
        ApiRow(
            name="cudaLaunchKernel",
            cause="launch_call",
            count=4012,
            total_ns=19 * MS,
            mean_ns=4_735,
            median_ns=4_100,
            min_ns=1_900,
            max_ns=2 * MS,
        ),
        ApiRow(
            name="cudaGetDevice",
            cause=None,
            count=9000,
            total_ns=MS,
            mean_ns=111,
            median_ns=100,
            min_ns=80,
            max_ns=9_000,
        ),
    ],
)


def distribution(p50: int, bins: list[tuple[int, int]]) -> Distribution:
    """Spread around a median: half of it at p5, ten times it at most."""
    count = sum(number for _, number in bins)
    return Distribution(
        count=count,
        total_ns=count * p50,
        p5_ns=p50 // 2,
        p25_ns=p50 - p50 // 4,
        p50_ns=p50,
        p75_ns=p50 + p50 // 4,
        p95_ns=2 * p50,
        p99_ns=3 * p50,
        max_ns=10 * p50,
        bins=bins,
    )


def queue_depth(drains: list[QueueDrains]) -> QueueDepth:
    """A host that is 0 to 40 operations ahead over 100 ms in 100 buckets, the window of `device`."""
    depth = np.arange(100, dtype="<i8") % 10
    return QueueDepth(
        observed_ns=100 * MS,
        empty_ns=10 * MS,
        mean=9.0,
        p5=0,
        p25=2,
        p50=8,
        p75=18,
        p95=32,
        max=40,
        start_ns=90 * MS,
        end_ns=190 * MS,
        buckets=100,
        lowest=squeeze(depth),
        mean_thousandths=squeeze(1500 * depth),
        highest=squeeze(4 * depth + 4),
        drain_count=sum(each.count for each in drains),
        drain_idle_ns=sum(each.idle_ns for each in drains),
        drains=drains,
    )


def launch_bound(*paths: list[str]) -> LaunchBound:
    """A launch-bound phase of 1 ms in each of the NVTX paths, three quarters of it idle."""
    count = len(paths)
    return LaunchBound(
        count=count,
        launches=50 * count,
        span_ns=MS * count,
        busy_ns=250 * US * count,
        idle_ns=750 * US * count,
        causes={"host_compute": 500 * US * count, "launch_call": 250 * US * count},
        rows=[
            LaunchBoundPhase(
                start_ns=100 * MS + 3 * MS * at,
                end_ns=101 * MS + 3 * MS * at,
                launches=50,
                busy_ns=250 * US,
                idle_ns=750 * US,
                median_interval_ns=20 * US,
                median_work_ns=5 * US,
                nvtx=path,
            )
            for at, path in enumerate(paths)
        ],
    )


def graphs(*names: str) -> GraphLaunches:
    """Ten launches of a graph of 40 nodes for each name, the first recorded as a whole; and two that left nothing."""
    count = len(names)
    return GraphLaunches(
        count=count,
        launches=10 * count,
        nodes=400 * (count - 1),
        api_ns=400 * US * count,
        node_api_ns=400 * US * (count - 1),
        work_ns=4 * MS * count,
        between_ns=80 * US * (count - 1),
        untraced=2,
        rows=[
            GraphRow(
                name=name,
                executable=None if at else 7,
                launches=10,
                nodes=40 if at else None,
                api_ns=400 * US,
                median_api_ns=39 * US,
                work_ns=4 * MS,
                between_ns=80 * US if at else 0,
                between_gaps=390 if at else 0,
            )
            for at, name in enumerate(names)
        ],
    )


def launch_in_full() -> Launch:
    """Everything that there can be to say about launches."""
    return msgspec.structs.replace(
        LAUNCH,
        calls=3632,
        kernel=distribution(9_800, [(2 * US, 900), (5 * US, 2700), (10 * US, 400)]),
        call=distribution(4_100, [(2 * US, 3500), (5 * US, 12)]),
        interval=distribution(15_300, [(10 * US, 3600), (20 * US, 31)]),
        to_start=distribution(8_300, [(5 * US, 3512)]),
        queue_delay=distribution(4_200, [(0, 12), (100, 0), (200, 3500)]),
        queue_full_ns=1_200 * US,
        queue_depth=queue_depth(
            [
                QueueDrains(
                    cause="sync", call="cudaStreamSynchronize", is_call=True, count=30, idle_ns=6 * MS, median_depth=22
                ),
                QueueDrains(cause="uncovered", call="no evidence", count=2, idle_ns=MS, median_depth=5),
            ]
        ),
        launch_bound=launch_bound(["train", "step #", "optimizer"], []),
        graphs=graphs("graph", "ampere_sgemm_128x64_tn"),
    )


def copies_of(*rows: CopyRow) -> Copies:
    """Rows of copies with their totals."""
    total, size = sum(row.total_ns for row in rows), sum(row.bytes for row in rows)
    return Copies(rows=list(rows), total_ns=total, bytes=size, exposed_ns=5 * MS)


def communication_of(rows: list[KernelRow], calls: Sequence[str] = ("MPI_Allreduce",)) -> Communication:
    """Communication kernels with their total, and MPI calls."""
    total = sum(row.total_ns for row in rows)
    kinds = [
        CollectiveKind(
            kind="AllReduce",
            count=30,
            total_ns=total - MS,
            exposed_ns=9 * MS,
            overlapped_ns=3 * MS,
            sized=28,
            algorithm_bytes_per_second=2e11,
            bus_bytes_per_second=3.5e11,
            best_bus_bytes_per_second=4e11,
        ),
        CollectiveKind(kind="Broadcast", count=2, total_ns=MS, exposed_ns=MS, overlapped_ns=0),
    ]
    return Communication(
        kernels=rows,
        total_ns=total,
        exposed_ns=10 * MS,
        overlapped_ns=3 * MS,
        kinds=kinds if rows else [],
        link_bytes_per_second=4.5e11 if rows else None,
        mpi=[MpiCall(name=name, count=7, total_ns=4 * MS, idle_ns=3 * MS) for name in calls if rows],
    )


FAMILIES = [
    FamilyTime(
        family="FP32 matrix products (no tensor cores)",
        count=2_000,
        total_ns=30 * MS,
        share=0.3,
        names=1,
        step_count=20.0,
        step_ns=3 * MS,
        kernels=[FamilyKernel(name="ampere_sgemm_128x64_tn", count=2_000, total_ns=30 * MS)],
    ),
    FamilyTime(
        family="elementwise",
        count=2_012,
        total_ns=15 * MS,
        share=0.15,
        names=5,
        step_count=20.1,
        step_ns=1_500_000,
        kernels=[
            FamilyKernel(name="vectorized_elementwise_kernel<AbsFunctor<Half>, …>", count=12, total_ns=9 * MS),
            FamilyKernel(name="triton_poi_fused_add_#", count=1_500, total_ns=5 * MS),
        ],
    ),
]


def device(index: int = 0, **changes: object) -> DeviceReport:
    """A device of 100 ms: 45 compute, 10 exposed communication, 5 exposed copies, 40 idle."""
    gaps = [gap(number) for number in range(12)]
    small = [(90 * MS + 4 * US * number, 800 + 9 * number, number % 3) for number in range(1222)]
    packed = pack([*small, *((row.start_ns, row.end_ns - row.start_ns, 0) for row in gaps)], PACKED_CAUSES)
    made = DeviceReport(
        key=f"gpu{index}",
        name="NVIDIA H100 80GB HBM3",
        sm_count=132,
        ids=[DeviceId(pid=4200, device_id=index)],
        window=Window(
            start_ns=90 * MS,
            end_ns=190 * MS,
            parts=[(90 * MS, 190 * MS)],
            reason="first to last launched operation",
            outside_ns=12 * MS,
            edge_ns=250 * MS,
        ),
        window_ns=100 * MS,
        busy_ns=60 * MS,
        idle_ns=40 * MS,
        compute_ns=45 * MS,
        exposed_comm_ns=10 * MS,
        exposed_copy_ns=5 * MS,
        overlapped_comm_ns=3 * MS,
        ops=OpCounts(kernel=4012, memcpy=210, memset=12, graph=1, zero_length=2, malformed=1),
        ledger={
            "sync": 18 * MS,
            "host_compute": 9 * MS,
            "lock_wait": 5 * MS,
            "launch_call": 4 * MS - 1_234,
            "launch_latency": MS,
            "dispatch": MS,
            "uncovered": 2 * MS + 1_234,
        },
        root_ledger={
            "sync": 18 * MS,
            "host_compute": 9 * MS,
            "data_loading": 5 * MS,
            "launch_call": 4 * MS - 1_234,
            "launch_latency": MS,
            "dispatch": MS,
            "uncovered": 2 * MS + 1_234,
        },
        labels={
            "sync": {"stream": 15 * MS, "event": 3 * MS},
            "host_compute": {"interpreter": 6 * MS, "garbage collector": 2 * MS, "libc": 600 * US, "other": 400 * US},
        },
        sync_drained={"gaps": 33, "ns": 21 * MS},
        coverage=0.947,
        floor_ns=2_800,
        floor_calibrated=True,
        launch_latency_ns=5_000,
        launch_latency_calibrated=False,
        verdict=Verdict(
            id="sync-bound",
            sentence="Sync-bound: 45% of the idle time is spent in synchronisations, most of it on one stream.",
        ),
        gap_count=1234,
        gaps=gaps,
        gaps_packed=packed,
        signatures=[
            SignatureRow(
                id="s-1a2b",
                previous_op="ampere_sgemm_128x64_tn",
                next_op="vectorized_elementwise_kernel",
                nvtx=["train", "forward"],
                cause="sync",
                count=96,
                total_ns=17 * MS,
                median_ns=170_000,
                max_ns=400_000,
                representative_start_ns=100 * MS,
                representative_index=7,
                p95_ns=380_000,
                per_iteration_ns=1_700_000,
                share_of_idle=0.68,
            ),
            SignatureRow(
                id="s-3c4d",
                previous_op="[CUDA memcpy HtoD]",
                next_op="ampere_sgemm_128x64_tn",
                nvtx=[],
                cause="host_compute",
                count=12,
                total_ns=6 * MS,
                median_ns=450_000,
                max_ns=MS,
                representative_start_ns=120 * MS,
                call_site=CallSite(
                    frames=[CodeFrame(symbol="collate", module="data.py", python=True, line=17)],
                    source="python",
                    chains=1,
                    of=1,
                ),
                host_code=[
                    CodeShare(symbol="_PyEval_EvalFrameDefault", kind="interpreter", share=0.62),
                    CodeShare(symbol="gc_collect_main", kind="garbage collector", share=0.21),
                ],
                representative_index=9,
                p95_ns=990_000,
                share_of_idle=0.24,
            ),
        ],
        iterations=iterations(),
        launch=LAUNCH,
        kernels=[kernel("ampere_sgemm_128x64_tn", 30 * MS), kernel("vectorized_elementwise_kernel", 15 * MS)],
        copies=copies_of(
            CopyRow(
                operation="HtoD",
                src="pageable",
                dst="device",
                count=200,
                total_ns=6 * MS,
                bytes=1 << 28,
                bytes_per_second=44.7e9,
            ),
            CopyRow(
                operation="memset", src=None, dst="device", count=12, total_ns=0, bytes=1 << 20, bytes_per_second=None
            ),
        ),
        communication=communication_of(
            [kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 13 * MS, communication=True)]
        ),
        utilization=utilization_of(),
        notes=[],
    )
    return msgspec.structs.replace(made, **changes)


def finding(identifier: str = "f-sync-1a2b", **changes: object) -> Finding:
    made = Finding(
        id=identifier,
        cause="sync",
        device="gpu0",
        severity="high",
        title="The step ends in a stream synchronisation",
        lost_ns=17 * MS,
        lost_share=0.17,
        ceiling_ns=21 * MS,
        confidence=0.92,
        devices=["gpu0"],
        bottleneck="sync",
        share=0.18,
        saves=Saves(ns=600 * US, low_ns=0, high_ns=600 * US, per="step", of_ns=5 * MS, method="bound"),
        nvtx=["train", "forward"],
        evidence=["96 calls of cudaStreamSynchronize on thread 4242", "the longest starts at 0.100000 s"],
        advice=["Read the loss every 100 steps instead of each one.", "Use non_blocking=True with pinned memory."],
        signature="s-1a2b",
        call="cudaStreamSynchronize",
        gaps=96,
        chain=[
            "cudaStreamSynchronize (waits for a stream) on thread 4242 'python'",
            "the queue is empty for 170 µs at a time, 96 times",
            "idle before vectorized_elementwise_kernel<AddFunctor, …> in train › forward",
            "keep the value on the device and read it every n steps",
        ],
        rows=[
            EvidenceRow(
                table="CUPTI_ACTIVITY_KIND_RUNTIME",
                name="cudaStreamSynchronize",
                start_ns=99_990_000,
                ns=400_000,
                thread=281_546_145_665_170,
                correlation=4711,
            ),
            EvidenceRow(
                table="SCHED_EVENTS", name="scheduled in", start_ns=100_200_000, ns=1_000, thread=281_546_145_665_170
            ),
        ],
    )
    changes = {"devices": [changes.get("device", "gpu0")], **changes}
    return msgspec.structs.replace(made, **changes)


REPLAYED = Saves(ns=1_750 * US, low_ns=1_550 * US, high_ns=1_800 * US, per="step", of_ns=5 * MS, method="replay")
"""What a saving is that was predicted: 31 to 36% of a step."""


def outlook(identifier: str, causes: Sequence[str] = ("sync", "lock_wait"), device: str = "gpu0") -> Outlook:
    """A step of 5 ms, of it 2 ms idle, which would take 3.25 ms: the first cause is gone, the others stay."""
    work = {"compute": 2 * MS, "exposed_comm": 700 * US, "exposed_copy": 300 * US}
    first, *others = causes
    stays = {cause: 250 * US // len(others) for cause in others}
    return Outlook(
        finding=identifier,
        device=device,
        per="step",
        now={**work, first: 1_750 * US, **stays},
        predicted={**work, **stays},
    )


PHRASES = Phrases(
    names={
        "kernel": ["vectorized_elementwise_kernel<AddFunctor, …>"],
        "range": ["train", "forward"],
        "thread": ["python", "worker"],
    },
    sentences=[
        "idle before {kernel[0]} in {range[0]} › {range[1]}",
        "cudaStreamSynchronize (waits for a stream) on thread 4242 '{thread[0]}'",
        "{thread[0]} 4242 waited for a lock",
        "{thread[1]} 4250 read a file",
    ],
)
"""The names in the sentences of these samples."""


def report(devices: list[DeviceReport], findings: list[Finding], **trace: object) -> Report:
    info = TraceInfo(
        file="train.sqlite",
        size_bytes=3_456_789,
        fingerprint="b1946ac92492d2347c6235b4d2611184",
        nsys_version="2025.1.1",
        export_schema_version="3.17.2",
        tables={"CUPTI_ACTIVITY_KIND_KERNEL": 4012, "NVTX_EVENTS": "~812", "OSRT_API": 1200, "SCHED_EVENTS": 0},
        capabilities=CAPABILITIES,
        warnings=["3 events were dropped: the buffer was full"],
    )
    phases = sample_phases(devices)
    return Report(
        schema_version=SCHEMA_VERSION,
        phrases=PHRASES,
        tool=Tool(name="nsysdiag", version="0.0.0"),
        trace=msgspec.structs.replace(info, **trace),
        devices=devices,
        findings=findings,
        causes=CAUSES,
        recapture=RECAPTURE,
        settings={"gaps": 200},
        not_recorded=[NotRecorded(what="temperature", tool="nvidia-smi")],
        diagnosis=sample_diagnosis(phases, findings),
        phases=phases,
    )


def one_device() -> Report:
    second = finding(
        "f-input-9z",
        cause="lock_wait",
        severity="medium",
        title="The input pipeline is late",
        lost_ns=5 * MS,
        lost_share=0.05,
        ceiling_ns=5 * MS,
        confidence=0.31,
        saves=REPLAYED,
    )
    third = finding("f-rest", cause="uncovered", severity="info", title="Idle time without evidence", confidence=0.1)
    whole = device(
        launch=launch_in_full(),
        copies=in_full(device().copies),
        gpu_metrics=gpu_metrics(),
        unified_memory=UNIFIED,
        memory=MEMORY,
        ranges=range_tree(),
        kernel_families=FAMILIES,
        flames=flame_graph(),
    )
    lanes = {"gpu0": timeline(90 * MS, 190 * MS)}
    made = report([whole], [finding(), second, third])
    return msgspec.structs.replace(
        made, host=host_report(), timeline=lanes, outlooks=[outlook(second.id)], critical_path=critical_path()
    )


def several_devices() -> Report:
    weak = device(1, coverage=0.31, notes=["This device was shared by two processes."])
    unresolved = device(
        2,
        coverage=0.08,
        ledger={"uncovered": 40 * MS},
        root_ledger={"uncovered": 40 * MS},
        labels={},
        sync_drained={"gaps": 0, "ns": 0},
        verdict=Verdict(
            id="unresolved", sentence="Unresolved: no cause of the idle time can be named with this capture."
        ),
    )
    findings = [finding(saves=REPLAYED), finding("f-2", device="gpu1", saves=REPLAYED)]
    made = report([device(), weak, unresolved, never_idle_device(3)], findings)
    lanes = {f"gpu{index}": timeline(90 * MS, 190 * MS) for index in range(4)}
    outlooks = [outlook(each.id) for each in findings]
    return msgspec.structs.replace(made, ranks=comparison(), timeline=lanes, outlooks=outlooks)


def never_idle_device(index: int = 0) -> DeviceReport:
    return device(
        index,
        idle_ns=0,
        busy_ns=100 * MS,
        compute_ns=100 * MS,
        exposed_comm_ns=0,
        exposed_copy_ns=0,
        overlapped_comm_ns=0,
        ledger={},
        root_ledger={},
        labels={},
        sync_drained={},
        coverage=None,
        gap_count=0,
        gaps=[],
        gaps_packed=pack([], []),
        signatures=[],
        iterations=None,
        communication=communication_of([]),
        copies=copies_of(),
        verdict=Verdict(id="gpu-bound", sentence="GPU-bound: the device was never idle."),
        utilization=measured_utilization(),
    )


def never_idle() -> Report:
    return report([never_idle_device()], [])


def no_device() -> Report:
    return report([], [], tables={"NVTX_EVENTS": 812, "OSRT_API": "~1200", "SCHED_EVENTS": 0}, warnings=[])


def no_device_no_rows() -> Report:
    return report([], [], tables={}, warnings=[], capabilities=[], nsys_version=None)


def cost(currency: str = "USD", finding: str = "f-sync-1a2b", matched: str | None = None) -> Cost:
    """What `device` costs at 2.50 an hour, in a run of 72 hours; a thousand steps of 5 ms are 5 s."""
    return Cost(
        currency=currency,
        gpu_hour_cost=2.5,
        matched=matched,
        run_hours=72.0,
        run_given=True,
        idle=Amount(hour=1.0, run=72.0, thousand_steps=0.00138889),
        exposed_comm=Amount(hour=0.25, run=18.0, thousand_steps=0.000347222),
        exposed_copy=Amount(hour=0.125, run=9.0, thousand_steps=0.000173611),
        lost=Amount(hour=1.375, run=99.0, thousand_steps=0.00190972),
        step=0.00000347222,
        best=CostSaving(finding=finding, amount=Amount(hour=0.525, run=37.8, thousand_steps=0.000729167)),
    )


def total_cost(currency: str = "USD", *devices: str) -> TotalCost:
    """So many devices like the one above."""
    one, many = cost(), len(devices)

    def times(amount: Amount) -> Amount:
        steps = amount.thousand_steps
        return Amount(
            hour=amount.hour * many, run=amount.run * many, thousand_steps=None if steps is None else steps * many
        )

    return TotalCost(
        currency=currency,
        devices=list(devices),
        gpu_hour_cost=2.5 * many,
        run_given=True,
        idle=times(one.idle),
        exposed_comm=times(one.exposed_comm),
        exposed_copy=times(one.exposed_copy),
        lost=times(one.lost),
    )


def priced() -> Report:
    """Two devices with a price, one by its name, and one without."""
    devices = [device(cost=cost(matched="H100")), device(1, cost=cost(finding="f-2")), device(2)]
    made = report(devices, [finding(), finding("f-2", device="gpu1", title="The input pipeline is late")])
    return msgspec.structs.replace(made, cost=total_cost("USD", "gpu0", "gpu1"))


HOSTILE = (
    "[bold]",
    "f<[/b]>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "=cmd()|'/c calc'!A1",
    "+1",
    "-1",
    "@user",
    "\t=1",
    "\r=1",
    "a|b",
    "a\\|b",
    "```x`",
    "`",
    "#12",
    "GH-12",
    "[x](javascript:alert(1))",
    "https://example.com/x",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\u202eevil\u202c",
    "a\nb",
    "nul\0",
    "{{ 7*7 }}",
    "' onload='x",
    '" onload="x',
    "&lt;b&gt;",
    "-->",
    "]]>",
    "\u2066x",
    "\u200bzero",
    "",
    " ",
)


def hostile() -> Report:
    """Every text that comes from a trace is one of the hostile names, each used at least once."""
    names = list(HOSTILE)
    base = device()
    gaps = [_hostile_gap(index, name) for index, name in enumerate(names)]
    bad = "".join(names)
    kernels = [msgspec.structs.replace(kernel("x", 9 * MS), name=name, short_name=name) for name in names]
    counters = gpu_metrics(names, clocks=msgspec.structs.replace(clock(), source=bad))
    made = msgspec.structs.replace(
        base,
        key="gpu0<b>",
        name=bad,
        gaps=gaps,
        kernels=kernels,
        communication=communication_of(kernels, names),
        labels={"sync": {name: 1000 + index for index, name in enumerate(names)}},
        notes=[bad, *names],
        verdict=Verdict(id=bad, sentence=bad),
        signatures=[
            msgspec.structs.replace(
                base.signatures[0],
                id=name,
                previous_op=name,
                next_op=name,
                nvtx=[name, name],
                call_site=call_site(name, name, name),
                host_code=[CodeShare(symbol=name, kind=name, share=0.5)],
            )
            for name in names
        ],
        copies=hostile_copies(
            copies_of(
                *(msgspec.structs.replace(base.copies.rows[0], operation=name, src=name, dst=name) for name in names)
            ),
            names,
        ),
        unified_memory=hostile_unified(names),
        memory=MEMORY,
        ranges=range_tree(*(names * 3)[:3]),
        flames=flame_graph(*(names * 3)[:3]),
        kernel_families=[
            msgspec.structs.replace(FAMILIES[0], family=name, kernels=[FamilyKernel(name=name, count=1, total_ns=MS)])
            for name in names
        ],
        launch=msgspec.structs.replace(
            launch_in_full(),
            api=[msgspec.structs.replace(LAUNCH.api[0], name=name, cause=name) for name in names],
            queue_depth=queue_depth(
                [QueueDrains(cause=name, call=name, count=1, idle_ns=US, median_depth=4) for name in names]
            ),
            launch_bound=launch_bound(*([name, name] for name in names)),
            graphs=graphs(*names),
        ),
        ledger={**base.ledger, "<b>odd</b>": 1, "dispatch": MS - 1},
        iterations=_hostile_iterations(bad, names),
        cost=cost(bad, f"f {names[0]} 0", bad),
        utilization=hostile_utilization(names),
        gpu_metrics=msgspec.structs.replace(counters, metrics=counters.metrics[::-1]),  # the first ones are drawn
    )
    findings = [
        finding(
            f"f {name} {index}",
            cause=name,
            severity=name,
            title=name,
            device=name,
            nvtx=[name],
            evidence=[name],
            advice=[name],
            signature=name,
            call=name,
            chain=[name, name],
            saves=msgspec.structs.replace(REPLAYED, per=name),
            rows=[EvidenceRow(table=name, name=name, start_ns=1, ns=2, thread=3, correlation=4)],
        )
        for index, name in enumerate(names)
    ]
    capabilities = [Capability(id=name, available=False, why=name, recapture=name) for name in names]
    made_report = report(
        [made],
        findings,
        file=bad,
        fingerprint=bad,
        nsys_version=bad,
        export_schema_version=bad,
        warnings=[bad, *names],
        capabilities=capabilities,
        tables=dict.fromkeys(names, 3),
    )
    causes = [*CAUSES, CauseInfo(id="=x", title=bad, meaning=bad, color='red" onload="x')]
    settings = dict.fromkeys(names, bad)
    ranks = comparison(names, names)
    phases = sample_phases([made], bad)
    lanes = timeline(90 * MS, 190 * MS, names=[bad, *names], thread=bad, stream=bad, cause_ids=("=x", bad))
    return msgspec.structs.replace(
        made_report,
        causes=causes,
        recapture=bad,
        settings=settings,
        ranks=ranks,
        cost=total_cost(bad, bad),
        host=host_report(names),
        phases=phases,
        diagnosis=sample_diagnosis(phases, findings, bad),
        timeline={made.key: lanes},
        outlooks=[outlook(each.id, ["=x", bad, *names], each.device) for each in findings],
        critical_path=msgspec.structs.replace(critical_path(names), device=bad),
    )


def critical_path(names: Sequence[str] = ("Kernels", "Host code", "gemm", "memcpy HtoD")) -> CriticalPath:
    """Ten steps of 9 ms: kernels on the path, host code, and copies that kernels hide."""
    parts = [
        PathPart(name=names[0], bottleneck="kernels", cause="", ns=60 * MS),
        PathPart(name=names[1], bottleneck="host", cause="host_compute", ns=30 * MS),
    ]
    work = [
        PathWork(bottleneck="kernels", name=names[2], count=40, total_ns=60 * MS, path_ns=60 * MS),
        PathWork(bottleneck="copies", name=names[3], count=10, total_ns=20 * MS, path_ns=2 * MS),
        PathWork(bottleneck="copies", name="memset", count=10, total_ns=2 * MS, path_ns=0),
    ]
    return CriticalPath(per="step", steps=10, total_ns=90 * MS, device="gpu0", parts=parts, work=work)


def _hostile_iterations(bad: str, names: list[str]) -> IterationReport:
    row = iteration(0, MS)
    ledger = {**dict.fromkeys(names, 1), "=x": row.ledger["sync"] - len(names)}
    slow = SlowIteration(index=0, extra_ns=MS, more=dict.fromkeys(names, US))
    return iterations(name=bad, rows=[msgspec.structs.replace(row, ledger=ledger)], slow=[slow])


def _hostile_gap(index: int, name: str) -> Gap:
    made = gap(index, name=name)
    thread = Thread(pid=1, tid=2, name=name)
    slices = [Slice(cause="=x", ns=made.end_ns - made.start_ns, evidence=name)]
    root = Root(chain=[name, name], confidence=0.5)
    return msgspec.structs.replace(
        made,
        slices=slices,
        thread=thread,
        nvtx=[name, name],
        root=root,
        next_op=made.previous_op,
        drained_by=name,
        call_site=msgspec.structs.replace(call_site(name, name, name), launch=True, own=False),
        nvtx_elsewhere=[name],
    )


def long_lists() -> Report:
    """More of everything than a page should show, with long names."""
    long_name = "void cutlass::Kernel2<cutlass_80_tensorop_" + "x" * 3000 + ">(Params)"
    base = device()
    gaps = [gap(index, name=f"{long_name}{index}") for index in range(300)]
    packed = pack(
        [(row.start_ns, row.end_ns - row.start_ns, index % 2) for index, row in enumerate(gaps)],
        ["sync", "io_wait"],
    )
    made = msgspec.structs.replace(
        base,
        gaps=gaps,
        gap_count=300,
        gaps_packed=packed,
        kernels=[kernel(f"kernel_{index}_{'y' * 300}", (500 - index) * US) for index in range(400)],
        signatures=[msgspec.structs.replace(base.signatures[0], id=f"s-{index}") for index in range(200)],
        labels={"sync": {f"label {index}": 1000 * index + 1 for index in range(60)}},
        utilization=long_utilization(),
        iterations=iterations(
            source="anchor",
            name=long_name,
            count=5000,
            rows=[iteration(3 * index, (400 + index * 37 % 100) * 10 * US, lock_wait=300 * US) for index in range(600)],
        ),
    )
    return report([made], [finding(f"f-{index}") for index in range(12)])


SAMPLES: dict[str, Callable[[], Report]] = {
    "one_device": one_device,
    "several_devices": several_devices,
    "never_idle": never_idle,
    "priced": priced,
    "no_device": no_device,
    "no_device_no_rows": no_device_no_rows,
    "hostile": hostile,
    "long_lists": long_lists,
}
