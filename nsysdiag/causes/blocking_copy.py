"""Blocking copies: the thread stays until the copy is done."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.cause import KEEP_ON_DEVICE, Cause, EvidenceRows, Lookalike, OwnCall, Variant, advice, words
from nsysdiag.causes.evidence import DRAINED, READ_BACK, EvidenceLayer, HostEvidence, layer_of, named, named_rows
from nsysdiag.events.rows import NamedRows

COPIES = re.compile(r"(cuda|cu)Memcpy.*")
READS_BACK = EvidenceLabel("read-back of at most 64 bytes")
PAGEABLE, SYNCHRONOUS = EvidenceLabel("pageable memory"), EvidenceLabel("synchronous call")
LABELS = (READS_BACK, PAGEABLE, SYNCHRONOUS)
_ASYNC = re.compile(r".*Async.*")


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost copy calls that block: without Async in their name, or with a pageable side."""
    return _layers(evidence, evidence.calls(COPIES))


def nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Blocking copies inside another call."""
    return _layers(evidence, evidence.calls(COPIES, nested=True))


def is_blocking(evidence: HostEvidence, copies: NamedRows) -> BoolArray:
    """True for the copy calls that hold their thread."""
    return ~named(copies, _ASYNC) | evidence.facts.pageable[copies.row]


def _layers(evidence: HostEvidence, copies: NamedRows) -> list[EvidenceLayer]:
    copies = copies.take(is_blocking(evidence, copies))
    back, pageable = evidence.facts.read_back[copies.row], evidence.facts.pageable[copies.row]
    return [
        layer_of(copies.take(back), LABELS[0]),
        layer_of(copies.take(pageable & ~back), LABELS[1]),
        layer_of(copies.take(~pageable & ~back), LABELS[2]),
    ]


def own_call(evidence: HostEvidence) -> OwnCall:
    """Copy calls that block, labelled as their layers are."""
    facts = evidence.facts
    copies = named_rows(evidence.host.api, COPIES)
    blocks = np.zeros(len(facts.pageable), dtype=np.bool_)
    blocks[copies.row[is_blocking(evidence, copies)]] = True
    label = np.full(len(blocks), 2, dtype=np.int8)
    label[facts.pageable] = 1
    label[facts.read_back] = 0
    return OwnCall(blocks, label=label, labels=LABELS)


CAUSE = Cause(
    id="blocking_copy",
    title="Blocking copy",
    meaning="The launching thread was inside a copy call that returns only when the copy is done or staged: a synchronous call, or pageable memory.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    advice=advice(
        "Copy from pinned memory with cudaMemcpyAsync on a stream of its own.",
        "Read-backs of a few bytes stop the queue: keep values on the device, read them every n steps.",
        pytorch=words(
            "Copy from pinned memory, asynchronously: pin_memory=True in the loader, .to(device, non_blocking=True).",
            "Read-backs of a few bytes (.item(), loss printing) stop the queue: keep values on the device, read them every n steps.",
            source="pinned_memory",
        ),
        jax=words(
            "jax.device_put the next batch while this step runs: it returns at once. Pass no NumPy arrays to a jitted function: each call copies them.",
            "Read-backs (float(), print) stop the queue: keep values as jax.Array, read them every n steps.",
            source="jax_async",
        ),
        tensorflow=words(
            "Let tf.data copy ahead: prefetch_to_device or tf.distribute's input pipeline; no numpy arrays in the step.",
            "Read-backs (.numpy(), print) stop the queue: read them every n steps.",
            source="tf_data",
        ),
        cupy=words(
            "Copy from pinned memory (cupyx.empty_pinned) with array.set(..., stream) on a non-blocking stream.",
            "Read-backs (.get(), float()) stop the queue: keep values on the device, read them every n steps.",
            source="cupy_memory",
        ),
        openacc=words(
            "Keep arrays on the device across loops (data regions, enter data), and copy with update ... async. Pinned host memory makes copies asynchronous (nvc: -gpu=pinned or mem:separate:pinnedalloc).",
            source="openacc",
            fix="keep arrays in a data region; update ... async",
        ),
        openmp_target=words(
            "Keep arrays on the device across loops (target data, target enter data), and copy with target update ... nowait. Pinned host memory makes copies asynchronous.",
            source="openmp",
            fix="keep arrays in target data; target update ... nowait",
        ),
        julia=words(
            "Keep arrays as CuArray across steps. For what must be copied, CUDA.pin the host array, and copyto! from another task.",
            source="julia",
            fix="keep arrays as CuArray; pin the host array",
        ),
        mpi=words(
            "Pass device pointers to a CUDA-aware MPI instead of copying to the host for each message.",
            "For what must be copied, use pinned buffers and cudaMemcpyAsync on a separate stream.",
            source="mpi_cuda",
        ),
    ),
    picture="""
