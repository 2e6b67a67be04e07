"""Causes that a program has once: making a context, loading code, and building CUDA graphs."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.intervals import Intervals, contains, nearest_before, union
from nsysdiag.causes import memory_calls
from nsysdiag.causes.cause import Cause, EvidenceRows, OwnCall, Variant, matching
from nsysdiag.causes.evidence import (
    FEW_LAUNCHES,
    FIRST_USE,
    LONG_NS,
    SLOW_FACTOR,
    EvidenceLayer,
    HostEvidence,
    Threshold,
    layer_of,
    named,
    nested_calls,
    plain_layer,
)
from nsysdiag.causes.ids import GRAPH_BUILD
from nsysdiag.events.host import COMPILED, UNKNOWN_LOADING
from nsysdiag.trace.enums import OverheadType
from nsysdiag.units import format_ns

CONTEXT_INIT_CALLS = re.compile(
    r"cuInit|cuCtx(Create|Destroy|Attach|Detach)|cuDevicePrimaryCtx\w+|cuda(InitDevice|DeviceReset)|cuGreenCtxCreate"
)
STREAM_CREATION = re.compile(r"(cuda|cu)StreamCreate\w*")

FIRST_CALL, SLOW_STREAM = EvidenceLabel("first call of the process"), EvidenceLabel("slow stream creation")


def context_init_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost context calls, slow stream creation, and a process's first call if that made the context."""
    host = evidence.host
    first = host.api.take(evidence.facts.creates_context[host.api.row] & host.api.outermost)
    return [layer_of(first, FIRST_CALL), *_context_layers(evidence, nested=False)]


def context_init_nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Context calls and slow stream creation inside another call."""
    return _context_layers(evidence, nested=True)


def _context_layers(evidence: HostEvidence, *, nested: bool) -> list[EvidenceLayer]:
    streams = evidence.calls(STREAM_CREATION, nested=nested)
    slow = streams.take(streams.spans.end - streams.spans.start > LONG_NS)
    return [layer_of(evidence.calls(CONTEXT_INIT_CALLS, nested=nested)), layer_of(slow, SLOW_STREAM)]


def context_init_own_call(evidence: HostEvidence) -> OwnCall:
    """A launch that is a process's first call and made the context."""
    return OwnCall(evidence.facts.creates_context, labels=(FIRST_CALL,), described=True)


CONTEXT_INIT = Cause(
    id="context_init",
    title="CUDA context creation",
    meaning="The launching thread was creating or resetting a CUDA context.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    bottleneck="startup",
    shade=0,
    thresholds=(Threshold("long", format_ns(LONG_NS), "a first call or stream creation over this makes a context"),),
    rows=(EvidenceRows.CALL,),
    variants=(Variant("other", "", "create the context before the work that is measured"),),
    host=context_init_evidence,
    call=context_init_nested_evidence,
    own_call=context_init_own_call,
    call_order=50,
)


FIRST_LAUNCH = EvidenceLabel("first launch of a kernel")
SEEN, COPIED = EvidenceLabel("loading seen by the profiler"), EvidenceLabel("code is copied to the device")
MODULE_LOAD_CALLS = re.compile(r"cu(Module|Library)Load\w*|cudaLibraryLoad\w*|cuLink\w+|nvrtc\w+")
LOADING_KINDS = (
    OverheadType.DRIVER_COMPILER,
    OverheadType.RUNTIME_MODULE_LOADING,
    OverheadType.LAZY_FUNCTION_LOADING,
    COMPILED,
)


def module_load_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost loading calls, slow first launches of a kernel, and loading that the profiler saw."""
    api = evidence.host.api
    first = api.take(api.outermost & taken(evidence.facts.first_launch, api.row))
    return [layer_of(evidence.calls(MODULE_LOAD_CALLS)), loading_rows(evidence), layer_of(first, FIRST_LAUNCH)]


def module_load_nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Loading calls inside the launch call, and loading that the profiler saw."""
    return [layer_of(evidence.calls(MODULE_LOAD_CALLS, nested=True)), loading_rows(evidence)]


