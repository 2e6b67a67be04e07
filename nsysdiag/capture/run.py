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

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from nsysdiag.messages import UsageError, printable
from nsysdiag.signals import HandedOn
from nsysdiag.trace.export import nsys_on_path

# The processes that a recording begins, and their end with it.


SET_CHILD_SUBREAPER = 36
"""Of prctl, since Linux 3.4."""
KILL_AFTER_S = 5
"""For what was asked to end, before it is killed."""
ENDING_S = 2
"""For what ends by itself. The agent of nsys 2023.4.4 outlives it by less than 0.1 s if nothing was recorded."""
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

    def end(self, name: bytes = b"", *, after: float = 0) -> bool:
        """End all that was started within, still runs `after` these seconds and has a name that begins so: by SIGTERM,
        and what is left after some seconds by SIGKILL. Whether there was any."""
        until = time.monotonic() + after
        while (found := bool(self._running(name))) and time.monotonic() < until:
            time.sleep(LOOK_S)
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + KILL_AFTER_S
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


# The nsys program: where it is, which version, and what it says that it can do here.

PATIENCE_S = 60
"""For one answer. nsys 2023.4.4 takes 0.04 s."""
GET = "install Nsight Systems (developer.nvidia.com/nsight-systems), which includes it, or name it with --nsys PROGRAM"
_VERSION = re.compile(r"Nsight Systems version (\d+(?:\.\d+)+)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_TRACE = re.compile(r"^\s*-t, --trace=(.*?)^\s*Select the API", re.DOTALL | re.MULTILINE)
METRICS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""The option of today, and that of versions until 2024."""


class Nsys(Struct, frozen=True):
    """One installed nsys. `options` are those of `nsys profile`, `traceable` the values of its --trace, empty if
    unknown. `status` is its output on CPU profiling here, `metrics` that on GPU metrics. `exports_blobs`: its export
    contains Python stacks."""

    path: str
    version: str
    options: frozenset[str]
    traceable: frozenset[str]
    status: str
    metrics: str
    exports_blobs: bool

    @property
    def metrics_option(self) -> str | None:
        """The option that requests GPU metrics."""
        return next((option for option in METRICS if option in self.options), None)


def find_nsys(given: str | None) -> str:
    """The path of the program that was named, else of that on the PATH. Raises UsageError if there is none."""
    if given is None:
        found = nsys_on_path()
        if found is None:
            raise UsageError("there is no `nsys` on the PATH to record programs with", hint=GET)
        return found
    program = shutil.which(given)
    if program is None:
        raise UsageError(f"--nsys: there is no program '{printable(given)}'", hint=GET)
    return str(Path(program).absolute())


def probe(path: str, folder: Path) -> Nsys:
    """Run nsys to find its options and version; its files go into `folder`. Raises UsageError if it is not nsys."""

    def said(*arguments: str) -> str:
        return _said([path, *arguments], folder)

    version = _VERSION.search(said("--version"))
    if version is None:
        raise UsageError(f"'{printable(path)}' is not Nsight Systems: it does not say its version", hint=GET)
    text = said("profile", "--help")
    options = frozenset(_OPTION.findall(text))
    values = _TRACE.search(text)
    metrics = next((option for option in METRICS if option in options), None)
    return Nsys(
        path=path,
        version=version[1],
        options=options,
        traceable=frozenset(re.findall(r"'([\w-]+)'", values[1])) if values else frozenset(),
        status=said("status", "--environment"),
        metrics=said("profile", f"{metrics}=help") if metrics else "",
        exports_blobs="--include-blobs" in said("export", "--help"),
    )


def _said(command: list[str], folder: Path) -> str:
    """What a command prints; nothing if it cannot be run or does not end."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


# What the system permits to be recorded: scheduling, samples of CPUs, and the counters of GPUs.

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
MOST_PARANOID = 2
"""Up to here the kernel lets a user without privileges watch the processes of that user (nsys's user guide)."""
_SAMPLING = re.compile(r"(?:CPU Profiling|Sampling) Environment(?: \(process-tree\))?: *(\w+)")
_SYSCALL = re.compile(r"perf_event_open syscall available: *(\w+)")
_ALL_GPUS = re.compile(r"^\s*(?:\[?all\]?)\s*:|Select all supported GPUs", re.MULTILINE)
_NOT_PERMITTED = re.compile(r"ERR_NVGPUCTRPERM|permission|privilege", re.IGNORECASE)


class Host(Struct, frozen=True):
    """This machine to this user: the kernel's perf_event_paranoid, None if it has none."""

    paranoid: int | None
    root: bool


def this_host() -> Host:
    """As it is now."""
    try:
        paranoid = int(PARANOID.read_text())
    except (OSError, ValueError):
        paranoid = None
    return Host(paranoid, hasattr(os, "geteuid") and os.geteuid() == 0)


def against_scheduling(nsys: Nsys, host: Host) -> str | None:
    """Why scheduling cannot be recorded, and what would permit it; None if it can."""
    answer = _SYSCALL.search(nsys.status)
    if answer and answer[1] != "OK":
        return (
            "the kernel does not answer perf_event_open here; in a container '--cap-add=SYS_ADMIN' or a seccomp profile"
            " with perf_event_open permits it"
        )
    if host.root:
        return None
    if host.paranoid is None:
        return "this kernel has no perf events"
    if host.paranoid > MOST_PARANOID:
        return (
            f"the kernel's perf_event_paranoid is {host.paranoid}; "
            f"'sudo sysctl kernel.perf_event_paranoid={MOST_PARANOID}' permits it, and root needs no permission"
        )
    return None


def against_samples(nsys: Nsys, host: Host) -> str | None:
    """The same of CPU samples, which need an event that triggers them as well."""
    if reason := against_scheduling(nsys, host):
        return reason
    answer = _SAMPLING.search(nsys.status)
    if answer and answer[1] != "OK":
        return "nsys finds no event here to trigger them; 'nsys status --environment' shows what is missing"
    return None


def against_gpu_metrics(nsys: Nsys) -> str | None:
    """The same of the counters of GPUs."""
    if nsys.metrics_option is None:
        return f"nsys {nsys.version} does not have them"
    if _ALL_GPUS.search(nsys.metrics):
        return None
    if _NOT_PERMITTED.search(nsys.metrics):
        return (
            "this user may not read the counters of the GPU; root may, and the driver's option"
            " NVreg_RestrictProfilingToAdminUsers=0 permits it to all"
        )
    return "nsys finds no GPU here that has them"


SHELL = "/bin/sh"
OWN_NAME = b"nsys"
"""How the names of nsys's processes begin."""
LAST_DIGIT = 9
"""Shells know files by one digit."""
LINES = 5
"""How many of nsys's lines are shown if it fails."""
ENDS_AT_ONCE = 3
"""So many signals end nsys without a report, as they do this program elsewhere."""


def require_system() -> None:
    """Raise UsageError if nsys cannot record programs in this way."""
    if sys.platform != "linux":
        raise UsageError("programs can be recorded on Linux only", hint="analyze a report that was recorded there")


class RecordingResult(Struct, frozen=True):
    """The result: the exit code of nsys, or that of the program if it was `started`, negative if a signal ended nsys
    itself; the first signal received; the last lines that nsys wrote; and whether something that it had begun was left,
    and was ended."""

    code: int
    started: bool
    signal: int | None
    said: tuple[str, ...]
    ended: bool = False


def run(
    nsys: Nsys, options: Sequence[str], words: Sequence[str], report: Path, folder: Path, more: Mapping[str, str]
) -> RecordingResult:
    """Run the program of these words. nsys writes `report`; its own files go into `folder`, and `more` into the
    environment of the program. Raises UsageError if nsys cannot be started."""
    log, marker = folder / "nsys.log", folder / "started"
    streams = _numbers()
    script = _script(streams, os.environ.get("TMPDIR"))
    output = f"--output={str(report).replace('%', '%%')}"
    command = [nsys.path, "profile", *options, output, SHELL, "-c", script, SHELL, str(marker), *words]
    signals = _Signals()
    with Offspring() as offspring, HandedOn(signals.answer):
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
        code = offspring.wait_for(process)
        signals.belong_to(None)
        ended = (code < 0 or not report.exists()) and offspring.end(after=0 if code < 0 else ENDING_S)
        offspring.end(OWN_NAME)  # an agent outlives nsys too if its launcher is killed
    return RecordingResult(code, marker.exists(), signals.first, _last_lines(log), ended)


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
