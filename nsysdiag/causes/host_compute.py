"""Host compute: the thread was on a CPU, in code of the program."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, EvidenceRows, Hint, Lookalike, Variant, advice, words
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
    advice=advice(
        "Profile the host code of this phase (CPU samples with call chains, perf). Use several threads for it, move it to the GPU, or run it ahead of time on another thread.",
        pytorch=words(
            "Profile the host code of this phase (samples with --python-backtrace, py-spy); move it off the launching thread or ahead of time.",
            "Interpreter overhead between small kernels: use torch.compile, CUDA graphs, or larger batches.",
            "Garbage collection: gc.freeze(), or gc.disable() and collect at a chosen moment.",
            source="torch_graphs",
        ),
        jax=words(
            "Put more of the step under jax.jit: outside it, operations run one by one. Use jax.lax.scan for loops over steps. Look for compilation in the loop (JAX_LOG_COMPILES=1).",
            source="jax_gpu",
        ),
        tensorflow=words(
            "Put more of the step into a tf.function; steps_per_execution in Keras. Look for retracing, which Python arguments and varying shapes cause.",
            source="tf_gpu",
        ),
        cupy=words(
            "Profile the host code of this phase (py-spy); fewer CuPy calls for each step: cupy.fuse, RawKernel, CUDA graphs.",
            source="cupy_speed",
        ),
        openacc=words(
            "Profile the host code of this phase; give serial loops between kernels a parallel directive, or run them while asynchronous kernels run.",
            source="openacc",
        ),
        openmp_target=words(
            "Profile the host code of this phase; give serial loops between target regions a parallel directive, or run them while target constructs with nowait run.",
            source="openmp",
        ),
        julia=words(
            "Profile the host code of this phase (Profile.@profile): look for type instabilities, compilation in the loop and garbage collection.",
            source="julia",
        ),
        mpi=words(
            "Profile the host code of this phase (CPU samples with call chains): move it to the GPU or use more threads. Check whether all ranks do the same amount.",
            source="nsight_sampling",
        ),
    ),
    picture="""
device  [==A==)................[==next==)
thread         ~~ computes ~~[launch]
""",
    bottleneck="host",
    shade=3,
    sources=("nsight_sampling", "gc"),
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
    confirm=(
        "The row of thread states shows the launching thread running, and neither the CUDA API row nor that of OS calls has a call. The CPU samples under the gap show the functions.",
        "Put an NVTX range around the code that you suspect, and capture again.",
    ),
    confused_with=(
        Lookalike("cuda_api", "Many short CUDA calls look like a busy thread, too: their rows are filled."),
        Lookalike("lock_wait", "A spinning wait runs on a CPU. Samples in a spin loop show it."),
        Lookalike("os_memory", "Time in OS calls looks like host code if these were not captured."),
    ),
    variants=(
        Variant(
            "garbage_collector",
            "Python's garbage collector",
            "gc.freeze() after the warm-up, gc.collect() at a chosen moment",
            advice(
                "Call gc.freeze() after the warm-up, or gc.disable() and gc.collect() at a chosen moment (every n steps, while a long kernel runs)."
            ),
            hint=Hint.IN_COLLECTOR,
        ),
        Variant(
            "interpreter",
            "the Python interpreter",
            "fewer steps of Python for each kernel: CUDA graphs, larger pieces of work",
            advice(
                "Fewer steps of Python for each kernel: CUDA graphs, fused kernels, larger pieces of work.",
                pytorch=words(
                    "Fewer steps of Python for each kernel: torch.compile(mode='reduce-overhead'), CUDA graphs, fused optimizers (fused=True or foreach=True), larger batches.",
                    source="torch_graphs",
                    fix="fewer steps of Python for each kernel: torch.compile, CUDA graphs",
                ),
                jax=words(
                    "Fewer steps of Python for each kernel: the whole step under one jax.jit, jax.lax.scan over steps.",
                    source="jax_gpu",
                    fix="fewer steps of Python: the whole step under one jax.jit",
                ),
                tensorflow=words(
                    "Fewer steps of Python for each kernel: the whole step in one tf.function, steps_per_execution.",
                    source="tf_gpu",
                    fix="fewer steps of Python: the whole step in one tf.function",
                ),
                cupy=words(
                    "Fewer steps of Python for each kernel: cupy.fuse, RawKernel, CUDA graphs.",
                    source="cupy_speed",
                    fix="fewer steps of Python for each kernel: cupy.fuse, RawKernel",
                ),
            ),
            hint=Hint.IN_INTERPRETER,
        ),
        Variant(
            "operators",
            "operators run one by one",
            "fewer operators for each kernel: CUDA graphs, compiled and fused operators",
            advice(
                "The host takes longer to issue the kernels than the GPU to run them: use CUDA graphs, fused kernels.",
                pytorch=words(
                    "The host takes longer to run operators one by one than the GPU to run their kernels: torch.compile(mode='reduce-overhead'), CUDA graphs, fused operators, larger batches.",
                    source="torch_graphs",
                    fix="run the step as a CUDA graph: torch.compile(mode='reduce-overhead')",
                ),
            ),
            hint=Hint.IN_OPERATORS,
        ),
        Variant("other", "", "profile the host code of this place and move it off the launching thread"),
    ),
    host=evidence,
    opening="{thread} computes{code}",
    sampled=True,
)
