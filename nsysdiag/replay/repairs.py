"""What repairing a finding changes in a model: the waits, host time and order that the finding is about, no others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, coverage, nearest_before, union
from nsysdiag.causes import (
    BLOCKING_COPY,
    CAUSES,
    FALLBACK,
    INPUT_WAIT,
    PLACE,
    PREEMPTION,
    SYNCHRONIZATION,
    blocking_copy,
    host_compute,
    io_wait,
    os_memory,
    sync,
    variant_of,
)
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.data_loading import COMPUTES
from nsysdiag.causes.variant import AFTER_READ_BACK, Variant
from nsysdiag.replay.behind import loaders, time_behind
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.rank_like import like_the_median
from nsysdiag.replay.transforms import Part, overlap, without_cause
from nsysdiag.replay.work import Class
from nsysdiag.report import Finding, Joined

DWARFED = 2
"""Copies that take more than this many times as long as all kernels cannot be overlapped. Then the repair is fewer
bytes, by an unknown amount."""
LATE_RANK = "late_rank"
OF_WORKERS: dict[str, tuple[str, ...]] = {
    "reads": (io_wait.CAUSE.id, os_memory.CAUSE.id),
    COMPUTES: (host_compute.CAUSE.id, FALLBACK),
    "no_cpu": (PREEMPTION,),
}
"""Variants of input waits whose repair makes a part of the workers' time shorter; by any other they are ahead."""
ALONE = "there is one rank only"
NOT_HIDDEN = "there is nothing to overlap it with"
ON_THE_DEVICE = "the repair changes kernels or their order on the device"
UNKNOWN_CAUSE = "its cause is not known"
IN_SAMPLES = "only CPU samples can show which host code it is"
NOT_THERE = "it does not occur in the replayed time"
Where = Callable[[Intervals], BoolArray]


def repair(changes: Changes, finding: Finding) -> str:
    """Make the changes that repair a finding and the findings joined with it. Returns the reason if the replay has no
    such changes, or if the finding is not in the replayed time."""
    if finding.cause == LATE_RANK:
        return _late_rank(changes, finding)
    problems: list[Finding | Joined] = [finding, *finding.joined]
    return next(filter(None, [_repair(changes, each) for each in problems]), "")


def _late_rank(changes: Changes, finding: Finding) -> str:
    """What made it late is joined with it. That stays, as others have it, too; but input comes in time."""
    for each in finding.joined:
        if each.cause == INPUT_WAIT:
            _repair(changes, replace(each, variant=""))
    return "" if like_the_median(changes) else ALONE


def _repair(changes: Changes, finding: Finding | Joined) -> str:
    if finding.cause in RULES:
        return "" if RULES[finding.cause](changes) else NOT_HIDDEN
    cause = CAUSES.get(finding.cause)
    if cause is None or (cause.side == "device" and cause.id != INPUT_WAIT):
        return ON_THE_DEVICE
    if cause.unresolved:
        return UNKNOWN_CAUSE
    variant = next((each for each in cause.variants if each.id == finding.variant), None)
    if variant is not None and variant.hint not in (None, AFTER_READ_BACK):
        return IN_SAMPLES
    if cause.id == INPUT_WAIT and finding.variant in OF_WORKERS:
        return _shorten_workers(changes, OF_WORKERS[finding.variant])
    # A place is that of a gap: a call that opened it may be in an outer range only.
    inner_first = (finding.nvtx[:depth] for depth in range(len(finding.nvtx), -1, -1))
    found = any(without_cause(changes, cause.id, _part(changes.model, cause, variant, path)) for path in inner_first)
    return "" if found else NOT_THERE


def _shorten_workers(changes: Changes, causes: tuple[str, ...]) -> str:
    """What threads that load data did for these causes takes no time; the rest of their work does."""
    model = changes.model
    mine = np.isin(model.program.thread[model.pieces.owner], loaders(model.threads.woken))
    mine &= np.isin(model.pieces.cause, [PLACE[each] for each in causes])
    changes.time[mine] = 0
    return "" if mine.any() else NOT_THERE


