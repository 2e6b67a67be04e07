"""GPUs of the machine that did nothing, whether the program seems to have been meant to use them, and GPUs that are
probably one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysdiag.arrays.groups import group_totals
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.rows import distinct
from nsysdiag.phases.facts import LEAST_WORK
from nsysdiag.units import listed

MOST_LISTED = 4


def working_processes(activity: DeviceActivity) -> int:
    """How many processes did real work on GPUs, compared with the busiest one."""
    operations = activity.operations
    _, code = distinct(operations.process)
    work = group_totals(code, operations.end - operations.start).total
    return int(np.count_nonzero(work >= LEAST_WORK * work.max(initial=0))) if len(work) else 0


def unused_gpus(present: int | None, used: int, processes: int | None, *, mpi: bool) -> str:
    """A sentence; empty if all GPUs are used, if their number is unknown, or if only chosen GPUs are analysed
    (`processes` is None). Several processes that share GPUs while others are unused may have selected the wrong GPU;
    for one process the sentence only counts. In a trace of one MPI rank, other ranks may use the other GPUs."""
    if not present or processes is None or used >= present:
        return ""
    if processes > used:
        shared = "one GPU" if used == 1 else f"{used} GPUs"
        return (
            f"{processes} processes share {shared} of {present}, and {present - used} "
            f"{'is' if present - used == 1 else 'are'} unused: check which GPU each process selects."
        )
    return "" if mpi else f"{used} of {present} GPUs {'is' if used == 1 else 'are'} in use."


def one_gpu(in_turns: Sequence[str]) -> str:
    """A sentence on devices that take turns (their keys), as processes on one GPU do; empty for fewer than two."""
    if len(in_turns) < 2:
        return ""
    who = listed(list(in_turns)) if len(in_turns) <= MOST_LISTED else f"{len(in_turns)} of these GPUs"
    return f"{who} take turns, as processes on one GPU do: --same-gpu makes them one."
