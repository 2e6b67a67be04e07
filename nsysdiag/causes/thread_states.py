"""Causes of time outside of calls, by the state of the thread: it ran on a CPU, had none, waited in a call that was not
traced, or nothing is known."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import subtract, union
from nsysdiag.causes.cause import Cause, EvidenceRows, Hint, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, described, named, plain_layer, setting
from nsysdiag.causes.ids import HOST_CODE
from nsysdiag.events import samples, scheduling
from nsysdiag.events.scheduling import maybe_ready
from nsysdiag.units import format_ns

BY_SCHEDULING, BY_SAMPLES = EvidenceLabel("by scheduling events"), EvidenceLabel("by CPU samples")
BY_FUNCTIONS = EvidenceLabel("by recorded functions")
"""Labels that say how it is known, not what it is."""


def host_compute_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Time on a CPU by the scheduler; if it says nothing, by CPU samples; else the functions that the PyTorch
    profiler recorded. NVTX names it, and never proves it."""
    host = evidence.host
    return [
        plain_layer(host.scheduling.on_cpu, "on a CPU by scheduling events", BY_SCHEDULING),
        plain_layer(host.samples.time, "on a CPU by samples", BY_SAMPLES),
        described(host.functions, BY_FUNCTIONS),
    ]


HOST_COMPUTE = Cause(
    id=HOST_CODE,
    title="Host code",
    meaning="The launching thread was running on a CPU, in no CUDA or OS call: the program itself, an interpreter, a library.",
    side="host",
    tables=("SCHED_EVENTS", "COMPOSITE_EVENTS"),
    bottleneck="host",
    shade=3,
    thresholds=(
        Threshold(
            "sampling_period",
            f"{format_ns(samples.SHORTEST_PERIOD_NS)} to {format_ns(samples.LONGEST_PERIOD_NS)}",
            "a sample counts for half its thread's sampling period on either side",
        ),
        Threshold("lone_sample", format_ns(samples.LONE_PERIOD_NS), "the period of a thread with a single sample"),
        setting("collector"),
        setting("interpreter"),
    ),
    rows=(EvidenceRows.SCHEDULING,),
    variants=(
        Variant(
            "garbage_collector",
            "Python's garbage collector",
            "gc.freeze() after the warm-up, gc.collect() at a chosen moment",
            hint=Hint.IN_COLLECTOR,
        ),
        Variant(
            "interpreter",
            "the Python interpreter",
            "fewer steps of Python for each kernel: CUDA graphs, larger pieces of work",
            hint=Hint.IN_INTERPRETER,
        ),
        Variant(
            "operators",
            "operators run one by one",
            "fewer operators for each kernel: CUDA graphs, compiled and fused operators",
            hint=Hint.IN_OPERATORS,
        ),
        Variant("other", "", "profile the host code of this place and move it off the launching thread"),
    ),
    host=host_compute_evidence,
    opening="{thread} computes{code}",
    sampled=True,
)


# These return at once: a thread scheduled out inside one was preempted.
NON_WAITS = re.compile(
    r"_*pthread_(cond_(signal|broadcast|init|destroy)|mutex_(unlock|trylock|init|destroy)|rwlock_(unlock|try\w+|init|destroy)"
    r"|spin_(unlock|trylock)|detach|attr_\w+|setname_np|[gs]etaffinity_np|self|equal)"
    r"|_*sem_(post|trywait|init|destroy|getvalue)|sched_[gs]et\w+|signal|sigaction|raise|kill"
)

CPU_TAKEN = EvidenceLabel("another thread held its CPU")
RUNNABLE = EvidenceLabel("runnable")
UNTRACED = EvidenceLabel("in no captured OS call")
"""Preempted, or in a wait that nsys does not trace: CPython's timed waits for a lock are one."""


def untraced_code(labels: Sequence[EvidenceLabel | None]) -> int:
    """The code of UNTRACED among these labels, -2 if it is none of them."""
    return labels.index(UNTRACED) if UNTRACED in labels else -2


def off_cpu_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Time scheduled out in which the thread did not wait. Either the scheduler says runnable. Or, for a second at
    most, others held its CPU for at least 80% of it, or OS calls of its process were captured; a wait would be one of
    these."""
    scheduling = evidence.host.scheduling
    lane = scheduling.out.start // evidence.host.axis.stride
    traced = evidence.host.os_traced[lane]
    # In a captured call that may have waited for something it was not simply without a CPU.
    calls = evidence.host.os_calls
    may_wait = union(calls.take(~named(calls, NON_WAITS)).spans)
    in_no_call = subtract(union(scheduling.out[traced & maybe_ready(scheduling.out)]), may_wait)
    return [
        plain_layer(scheduling.out[scheduling.held], "another thread held the CPU", CPU_TAKEN),
        plain_layer(scheduling.out[scheduling.runnable], "runnable, without a CPU", RUNNABLE),
        plain_layer(in_no_call, "scheduled out, in no captured OS call", UNTRACED),
    ]


OFF_CPU = Cause(
    id="off_cpu",
    title="Waiting for a CPU",
    meaning="The launching thread was ready to run and had no CPU: another thread held it.",
    side="host",
    tables=("SCHED_EVENTS", "OSRT_API"),
    bottleneck="host",
    shade=2,
    thresholds=(
        Threshold(
            "longest",
            format_ns(scheduling.LONGEST_READY_NS),
            "a thread away for longer was asleep, unless the scheduler recorded it as runnable",
        ),
        Threshold(
            "held",
            f"{100 * scheduling.PREEMPTED_SHARE:g}%",
            "of the time off the CPU in which others must have held it",
        ),
    ),
    rows=(EvidenceRows.SCHEDULING,),
    variants=(
        Variant(
            "held",
            "another thread had its CPU",
            "pin the launching thread to a CPU of its own: taskset, numactl",
            labels=(CPU_TAKEN,),
        ),
        Variant(
            "untraced",
            "perhaps, or in a call that was not traced",
            "see who had its CPU: --cpuctxsw=system-wide",
            labels=(UNTRACED,),
            doubtful=True,
        ),
        Variant("other", "", "give the process more CPUs, or fewer threads"),
    ),
    host=off_cpu_evidence,
    opening="{thread} has no CPU: {call}",
)


def blocked_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Unexplained time scheduled out. It does not prove contention: the CPU may have been idle."""
    return [plain_layer(union(evidence.host.scheduling.out), "scheduled out; no OS call was traced")]


BLOCKED = Cause(
    id="blocked",
    title="Blocked in an untraced call",
    meaning="The launching thread was scheduled out, waiting in a call that was not captured.",
    side="host",
    tables=("SCHED_EVENTS",),
    bottleneck="unknown",
    shade=2,
    rows=(EvidenceRows.SCHEDULING,),
    variants=(Variant("other", "", "capture again with --trace=osrt"),),
    host=blocked_evidence,
    unresolved=True,
    opening="{thread} is scheduled out, in no traced call",
    resolved_by=("os-runtime",),
)


UNCOVERED = Cause(
    id="uncovered",
    title="Unexplained idle time",
    busy_title="Unexplained time of the host",
    meaning="The trace does not show what the launching thread did here.",
    side="host",
    tables=(),
    bottleneck="unknown",
    shade=3,
    variants=(Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    unresolved=True,
    opening="it is unknown what {thread} did",
    resolved_by=("os-runtime", "scheduling", "cpu-samples"),
)