device  [==A==)[=copy=)...........[==next==)
thread    [cudaMemcpy     ]   [launch]
""",
    bottleneck="copies",
    shade=0,
    sources=("api_sync", "best_practices"),
    thresholds=(READ_BACK, DRAINED),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "In the CUDA API row of the launching thread, a cudaMemcpy, or a cudaMemcpyAsync of pageable memory, covers the idle time.",
        'Select the copy in the GPU row: the details say "Pageable" for the source or the destination. A pageable cudaMemcpyAsync returns only when the data is staged, although its name says asynchronous.',
        "Pin the buffer and capture again: the call then takes a few µs, and the GPU is no longer idle after it.",
    ),
    confused_with=(
        Lookalike(
            "sync",
            "A copy of a few bytes back to the host is a read-back: it waits for the kernels before it, not for the data. It is a variant of this cause and counts as synchronization.",
        ),
        Lookalike(
            "memory_allocation",
            "cudaHostAlloc and cudaHostRegister pin memory. Called in each step, they cost more than the copies.",
        ),
        Lookalike("io_wait", "Before a pageable copy, reading the data from a file has its own rows of OS calls."),
    ),
    variants=(
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            KEEP_ON_DEVICE,
            labels=(READS_BACK,),
            bottleneck="sync",
        ),
        Variant(
            "pageable",
            "from or to pageable memory",
            "pin the host memory: cudaHostAlloc, cudaHostRegister",
            advice(
                "Pin the host buffer once (cudaHostAlloc, or cudaHostRegister for existing memory), reuse it, and copy with cudaMemcpyAsync. The driver stages a pageable copy, and the call blocks meanwhile.",
                pytorch=words(
                    "Pin the host memory: DataLoader(pin_memory=True), or tensor.pin_memory() once for a buffer that is reused. Then copy with .to(device, non_blocking=True).",
                    source="pinned_memory",
                    fix="pin the host memory: pin_memory=True, non_blocking=True",
                ),
                jax=words(
                    "jax.device_put the next batch while this step runs, so that staging from pageable memory overlaps. Keep constant data on the device.",
                    source="jax_async",
                    fix="device_put the next batch while this step runs",
                ),
                tensorflow=words(
                    "Let tf.data copy ahead from its own buffers: dataset.prefetch, prefetch_to_device.",
                    source="tf_data",
                    fix="let tf.data copy ahead: prefetch_to_device",
                ),
                cupy=words(
                    "Pin the host memory once (cupyx.empty_pinned or zeros_pinned), then copy with array.set or get on a stream.",
                    source="cupy_memory",
                    fix="pin the host memory: cupyx.empty_pinned",
                ),
                openacc=words(
                    "Pin the host memory (nvc: -gpu=pinned or mem:separate:pinnedalloc; cudaHostRegister). Keep arrays on the device across loops (data regions) instead of copying them for each.",
                    source="openacc",
                    fix="pin the host memory, and copy less: data regions",
                ),
                openmp_target=words(
                    "Pin the host memory (cudaHostRegister; nvc: -gpu=pinned). Keep arrays on the device across loops (target data) instead of mapping them for each construct.",
                    source="openmp",
                    fix="pin the host memory, and copy less: target data",
                ),
                julia=words(
                    "Pin the host array once with CUDA.pin, and reuse it with copyto!.",
                    source="julia",
                    fix="pin the host array: CUDA.pin",
                ),
                mpi=words(
                    "Pin the message buffers (cudaHostAlloc once), or pass device pointers to a CUDA-aware MPI: then your program copies nothing.",
                    source="mpi_cuda",
                ),
            ),
            labels=(PAGEABLE,),
        ),
        Variant(
            "synchronous", "a synchronous call", "use cudaMemcpyAsync on a stream of its own", labels=(SYNCHRONOUS,)
        ),
        Variant("other", "", "copy asynchronously from pinned memory"),
    ),
    host=evidence,
    call=nested_evidence,
    own_call=own_call,
    call_order=60,
)
