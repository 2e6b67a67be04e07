"""Profiler overhead: time that the measurement itself took."""

from __future__ import annotations

import numpy as np

from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, described, plain_layer
from nsysdiag.events.host import OF_CUPTI, PROFILER

KINDS = (*OF_CUPTI, PROFILER)


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """The thread's own overhead rows, and CUPTI's on other threads while this one is inside a CUDA call."""
    host = evidence.host
    own = host.overhead.take(np.isin(host.overhead.kind, KINDS))
    return [described(own), plain_layer(host.cupti, "CUPTI overhead of another thread")]


CAUSE = Cause(
    id="profiler_overhead",
    title="Profiler overhead",
    meaning="The profiler itself held the launching thread: buffer flushes, instrumentation, resource tracking.",
    side="host",
    tables=("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"),
    advice=Advice(
        (
            "This time is the measurement, not the program: leave it out of any estimate.",
            "Trace less (fewer APIs, no backtraces), or a shorter range with --capture-range=cudaProfilerApi.",
        )
    ),
    picture="""
device  [==A==).............[==next==)
thread         [flush]  [launch]
""",
    bottleneck="profiler",
    shade=0,
    sources=("overhead", "nsight_cli"),
    rows=(EvidenceRows.OVERHEAD,),
    confirm=(
        'The row "Profiler overhead" has an entry at the time of the gap: a buffer flush, or the start of CUPTI. It disappears without the profiler.',
        "Capture again with a longer --cuda-flush-interval or fewer options. If the step gets shorter by the same time, it was the profiler.",
    ),
    confused_with=(
        Lookalike("module_load", "CUPTI also reports loading of code as overhead, under its own name."),
        Lookalike(
            "cuda_api", "Every call is slower under a profiler, and no row shows that. Compare with a run without it."
        ),
    ),
    variants=(Variant("other", "", "trace less; leave this time out of any estimate"),),
    host=evidence,
    call=evidence,
    opening="the profiler holds {thread}",
    call_order=10,
)
