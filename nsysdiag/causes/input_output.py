"""Causes about input and output: calls that read and write, and waits for a worker that loads data."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes import memory_calls, off_cpu
from nsysdiag.causes.cause import Cause, EvidenceRows, Lookalike, Variant, advice, words
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, named
from nsysdiag.causes.ids import HOST_CODE

IO_WAIT_CALLS = re.compile(
    r"_*(p?(read|write)(64|v(64)?(v?2)?)?|recv(from|msg|mmsg)?|send(to|msg|mmsg|file|file64)?|(vm)?splice|tee|process_vm_(readv|writev)|copy_file_range"
    r"|open(at)?2?(64)?|creat(64)?|close(dir)?|opendir|readdir(64)?(_r)?|scandir(64)?|f?sync|fdatasync|syncfs|msync|sync_file_range"
    r"|f(re|d|mem)?open(64)?|fclose|fcloseall|fread|fwrite|fflush|fseeko?(64)?|ftello?(64)?|f[gs]etpos(64)?|fgets|fgetc|fputs|fputc|getc(har)?|putc(har)?|puts|gets"
    r"|getline|getdelim|ungetc|f?(get|put)w(s|c|char)|ungetwc|perror|v?[fd]?w?(printf|scanf)|lseek(64)?|l?f?stat(x|at)?(64)?|access|faccessat|readlink"
    r"|poll|ppoll|p?select6?|epoll_p?wait2?|epoll_ctl|accept4?|connect|socket(pair)?|bind|listen|shutdown|ioctl|fcntl(64)?|pipe2?|dup[23]?"
    r"|mq_(timed)?(send|receive)|msg(snd|rcv)|io_(submit|getevents|setup)|aio_\w+|getaddrinfo|gethostby\w+|rename(at2?)?|unlink(at)?"
    r"|f?truncate(64)?|mkdir|mkfifo(at)?|mknod(at)?|rmdir|getrandom)(_unlocked)?(_chk)?"
)
TEXT = EvidenceLabel("reads text of a file, a pipe or a prompt")
READS, WRITES, PEERS = EvidenceLabel("reads"), EvidenceLabel("writes"), EvidenceLabel("waits for the other end")
DRIVER, OTHER = EvidenceLabel("in a driver"), EvidenceLabel("other calls")
_KINDS = (
    (TEXT, r"getw?(c|char)|gets|v?w?scanf"),
    (
        READS,
        r"p?readv?(64)?2?|preadv(64)?v?2|fread|process_vm_readv|open(at)?2?(64)?|f(re|d|mem)?open(64)?|opendir|readdir(64)?(_r)?|scandir(64)?"
        r"|fgetw?[sc]|getline|getdelim|unget(c|wc)|v?[fd]w?scanf|l?f?stat(x|at)?(64)?|access|faccessat|readlink|lseek(64)?"
        r"|fseeko?(64)?|ftello?(64)?|f[gs]etpos(64)?|io_(submit|getevents)|aio_(read|suspend|return|error)|getaddrinfo|gethostby\w+",
    ),
    (
        WRITES,
        r"p?writev?(64)?2?|pwritev(64)?v?2|fwrite|fflush|process_vm_writev|send(to|msg|mmsg|file|file64)?|f?sync|fdatasync|syncfs|msync|sync_file_range"
        r"|f?putw?(s|c|char)|perror|v?[fd]?w?printf|creat(64)?|fclose|fcloseall|mq_(timed)?send|msgsnd|aio_(write|fsync)|f?truncate(64)?"
        r"|rename(at2?)?|unlink(at)?|mkdir|rmdir",
    ),
    (PEERS, r"poll|ppoll|p?select6?|epoll_p?wait2?|recv(from|msg|mmsg)?|accept4?|connect|mq_(timed)?receive|msgrcv"),
    (DRIVER, r"ioctl"),
)
_PATTERNS = tuple((label, re.compile(rf"_*({calls})(_unlocked)?(_chk)?")) for label, calls in _KINDS)


def is_write(call: str) -> bool:
    """Whether a call writes to a file or a pipe, as for a checkpoint or a log."""
    return next(pattern for label, pattern in _PATTERNS if label is WRITES).fullmatch(call) is not None


def io_wait_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that read, write, open or wait for a descriptor, a layer for each kind."""
    calls = evidence.os_calls(IO_WAIT_CALLS)
    kinds = [(label, named(calls, pattern)) for label, pattern in _PATTERNS]
    other = ~np.any([hits for _, hits in kinds], axis=0)
    return [*(layer_of(calls.take(hits), label) for label, hits in kinds), layer_of(calls.take(other), OTHER)]


