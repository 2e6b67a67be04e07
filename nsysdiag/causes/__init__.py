"""The registry of causes: an import and a place in the order is all that a new one needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECKS, BottleneckId
from nsysdiag.causes import (
    blocking_copy,
    device_side,
    input_output,
    launching,
    memory_calls,
    other_calls,
    start_up,
    sync,
    thread_states,
    thread_waits,
)
from nsysdiag.causes.added import with_added
from nsysdiag.causes.cause import Cause, Hint
from nsysdiag.causes.ids import HOST_CODE as HOST_CODE
from nsysdiag.events.identity import joint

# The order is the order of precedence: what a cause claims, those behind it do not see.
_ORDER = (
    device_side.DISPATCH,
    memory_calls.UNIFIED_MEMORY,
    device_side.INTRA_GRAPH,
    launching.GRAPH_UNTRACED,
    launching.LAUNCH_UNKNOWN,
    other_calls.PROFILER_OVERHEAD,
    other_calls.EXPOSED_MPI,
    device_side.HOST_FUNCTION,
    sync.CAUSE,
    blocking_copy.CAUSE,
    memory_calls.MEMORY_ALLOCATION,
    start_up.CONTEXT_INIT,
    launching.QUEUE_FULL,
    start_up.MODULE_LOAD,
    start_up.GRAPH_CREATION,
    other_calls.CUDA_API,
    thread_waits.LOCK_WAIT,
    input_output.IO_WAIT,
    memory_calls.OS_MEMORY,
    thread_waits.SLEEP,
    thread_states.OFF_CPU,
    thread_states.BLOCKED,
    thread_states.HOST_COMPUTE,
    thread_states.UNCOVERED,
    launching.LAUNCH_CALL,
    launching.LAUNCH_LATENCY,
    device_side.STREAM_WAIT,
    device_side.STREAM_BARRIER,
    device_side.GPU_CONTEXT_SWITCH,
    device_side.DEVICE_STALL,
    # Behind all others: no rule finds it, it is where wake-ups lead.
    input_output.DATA_LOADING,
)

CAUSES: dict[str, Cause] = with_added({cause.id: cause for cause in _ORDER})

PLACE: dict[str, int] = {cause: place for place, cause in enumerate(CAUSES)}
"""Where in the registry a cause is: its number in columns."""
OF_WORKER: dict[str, EvidenceLabel] = {cause: EvidenceLabel(cause, cause) for cause in CAUSES}
"""The label of waits for a loading worker whose time has this cause."""

FALLBACK = thread_states.UNCOVERED.id
"""What is left when nothing explains a gap."""
IN_LAUNCH_CALL = launching.LAUNCH_CALL.id
"""What is left of the launch call."""
LAUNCH_LATENCY = launching.LAUNCH_LATENCY.id
EVENT_WAIT = device_side.STREAM_WAIT.id
UNTRACED_GRAPH = launching.GRAPH_UNTRACED.id
QUEUE_FULL = launching.QUEUE_FULL.id
SYNCHRONIZATION = sync.CAUSE.id
BLOCKING_COPY = blocking_copy.CAUSE.id
ALLOCATION = memory_calls.MEMORY_ALLOCATION.id
PREEMPTION = thread_states.OFF_CPU.id
BLOCKED = thread_states.BLOCKED.id
OTHER_PROCESS = device_side.GPU_CONTEXT_SWITCH.id
INPUT_WAIT = input_output.DATA_LOADING.id
THREAD_WAIT = thread_waits.LOCK_WAIT.id
IN_MPI = other_calls.EXPOSED_MPI.id
UNIFIED_MEMORY = memory_calls.UNIFIED_MEMORY.id


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
        dtype=np.int8,
    )
    return table.reshape(-1).take(joint(cause, variant + 1, most + 1))
