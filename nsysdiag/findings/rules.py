"""The rules of findings that are no cause of idle time, and how much a finding matters."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.bottlenecks import BOTTLENECKS, BottleneckId
from nsysdiag.causes import CAUSES, color_of
from nsysdiag.causes.cause import Advice, advice, words
from nsysdiag.causes.evidence import Threshold, setting
from nsysdiag.causes.sources import SOURCES, SourceDocument
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.kernels.advice import FUSION, HALF_PRECISION, KERNEL_ADVICE, REDUCED_PRECISION
from nsysdiag.report import CauseInfo


class FindingRule(Struct, frozen=True):
    """A finding that is not a cause: its name in the report, its text, and its advice.

    `bottleneck` is what its time is charged to; `fix` is the short form of the plain `advice` that ends a causal chain;
    `thresholds` are the settings that it depends on (fields of FindingThresholds); `sources` are its documents (keys of
    SOURCES). `special` is advice that may take the place of `advice`, or come before it."""

    id: str
    bottleneck: BottleneckId
    title: str
    meaning: str
    picture: str
    tables: tuple[str, ...]
    thresholds: tuple[str, ...]
    sources: tuple[str, ...]
    fix: str
    advice: Advice
    special: tuple[Advice, ...] = ()


FEWER_BYTES = advice(
    "Copy less: keep data on the device, send smaller types.",
    pytorch=words("Copy less: keep data on the device, send smaller types.", source="pinned_memory"),
    openacc=words(
        "Copy less: one data region around the loops, so that each does not copy its arrays; update only what the host "
        "needs.",
        source="openacc",
        fix="copy less: a data region around the loops",
    ),
    openmp_target=words(
        "Copy less: put one target data region (or target enter data) around the loops, so that each target "
        "construct finds its arrays present. Use target update only for what the host needs.",
        source="openmp",
        fix="copy less: a target data region around the loops",
    ),
    julia=words(
        "Copy less: keep arrays as CuArray across steps, without Array(...) or scalar indexing in the loop; "
        "reduce on the GPU before copying back.",
        source="julia",
        fix="copy less: keep arrays as CuArray",
    ),
    mpi=words(
        "Copy less: pass device pointers to a CUDA-aware MPI instead of staging messages through the host. Keep "
        "arrays on the device between steps.",
        source="mpi_cuda",
        fix="keep data on the device; pass device pointers to MPI",
    ),
)
"""For copies that take far longer than all kernels: overlap hides next to nothing of them."""
BY_DIRECTION = {
    "HtoD": "Decode, expand or augment it on the GPU.",
    "DtoH": "Reduce or filter on the GPU before copying back.",
}
"""Of the copies between host and device that take most time."""
SETS = advice(
    "Set less memory: kernels that write all of a buffer need no memset before them; set a flag, not the buffer.",
    pytorch=words(
        "Memory sets of gradients: optimizer.zero_grad(set_to_none=True) avoids them.",
        source="tuning_guide",
        fix="set less memory: zero_grad(set_to_none=True)",
    ),
)
PINNING = advice(
    "Most of it is pageable memory: pin it (cudaHostAlloc, cudaHostRegister) and copy with cudaMemcpyAsync.",
    pytorch=words(
        "Most of it is pageable memory: pin it (pin_memory=True), copy with non_blocking=True.", source="pinned_memory"
    ),
    cupy=words("Most of it is pageable memory: allocate it with cupyx.empty_pinned.", source="cupy_memory"),
    openacc=words(
        "Most of it is pageable memory: pin it (nvc -gpu=pinned, or -gpu=mem:separate:pinnedalloc).", source="openacc"
    ),
    openmp_target=words(
        "Most of it is pageable memory: pin it (an allocator with the trait omp_atk_pinned, cudaHostRegister; nvc: "
        "-gpu=pinned).",
        source="openmp",
    ),
    julia=words("Most of it is pageable memory: pin the host array with CUDA.pin.", source="julia"),
)
ON_DEVICE = advice(
    "Most of it is copied from one place of a GPU's memory to another. Swap pointers instead (double buffering), or "
    "let kernels write where the next one reads: that saves all of it. What is left can overlap with "
    "kernels, on a separate stream.",
    pytorch=words(
        "Most of it is copied from one place of a GPU's memory to another: clone(), copy_(), contiguous(), "
        "torch.cat. Write results where they are read (out=, slices of one tensor); that saves all of it.",
        source="tuning_guide",
    ),
)
BETWEEN_GPUS = advice(
    "Most of it is copied from one GPU to another. Send only what the other GPU needs, in smaller types, and "
    "keep the rest where it is. What is left can overlap with kernels that do not need it, on a separate stream. Direct "
    "access between the GPUs (cudaDeviceEnablePeerAccess) avoids the way through the host.",
)
EXPOSED_COPY = FindingRule(
    id="exposed_copy",
    bottleneck="copies",
    title="Exposed copies",
    meaning="The device copied or set memory while no kernel ran.",
    picture="""
