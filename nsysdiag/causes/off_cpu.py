"""Waiting for a CPU: the thread could have run, and had no CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import subtract, union
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, named, plain_layer
from nsysdiag.events import scheduling
from nsysdiag.events.scheduling import maybe_ready
from nsysdiag.units import format_ns

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


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
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


CAUSE = Cause(
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
    host=evidence,
    opening="{thread} has no CPU: {call}",
)
