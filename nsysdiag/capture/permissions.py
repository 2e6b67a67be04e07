"""What the system permits to be recorded: scheduling, samples of CPUs, and the counters of GPUs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from nsysdiag.capture.nsys import Nsys

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
