"""Blocked: the thread waited in something that was not traced."""

from __future__ import annotations

from nsysdiag.arrays.intervals import union
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, plain_layer


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Unexplained time scheduled out. It does not prove contention: the CPU may have been idle."""
    return [plain_layer(union(evidence.host.scheduling.out), "scheduled out; no OS call was traced")]


CAUSE = Cause(
    id="blocked",
    title="Blocked in an untraced call",
    meaning="The launching thread was scheduled out, waiting in a call that was not captured.",
    side="host",
    tables=("SCHED_EVENTS",),
    advice=Advice(("Capture again with --trace=osrt: the trace then names the call.",)),
    picture="""
device  [==A==)......................[==next==)
thread         |scheduled out|[launch]
CPU            |     idle    |
""",
    bottleneck="unknown",
    shade=2,
    sources=("nsight_sampling", "nsight_osrt"),
    rows=(EvidenceRows.SCHEDULING,),
    confirm=(
        "The row of thread states shows the thread blocked, its CPU idle, and no OS call. CPython's waits with a time limit, futex calls of static binaries and page faults of mapped files look like this.",
        "The call chain of the CPU sample before the wait often names the function. Trace OS calls (--trace=osrt) if they are not in the trace.",
    ),
    confused_with=(
        Lookalike("off_cpu", "There, another thread had the CPU."),
        Lookalike("lock_wait", "A wait in a call that was traced."),
        Lookalike("uncovered", "Without scheduling events, it is unknown whether the thread waited at all."),
    ),
    variants=(Variant("other", "", "capture again with --trace=osrt"),),
    host=evidence,
    unresolved=True,
    opening="{thread} is scheduled out, in no traced call",
    resolved_by=("os-runtime",),
)