def loading_rows(evidence: HostEvidence) -> EvidenceLayer:
    """Overhead rows of JIT compilation, module and lazy function loading. Up to schema 3.23 loading is called `Unknown`,
    which inside an allocation call is something else."""
    overhead = evidence.host.overhead
    loading = overhead.take(np.isin(overhead.kind, LOADING_KINDS))
    unnamed = overhead.take(overhead.kind == UNKNOWN_LOADING)
    api = evidence.host.api
    allocating = union(api.spans[named(api, memory_calls.MEMORY_ALLOCATION_CALLS)])
    unnamed = unnamed.take(~contains(allocating, unnamed.spans.start))
    return plain_layer(union(loading.spans, unnamed.spans), SEEN.words, SEEN)


def module_load_own_call(evidence: HostEvidence) -> OwnCall:
    """Slow first launches of a kernel."""
    return OwnCall(evidence.facts.first_launch, labels=(FIRST_USE,), described=True)


MODULE_LOAD = Cause(
    id="module_load",
    title="CUDA module loading",
    meaning="Device code was compiled or loaded: by a loading call, by lazy loading at the first launch, or by a JIT compiler.",
    side="host",
    tables=(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        "CUPTI_ACTIVITY_KIND_JIT",
        "PROFILER_OVERHEAD",
    ),
    bottleneck="startup",
    shade=1,
    thresholds=(
        Threshold(
            "slow_factor",
            f"{SLOW_FACTOR} ×",
            "a first launch longer than this many times the median of its API loads code",
        ),
        Threshold("few_launches", str(FEW_LAUNCHES), "an API with fewer launches has no median to compare with"),
        Threshold("long", format_ns(LONG_NS), "limit used there, and if most launches are first ones"),
    ),
    rows=(EvidenceRows.OVERHEAD, EvidenceRows.CALL),
    variants=(
        Variant(
            "lazy",
            "first use of a kernel",
            "warm up, or load early with CUDA_MODULE_LOADING=EAGER",
            labels=(FIRST_LAUNCH, FIRST_USE, COPIED),
        ),
        Variant(
            "library",
            "a module is loaded",
            "load modules once; keep compiled code, CUDA_CACHE_PATH",
            call=matching("(Module|Library)Load|cuLink|nvrtc"),
        ),
        Variant("other", "", "warm up before measuring and before serving"),
    ),
    host=module_load_evidence,
    call=module_load_nested_evidence,
    own_call=module_load_own_call,
    call_order=20,
    after_call=COPIED,
)


GRAPH_BUILD_CALLS = re.compile(
    r"(cuda|cu)Graph(Instantiate|Upload|Create|Clone|Add\w*Node|AddDependencies|Exec\w*(Update|SetParams)|KernelNodeSetParams)\w*"
)
BEGIN = re.compile(r"(cuda|cu)StreamBeginCapture\w*")
END = re.compile(r"(cuda|cu)StreamEndCapture")
CAPTURE = EvidenceLabel("capture")


def graph_build_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Stream captures from begin to end, each as one interval, and outermost calls that build or change a graph."""
    return [_captures(evidence), layer_of(evidence.calls(GRAPH_BUILD_CALLS))]


def _captures(evidence: HostEvidence) -> EvidenceLayer:
    """Each end of a capture with the last begin before it on the same thread."""
    begin, end = evidence.calls(BEGIN), evidence.calls(END)
    before = nearest_before(begin.spans.start, end.spans.start)
    stride = evidence.host.axis.stride
    paired = before >= 0
    paired &= begin.spans.start[before] // stride == end.spans.start // stride if len(begin) else False
    spans = Intervals(begin.spans.start[before[paired]], end.spans.end[paired])
    return plain_layer(spans, "stream capture", CAPTURE)


GRAPH_CREATION = Cause(
    id=GRAPH_BUILD,
    title="CUDA graph building",
    meaning="The launching thread was capturing, instantiating, updating or uploading a CUDA graph.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    bottleneck="startup",
    shade=2,
    rows=(EvidenceRows.CALL,),
    variants=(
        Variant("capture", "a graph is captured", "capture once for each shape and replay", labels=(CAPTURE,)),
        Variant(
            "instantiate",
            "a graph is instantiated",
            "update the graph in place: cudaGraphExecUpdate",
            call=matching("Instantiate"),
        ),
        Variant(
            "update",
            "a graph is updated",
            "keep one executable graph for each shape",
            call=matching("GraphExec\\w*(Update|SetParams)"),
        ),
        Variant("other", "", "build graphs once and replay them"),
    ),
    host=graph_build_evidence,
    call=nested_calls(GRAPH_BUILD_CALLS),
    call_order=70,
)
