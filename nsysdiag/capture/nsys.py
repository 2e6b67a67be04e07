"""The nsys program: where it is, which version, and what it says that it can do here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from nsysdiag.errors import UsageError, printable
from nsysdiag.trace.source import nsys_on_path

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
    """The path of the program that was named, else of that on the PATH. Raises UsageError where there is none."""
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
    """What a command prints; nothing where it cannot be run or does not end."""
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
    """This machine to this user: the kernel's perf_event_paranoid, None where it has none."""

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
    """Why scheduling cannot be recorded, and what would permit it; None where it can."""
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
