"""Which waits and how much host time a finding on a cause is about: those of its variant, at its place in the program,
that no finding on a place inside it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    contains,
    coverage,
    nearest_before,
    union,
)
from nsysdiag.causes import BLOCKING_COPY, CAUSES, INPUT_WAIT, PLACE, SYNCHRONIZATION, blocking_copy, sync, variant_of
from nsysdiag.causes.cause import HINTS
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.events.rows import coded_tuples
from nsysdiag.findings.facts import Finding, Joined
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.model import Model, time_behind
from nsysdiag.replay.transforms import FixScope, of_cause
from nsysdiag.replay.wakes import Wakes

LATE_RANK = "late_rank"
Problem = Finding | Joined
"""What a fix is about: a cause, a variant of it, and a place."""


def problems_of(finding: Finding) -> list[Problem]:
    """The finding and those joined with it."""
    return [finding, *finding.joined]


def others(finding: Finding, among: Iterable[Finding]) -> list[Problem]:
    """The problems of all other findings, which their own fixes take out. What makes a GPU late is none of these:
    when the others no longer wait for it, it stays."""
    rest = [each for each in among if each.id != finding.id and each.cause != LATE_RANK]
    return [problem for each in rest for problem in problems_of(each)]


def part_of(model: Model, problem: Problem, rest: Sequence[Problem], its: FixScope) -> FixScope | None:
    """What a problem on a cause is about in the time `its`, `rest` being the problems of other findings. None if the
    replay knows nothing of it. It is inside the innermost range of its place in which anything is: the place is that of
    a gap, and a call that opened the gap may be in an outer range only."""
    every = of_cause(model, problem.cause).within(its)
    paths = [problem.nvtx[:depth] for depth in range(len(problem.nvtx), -1, -1)]
    found = ((path, every.within(_part(model, problem, path))) for path in paths)
    path, part = next(((path, part) for path, part in found if part.anything), (None, None))
    if part is None or path is None:
        return None
    for each in rest:
        if _is_inside(each, problem, path):
            part = part.without(_part(model, each, each.nvtx))
    return _without_others(model, problem, path, part, rest)


def _without_others(
    model: Model, problem: Problem, path: list[str], part: FixScope, rest: Sequence[Problem]
) -> FixScope:
    """The part without what another thread did behind its waits, if a finding at another place is about that. So if
    the part's own time is as long as what its finding takes: none of that is the other thread's.

    ```
    trainer   <step [prepare][launch][waits for the server   ]>     host code in step: what it prepares
    server                           <apply [computes       ]>      host code in apply: a finding of its own
    ```
    """
    mine = (_own(model, path) > 0) & (part.pieces > 0)
    length = model.pieces.length
    taken = problem.share if isinstance(problem, Finding) else 0.0  # of the judged time
    explained = float(length[mine] @ part.pieces[mine]) >= taken * (model.stretch.end - model.stretch.begin)
    elsewhere = (each for each in rest if each.cause == problem.cause and each.nvtx and each.nvtx[-1] not in path)
    for each in elsewhere if explained and path else ():
        theirs = (_own(model, each.nvtx) > 0) & ~mine
        part = replace(part, pieces=np.where(theirs, 0.0, part.pieces))
    return part


def _own(model: Model, path: list[str], team: IntArray | None = None) -> FloatArray:
    """How much of each piece of host time is of a launching thread, or of one of a `team`, in `path`, 0 to 1: it may
    begin before the range."""
    threads = model.launching if team is None else np.union1d(model.launching, team)
    own: BoolArray = np.isin(model.program.thread[model.pieces.owner], threads)
    inside = model.pieces.inside(_ranges_of(model, path)) if path else np.ones(len(own))
    return np.where(own, inside, 0.0)


def _is_inside(other: Problem, problem: Problem, path: list[str]) -> bool:
    """Whether another problem is about a part of what is in `path`. One without a variant is about all variants, but
    not about those that have a finding at the same place.

    ```
    sync in step            all variants in step, without the two below
    stream sync in step
    sync in step, forward
    ```
    """
    deeper, narrower = len(other.nvtx) > len(path), bool(other.variant and not problem.variant)
    like = other.cause == problem.cause and (narrower or other.variant in ("", problem.variant))
    return like and (deeper or narrower) and other.nvtx[: len(path)] == path


def _part(model: Model, problem: Problem, path: list[str]) -> FixScope:
    """How much of each piece of host time and which waits are of a problem's cause and variant, inside `path`: what
    launching threads do there, and what others do that they wait for. Those may do the same in a range of that name, as
    a team of threads does: all of it is part. What loading workers do is not, as that is charged to the wait for
    input."""
    threads, inside = model.threads, _ranges_of(model, path) if path else None

    def begins_inside(waits: Wakes | DeviceWaits) -> BoolArray:
        spans = model.on_axis_of(waits)
        return np.ones(len(spans), dtype=np.bool_) if inside is None else contains(inside, spans.start)

    woken = begins_inside(threads.woken)
    loads = (threads.woken.loader > 0) & (problem.cause != INPUT_WAIT)
    # Time in which others hold the interpreter lock is charged to the wait for it, whatever they do.
    waited = (threads.woken.interpreter == 0) & ~loads
    behind = time_behind(model, woken & waited, ~loads)
    team = threads.woken.waker[waited] if path else model.launching
    part = FixScope(
        pieces=np.maximum(_own(model, path, team), model.pieces.inside(behind)),
        held=begins_inside(threads.held),
        full=begins_inside(threads.full),
        woken=woken,
    )
    # Time inside MPI calls is charged to communication, whatever its cause.
    part.pieces[coverage(union(model.host.host.mpi.spans), model.pieces.spans) > 0] = 0
    if (its := _variants(problem)) is not None:
        part.pieces[~np.isin(_variants_of_pieces(model, problem.cause), its)] = 0
        others = ~np.isin(_variants_of_waits(model, problem.cause), its)
        part.held[(threads.held.cause != PLACE[SLEEP.id]) & others] = False
    return part


def _variants(problem: Problem) -> list[int] | None:
    """The places of the variants that a problem is about; None if it is about all. Variants of a cause that count to
    several bottlenecks have a finding for each of these."""
    cause = CAUSES[problem.cause]
    names = [each.id for each in cause.variants]
    if problem.cause == INPUT_WAIT:
        return None
    if problem.variant in names:
        return [names.index(problem.variant)]
    counts = [each.bottleneck or cause.bottleneck for each in cause.variants]
    if not isinstance(problem, Finding) or len({*counts}) < 2 or problem.bottleneck not in counts:
        return None
    return [place for place, each in enumerate(counts) if each == problem.bottleneck]


def _ranges_of(model: Model, path: list[str]) -> Intervals:
    """The ranges with the innermost name of a path, as a set on the axis of threads."""
    return union(
        model.ranges_of([code for code, name in model.normal_ranges.items() if name == path[-1]], model.nearby)
    )


def _variants_of_pieces(model: Model, cause: str) -> IntArray:
    """The place of the variant of each piece of host time, as if all were of one cause."""
    pieces, labels, calls = model.pieces, [*model.named.labels, None], [*model.named.calls, ""]
    code, pairs = coded_tuples(pieces.label, pieces.call)
    found = [variant_of(cause, labels[label], calls[call]) for label, call in pairs]
    return np.array(found, dtype=np.int64).take(code)


def _variants_of_waits(model: Model, cause: str) -> IntArray:
    """The place of the variant of each wait for a device, as if all were of one cause."""
    host, facts = model.host.host, model.host.facts
    call = model.threads.held.call
    names = host.api_calls.names
    found = []
    after = _after_copies(model)
    for row, hint in zip(call.tolist(), after.tolist(), strict=True):
        name = names[host.api_calls.rows.name[row]] if row >= 0 else ""
        if cause == BLOCKING_COPY:
            label = blocking_copy.LABELS[0 if facts.read_back[row] else 1 if facts.pageable[row] else 2]
            found.append(variant_of(cause, label, name))
        elif cause == SYNCHRONIZATION:
            found.append(variant_of(cause, sync.label_of(name), name, HINTS[hint]))
        else:
            found.append(variant_of(cause, None, name))
    return np.array(found, dtype=np.int64)


def _after_copies(model: Model) -> IntArray:
    """The place in HINTS of waits for a device that come right after such a copy; 0 for others."""
    host, held = model.host.host, model.threads.held
    calls = host.api.take(host.api.outermost)
    spans = model.on_axis_of(held)
    before = nearest_before(calls.spans.start, spans.start - 1)
    row = np.maximum(before, 0)
    if len(calls) == 0:
        return np.zeros(len(before), dtype=np.int64)
    near: BoolArray = (before >= 0) & (spans.start - calls.spans.end[row] <= sync.READ_BACK_NS)
    return np.where(near, model.host.facts.copied(calls.row[row]), 0)