def _part(model: Model, cause: Cause, variant: Variant | None, path: list[str]) -> Part:
    """How much of each piece of host time and which waits a finding on a cause is about, at a place in the program:
    what threads do there, and what others do that they wait for."""
    where, threads = _inside(model, path), model.threads
    woken = where(model.on_axis(threads.woken.thread, threads.woken.begin, threads.woken.end))
    part = Part(
        pieces=np.maximum(where(model.pieces.spans), model.pieces.inside(time_behind(model, woken))),
        held=where(model.on_axis(threads.held.thread, threads.held.begin, threads.held.end)),
        full=where(model.on_axis(threads.full.thread, threads.full.begin, threads.full.end)),
        woken=woken,
    )
    # Time inside MPI calls counts to communication, whatever its cause.
    part.pieces[coverage(union(model.host.host.mpi.spans), model.pieces.spans) > 0] = 0
    if variant is not None and cause.id != INPUT_WAIT:
        place = cause.variants.index(variant)
        part.pieces[_variants_of_pieces(model, cause.id) != place] = 0
        part.held[_variants_of_waits(model, cause.id) != place] = False
    return part


def _inside(model: Model, path: list[str]) -> Where:
    """Which stretches of the thread axis begin inside ranges with the innermost name of a path; all, where it is
    empty."""
    if not path:
        return lambda spans: np.ones(len(spans), dtype=np.bool_)
    inside = union(model.ranges_of([code for code, name in model.normal_ranges.items() if name == path[-1]]))
    return lambda spans: contains(inside, spans.start)


def _variants_of_pieces(model: Model, cause: str) -> IntArray:
    """The place of the variant of each piece of host time, as if all were of one cause."""
    words, pieces = [*model.words, ""], model.pieces
    pairs, code = np.unique(np.stack((pieces.label, pieces.call)), axis=1, return_inverse=True)
    found = [variant_of(cause, words[label], words[call], None) for label, call in pairs.T.tolist()]
    return np.array(found, dtype=np.int64)[code.reshape(-1)] if found else pieces.label


def _variants_of_waits(model: Model, cause: str) -> IntArray:
    """The place of the variant of each wait for a device, as if all were of one cause."""
    host, facts = model.host.host, model.host.facts
    call = model.threads.held.call
    names = host.api_calls.names
    found = []
    after = _after_read_backs(model)
    for row, read_back in zip(call.tolist(), after.tolist(), strict=True):
        name = names[host.api_calls.rows.name[row]] if row >= 0 else ""
        if cause == BLOCKING_COPY:
            label = blocking_copy.LABELS[0 if facts.read_back[row] else 1 if facts.pageable[row] else 2]
            found.append(variant_of(cause, label, name, None))
        elif cause == SYNCHRONIZATION:
            found.append(variant_of(cause, sync.label_of(name), name, AFTER_READ_BACK if read_back else None))
        else:
            found.append(variant_of(cause, "", name, None))
    return np.array(found, dtype=np.int64)


def _after_read_backs(model: Model) -> BoolArray:
    """Which waits for a device come right after a copy of a few bytes to the host."""
    host, held = model.host.host, model.threads.held
    calls = host.api.take(host.api.outermost)
    spans = model.on_axis(held.thread, held.begin, held.end)
    before = nearest_before(calls.spans.start, spans.start - 1)
    row = np.maximum(before, 0)
    if len(calls) == 0:
        return before >= 0
    near: BoolArray = (before >= 0) & (spans.start - calls.spans.end[row] <= sync.READ_BACK_NS)
    return near & model.host.facts.read_back[calls.row[row]]


def _exposed_copy(changes: Changes) -> bool:
    work = changes.model.work
    copies, kernels = (int(work.length[work.kind == kind].sum()) for kind in (Class.COPY, Class.COMPUTE))
    return copies <= DWARFED * kernels and overlap(changes, Class.COPY)


def _exposed_communication(changes: Changes) -> bool:
    return overlap(changes, Class.COMMUNICATION)


def _exposed_mpi(changes: Changes) -> bool:
    """Of the time in MPI calls stays what kernels cannot hide."""
    model = changes.model
    pieces, mpi = model.pieces, union(model.host.host.mpi.spans)
    inside = coverage(mpi, pieces.spans)
    compute = int(model.work.length[model.work.kind == Class.COMPUTE].sum())
    threads = len(np.unique(model.program.thread))
    hidden = min(compute * threads / max(int(inside.sum()), 1), 1.0)
    changes.time[:] *= 1 - hidden * pieces.inside(mpi)
    return bool(inside.any())


RULES: dict[str, Callable[[Changes], bool]] = {
    "exposed_copy": _exposed_copy,
    "exposed_comm": _exposed_communication,
    "exposed_mpi": _exposed_mpi,
}
"""Of findings that are about no cause of idle time."""
