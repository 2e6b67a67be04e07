"""Data loading: what a wait for an input worker becomes once the wake-ups are followed. Only the root ledger has it."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause

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
    color="#0d9488",
    picture="""
device  [==A==)..........................[==next==)
thread         [queue.get: sem_wait     ][launch]
worker    [read a file             ][put]
""",
)
