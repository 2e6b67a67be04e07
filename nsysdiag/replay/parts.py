"""What a device does in a step of a replay: its four parts, and its idle time by cause."""

from __future__ import annotations

from itertools import accumulate, pairwise

from nsysdiag.arrays.intervals import subtract, union
from nsysdiag.causes.dispatch import CAUSE as DISPATCH
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import FourParts
from nsysdiag.replay.idle import idle_by_cause
from nsysdiag.replay.model import Model
from nsysdiag.replay.run import Run, busy
from nsysdiag.replay.work import Class


def step_idle(changes: Changes, run: Run, device: int) -> dict[str, int]:
    """The idle time of a device by cause in ns, a mean over the counted steps, or of the window. It adds up to the idle
    part of the four."""
    total = four_parts(changes.model, run, device).idle_ns
    idle = idle_by_cause(changes, run, device)
    return adding_up(idle or {DISPATCH.id: total}, total) if total else {}


def adding_up(parts: dict[str, int], total: int) -> dict[str, int]:
    """Parts in proportion, as whole numbers that add up to `total`."""
    whole = max(sum(parts.values()), 1)
    until = [0, *(ns * total // whole for ns in accumulate(parts.values()))]
    return dict(zip(parts, (end - start for start, end in pairwise(until)), strict=True))


def four_parts(model: Model, run: Run, device: int) -> FourParts:
    """What a device does in a step, a mean over the steps that count, or in the window."""
    compute, communication, copies = (busy(model, run, device, [kind]) for kind in Class)
    exposed_comm = subtract(communication, compute)
    exposed_copy = subtract(copies, union(compute, communication))
    until = accumulate(each.total() for each in (compute, exposed_comm, exposed_copy))
    # The borders between the parts are rounded, not the parts: they add up.
    borders = [0, *(round(ns / run.count) for ns in until), run.ns]
    ns = [end - start for start, end in pairwise(borders)]
    return FourParts(compute_ns=ns[0], exposed_comm_ns=ns[1], exposed_copy_ns=ns[2], idle_ns=ns[3])