stream 7  [==A==)          [==B==)
stream 9         [=copy==)          no kernel runs meanwhile
""",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    thresholds=("smallest",),
    sources=("best_practices", "asynchronous"),
    fix="overlap copies with compute, on a separate stream",
    advice=advice(
        "Overlap copies with compute: use a separate stream and pinned memory, and copy the next part while this one is computed. This saves at most the shorter of the two times.",
        *FEWER_BYTES.plain,
        pytorch=words(
            "Overlap copies with compute: pin_memory=True and .to(device, non_blocking=True) on a separate stream, "
            "for the next batch while this one computes. This saves at most the shorter of the two times.",
            *FEWER_BYTES.sentences(["pytorch"]),
            source="pinned_memory",
        ),
        openacc=words(
            *FEWER_BYTES.sentences(["openacc"]),
            "Overlap the remaining copies: update ... async on a separate queue, from pinned memory.",
            source="openacc",
            fix="copy less: a data region around the loops",
        ),
        openmp_target=words(
            *FEWER_BYTES.sentences(["openmp-target"]),
            "Overlap the remaining copies: target update ... nowait with depend, while other target regions run.",
            source="openmp",
            fix="copy less: a target data region around the loops",
        ),
        julia=words(
            *FEWER_BYTES.sentences(["julia"]),
            "Overlap the remaining copies: CUDA.pin the host array, and copyto! from another task, which has a "
            "stream of its own.",
            source="julia",
            fix="copy less: keep arrays as CuArray",
        ),
        mpi=words(
            *FEWER_BYTES.sentences(["mpi"]),
            "Overlap the remaining copies with kernels: use a separate stream and pinned buffers. This saves at "
            "most the shorter of the two times.",
            source="mpi_cuda",
            fix="keep data on the device; pass device pointers to MPI",
        ),
    ),
    special=(SETS, PINNING, BETWEEN_GPUS),
)
GRADIENTS = advice(
    pytorch=words(
        "If these are gradients, overlap them with the backward pass: buckets of another size (DistributedDataParallel bucket_cap_mb).",
        source="tuning_guide",
    )
)
"""For reductions, as of gradients."""
EXPOSED_COMM = FindingRule(
    id="exposed_comm",
    bottleneck="communication",
    title="Exposed communication",
    meaning="Communication kernels ran while no other kernel did.",
    picture="""
