"""How much may run at once: the CPUs of this process, and the memory that an input is expected to need."""

from __future__ import annotations

import math
import os
from pathlib import Path

from nsysdiag.batch.inputs import Input

MIB = 1 << 20
BASE_BYTES, BYTES_PER_BYTE = 150 * MIB, 3
"""What a process needs for an empty trace, and beside that for each byte of one, as `nsysdiag analyze -o x.json -o
x.html` in a process of its own was measured (the most that it ever held): 107 MiB for a trace of 50 kernels, 631 MiB
for one of 442 MB with 1,000,000, 1,168 MiB for one of 891 MB with 2,000,000. Traces without samples and their call
chains, of which only few are read, need more for each byte, hence more than twice of what was measured."""
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
        quota, period = CPU_QUOTA.read_text("ascii").split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # `max` is no number
        return 1 << 20
