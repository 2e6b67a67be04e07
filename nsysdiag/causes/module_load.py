"""Module loading: code is compiled, loaded or sent to the device."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import contains, union
from nsysdiag.causes import call_facts, memory_allocation
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, OwnCall, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, Threshold, layer_of, named, plain_layer
from nsysdiag.events.host import UNKNOWN_LOADING
from nsysdiag.trace.enums import OverheadType
from nsysdiag.units import format_ns

FIRST_LAUNCH = EvidenceLabel("first launch of a kernel")
SEEN, COPIED = EvidenceLabel("loading seen by the profiler"), EvidenceLabel("code is copied to the device")
CALLS = re.compile(r"cu(Module|Library)Load\w*|cudaLibraryLoad\w*|cuLink\w+|nvrtc\w+")
LOADING_KINDS = (
    OverheadType.DRIVER_COMPILER,
    OverheadType.RUNTIME_MODULE_LOADING,
    OverheadType.LAZY_FUNCTION_LOADING,
)


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost loading calls, slow first launches of a kernel, and loading that the profiler saw."""
    api = evidence.host.api
    first = api.take(api.outermost & evidence.facts.first_launch[api.row])
    return [layer_of(evidence.calls(CALLS)), loading_rows(evidence), layer_of(first, FIRST_LAUNCH)]


def nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Loading calls inside the launch call, and loading that the profiler saw."""
    return [layer_of(evidence.calls(CALLS, nested=True)), loading_rows(evidence)]


def loading_rows(evidence: HostEvidence) -> EvidenceLayer:
    """Overhead rows of JIT compilation, module and lazy function loading. Up to schema 3.23 loading is called `Unknown`,
    which inside an allocation call is something else."""
    overhead = evidence.host.overhead
    loading = overhead.take(np.isin(overhead.kind, LOADING_KINDS))
    unnamed = overhead.take(overhead.kind == UNKNOWN_LOADING)
    api = evidence.host.api
    allocating = union(api.spans[named(api, memory_allocation.CALLS)])
    unnamed = unnamed.take(~contains(allocating, unnamed.spans.start))
    return plain_layer(union(loading.spans, unnamed.spans), SEEN.words, SEEN)


def own_call(evidence: HostEvidence) -> OwnCall:
    """Slow first launches of a kernel."""
    return OwnCall(evidence.facts.first_launch, labels=(call_facts.FIRST_USE,), described=True)


CAUSE = Cause(
    id="module_load",
    title="CUDA module loading",
    meaning="Device code was compiled or loaded: by a loading call, by lazy loading at the first launch, or by a JIT "
    "compiler.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD"),
    advice=Advice(
        plain=(
            "Warm up before measuring: run each kernel once.",
            "CUDA_MODULE_LOADING=EAGER moves the cost to the start; compile for this architecture (-gencode) so that nothing "
            "is JIT-compiled; keep the compilation cache (CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE).",
        ),
        pytorch=FrameworkAdvice(
            (
                "Warm up before measuring and before serving: run each kernel once.",
                "CUDA_MODULE_LOADING=EAGER moves the cost to the start; keep the compilation caches (TORCHINDUCTOR_CACHE_DIR, "
                "TRITON_CACHE_DIR, CUDA_CACHE_PATH).",
            ),
            source="lazy_loading",
        ),
        jax=FrameworkAdvice(
            (
                "Run each jitted function once during warm-up; keep compiled programs across runs "
                "(jax_compilation_cache_dir). Use fixed shapes: each new shape is compiled (JAX_LOG_COMPILES=1 shows "
                "it).",
            ),
            source="jax_cache",
        ),
        tensorflow=FrameworkAdvice(
            (
                "Run each tf.function once during warm-up. Use fixed shapes or an input_signature: each new shape is "
                "traced and compiled.",
            ),
            source="tf_gpu",
        ),
        cupy=FrameworkAdvice(
            ("Run each kernel once during warm-up; keep CuPy's kernel cache (CUPY_CACHE_DIR) across runs and nodes.",),
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
        Threshold("long", format_ns(call_facts.LONG_NS), "limit used there, and where most launches are first ones"),
    ),
    rows=(
        EvidenceRows.OVERHEAD,
        EvidenceRows.CALL,
    ),
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
            Advice(
                plain=("Run each kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",),
                pytorch=FrameworkAdvice(
                    (
                        "Run each kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                        "torch.backends.cudnn.benchmark=True tries several kernels for each new shape: keep shapes fixed, or "
                        "switch it off.",
                    ),
                    source="lazy_loading",
                ),
            ),
            labels=(FIRST_LAUNCH, call_facts.FIRST_USE, COPIED),
        ),
        Variant(
            "library",
            "a module is loaded",
            "load modules once; keep compiled code, CUDA_CACHE_PATH",
            Advice(
                plain=(
                    "Load modules and libraries once, before the loop. Code made at run time (NVRTC, PTX) is compiled "
                    "in each run. Save it, ship code for this architecture, or keep the driver's cache "
                    "(CUDA_CACHE_PATH).",
                ),
                pytorch=FrameworkAdvice(
                    (
                        "Code made at run time is loaded again in each run: keep the caches (TORCHINDUCTOR_CACHE_DIR, "
                        "TRITON_CACHE_DIR, "
                        "CUDA_CACHE_PATH), and avoid recompilation by fixed shapes.",
                    ),
                    source="lazy_loading",
                    fix="keep compiled code: caches of Triton and inductor, CUDA_CACHE_PATH",
                ),
                jax=FrameworkAdvice(
                    (
                        "Compiled programs are loaded again in each run: keep them (jax_compilation_cache_dir), and "
                        "use fixed shapes to avoid recompilation.",
                    ),
                    source="jax_cache",
                    fix="keep compiled programs: jax_compilation_cache_dir",
                ),
            ),
            call=matching(r"(Module|Library)Load|cuLink|nvrtc"),
        ),
        Variant("other", "", "warm up before measuring and before serving"),
    ),
    host=evidence,
    call=nested_evidence,
    own_call=own_call,
    call_order=20,
    after_call=COPIED,
)
