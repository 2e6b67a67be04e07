"""Arbitrary rows: a few threads, streams, processes and devices, well-formed or not, in any order.

Times are a few dozen ticks of a drawn length, so that thresholds of nanoseconds, microseconds and tens of them all
fall between rows of some trace, and rows often touch.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nsysdiag.config.settings import Settings
from tests.builder import OVERHEAD_TYPES, TraceBuilder

Thread = tuple[int, int]

THREADS: tuple[Thread, ...] = ((4242, 4242), (4242, 4300), (5000, 5000))
TICKS = 60
UNITS = (1, 900, 30_000)
CALLS = (
    *("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpy", "cudaMalloc"),
    *("cudaStreamSynchronize", "cudaEventQuery", "cudaStreamWaitEvent", "cudaEventRecord", "cuModuleLoadData"),
    *("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cuCtxCreate_v2", "cudaSetDevice"),
)
OS_CALLS = ("read", "sem_wait", "munmap", "nanosleep", "pthread_cond_signal")
SCHEMAS = ("2.9.1", "3.13.2", "3.17.2", "3.24.8")
BEYOND = 1_000
"""Rows of this tick end after the session."""


@dataclass(frozen=True, slots=True)
class Op:
    """A device operation; `kind` is kernel, nccl, node, copy, pageable, set, graph or migration."""

    kind: str
    pid: int
    device: int
    stream: int
    start: int
    end: int
    correlation: int


@dataclass(frozen=True, slots=True)
class Call:
    """A CUDA API call."""

    name: str
    thread: Thread
    start: int
    end: int
    correlation: int
    returned: int


@dataclass(frozen=True, slots=True)
class Other:
    """Any other row: its table in `kind`, and what `name` or `number` mean there."""

    kind: str
    thread: Thread
    start: int
    end: int
    name: int
    number: int


@dataclass(frozen=True, slots=True)
class Rows:
    """What one trace holds. `sharing`: processes on one GPU by a map, by a setting, or not at all."""

    ops: list[Op]
    calls: list[Call]
    others: list[Other]
    schema: str
    sharing: str
    duration: int

    @property
    def settings(self) -> Settings:
        return Settings(same_gpu=self.sharing == "setting", gaps=0, timeline=False)

    def trace(self) -> TraceBuilder:
        trace = TraceBuilder(schema=self.schema, duration=self.duration)
        for op in self.ops:
            _add_operation(trace, op)
        for call in self.calls:
            times = {"thread": call.thread, "correlation": call.correlation, "returned": call.returned}
            trace.api(call.name, call.start, call.end, **times)  # type: ignore[arg-type]
        for other in self.others:
            _add_other(trace, other)
        if self.sharing == "map":
            for pid in {thread[0] for thread in THREADS}:
                for ordinal in (0, 1):
                    trace.cuda_device(ordinal, ordinal, pid=pid)
        return trace


def _add_operation(trace: TraceBuilder, op: Op) -> None:
    thread = (op.pid, op.pid)
    if op.kind == "migration":
        trace.memcpy(op.start, op.end, kind="UM HtoD", thread=thread, device=op.device)
        return
    where = {"device": op.device, "stream": op.stream, "thread": thread, "correlation": op.correlation}
    if op.kind in ("kernel", "nccl", "node"):
        name = "ncclDevKernel_AllReduce" if op.kind == "nccl" else "gemm"
        node = 1 + op.start % 3 if op.kind == "node" else None
        trace.kernel(op.start, op.end, name=name, graph_node=node, **where)  # type: ignore[arg-type]
    elif op.kind in ("copy", "pageable"):
        host = "pageable" if op.kind == "pageable" else "pinned"
        trace.memcpy(op.start, op.end, host=host, kind="DtoH", size=op.start % 100, **where)  # type: ignore[arg-type]
    elif op.kind == "set":
        trace.memset(op.start, op.end, **where)  # type: ignore[arg-type]
    elif trace.knows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
        trace.graph_trace(op.start, op.end, **where)  # type: ignore[arg-type]
    else:
        trace.kernel(op.start, op.end, name="gemm", **where)  # type: ignore[arg-type]


def _add_other(trace: TraceBuilder, row: Other) -> None:
    start, end, thread = row.start, row.end, row.thread
    if row.kind == "osrt":
        trace.osrt(OS_CALLS[row.name % len(OS_CALLS)], start, end, thread=thread)
    elif row.kind == "sched":
        trace.sched(start, bool(row.number % 2), cpu=row.name % 2, thread=thread, state=row.name % 3)
    elif row.kind == "sample":
        trace.sample(start, thread=thread)
    elif row.kind == "nvtx":
        trace.nvtx(f"range {row.name % 3}", start, None if row.number == 0 else end, thread=thread)
    elif row.kind == "library":
        trace.library("cublasSgemm_v2", start, end, thread=thread)
    elif row.kind == "profiler":
        trace.profiler_overhead(start, end, name=("CUPTI: flush", "Unknown", "TLS")[row.name % 3], thread=thread)
    elif row.kind == "overhead" and trace.knows("CUPTI_ACTIVITY_KIND_OVERHEAD"):
        trace.overhead(start, end, kind=list(OVERHEAD_TYPES)[row.name % len(OVERHEAD_TYPES)], thread=thread)
    elif row.kind == "wait":
        stream = 7 + row.name % 2
        trace.sync_row(start, end, correlation=row.number, kind="wait", event=1, stream=stream, pid=thread[0])
    elif row.kind == "record" and trace.knows("CUPTI_ACTIVITY_KIND_CUDA_EVENT"):
        trace.event_row(correlation=row.number, event=1, stream=7 + row.name % 2, pid=thread[0])
    elif row.kind == "stream":
        trace.stream_info(7 + row.name % 2, 1 + row.number % 3, pid=thread[0])
    elif row.kind == "switch":
        trace.context_switch(max(start, 0), tag=7 + row.number % 3, pid=thread[0])


OTHER_KINDS = (
    *("osrt", "sched", "sched", "sample", "nvtx", "library", "profiler", "overhead"),
    *("wait", "record", "stream", "switch"),
)
OP_KINDS = ("kernel", "kernel", "nccl", "node", "copy", "pageable", "set", "graph", "migration")


LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpy")

# Most rows are as they should be; a trace of nothing but broken ones shows little.
positions = st.integers(0, TICKS)
lengths = st.sampled_from((1, 1, 2, 3, 5, 8, 13, 0, -2, BEYOND))
own_lengths = st.sampled_from((1, 1, 1, 1, 2, 2, 3, 4, 6, 0, -2, BEYOND))
lags = st.sampled_from((0, 1, 2, 3, 5, 8, 20, 40, None))
jitters = st.sampled_from((0, 0, 0, 1))


def _times(draw: st.DrawFn, unit: int, length: st.SearchStrategy[int]) -> tuple[int, int]:
    start, ticks = draw(positions), draw(length)
    return start * unit + draw(jitters), (start + ticks) * unit + draw(jitters)


@st.composite
def operations(draw: st.DrawFn, unit: int, number: int) -> tuple[Op, Call | None]:
    """An operation, most often with the call that launched it; ids are sometimes shared, missing or too low."""
    start, end = _times(draw, unit, own_lengths)
    correlation = draw(st.sampled_from((number, number, number, number, 0, 21, 1)))
    thread = draw(st.sampled_from((*THREADS[:2], *THREADS)))
    device = draw(st.sampled_from((0, 0, 0, 0, 1)))
    op = Op(draw(st.sampled_from(OP_KINDS)), thread[0], device, draw(st.sampled_from((7, 8))), start, end, correlation)
    lag = draw(lags)
    if lag is None:
        return op, None
    begin = start - lag * unit + draw(jitters)
    call = Call(draw(st.sampled_from(LAUNCHES)), thread, begin, begin + draw(st.integers(0, 4)) * unit, correlation, 0)
    return op, call


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """One trace."""
    unit = draw(st.sampled_from(UNITS))
    pairs = [draw(operations(unit, number)) for number in range(20, 20 + draw(st.integers(3, 14)))]
    calls = [call for _, call in pairs if call is not None]
    calls += [
        Call(
            draw(st.sampled_from(CALLS)),
            draw(st.sampled_from(THREADS)),
            *_times(draw, unit, lengths),
            draw(st.integers(0, 40)),
            draw(st.sampled_from((0, 0, 600))),
        )
        for _ in range(draw(st.integers(0, 10)))
    ]
    others = [
        Other(
            draw(st.sampled_from(OTHER_KINDS)),
            draw(st.sampled_from(THREADS)),
            *_times(draw, unit, lengths),
            draw(st.integers(0, 9)),
            draw(st.integers(0, 40)),
        )
        for _ in range(draw(st.integers(0, 14)))
    ]
    schema = draw(st.sampled_from(SCHEMAS))
    mapped = ("map",) if schema in ("3.17.2", "3.24.8") else ()
    sharing = draw(st.sampled_from(("apart", "setting", *mapped)))
    return Rows([op for op, _ in pairs], calls, others, schema, sharing, duration=(TICKS + 20) * unit)
