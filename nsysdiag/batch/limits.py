"""How much may run at once: the CPUs of this process, and the memory that an input is expected to need."""

from __future__ import annotations

import math
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nsysdiag.batch.inputs import REPORTS, SAVED, Input
from nsysdiag.batch.task import Task
from nsysdiag.errors import UsageError
from nsysdiag.trace.parquet.names import is_parquet_folder
from nsysdiag.units import format_bytes

MIB = 1 << 20
BASE_BYTES, BYTES_PER_BYTE = 150 * MIB, 3
"""Memory of a process for an empty trace, and for each byte of a trace. Measured peaks of `nsysdiag analyze -o x.json
-o x.html`: 107 MiB for a trace of 50 kernels, 631 MiB for 442 MB with 1,000,000 kernels, 1,168 MiB for 891 MB with
2,000,000. Traces without samples and call chains, of which only few are read, need more for each byte. So the limit is
more than twice the measured values."""
BYTES_PER_PACKED_BYTE = 30
"""A report that must be exported first: the export is several times as large. So is an SQLite file compared with a
folder of Parquet files. 200,000 kernels took 411 MiB from a folder of 17 MB, and 383 MiB from one of 29 MB that was not
compressed; they took 300 MiB from an SQLite file of 86 MB."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def estimated_bytes(each: Input) -> int:
    """The memory that the analysis of an input takes at its peak, rather too much than too little."""
    packed = each.path.suffix.lower() in REPORTS or is_parquet_folder(each.path)
    return BASE_BYTES + each.size_bytes * (BYTES_PER_PACKED_BYTE if packed else BYTES_PER_BYTE)


def usable_cpus() -> int:
    """The CPUs that this process may use: fewer than there are where an affinity or a container's quota says so."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = CPU_QUOTA.read_text("ascii").split()
        return max(1, min(cpus, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # `max` is no number
        return max(1, cpus)


class Limits(msgspec.Struct, frozen=True):
    """At most `jobs` tasks at once, and together `memory_bytes` where that is limited."""

    jobs: int
    memory_bytes: int | None = None

    def too_large(self, task: Task) -> UsageError | None:
        """Why a task cannot run at all: not even a part of a trace fits, or a saved report, which has no parts."""
        needed = estimated_bytes(task.input)
        if self.memory_bytes is None or needed <= self.memory_bytes:
            return None
        if self.memory_bytes > BASE_BYTES and task.input.path.suffix.lower() != SAVED:
            return None
        return UsageError(
            f"'{task.input.shown}' needs about {format_bytes(needed)} of memory, more than the limit of "
            f"{format_bytes(self.memory_bytes)}",
            hint="raise --memory-limit",
        )

    def admit(self, task: Task, running: list[Task]) -> bool:
        """Whether a task may run in addition to the running ones."""
        if len(running) >= self.jobs:
            return False
        limit = self.memory_bytes
        return limit is None or sum(min(estimated_bytes(each.input), limit) for each in (task, *running)) <= limit

    def fitted(self, task: Task) -> Task:
        """The task as it will run: with the limit for the analysis where it may need more."""
        if self.memory_bytes is None or estimated_bytes(task.input) <= self.memory_bytes:
            return task
        settings = msgspec.structs.replace(task.shared.settings, memory_limit=self.memory_bytes)
        return replace(task, shared=replace(task.shared, settings=settings))
