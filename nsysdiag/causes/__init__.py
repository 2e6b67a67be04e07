"""The registry of causes: an import and a place in the order is all that a new one needs."""

from __future__ import annotations

from nsysdiag.causes import (
    blocked,
    blocking_copy,
    context_init,
    cuda_api,
    data_loading,
    device_stall,
    dispatch,
    gpu_context_switch,
    graph_build,
    graph_untraced,
    host_compute,
    intra_graph,
    io_wait,
    launch_call,
    launch_latency,
    launch_unknown,
    lock_wait,
    memory_allocation,
    module_load,
    off_cpu,
    os_memory,
    profiler_overhead,
    queue_full,
    sleep,
    stream_barrier,
    stream_wait,
    sync,
    uncovered,
    unified_memory,
)
from nsysdiag.causes.cause import Cause

# The order is the order of precedence: what a cause claims, those behind it do not see.
_MODULES = (
    dispatch,
    unified_memory,
    intra_graph,
    graph_untraced,
    launch_unknown,
    profiler_overhead,
    sync,
    blocking_copy,
    memory_allocation,
    context_init,
    queue_full,
    module_load,
    graph_build,
    cuda_api,
    lock_wait,
    io_wait,
    os_memory,
    sleep,
    off_cpu,
    blocked,
    host_compute,
    uncovered,
    launch_call,
    launch_latency,
    stream_wait,
    stream_barrier,
    gpu_context_switch,
    device_stall,
    # Behind all others: no rule finds it, it is where wake-ups lead.
    data_loading,
)

CAUSES: dict[str, Cause] = {module.CAUSE.id: module.CAUSE for module in _MODULES}

# Inside the next operation's own launch call loading comes before what the load does, and the queue last.
CALL_ORDER: tuple[str, ...] = (
    "profiler_overhead",
    "module_load",
    "memory_allocation",
    "sync",
    "context_init",
    "blocking_copy",
    "graph_build",
    "queue_full",
)


def variant_of(cause: str, label: str, call: str, hint: str | None) -> int:
    """The place of the first variant of `cause` that matches; a hint that no variant asks for changes nothing."""
    return next(at for at, variant in enumerate(CAUSES[cause].variants) if variant.matches(label, call, hint))
