"""What nsys would have recorded of a simulation, as rows of a TraceBuilder."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypedDict

from nsysdiag.trace.enums import ThreadState
from tests.builder import CONTEXT_START, SAVE_END, TraceBuilder, Value, global_tid
from tests.simulator.evidence import records_os_call
from tests.simulator.truth import rows_of

HOST_FUNCTIONS = "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulator.capture import Capture
    from tests.simulator.device import Gpu, Op
    from tests.simulator.host import Call, HostThread, Process, Span
    from tests.simulator.simulation import Simulation
    from tests.simulator.truth import Row

_STREAM_FLAGS = {"blocking": 1, "non-blocking": 2, "null": 3}
_PROFILER_NAMES = {
    "module_load": "Unknown",
    "lazy_load": "Unknown",
    "flush": "CUPTI: Buffer flush",
    "instrumentation": "CUPTI: Instrumentation",
    "resource": "CUPTI: Resource Management",
}


class Where(TypedDict):
    """Where an operation ran."""

    stream: int
    device: int
    context: int


def record(
    simulation: Simulation, capture: Capture, *, lazy: bool = True, processes: Sequence[Process] | None = None
) -> TraceBuilder:
    """The trace of a finished simulation; of some of its processes, where the profiler followed only those."""
    seen = simulation.processes if processes is None else processes
    trace = TraceBuilder(schema=capture.schema, lazy=lazy, duration=simulation.clock.now + 1_000_000)
    _machine(trace, simulation.gpus, seen)
    for process in seen:
        _process(trace, process, capture)
    for gpu in simulation.gpus:
        for row in rows_of(gpu, capture):
            if row.op.stream.context.process in seen:
                _operation(trace, row)
        for function in gpu.functions if trace.knows(HOST_FUNCTIONS) else ():
            if function.stream.context.process in seen:
                _host_function(trace, function)
        if capture.context_switches:
            for start, end, owner in gpu.slices:
                trace.context_switch(start, CONTEXT_START, pid=owner.pid, context=5, gpu=gpu.number)
                trace.context_switch(end, SAVE_END, pid=owner.pid, context=5, gpu=gpu.number)
    if simulation.counters is not None and capture.gpu_metrics:
        simulation.counters.write(trace, simulation.gpus, simulation.clock.now)
    for noise in simulation.noise:
        noise(trace)
    return trace


def _machine(trace: TraceBuilder, gpus: Sequence[Gpu], processes: Sequence[Process]) -> None:
    for gpu in gpus:
        trace.gpu(gpu.number, gpu.name, clock=gpu.clock_hz, bandwidth=gpu.bandwidth)
    for process in processes:
        trace.process(process.pid, process.name)
        for context in process.contexts:
            if trace.knows("TARGET_INFO_CUDA_DEVICE"):
                trace.cuda_device(context.gpu.number, context.ordinal, process.pid)
            trace.null_stream(context.null.number, pid=process.pid, device=context.ordinal, context=context.number)
            for stream in context.streams:
                flag = _STREAM_FLAGS[stream.kind]
                trace.stream_info(stream.number, flag, pid=process.pid, context=context.number)


def _process(trace: TraceBuilder, process: Process, capture: Capture) -> None:
    if process.rank >= 0 and trace.knows("MPI_RANKS"):
        for thread in process.threads:
            trace.row("MPI_RANKS", {"globalTid": global_tid(_id(thread)), "rank": process.rank})
    for thread in process.threads:
        trace.thread_name(thread.name, thread=_id(thread))
        for call in thread.calls:
            _call(trace, call, capture)
        if capture.nvtx:
            for named in thread.ranges:
                trace.nvtx(named.name, named.start, named.end, thread=_id(thread))
        if capture.sched:
            _scheduling(trace, thread, capture)
        if capture.samples:
            _samples(trace, thread, capture)
    if capture.event_rows and trace.knows("CUPTI_ACTIVITY_KIND_CUDA_EVENT"):
        _recorded_events(trace, process)
    if capture.sync_rows:
        _synchronizations(trace, process, capture)


def _id(thread: HostThread) -> tuple[int, int]:
    return thread.process.pid, thread.tid


def _call(trace: TraceBuilder, call: Call, capture: Capture) -> None:
    thread = _id(call.owner)
    if call.kind == "api" and call.recorded and not call.pseudo and capture.api:
        trace.api(call.name, call.start, call.end, thread=thread, correlation=call.correlation, returned=call.returned)
    elif call.kind == "os" and records_os_call(call, capture):
        trace.osrt(call.name, call.start, call.end, thread=thread)
    elif call.kind == "mpi" and call.recorded and trace.knows("MPI_OTHER_EVENTS"):
        _mpi_call(trace, call)
    elif call.kind == "library" and capture.libraries and trace.knows("CUBLAS_EVENTS"):
        trace.library(call.name, call.start, call.end, thread=thread)
    elif call.kind == "overhead" and capture.records_overhead(call.name):
        if trace.knows("CUPTI_ACTIVITY_KIND_OVERHEAD"):
            trace.overhead(call.start, call.end, kind=call.name, thread=thread)
        else:
            trace.profiler_overhead(call.start, call.end, name=_PROFILER_NAMES[call.name], thread=thread)


def _mpi_call(trace: TraceBuilder, call: Call) -> None:
    """A row of a call of MPI, or as many as it has messages; one that waits for requests has only these."""
    named: dict[str, Value] = {"start": call.start, "end": call.end, "globalTid": global_tid(_id(call.owner))}
    named["textId"] = trace.string(call.name)
    if not call.messages or not trace.knows("MPI_P2P_EVENTS"):
        trace.row("MPI_OTHER_EVENTS", named)
        return
    for remote, tag, request in call.messages:
        if call.name.startswith("MPI_Wait"):
            trace.row("MPI_START_WAIT_EVENTS", {**named, "requestHandle": request})
        else:
            about = {"commHandle": 1, "tag": tag, "remoteRank": remote, "size": 1 << 16, "requestHandle": request}
            trace.row("MPI_P2P_EVENTS", {**named, **about})


def _scheduling(trace: TraceBuilder, thread: HostThread, capture: Capture) -> None:
    cpu = thread.core.number
    for start, end in thread.cpu:
        trace.sched(start, True, cpu=cpu, thread=_id(thread))
        state = ThreadState.RUNNING if end in thread.stopped else None
        trace.sched(end, False, cpu=cpu, thread=_id(thread), state=state)
        if capture.idle_loop and not thread.shares_core:
            trace.sched(end, True, cpu=cpu, thread=(0, 0))


def _samples(trace: TraceBuilder, thread: HostThread, capture: Capture) -> None:
    """About one each `sampling_period` of CPU time, the first after half of one."""
    chance = random.Random(thread.tid)
    wait = capture.sampling_period // 2
    spans = iter(thread.spans)
    span = next(spans, None)
    for start, end in thread.cpu:
        time = start + wait
        while time < end:
            while span is not None and span.end <= time:
                span = next(spans, None)
            symbols = _call_chain(span, thread) if span is not None else ("main",)
            trace.sample(time, symbols=symbols, cpu=thread.core.number, thread=_id(thread))
            time += capture.sampling_period + chance.randint(-capture.sampling_period, capture.sampling_period) // 100
        wait = time - end


def _call_chain(span: Span, thread: HostThread) -> tuple[str, ...]:
    leaf = span.stack[-1].name if span.stack else span.symbol
    interpreter = ("PyEval_EvalCode", "Py_RunMain") if thread.process.python else ()
    return (leaf, *thread.frames, *interpreter, "main")


def _recorded_events(trace: TraceBuilder, process: Process) -> None:
    for call, stream in process.recorded_events:
        assert call.sync is not None
        _, event, number = call.sync
        trace.event_row(
            correlation=call.correlation,
            event=event,
            event_sync=number,
            timestamp=call.end,
            stream=stream.number,
            pid=process.pid,
            device=stream.context.ordinal,
            context=stream.context.number,
        )


def _synchronizations(trace: TraceBuilder, process: Process, capture: Capture) -> None:
    waits = [(call, stream.number) for call, stream in process.waits]
    calls = [call for thread in process.threads for call in thread.calls if call.cause == "sync"]
    waits += [(call, call.sync[2] if call.sync[0] == "stream" else 0xFFFFFFFF) for call in calls if call.sync]
    for call, stream in waits:
        assert call.sync is not None
        assert call.device is not None
        kind, event, number = call.sync
        if kind == "stream" and capture.version >= (3, 24):
            kind = "wait"  # what recent versions write for a stream synchronization, with no event
        trace.sync_row(
            call.start + 300,
            call.end - 300,
            correlation=call.correlation,
            kind=kind,
            stream=stream,
            event=event,
            event_sync=number if event != 0xFFFFFFFF else 0xFFFFFFFF,
            pid=process.pid,
            device=call.device.ordinal if capture.sync_device else 0,
            context=call.device.number,
        )


def _host_function(trace: TraceBuilder, op: Op) -> None:
    assert op.call is not None
    context = op.stream.context
    where: Where = {"stream": op.stream.number, "device": context.ordinal, "context": context.number}
    thread = (context.process.pid, context.process.pid)
    trace.host_function(op.start, op.end, thread=thread, correlation=op.call.correlation, **where)


def _operation(trace: TraceBuilder, row: Row) -> None:
    op = row.op
    context = op.stream.context
    pid = context.process.pid
    thread = (pid, pid)
    where: Where = {"stream": op.stream.number, "device": context.ordinal, "context": context.number}
    correlation = op.call.correlation if op.call is not None else 0
    if row.kind == "kernel":
        node = None if op.graph is None else op.graph.ops.index(op) + 1 + (op.graph.number << 8)
        trace.kernel(
            row.start,
            row.end,
            name=op.name,
            thread=thread,
            correlation=correlation,
            graph_node=node,
            shape=op.shape,
            **where,
        )
    elif row.kind == "graph":
        assert op.graph is not None
        trace.graph_trace(row.start, row.end, graph=op.graph.number, thread=thread, correlation=correlation, **where)
    elif row.kind == "set":
        trace.memset(row.start, row.end, size=op.size, thread=thread, correlation=correlation, **where)
    else:
        trace.memcpy(
            row.start,
            row.end,
            kind=op.copy,
            host=op.host_memory,
            size=op.size,
            thread=thread,
            correlation=correlation,
            **where,
        )
