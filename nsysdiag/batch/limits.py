"""How much may run at once: the CPUs of this process, and the memory that an input is expected to need."""

from __future__ import annotations

import math
import os
from pathlib import Path

from nsysdiag.batch.inputs import Input

MIB = 1 << 20
BASE_BYTES = 150 * MIB
"""What a process needs for an empty trace."""
BYTES_PER_BYTE = 5
"""A trace of little but short kernels and calls, the costliest kind, holds 4.8 times its size in memory at its peak."""
BYTES_PER_PACKED_BYTE = 30
"""A report that must be exported first: the export is several times as large."""
PACKED = (".nsys-rep", ".qdrep")
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def estimated_bytes(each: Input) -> int:
    """The memory that the analysis of an input takes at its peak, rather too much than too little."""
    packed = each.path.suffix.lower() in PACKED
    return BASE_BYTES + each.size_bytes * (BYTES_PER_PACKED_BYTE if packed else BYTES_PER_BYTE)


def usable_cpus() -> int:
    """The CPUs that this process may use: fewer than there are where an affinity or a container's quota says so."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cpus, _quota()))


def _quota() -> int:
    """CPUs of the control group, rounded up; very many where it sets none."""
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # `max` is no number
        return 1 << 20
