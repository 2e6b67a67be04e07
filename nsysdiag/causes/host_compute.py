"""Host compute: the thread was on a CPU, in code of the program."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, EvidenceRows, Hint, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, described, plain_layer, setting
from nsysdiag.causes.ids import HOST_CODE
from nsysdiag.events import samples
from nsysdiag.units import format_ns

BY_SCHEDULING, BY_SAMPLES = EvidenceLabel("by scheduling events"), EvidenceLabel("by CPU samples")
BY_FUNCTIONS = EvidenceLabel("by recorded functions")
"""Labels that say how it is known, not what it is."""


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Time on a CPU by the scheduler; where it says nothing, by CPU samples; else the functions that the PyTorch
    profiler recorded. NVTX names it, and never proves it."""
    host = evidence.host
    return [
        plain_layer(host.scheduling.on_cpu, "on a CPU by scheduling events", BY_SCHEDULING),
        plain_layer(host.samples.time, "on a CPU by samples", BY_SAMPLES),
        described(host.functions, BY_FUNCTIONS),
    ]


CAUSE = Cause(
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
    host=evidence,
    opening="{thread} computes{code}",
    sampled=True,
)
