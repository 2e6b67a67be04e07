"""Causes about input and output: calls that read and write, and waits for a worker that loads data."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes import memory_calls, thread_states
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant
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
    bottleneck="input",
    shade=0,
    rows=(EvidenceRows.OS_CALL,),
    variants=(
        Variant("reads", "reads", "read ahead in another thread or process", labels=(READS, TEXT)),
        Variant("writes", "writes", "write from another thread", labels=(WRITES,), bottleneck="host"),
        Variant("peers", "waits for a pipe or socket", "find out why the other end is late", labels=(PEERS,)),
        Variant(
            "driver",
            "in a driver",
            "find the library that calls the driver, and keep it out of the step",
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
    bottleneck="input",
    shade=1,
    variants=(
        Variant(
            WORKER_READS,
            "the worker reads",
            "larger files and a local cache; more workers only if the storage can serve more",
            workers=(IO_WAIT.id, memory_calls.OS_MEMORY.id),
        ),
        Variant(
            WORKER_COMPUTES,
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            workers=(HOST_CODE,),
        ),
        Variant(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: start fewer, or raise the CPU limit",
            workers=(thread_states.OFF_CPU.id,),
        ),
        Variant("other", "", "load ahead: more workers, a deeper queue"),
    ),
    opening="{thread} waits for input data in {call}",
)
