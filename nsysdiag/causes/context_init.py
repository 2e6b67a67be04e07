"""Context creation: the process starts to use the device."""

from __future__ import annotations

import re

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, OwnCall, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, layer_of
from nsysdiag.units import format_ns

CALLS = re.compile(
    r"cuInit|cuCtx(Create|Destroy|Attach|Detach)|cuDevicePrimaryCtx\w+|cuda(InitDevice|DeviceReset)|cuGreenCtxCreate"
)
STREAM_CREATION = re.compile(r"(cuda|cu)StreamCreate\w*")
LONG_NS = 1_000_000
FIRST_CALL, SLOW_STREAM = EvidenceLabel("first call of the process"), EvidenceLabel("slow stream creation")


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost context calls, slow stream creation, and a process's first call where that made the context."""
    host = evidence.host
    first = host.api.take(evidence.facts.creates_context[host.api.row] & host.api.outermost)
    return [layer_of(first, FIRST_CALL), *_layers(evidence, nested=False)]


def nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Context calls and slow stream creation inside another call."""
    return _layers(evidence, nested=True)


def _layers(evidence: HostEvidence, *, nested: bool) -> list[EvidenceLayer]:
    streams = evidence.calls(STREAM_CREATION, nested=nested)
    slow = streams.take(streams.spans.end - streams.spans.start > LONG_NS)
    return [layer_of(evidence.calls(CALLS, nested=nested)), layer_of(slow, SLOW_STREAM)]


def own_call(evidence: HostEvidence) -> OwnCall:
    """A launch that is a process's first call and made the context."""
    return OwnCall(evidence.facts.creates_context, labels=(FIRST_CALL,), described=True)


CAUSE = Cause(
    id="context_init",
    title="CUDA context creation",
    meaning="The launching thread was creating or resetting a CUDA context.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    advice=Advice(
        (
            "Do it once at start, before the work that is measured; keep processes alive instead of starting one per task.",
            "A persistence daemon shortens it, and lazy loading, the default since CUDA 12.2 (with older versions set "
            "CUDA_MODULE_LOADING=LAZY).",
        )
    ),
    picture="""
device  [==A==)................[==next==)
thread         [cuCtxCreate ][launch]
""",
    bottleneck="startup",
    shade=0,
    sources=("contexts", "lazy_loading"),
    thresholds=(Threshold("long", format_ns(LONG_NS), "a first call or stream creation over this makes a context"),),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "It comes once for each process and GPU, at the start: cuCtxCreate, cuDevicePrimaryCtxRetain, or the first call of the runtime, over 100 ms long.",
    ),
    confused_with=(
        Lookalike("module_load", "What follows: loading the code of kernels."),
        Lookalike("memory_allocation", "The first cudaMalloc of a process is the context, not the memory."),
    ),
    variants=(Variant("other", "", "create the context before the work that is measured"),),
    host=evidence,
    call=nested_evidence,
    own_call=own_call,
    call_order=50,
)
