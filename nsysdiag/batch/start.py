"""Starts the worker processes of a batch, in a way in which they import nothing from the current folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from nsysdiag.signals import undisturbed

_CODE = "import sys; sys.path[:] = {path!r}; from nsysdiag.batch.worker import main; main({pipe}, {scratch!r})"


@undisturbed
def start_worker(scratch: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """A new worker, and our end of its pipe. Raises OSError where the system starts no more processes."""
    ours, theirs = Pipe()
    code = _CODE.format(path=_path(), pipe=theirs.fileno(), scratch=scratch)
    with theirs, _signals_kept_away():
        command = [sys.executable, "-P", "-X", "utf8", *_flags(), "-c", code]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **_inheriting(theirs))
    return process, ours


def _flags() -> list[str]:
    """What keeps this process from settings and modules of the user keeps its workers from them too."""
    known = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s"}
    return [option for name, option in known.items() if getattr(sys.flags, name)]


def _path() -> list[str]:
    """Where this process finds modules, without the current folder, and the folder of this package: a Python that was
    started with `-c` or `-m` may have found it in the current folder."""
    home = str(Path(__file__).parents[2])
    return [*(each for each in sys.path if each), *([] if home in sys.path else [home])]


def _inheriting(pipe: Connection) -> dict[str, Any]:
    """The options of Popen with which a process inherits this end of a pipe, and no other."""
    if sys.platform != "win32":
        return {"pass_fds": (pipe.fileno(),)}
    import os

    os.set_handle_inheritable(pipe.fileno(), True)
    return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [pipe.fileno()]})}


@contextmanager
def _signals_kept_away() -> Iterator[None]:
    """A process that is started within never gets the interrupt of a terminal, nor its end: the parent ends its work.
    SIGTERM waits until the process can tidy up."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
