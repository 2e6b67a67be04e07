"""Data loading: what a wait for an input worker becomes once the wake-ups are followed. Only the root ledger has it."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause
from nsysdiag.causes.variant import Variant, matching

CAUSE = Cause(
    id="data_loading",
    title="Waiting for input data",
    meaning="The launching thread waited for a worker that loads input data. The ledger says in what call it waited; "
    "following who ended the wait leads here, and the worker's own cause is kept beside it.",
    side="root",
    tables=("OSRT_API", "SCHED_EVENTS", "NVTX_EVENTS"),
    advice=(
        "More workers and deeper prefetching: PyTorch num_workers, prefetch_factor and persistent_workers=True.",
        "Pinned memory, and copies that do not block: pin_memory=True, non_blocking=True.",
        "The worker reads: larger files, local disks or a cache. The worker computes: cheaper or GPU-side decoding.",
    ),
    color="#64ca9e",
    picture="""
device  [==A==)..........................[==next==)
thread         [queue.get: sem_wait     ][launch]
worker    [read a file             ][put]
""",
    family="input",
    sources=("data_loader", "tuning_guide"),
    variants=(
        Variant(
            "reads",
            "the worker reads",
            "larger files and a cache near the worker; more workers and prefetching",
            (
                "The worker reads: pack samples into shards, cache them on a local disk; more workers read side by side "
                "(num_workers, prefetch_factor, persistent_workers=True).",
            ),
            label=matching(r"io_wait|Input and output|os_memory"),
        ),
        Variant(
            "computes",
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            (
                "The worker decodes or augments: more workers (num_workers, persistent_workers=True), cheaper transforms, one "
                "thread each (torch.set_num_threads(1)), or decoding on the GPU.",
            ),
            label=matching(r"host_compute|Host code"),
        ),
        Variant(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: fewer of them, or a larger limit",
            (
                "The workers compete for CPUs: as many as there are CPUs, one thread each, and the launching thread on a CPU of "
                "its own (taskset, numactl).",
            ),
            label=matching(r"off_cpu|Preempted"),
        ),
        Variant("other", "", "more workers and prefetching: num_workers, prefetch_factor, persistent_workers"),
    ),
    opening="{thread} waits for input data in {call}",
)
