"""Input and output: the thread waits for a file, a pipe or a socket."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause, Loss, Rows
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of
from nsysdiag.causes.variant import Variant, matching

CALLS = re.compile(
    r"_*(p?(read|write)(64|v(64)?(v?2)?)?|recv(from|msg|mmsg)?|send(to|msg|mmsg|file|file64)?|(vm)?splice|tee|process_vm_(readv|writev)|copy_file_range"
    r"|open(at)?2?(64)?|creat(64)?|close(dir)?|opendir|readdir(64)?(_r)?|scandir(64)?|f?sync|fdatasync|syncfs|msync|sync_file_range"
    r"|f(re|d|mem)?open(64)?|fclose|fcloseall|fread|fwrite|fflush|fseeko?(64)?|ftello?(64)?|f[gs]etpos(64)?|fgets|fgetc|fputs|fputc|getc(har)?|putc(har)?|puts|gets"
    r"|getline|getdelim|ungetc|f?(get|put)w(s|c|char)|ungetwc|perror|v?[fd]?w?(printf|scanf)|lseek(64)?|l?f?stat(x|at)?(64)?|access|faccessat|readlink"
    r"|poll|ppoll|p?select6?|epoll_p?wait2?|epoll_ctl|accept4?|connect|socket(pair)?|bind|listen|shutdown|ioctl|fcntl(64)?|pipe2?|dup[23]?"
    r"|mq_(timed)?(send|receive)|msg(snd|rcv)|io_(submit|getevents|setup)|aio_\w+|getaddrinfo|gethostby\w+|rename(at2?)?|unlink(at)?"
    r"|f?truncate(64)?|mkdir|mkfifo(at)?|mknod(at)?|rmdir|getrandom)(_unlocked)?(_chk)?"
)


def evidence(evidence: HostEvidence) -> list[Layer]:
    """OS calls that read, write, open or wait for a descriptor."""
    return [layer_of(evidence.os_calls(CALLS))]


CAUSE = Cause(
    id="io_wait",
    title="Input and output",
    meaning="The launching thread was in a read, write, open, poll or other call on a file, pipe, socket or device.",
    side="host",
    tables=("OSRT_API",),
    advice=(
        "Take reading out of the launching thread: data loader workers, prefetching, a read-ahead thread.",
        "Slow storage or many small files: cache locally, pack into shards, read larger blocks.",
        "Logging and checkpoints: write from another thread.",
    ),
    color="#f13971",
    picture="""
device  [==A==)........[==next==)
thread         [read][launch]
""",
    family="input",
    sources=("nsight_osrt", "tuning_guide"),
    rows=(Rows.OS_CALL,),
    variants=(
        Variant(
            "reads",
            "reads",
            "read ahead in another thread or process",
            (
                "Take reading out of the launching thread: a read-ahead thread, or workers (PyTorch DataLoader: num_workers, "
                "prefetch_factor, persistent_workers=True); pack many small files into shards, cache them on a local disk. A "
                "read from a pipe waits for whoever writes to it.",
            ),
            call=matching(
                r"^_*(p?readv?(64)?2?|open(at)?(64)?|f(re|d)?open(64)?|fread|f?get(s|c|char|line|delim|ws|wc)|ungetc|l?f?stat\w*|lseek(64)?)\b"
            ),
        ),
        Variant(
            "writes",
            "writes",
            "write from another thread",
            ("Write logs and checkpoints from another thread or asynchronously; print less.",),
            call=matching(r"^_*(p?writev?(64)?2?|fwrite|fflush|f?sync|fdatasync|f?put(s|c|char|ws|wc)|v?f?d?printf)\b"),
        ),
        Variant(
            "peers",
            "waits for a pipe, socket or device",
            "find who is late at the other end",
            (
                "The thread waits for the other end of a pipe or socket: a data loader worker (num_workers, "
                "prefetch_factor), a server, another rank.",
            ),
            call=matching(r"^_*(ppoll|poll|p?select6?|epoll_p?wait2?|recv\w*|accept4?|connect|send\w*)\b"),
        ),
        Variant("other", "", "take the call out of the launching thread"),
    ),
    host=evidence,
    loss=Loss.INPUT,
    follows_wakeups=True,
)