IO_WAIT = Cause(
    id="io_wait",
    title="File and network I/O",
    meaning="The launching thread was in a read, write, open, poll or other call on a file, pipe, socket or device.",
    side="host",
    tables=("OSRT_API",),
    advice=advice(
        "Take reading out of the launching thread: a read-ahead thread, asynchronous reads (io_uring, aio, GPUDirect Storage).",
        "Slow storage or many small files: cache locally, pack into few files, read larger blocks.",
        "Logging and checkpoints: write from another thread.",
        pytorch=words(
            "Take reading out of the launching thread: data loader workers, prefetching, a read-ahead thread.",
            "Slow storage or many small files: cache locally, pack into shards, read larger blocks.",
            "Logging and checkpoints: write from another thread.",
            source="data_loader",
        ),
        mpi=words(
            "Take reading out of the launching thread, or read in parallel (MPI-IO, HDF5), each rank its own part.",
            "Print from one rank only, and not in each step; write checkpoints from another thread or every n steps.",
            source="mpi_cuda",
        ),
    ),
    picture="""
device  [==A==)........[==next==)
thread         [read][launch]
""",
    bottleneck="input",
    shade=0,
    sources=("nsight_osrt",),
    rows=(EvidenceRows.OS_CALL,),
    confirm=(
        "In the row of OS calls of the launching thread, read, pread64, write, open, poll or ioctl covers the gap. The call chain shows which code made the call.",
        "Read the file a second time, from the page cache: if the gap disappears, the storage is the cause.",
    ),
    confused_with=(
        Lookalike("data_loading", "A read by a worker process, which the launching thread waits for."),
        Lookalike("lock_wait", "A read of a pipe is often a wait for another process."),
        Lookalike("os_memory", "Page faults of a mapped file leave no OS call: they look like host code."),
    ),
    variants=(
        Variant(
            "reads",
            "reads",
            "read ahead in another thread or process",
            advice(
                "Take reading out of the launching thread: a read-ahead thread or asynchronous reads; pack many small files into few, cache them on a local disk. A read from a pipe or a terminal waits for its writer.",
                pytorch=words(
                    "Take reading out of the launching thread: a read-ahead thread, or workers (DataLoader: "
                    "num_workers, prefetch_factor, persistent_workers=True). Pack many small files into shards, "
                    "and cache them on a local disk. A read from a pipe waits for its writer.",
                    source="data_loader",
                ),
                tensorflow=words(
                    "Take reading out of the launching thread: tf.data with interleave and prefetch; TFRecord shards on a local disk.",
                    source="tf_data",
                ),
            ),
            labels=(READS, TEXT),
        ),
        Variant(
            "writes",
            "writes",
            "write from another thread",
            advice(
                "Write less, in larger pieces, and call fsync less often: no writes at all would save this time. "
                "Or let another thread write logs and checkpoints: less is saved if that takes longer than the "
                "rest of the steps."
            ),
            labels=(WRITES,),
            bottleneck="host",
        ),
        Variant(
            "peers",
            "waits for a pipe or socket",
            "find out why the other end is late",
            advice(
                "The thread waits for the other end of a pipe or socket: a worker process, a server, another rank.",
                pytorch=words(
                    "The thread waits for the other end of a pipe or socket: a data loader worker (num_workers, prefetch_factor), a server, another rank.",
                    source="data_loader",
                ),
            ),
            labels=(PEERS,),
        ),
        Variant(
            "driver",
            "in a driver",
            "find the library that calls the driver, and keep it out of the step",
            advice(
                "ioctl calls a driver: to register memory, or to create a queue or an event. Find the library that calls it (call chains of OS calls: --osrt-backtrace-threshold), and call it once, before the loop."
            ),
            labels=(DRIVER,),
            bottleneck="host",
        ),
        Variant(
            "descriptors",
            "opens and closes",
            "take the call out of the launching thread",
            labels=(OTHER,),
            bottleneck="host",
        ),
        Variant("other", "", "take the call out of the launching thread"),
    ),
    host=io_wait_evidence,
    follows_wakeups=True,
)


