"""Runs a program under nsys: it keeps its streams and environment, and signals to this process reach it.

```
nsysdiag record ---- nsys, in a session of its own ---- sh: takes the streams of the program, becomes it
   stdin, stdout, stderr ----------------------------------^
```

nsys writes its own messages to stdout, and passes the program's output on through pipes. So nsys gets a file for its
output, and the program gets copies of the streams of this process: a terminal stays a terminal. A terminal sends
signals to all processes of a session, and nsys aborts at the second one. In a separate session it gets each once.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.errors import UsageError, printable
from nsysdiag.signals import HandedOn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsysdiag.capture.nsys import Nsys


SHELL = "/bin/sh"
LAST_DIGIT = 9
"""Shells know files by one digit."""
LINES = 5
"""How many of nsys's lines are shown where it fails."""
ENDS_AT_ONCE = 3
"""So many signals end nsys without a report, as they do this program elsewhere."""


def require_system() -> None:
    """Raise UsageError where nsys cannot record programs in this way."""
    if sys.platform != "linux":
        raise UsageError("programs can be recorded on Linux only", hint="analyse a report that was recorded there")


class RecordingResult(Struct, frozen=True):
    """The result: the exit code of nsys, or that of the program if it was `started`, negative if a signal ended nsys
    itself; the first signal received; and the last lines that nsys wrote."""

    code: int
    started: bool
    signal: int | None
    said: tuple[str, ...]


def run(
    nsys: Nsys, options: Sequence[str], words: Sequence[str], report: Path, folder: Path, more: Mapping[str, str]
) -> RecordingResult:
    """Run the program of these words. nsys writes `report`; its own files go into `folder`, and `more` into the
    environment of the program. Raises UsageError where nsys cannot be started."""
    log, marker = folder / "nsys.log", folder / "started"
    streams = _numbers()
    script = _script(streams, os.environ.get("TMPDIR"))
    output = f"--output={str(report).replace('%', '%%')}"
    command = [nsys.path, "profile", *options, output, SHELL, "-c", script, SHELL, str(marker), *words]
    signals = _Signals()
    with HandedOn(signals.answer):
        try:
            process = os.posix_spawn(
                nsys.path,
                command,
                {**os.environ, **more, "TMPDIR": str(folder)},
                file_actions=[
                    *((os.POSIX_SPAWN_DUP2, stream, number) for stream, number in streams.items()),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
            )
        except OSError as error:
            raise UsageError(f"'{printable(nsys.path)}' cannot be run: {error.strerror}") from error
        signals.belong_to(process)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        signals.belong_to(None)
    return RecordingResult(code, marker.exists(), signals.first, _last_lines(log))


class _Signals:
    """Those that came, and the process of nsys that gets them."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._count = 0
        self._process: int | None = None

    def answer(self, number: int) -> None:
        """nsys hands SIGINT and SIGTERM on to the program and writes its report; SIGHUP would end it without."""
        self.first = self.first or number
        self._count += 1
        if self._process is not None:
            self._send(self._process, number)

    def belong_to(self, process: int | None) -> None:
        """Hand on what has come, and what is to come."""
        early = self.first
        self._process = process
        if early is not None and process is not None:
            self._send(process, early)

    def _send(self, process: int, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._count >= ENDS_AT_ONCE:
                os.killpg(process, signal.SIGKILL)
            else:
                os.kill(process, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)


def _numbers() -> dict[int, int]:
    """A file descriptor for each open standard stream, unused by files that the program inherits, and small enough for
    a shell. Raises UsageError if there are not enough."""
    open_ones = [stream for stream in range(3) if _is_inherited(stream)]
    free = [number for number in range(3, LAST_DIGIT + 1) if not _is_inherited(number)]
    if len(free) < len(open_ones):
        raise UsageError("too many open files were inherited", hint="start nsysdiag with fewer of them")
    return dict(zip(open_ones, free, strict=False))


def _is_inherited(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


def _script(streams: Mapping[int, int], temporary: str | None) -> str:
    """What the shell does before it becomes the program: say that it was started, and take its streams and the
    environment that was given."""
    restored = "unset TMPDIR" if temporary is None else f"TMPDIR={shlex.quote(temporary)}"
    taken = [f"{stream}<&{streams[stream]}" if stream in streams else f"{stream}<&-" for stream in range(3)]
    closed = [f"{copy}<&-" for copy in streams.values()]
    return f': > "$1"; shift; {restored}; exec "$@" {" ".join((*taken, *closed))}'


def _last_lines(log: Path) -> tuple[str, ...]:
    """The last lines of what nsys wrote, without its bars of progress."""
    text = log.read_bytes().decode("utf-8", "replace")
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    return tuple(printable(line) for line in lines if line and "%" not in line)[-LINES:]
