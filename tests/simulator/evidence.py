"""What a stretch of a thread's time is called, by the evidence that a capture keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.capture import Capture
    from tests.simulator.host import Call, Span


def cause_of(span: Span, own: Call | None, capture: Capture) -> str:
    """What a stretch of a thread's time is, seen by an operation whose launch call is `own` (None: by nobody's)."""
    if own is not None and own in span.stack:
        return _inside_launch(span.stack[span.stack.index(own) :], capture)
    for call in span.stack:
        if call.kind == "overhead" and (capture.records_overhead(call.name) or call.cause == "module_load"):
            return call.cause
    calls = [call for call in span.stack if call.kind == "api" and call.recorded and capture.api]
    if calls:
        return "cuda_api" if calls[0].cause == "launch_call" else calls[0].cause
    if library := _by_library(span, capture):
        return library
    for call in span.stack:
        if call.kind == "os" and call.cause and records_os_call(call, capture):
            return call.cause
    return _by_state(span, capture)


def _by_library(span: Span, capture: Capture) -> str:
    """The cause of time in a library of CUDA or in MPI, which starts up in MPI_Init; empty elsewhere."""
    if any(call.kind == "library" for call in span.stack) and capture.libraries:
        return "cuda_api"
    in_mpi = any(call.kind == "mpi" and not call.name.startswith("MPI_Init") for call in span.stack)
    return "exposed_mpi" if in_mpi else ""


def _inside_launch(stack: tuple[Call, ...], capture: Capture) -> str:
    for call in stack[1:]:
        if call.kind == "overhead" and (capture.records_overhead(call.name) or call.cause == "module_load"):
            return call.cause
        if call.kind == "api" and call.cause not in {"launch_call", "cuda_api"}:
            return call.cause
    return stack[0].cause


def records_os_call(call: Call, capture: Capture) -> bool:
    """Whether an OS call leaves a row."""
    traced = capture.osrt and call.owner.process.os_calls
    return traced and call.recorded and call.end - call.start >= capture.osrt_threshold


def _by_state(span: Span, capture: Capture) -> str:
    if span.state == "cpu":
        return "host_compute" if capture.sched or capture.samples else "uncovered"
    if not capture.sched:
        return "uncovered"
    return "off_cpu" if span.state == "waiting" else "blocked"
