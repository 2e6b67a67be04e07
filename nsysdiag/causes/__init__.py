"""The registry of causes: an import and a place in the order is all that a new one needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECKS, BottleneckId
from nsysdiag.causes import (
    blocked,
    blocking_copy,
    context_init,
    cuda_api,
    data_loading,
    device_stall,
    dispatch,
    exposed_mpi,
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
from nsysdiag.causes.cause import Cause, Hint
from nsysdiag.causes.ids import HOST_CODE as HOST_CODE

# The order is the order of precedence: what a cause claims, those behind it do not see.
_MODULES = (
    dispatch,
    unified_memory,
    intra_graph,
    graph_untraced,
    launch_unknown,
    profiler_overhead,
    exposed_mpi,
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

PLACE: dict[str, int] = {cause: place for place, cause in enumerate(CAUSES)}
"""Where in the registry a cause is: its number in columns."""
OF_WORKER: dict[str, EvidenceLabel] = {cause: EvidenceLabel(cause, cause) for cause in CAUSES}
"""The label of waits for a loading worker whose time has this cause."""

FALLBACK = uncovered.CAUSE.id
"""What is left when nothing explains a gap."""
IN_LAUNCH_CALL = launch_call.CAUSE.id
"""What is left of the launch call."""
LAUNCH_LATENCY = launch_latency.CAUSE.id
EVENT_WAIT = stream_wait.CAUSE.id
UNTRACED_GRAPH = graph_untraced.CAUSE.id
QUEUE_FULL = queue_full.CAUSE.id
SYNCHRONIZATION = sync.CAUSE.id
BLOCKING_COPY = blocking_copy.CAUSE.id
ALLOCATION = memory_allocation.CAUSE.id
PREEMPTION = off_cpu.CAUSE.id
OTHER_PROCESS = gpu_context_switch.CAUSE.id
INPUT_WAIT = data_loading.CAUSE.id
THREAD_WAIT = lock_wait.CAUSE.id
IN_MPI = exposed_mpi.CAUSE.id
UNIFIED_MEMORY = unified_memory.CAUSE.id


def places(which: Callable[[Cause], bool]) -> IntArray:
    """The numbers of the causes for which `which` holds."""
    return np.array([PLACE[cause.id] for cause in CAUSES.values() if which(cause)], dtype=np.int64)


def variant_of(cause: str, label: EvidenceLabel | None, call: str = "", hint: Hint | None = None) -> int:
    """The index of the first variant of `cause` that matches; a hint that no variant uses changes nothing."""
    return next(at for at, variant in enumerate(CAUSES[cause].variants) if variant.matches(label, call, hint))


def bottleneck_of(cause: str, variant: int = -1) -> BottleneckId:
    """The bottleneck to which time of a cause counts that looks like its `variant`, a place among its variants; -1:
    the cause's own."""
    found = CAUSES[cause]
    return (found.variants[variant].bottleneck if variant >= 0 else None) or found.bottleneck


def color_of(cause: str) -> str:
    """The colour of a cause: the shade of its bottleneck that it declares, or else the next one behind those that are
    declared. So a cause that is added leaves the declared ones as they are."""
    bottleneck = BOTTLENECKS[CAUSES[cause].bottleneck]
    siblings = [each for each in CAUSES.values() if each.bottleneck == bottleneck.id]
    behind = [each.id for each in sorted(siblings, key=lambda each: each.shade is None)]
    declared = CAUSES[cause].shade
    return bottleneck.shade(behind.index(cause) if declared is None else declared)


def bottlenecks_of_cause(cause: str) -> set[BottleneckId]:
    """All bottlenecks to which time of a cause may count."""
    found = CAUSES[cause]
    return {found.bottleneck, *(variant.bottleneck for variant in found.variants if variant.bottleneck)}


def bottlenecks_of(cause: IntArray, variant: IntArray) -> IntArray:
    """The index in BOTTLENECK_IDS for each cause (its index in the registry) and variant (its index among those of the cause,
    or -1)."""
    most = max(len(each.variants) for each in CAUSES.values())
    table = np.array(
        [
            [
                BOTTLENECK_IDS.index(bottleneck_of(each.id, at if at < len(each.variants) else -1))
                for at in range(-1, most)
            ]
            for each in CAUSES.values()
        ],
        dtype=np.int64,
    )
    found: IntArray = table[cause, variant + 1]
    return found
