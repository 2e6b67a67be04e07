"""Causes that a program has once: making a context, loading code, and building CUDA graphs."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import Intervals, contains, nearest_before, union
from nsysdiag.causes import call_facts, memory_calls
from nsysdiag.causes.cause import Cause, EvidenceRows, Lookalike, OwnCall, Variant, advice, matching, words
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, layer_of, named, nested_calls, plain_layer
from nsysdiag.causes.ids import GRAPH_BUILD
from nsysdiag.events.host import COMPILED, UNKNOWN_LOADING
from nsysdiag.trace.enums import OverheadType
from nsysdiag.units import format_ns

CONTEXT_INIT_CALLS = re.compile(
    r"cuInit|cuCtx(Create|Destroy|Attach|Detach)|cuDevicePrimaryCtx\w+|cuda(InitDevice|DeviceReset)|cuGreenCtxCreate"
)
STREAM_CREATION = re.compile(r"(cuda|cu)StreamCreate\w*")
LONG_NS = 1_000_000
FIRST_CALL, SLOW_STREAM = EvidenceLabel("first call of the process"), EvidenceLabel("slow stream creation")


def context_init_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost context calls, slow stream creation, and a process's first call where that made the context."""
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
    advice=advice(
        "Do it once at start, before the work that is measured; keep processes alive instead of starting one per task.",
        "A persistence daemon shortens it, and lazy loading, the default since CUDA 12.2 (with older versions set CUDA_MODULE_LOADING=LAZY).",
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
    first = api.take(api.outermost & evidence.facts.first_launch[api.row])
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
    return OwnCall(evidence.facts.first_launch, labels=(call_facts.FIRST_USE,), described=True)


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
    advice=advice(
        "Warm up before measuring: run each kernel once.",
        "CUDA_MODULE_LOADING=EAGER moves the cost to the start; compile for this architecture (-gencode) so that nothing is JIT-compiled; keep the compilation cache (CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE).",
        pytorch=words(
            "Warm up before measuring and before serving: run each kernel once.",
            "CUDA_MODULE_LOADING=EAGER moves the cost to the start; keep the compilation caches (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, CUDA_CACHE_PATH).",
            source="lazy_loading",
        ),
        jax=words(
            "Run each jitted function once during warm-up; keep compiled programs across runs (jax_compilation_cache_dir). Use fixed shapes: each new shape is compiled (JAX_LOG_COMPILES=1 shows it).",
            source="jax_cache",
        ),
        tensorflow=words(
            "Run each tf.function once during warm-up. Use fixed shapes or an input_signature: each new shape is traced and compiled.",
            source="tf_gpu",
        ),
        cupy=words(
            "Run each kernel once during warm-up; keep CuPy's kernel cache (CUPY_CACHE_DIR) across runs and nodes.",
            source="cupy_speed",
        ),
    ),
    picture="""
device  [==A==)........................[==next==)
thread         [launch, loads its code     ]
""",
    bottleneck="startup",
    shade=1,
    sources=("lazy_loading", "overhead"),
    thresholds=(
        Threshold(
            "slow_factor",
            f"{call_facts.SLOW_FACTOR} ×",
            "a first launch longer than this many times the median of its API loads code",
        ),
        Threshold(
            "few_launches", str(call_facts.FEW_LAUNCHES), "an API with fewer launches has no median to compare with"
        ),
        Threshold("long", format_ns(call_facts.LONG_NS), "limit used there, and if most launches are first ones"),
    ),
    rows=(EvidenceRows.OVERHEAD, EvidenceRows.CALL),
    confirm=(
        'A launch call of a kernel that runs for the first time takes a millisecond or more. The overhead row says "Module loading" or "Lazy function loading", or the call is cuModuleLoadData or cuLibraryLoadData.',
        "With CUDA_MODULE_LOADING=EAGER the time moves to the start of the program.",
    ),
    confused_with=(
        Lookalike("launch_call", "There, the launch call is slow each time."),
        Lookalike("context_init", "The context is created once, before any code is loaded."),
        Lookalike("graph_build", "cudaGraphInstantiate loads the code of its nodes, too."),
    ),
    variants=(
        Variant(
            "lazy",
            "first use of a kernel",
            "warm up, or load early with CUDA_MODULE_LOADING=EAGER",
            advice(
                "Run each kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                pytorch=words(
                    "Run each kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                    "torch.backends.cudnn.benchmark=True tries several kernels for each new shape: keep shapes fixed, or switch it off.",
                    source="lazy_loading",
                ),
            ),
            labels=(FIRST_LAUNCH, call_facts.FIRST_USE, COPIED),
        ),
        Variant(
            "library",
            "a module is loaded",
            "load modules once; keep compiled code, CUDA_CACHE_PATH",
            advice(
                "Load modules and libraries once, before the loop. Code made at run time (NVRTC, PTX) is compiled in each run. Save it, ship code for this architecture, or keep the driver's cache (CUDA_CACHE_PATH).",
                pytorch=words(
                    "Code made at run time is loaded again in each run: keep the caches (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, CUDA_CACHE_PATH), and avoid recompilation by fixed shapes.",
                    source="lazy_loading",
                    fix="keep compiled code: caches of Triton and inductor, CUDA_CACHE_PATH",
                ),
                jax=words(
                    "Compiled programs are loaded again in each run: keep them (jax_compilation_cache_dir), and use fixed shapes to avoid recompilation.",
                    source="jax_cache",
                    fix="keep compiled programs: jax_compilation_cache_dir",
                ),
            ),
            call=matching(r"(Module|Library)Load|cuLink|nvrtc"),
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
    advice=advice(
        "Build graphs once and replay them; update parameters in place instead of instantiating again.",
        "Varying sizes force new captures: pad to a few sizes.",
        pytorch=words(
            "Capture once per shape and replay. Varying shapes force new captures (torch.compile(mode='reduce-overhead') captures each shape separately): pad to a few sizes, or mark dimensions dynamic.",
            source="torch_graphs",
        ),
    ),
    picture="""
device  [==A==).......................[==graph==)
thread         [capture][instantiate][launch]
""",
    bottleneck="startup",
    shade=2,
    sources=("cuda_graphs",),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "In the CUDA API row, cudaStreamBeginCapture to cudaStreamEndCapture, cudaGraphInstantiate, cudaGraphExecUpdate or cudaGraphUpload covers the gap. In a steady loop it should come once.",
    ),
    confused_with=(
        Lookalike("launch_call", "cudaGraphLaunch itself: launching is not building."),
        Lookalike("module_load", "The first instantiation may load code."),
    ),
    variants=(
        Variant(
            "capture",
            "a graph is captured",
            "capture once for each shape and replay",
            advice("Capture once for each shape, before the loop; pad varying shapes to a few sizes."),
            labels=(CAPTURE,),
        ),
        Variant(
            "instantiate",
            "a graph is instantiated",
            "update the graph in place: cudaGraphExecUpdate",
            advice(
                "Instantiate once and use cudaGraphExecUpdate if only parameters change; cudaGraphUpload ahead of the launch."
            ),
            call=matching(r"Instantiate"),
        ),
        Variant(
            "update",
            "a graph is updated",
            "keep one executable graph for each shape",
            advice(
                "Keep one executable graph for each shape and launch that, or change only the nodes that differ (cudaGraphExecKernelNodeSetParams)."
            ),
            call=matching(r"GraphExec\w*(Update|SetParams)"),
        ),
        Variant("other", "", "build graphs once and replay them"),
    ),
    host=graph_build_evidence,
    call=nested_calls(GRAPH_BUILD_CALLS),
    call_order=70,
)