WORKER_READS, WORKER_COMPUTES = "reads", "computes"

DATA_LOADING = Cause(
    id="data_loading",
    title="Waiting for input data",
    meaning="The launching thread waited for a worker that loads input data. The ledger names the call that waited. The wake-up chain leads to this worker, and the report also gives the worker's own cause.",
    side="root",
    tables=("OSRT_API", "SCHED_EVENTS", "NVTX_EVENTS"),
    advice=advice(
        "Load ahead: more threads or processes that read and decode, and a queue deep enough for the slowest of them.",
        "Load into pinned memory and copy with cudaMemcpyAsync while kernels run.",
        "The worker reads: larger files, local disks or a cache. The worker computes: cheaper or GPU-side decoding.",
        pytorch=words(
            "More workers and deeper prefetching: num_workers, prefetch_factor and persistent_workers=True.",
            "Pinned memory, and copies that do not block: pin_memory=True, non_blocking=True.",
            "The worker reads: larger files, local disks or a cache. The worker computes: cheaper or GPU-side decoding.",
            source="data_loader",
            fix="more workers and prefetching: num_workers, prefetch_factor, persistent_workers",
        ),
        jax=words(
            "More reading ahead: worker_count of a grain loader, or prefetch of a tf.data pipeline; jax.device_put the next batch while this step runs.",
            source="jax_async",
            fix="more reading ahead, and device_put the next batch",
        ),
        tensorflow=words(
            "tf.data: num_parallel_calls=tf.data.AUTOTUNE in map and interleave, cache() if it fits, prefetch(tf.data.AUTOTUNE) last.",
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
            WORKER_READS,
            "the worker reads",
            "larger files and a local cache; more workers only if the storage can serve more",
            advice(
                "The worker reads: pack many small files into few large ones, cache them on a local disk, and read larger blocks. More workers that read in parallel help only if the storage can serve more.",
                pytorch=words(
                    "The worker reads: pack samples into shards, cache them on a local disk. More workers (num_workers, prefetch_factor) help only if the storage can serve more.",
                    source="data_loader",
                ),
                tensorflow=words(
                    "The worker reads: TFRecord shards, interleave(num_parallel_calls=tf.data.AUTOTUNE), cache() on a local disk.",
                    source="tf_data",
                ),
            ),
            workers=(IO_WAIT.id, memory_calls.OS_MEMORY.id),
        ),
        Variant(
            WORKER_COMPUTES,
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            advice(
                "The worker decodes or computes: more workers with one thread each, cheaper decoding, or decoding on the GPU (nvJPEG, DALI).",
                pytorch=words(
                    "The worker decodes or augments: more workers (num_workers, persistent_workers=True), cheaper transforms, one thread each (torch.set_num_threads(1)), or decoding on the GPU.",
                    source="data_loader",
                ),
                tensorflow=words(
                    "The worker decodes or augments: map(num_parallel_calls=tf.data.AUTOTUNE), batch before map if it vectorizes, cache() what does not change.",
                    source="tf_data",
                ),
            ),
            workers=(HOST_CODE,),
        ),
        Variant(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: start fewer, or raise the CPU limit",
            advice(
                "The workers compete for CPUs: start no more workers than CPUs, with one thread each. Give the launching thread its own CPU (taskset, numactl)."
            ),
            workers=(off_cpu.CAUSE.id,),
        ),
        Variant("other", "", "load ahead: more workers, a deeper queue"),
    ),
    opening="{thread} waits for input data in {call}",
)