stream 7  [==backward==)                  [==optimizer==)
stream 9              [==nccl AllReduce==)               the part behind backward is exposed
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"),
    thresholds=("smallest",),
    sources=("asynchronous",),
    fix="overlap it with compute",
    advice=advice(
        "Overlap communication with compute: send pieces as soon as their data is ready, on a separate stream.",
        "Look for a straggler: ranks that arrive late make all others wait inside the collective.",
        pytorch=words(
            "Overlap communication with compute: launch it as soon as its data is ready (async_op=True), and wait "
            "where it is used.",
            "Look for a straggler: ranks that arrive late make all others wait inside the collective.",
            source="tuning_guide",
        ),
        jax=words(
            "Overlap communication with compute: --xla_gpu_enable_latency_hiding_scheduler, and shardings that need "
            "fewer or smaller collectives.",
            "Look for a straggler: ranks that arrive late make all others wait inside the collective.",
            source="jax_gpu",
        ),
    ),
    special=(GRADIENTS,),
)
BEFORE_WORK = FindingRule(
    id="before_work",
    bottleneck="host",
    title="Time before the first GPU work",
    meaning="What the program did from its first CUDA call to the first work of the device: a part of start-up.",
    picture="""
thread  [cudaMalloc][host code........][launch]
device                                      [==first==)
""",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "SCHED_EVENTS"),
    thresholds=("smallest",),
    sources=("nsight_cli",),
    fix="shorten the start-up, if it matters",
    advice=advice("Work on this if start-up time matters: it happens once. Otherwise look at what comes after it."),
)
PAGING = FindingRule(
    id="paging",
    bottleneck="memory",
    title="Kernels wait for pages of unified memory",
    meaning="Pages of unified memory migrated on demand, while kernels ran or the device was idle: kernels wait for them.",
    picture="""
kernel      [==A: touches pages........==)
migrations       [p][p][p][p][p]
""",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_KERNEL"),
    thresholds=("smallest",),
    sources=("tuning_guide",),
    fix="prefetch the pages after the host's last access",
    advice=advice(
        "Prefetch the pages before the launch, after the host's last access: cudaMemPrefetchAsync. Prefetch results back the same way.",
        "If data stays on the device, allocate it there: cudaMalloc and explicit copies.",
    ),
)
LATE_RANK = FindingRule(
    id="late_rank",
    bottleneck="communication",
    title="Others wait for a late GPU",
    meaning="The device waited inside a collective or an MPI call for another one that came late.",
    picture="""
gpu 0  [==step==)[AllReduce, waits........)
gpu 1  [==step==)....reads files...[AllReduce)
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "MPI_COLLECTIVES_EVENTS"),
    thresholds=("smallest",),
    sources=("asynchronous",),
    fix="fix what makes it late",
    advice=advice("Find out why that device is late: its own part of the report says what it waits for."),
)
BALANCE = advice(
    "Give every device the same work in every step: batches of equal size, layers divided evenly. The late device changes from collective to collective."
)
"""Where no single device is the late one, as each computes more in some steps."""
JITTER = advice(
    "The late device changes from collective to collective, and all compute for about as long: their hosts launch at different times. Let the hosts run ahead: see what each waits for between its launches."
)
"""The same, where it is not compute that makes them late."""
MICRO_BATCHES = (
    "If one needs the other's results, divide the batch into micro-batches, so that each works on one of them."
)
DIVIDE_EVENLY = advice("Divide the work so that each GPU takes as long.", MICRO_BATCHES)
"""Where events order the GPUs already."""
SEE_THE_OTHER = advice("Find out why that GPU takes so long: its own findings say what it does and waits for.")
"""Where the other GPU was idle, or busy with other work than kernels."""
OTHER_GPU = FindingRule(
    id="other_gpu",
    bottleneck="kernels",
    title="Waiting for another GPU",
    meaning="The device was idle until another device finished its work: the host or an event waited for a stream of that device. The time is charged to what that device did meanwhile.",
    picture="""
gpu 0   [==kernel=======)           [==kernel=======)
gpu 1                    [==kernel==)
thread  [launch][wait for gpu 0][launch][wait for gpu 1]
""",
    tables=("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_KERNEL"),
    thresholds=("smallest",),
    sources=("asynchronous",),
    fix="run ahead, order the GPUs by events, divide the work evenly",
    advice=advice(
        "Let the GPUs work at the same time: launch the next step on one before the other has finished. Order them "
        "by events (cudaStreamWaitEvent), not by host synchronizations. Divide the work so that each takes equally "
        "long.",
        MICRO_BATCHES,
        "If the GPUs need nothing of each other, feed each from a thread of its own.",
    ),
    special=(DIVIDE_EVENLY, SEE_THE_OTHER),
)


def wait_id(bottleneck: str, other: str) -> str:
    """The id of the finding on waits for another device that is busy with a bottleneck."""
    return f"f-{OTHER_GPU.id}-{bottleneck}-{other}"


KERNELS = FindingRule(
    id="kernels",
    bottleneck="kernels",
    title="Kernel time",
    meaning="The device computed, and as far as the trace shows, kernels filled the chip.",
    picture="""
device  [==A==)[==A==)[==A==)[==A==)
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    thresholds=("smallest",),
    sources=("nsight_compute",),
    fix="profile the kernel with Nsight Compute",
    advice=advice(
        "This trace cannot tell what limits a kernel: profile it with Nsight Compute.",
        rocm=words(
            "This trace cannot tell what limits a kernel: profile it with rocprof-compute.",
            source="rocm_compute",
            fix="profile the kernel with rocprof-compute",
        ),
    ),
    special=KERNEL_ADVICE,
)
UNFUSED = FindingRule(
    id="unfused",
    bottleneck="kernels",
    title="Unfused elementwise, cast and norm kernels",
    meaning="By their names, these kernels each run one elementwise operator, cast, concatenation, normalization or reduction of a framework. Their time counts as kernel time.",
    picture="""
device  [product][cast][add][norm][product]
                 |-- fused: one ---|
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    thresholds=("smallest",),
    sources=("tuning_guide",),
    fix="fuse them with their neighbours",
    advice=FUSION,
)
SINGLE_PRECISION = FindingRule(
    id="single_precision",
    bottleneck="kernels",
    title="FP32 matrix products without tensor cores",
    meaning="By their names, these kernels multiply matrices, or convolve, in single precision without tensor cores, on "
    "a GPU that has them. Their time counts as kernel time. The bound is the ratio of the GPU's published peak rates.",
    picture="""
device  [sgemm===============][sgemm===============]
device  [tf32=][tf32=]           |-- at most saved ---|
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "TARGET_INFO_GPU"),
    thresholds=("smallest",),
    sources=("tuning_guide",),
    fix="allow TF32, or use types of 16 bits",
    advice=REDUCED_PRECISION,
    special=(HALF_PRECISION,),
)
PARALLELISM = FindingRule(
    id="parallelism",
    bottleneck="parallelism",
    title="Kernels that leave most of the chip empty",
    meaning="All kernels running at the time together had fewer blocks than half of the SMs, or counters showed few active SMs.",
    picture="""
device  [==A: 2 blocks on 108 SMs==)
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    thresholds=("smallest",),
    sources=("best_practices",),
    fix="launch more blocks, or run kernels concurrently",
    advice=advice(
        "Launch more blocks: at least one per SM, better several per SM.",
        "If the work is too small for that, run independent kernels concurrently, on several streams or from several processes.",
    ),
)
SLOW_ITERATIONS = FindingRule(
    id="slow_iterations",
    bottleneck="host",
    title="Some iterations take far longer",
    meaning="Steady iterations longer than the median by three times the usual deviation and by 5%. The time itself is charged to other findings: nothing is counted twice.",
    picture="""
device  [step 1)[step 2)[step 3              )[step 4)
                        |median |-- extra ---|
""",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"),
    thresholds=("smallest",),
    sources=("nsight_cli", "gc"),
    fix="look at what takes longer in these iterations",
    advice=advice(
        "Look at what takes longer in these iterations. A recurring spike is often output, a checkpoint, logging, or a reader that starts a new file. In a server it may be a wait for requests.",
        pytorch=words(
            "Look at what takes longer in these iterations. A recurring spike is often garbage collection, a "
            "checkpoint, logging, an evaluation, or a reader that starts a new file.",
            source="gc",
        ),
    ),
)
EMPTY_ITERATIONS = FindingRule(
    id="empty_iterations",
    bottleneck="host",
    title="Iterations without work for the device",
    meaning="A range of the program repeats, and some of its instances launch nothing on the device. The time itself is charged to other findings: nothing is counted twice.",
    picture="""
thread  [step 1    ][step 2    ][step 3    ][step 4    ]
launches   |  |                    |  |                     steps 2 and 4 launch nothing here
""",
    tables=("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    thresholds=("empty",),
    sources=("nsight_cli",),
    fix="give the device work in them, or share it with another job",
    advice=advice(
        "Check whether the device should work in each of them. Reasons are a rank without data, a pipeline stage that waits, or work sent to another device.",
        "If a program uses the device only now and then, batch its work, or share the device with another job.",
    ),
)
FINDING_RULES = {
    rule.id: rule
    for rule in (
        EXPOSED_COPY,
        EXPOSED_COMM,
        PAGING,
        BEFORE_WORK,
        LATE_RANK,
        OTHER_GPU,
        KERNELS,
        UNFUSED,
        SINGLE_PRECISION,
        PARALLELISM,
        SLOW_ITERATIONS,
        EMPTY_ITERATIONS,
    )
}


def severity(share: float, thresholds: FindingThresholds | None = None, *, unresolved: bool = False) -> str:
    """high, medium, low or info, by the share of the window; unknown time is info."""
    limits = thresholds or FindingThresholds()
    if unresolved:
        return "info"
    words = ((limits.high, "high"), (limits.medium, "medium"), (limits.low, "low"))
    return next((word for least, word in words if share >= least), "info")


def cause_infos() -> list[CauseInfo]:
    """The registry of causes as data, and what else findings are about."""
    causes = [
        CauseInfo(
            id=each.id,
            title=each.title,
            meaning=each.meaning,
            color=color_of(each.id),
            unresolved=each.unresolved,
            bottleneck=each.bottleneck,
        )
        for each in CAUSES.values()
    ]
    return causes + [
        CauseInfo(
            id=rule.id,
            title=rule.title,
            meaning=rule.meaning,
            color=BOTTLENECKS[rule.bottleneck].color,
            bottleneck=rule.bottleneck,
        )
        for rule in FINDING_RULES.values()
    ]


def thresholds_of(rule: str) -> tuple[Threshold, ...]:
    """The thresholds of a cause or a rule of findings: its own, then those that make it a finding."""
    if rule in FINDING_RULES:
        return tuple(setting(name) for name in FINDING_RULES[rule].thresholds)
    common = () if CAUSES[rule].unresolved else ("smallest", "places")
    return (*CAUSES[rule].thresholds, *(setting(name) for name in common or ("smallest",)))


def sources_of(rule: str) -> tuple[SourceDocument, ...]:
    """The documents that a cause or a rule of findings rests on, then those of its advice for frameworks."""
    known = FINDING_RULES[rule] if rule in FINDING_RULES else CAUSES[rule]
    words = [words.source for advice in advice_of(rule) for _, words in advice.others()]
    return tuple(SOURCES[name] for name in dict.fromkeys((*known.sources, *words)))


def advice_of(rule: str) -> tuple[Advice, ...]:
    """The advice of a rule of findings, then its special one; of a cause its own, then that of its variants."""
    if rule in FINDING_RULES:
        return (FINDING_RULES[rule].advice, *FINDING_RULES[rule].special)
    cause = CAUSES[rule]
    return (cause.advice, *(kind.advice for kind in cause.variants if kind.advice))
