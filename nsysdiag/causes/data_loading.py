"""Data loading: what a wait for an input worker becomes once the wake-ups are followed. Only the root ledger has it."""

from __future__ import annotations

from nsysdiag.causes import io_wait, off_cpu, os_memory
from nsysdiag.causes.cause import Advice, Cause, FrameworkAdvice, Lookalike, Variant
from nsysdiag.causes.ids import HOST_CODE

READS, COMPUTES = "reads", "computes"

CAUSE = Cause(
    id="data_loading",
    title="Waiting for input data",
    meaning="The launching thread waited for a worker that loads input data. The ledger names the call that waited. "
    "The wake-up chain leads to this worker, and the report also gives the worker's own cause.",
    side="root",
    tables=("OSRT_API", "SCHED_EVENTS", "NVTX_EVENTS"),
    advice=Advice(
        plain=(
            "Load ahead: more threads or processes that read and decode, and a queue deep enough for the slowest of them.",
            "Load into pinned memory and copy with cudaMemcpyAsync while kernels run.",
            "The worker reads: larger files, local disks or a cache. The worker computes: cheaper or GPU-side decoding.",
        ),
        pytorch=FrameworkAdvice(
            (
                "More workers and deeper prefetching: num_workers, prefetch_factor and persistent_workers=True.",
                "Pinned memory, and copies that do not block: pin_memory=True, non_blocking=True.",
                "The worker reads: larger files, local disks or a cache. The worker computes: cheaper or GPU-side decoding.",
            ),
            source="data_loader",
            fix="more workers and prefetching: num_workers, prefetch_factor, persistent_workers",
        ),
        jax=FrameworkAdvice(
            (
                "More reading ahead: worker_count of a grain loader, or prefetch of a tf.data pipeline; jax.device_put the "
                "next batch while this step runs.",
            ),
            source="jax_async",
            fix="more reading ahead, and device_put the next batch",
        ),
        tensorflow=FrameworkAdvice(
            (
                "tf.data: num_parallel_calls=tf.data.AUTOTUNE in map and interleave, cache() where it fits, "
                "prefetch(tf.data.AUTOTUNE) last.",
            ),
            source="tf_data",
            fix="tf.data: parallel map and interleave, prefetch",
        ),
    ),
    picture="""
device  [==A==)..........................[==next==)
thread         [queue.get: sem_wait     ][launch]
worker    [read a file             ][put]
""",
    bottleneck="input",
    shade=1,
    sources=("nsight_osrt", "best_practices"),
    confirm=(
        "The launching thread is in sem_wait, poll, read or a queue at the beginning of each step. A worker process, of a DataLoader for example, reads or decodes until just before the wait ends.",
        "Run some steps with one batch kept in memory: if the gap disappears, the input is the cause.",
        "The report also gives the worker's own cause: it reads, it computes, or it has no CPU.",
    ),
    confused_with=(
        Lookalike("lock_wait", "A wait for a thread that is not a loading worker."),
        Lookalike("io_wait", "The launching thread reads the data itself: there is no worker."),
        Lookalike("blocking_copy", "Copying the batch to the GPU comes after it has been loaded."),
    ),
    variants=(
        Variant(
            READS,
            "the worker reads",
            "larger files and a local cache; more workers only if the storage can serve more",
            Advice(
                plain=(
                    "The worker reads: pack many small files into few large ones, cache them on a local disk, and read "
                    "larger blocks. More workers that read in parallel help only if the storage can serve more.",
                ),
                pytorch=FrameworkAdvice(
                    (
                        "The worker reads: pack samples into shards, cache them on a local disk. More workers "
                        "(num_workers, prefetch_factor) help only if the storage can serve more.",
                    ),
                    source="data_loader",
                ),
                tensorflow=FrameworkAdvice(
                    (
                        "The worker reads: TFRecord shards, interleave(num_parallel_calls=tf.data.AUTOTUNE), cache() on a "
                        "local disk.",
                    ),
                    source="tf_data",
                ),
            ),
            workers=(io_wait.CAUSE.id, os_memory.CAUSE.id),
        ),
        Variant(
            COMPUTES,
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            Advice(
                plain=(
                    "The worker decodes or computes: more workers with one thread each, cheaper decoding, or decoding on the "
                    "GPU (nvJPEG, DALI).",
                ),
                pytorch=FrameworkAdvice(
                    (
                        "The worker decodes or augments: more workers (num_workers, persistent_workers=True), cheaper "
                        "transforms, one thread each (torch.set_num_threads(1)), or decoding on the GPU.",
                    ),
                    source="data_loader",
                ),
                tensorflow=FrameworkAdvice(
                    (
                        "The worker decodes or augments: map(num_parallel_calls=tf.data.AUTOTUNE), batch before map where it "
                        "vectorizes, cache() what does not change.",
                    ),
                    source="tf_data",
                ),
            ),
            workers=(HOST_CODE,),
        ),
        Variant(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: start fewer, or raise the CPU limit",
            Advice(
                (
                    "The workers compete for CPUs: start no more workers than CPUs, with one thread each. Give the "
                    "launching thread its own CPU (taskset, numactl).",
                )
            ),
            workers=(off_cpu.CAUSE.id,),
        ),
        Variant("other", "", "load ahead: more workers, a deeper queue"),
    ),
    opening="{thread} waits for input data in {call}",
)
