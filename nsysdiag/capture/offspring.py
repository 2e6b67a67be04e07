"""The processes that a recording begins, and their end with it.

nsys begins an agent, in a session of its own and with no parent, and a launcher, which begins the program. If nsys is
killed, they go on: the agent waits for orders and the program computes. Linux gives orphans to the nearest ancestor
that asks for them. While nsys runs, that is this process, so that it knows whom to end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SET_CHILD_SUBREAPER = 36
"""Of prctl, since Linux 3.4."""
PATIENCE_S = 5
"""For what was asked to end, before it is killed."""
LOOK_S = 0.02


class Offspring:
    """Within, this process gets the orphans of those that it starts."""

    def __enter__(self) -> Self:
        self._before = descendants(os.getpid())
        _adopt(True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self.end()
        self._running()
        _adopt(False)

    def wait_for(self, process: int) -> int:
        """The exit code of a child, negative if a signal ended it. Orphans that end meanwhile leave no zombies."""
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == process:
                return os.waitstatus_to_exitcode(status)

    def end(self, name: bytes = b"") -> bool:
        """End all that was started within, still runs and has a name that begins so: by SIGTERM, and what is left after
        some seconds by SIGKILL. Whether there was any."""
        found = bool(self._running(name))
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + PATIENCE_S
            asked: set[int] = set()
            while (running := self._running(name)) and time.monotonic() < until:
                for process in running - asked:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(process, number)
                asked |= running
                time.sleep(LOOK_S)
        return found

    def _running(self, name: bytes = b"") -> set[int]:
        """Those that have ended are reaped and not among them."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return {each for each in descendants(os.getpid()) - self._before if _name_of(each).startswith(name)}


def _adopt(wanted: bool) -> None:
    """Ask for orphans, or no longer."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without prctl
            ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def _name_of(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_bytes()
    return b""


def descendants(process: int) -> set[int]:
    """The children of a process, their children and so on, without those that have ended."""
    parents = _parents()
    found: set[int] = set()
    added = {process}
    while added:
        added = {child for child, parent in parents.items() if parent in added} - found
        found |= added
    return found


def _parents() -> dict[int, int]:
    """The parent of each running process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_bytes().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                parents[int(path.parent.name)] = int(parent)
    return parents
