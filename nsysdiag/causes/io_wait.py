"""Input and output: the thread waits for a file, a pipe or a socket."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of

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
    color="#e11d48",
    picture="""
device  [==A==)........[==next==)
thread         [read][launch]
""",
    host=evidence,
)
