"""What fixing a finding changes in a model: the waits, host time and order that the finding is about, no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.account.outside import COMPILING, Outside, start_of
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, sorted_times, union
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.causes import (
    BLOCKING_COPY,
    CAUSES,
    FALLBACK,
    IN_MPI,
    INPUT_WAIT,
    PLACE,
    PREEMPTION,
    input_output,
    memory_calls,
    thread_states,
    thread_waits,
)
from nsysdiag.causes.cause import HINTS
from nsysdiag.causes.device_side import HOST_FUNCTION
from nsysdiag.causes.input_output import IO_WAIT, WORKER_COMPUTES, WORKER_READS
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.diagnosis.facts import FULL_LINK
from nsysdiag.findings.facts import Finding
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.model import Model
from nsysdiag.replay.places import LATE_RANK, Problem, others, part_of, problems_of
from nsysdiag.replay.rank_like import like_the_median
from nsysdiag.replay.reshaped import holding
from nsysdiag.replay.sources import asks_others
from nsysdiag.replay.transforms import FixScope, handed_over_ns, overlap, take_out, without_on_devices
from nsysdiag.replay.wakes import loaders
from nsysdiag.replay.work import Class

# Waits in a row, which are for the same work: a value that is read back, and the synchronization behind the copy.


def with_rows(model: Model, part: FixScope) -> FixScope:
    """A part with the waits that are in a row with one of its own: without that one, they would wait in its place.

    ```
    thread   [launch]  [copy of 4 bytes to the host      )[sync)   host     [launch]
    without  [launch]  [copy)[sync                       )         host     [launch]
    both     [launch]  [copy)          host     [launch]
    ```
    """
    held = part.held & holding(model, doubted=True)
    if not held.any():
        return part
    group = _rows_of(model)
    also = np.isin(group, group[held]) & (group >= 0)
    return FixScope(part.pieces, part.held | also, part.full, part.woken)


def _rows_of(model: Model) -> IntArray:
    """The number of the row of each wait for results, -1 for other waits. A launch, another wait for a device, or host
    code is between rows."""
    held, able = model.threads.held, holding(model, doubted=True)
    launches = sorted_times(model.launch_spans.start)
    spans = model.on_axis_of(held)
    order = np.argsort(spans.start, kind="stable")
    start, end, able_there = spans.start[order], spans.end[order], able[order]
    same = able_there[1:] & able_there[:-1] & (held.thread[order][1:] == held.thread[order][:-1])
    same &= np.searchsorted(launches, start[1:]) <= np.searchsorted(launches, end[:-1])
    same &= start[1:] - end[:-1] <= READ_BACK_NS
    group = np.empty(len(held), dtype=np.int64)
    group[order] = np.append(0, np.cumsum(~same)) if len(held) else 0
    return np.where(able, group, -1)


# Threads that read files at once: one disk may serve them all, one after the other.
#
# ```
# A    [read ....][decode][read ........][decode]
# B    [decode][read ........][decode][read ........]     half of the decoding: each read waits longer for the other
# ```

AT_ONCE = 0.1
"""Of the time of reads: threads that read at once for less use no disk together."""


def reads_ns(changes: Changes) -> int:
    """For how long in a step, or in the window, any thread reads files, in ns, as far as the changes leave the reads;
    0 if never two of them read at once. A disk that serves one at a time is no faster."""
    model = changes.model
    reads = (model.pieces.cause == PLACE[IO_WAIT.id]) & ~asks_others(model)
    ns = model.pieces.length[reads]
    together = model.ever(reads)
    if not len(ns) or ns.sum() < (1 + AT_ONCE) * together:
        return 0
    left = float((ns * changes.time[reads]).sum()) / float(ns.sum())
    return round(left * together / model.stretch.count)


BEFORE_WORK, STARTUP, HOST, EXPOSED_COPY = "before_work", "startup", "host", "exposed_copy"
POLLS = 1.2
"""Sleeps a step, at least, of a thread that may be polling: what a program does on purpose, it mostly does once."""
BUSY = 0.9
"""Of the replayed time: who reads for longer has no time to read more."""
DWARFED = 2
"""Copies that take more than this many times as long as all kernels cannot be overlapped. Then the fix is fewer
bytes, by an unknown amount."""
OF_WORKERS: dict[str, tuple[str, ...]] = {
    WORKER_READS: (input_output.IO_WAIT.id, memory_calls.OS_MEMORY.id),
    WORKER_COMPUTES: (thread_states.HOST_COMPUTE.id, FALLBACK),
    "no_cpu": (PREEMPTION,),
}
"""Variants of input waits whose fix makes a part of the workers' time shorter; by any other they are ahead."""
ALONE = "there is one rank only"
NOT_HIDDEN = "there is nothing to overlap it with"
ALL_THE_TIME = "it runs all the time already: what fewer bytes save depends on how many they are"
ON_THE_DEVICE = "the fix changes kernels or their order on the device"
UNKNOWN_CAUSE = "its cause is not known"
IN_SAMPLES = "only CPU samples can show which host code it is"
NOT_THERE = "it does not occur in the replayed time"
NOT_SEPARATE = "the replay cannot tell it from other findings on the same cause"


def apply_fix(changes: Changes, finding: Finding, among: Sequence[Finding] = ()) -> str:
    """Make the changes that fix a finding and the findings joined with it; what is left to others `among` all
    findings stays. Returns the reason if the replay has no such changes, or if the finding is not in the replayed
    time."""
    if changes.view == View.LEAST and may_only_move(changes.model, finding):
        return ""
    if finding.cause == BEFORE_WORK:
        return _before_work(changes, finding)
    if _is_rest(finding, among):
        return NOT_SEPARATE
    its = _its_time(changes.model, finding)
    if finding.cause == LATE_RANK:
        return _late_rank(changes, finding, its)
    rest = others(finding, among)
    return next(filter(None, [_fix(changes, each, rest, its) for each in problems_of(finding)]), "")


def _is_rest(finding: Finding, among: Sequence[Finding]) -> bool:
    """Whether this is the smaller part of waits for input, of which the larger one is what workers do: without the
    waits, as with workers that are ahead, that saves what the fix of the larger part does."""
    if finding.cause != INPUT_WAIT or finding.variant in OF_WORKERS:
        return False
    larger = (each for each in among if each.cause == INPUT_WAIT and each.share > finding.share)
    return any(each.variant in OF_WORKERS and each.nvtx == finding.nvtx for each in larger)


def may_differ(model: Model, finding: Finding) -> bool:
    """Whether a fix may save less than is likely."""
    copies = any(each.cause == BLOCKING_COPY for each in problems_of(finding)) and bool(_results(model).any())
    return finding.cause in (LATE_RANK, IN_MPI) or may_only_move(model, finding) or copies


def _results(model: Model) -> BoolArray:
    """Which waits for a device are for copies of results to the host, which may need these at once: made from pinned
    memory, or asynchronously, a copy has to be waited for by another call. The fix of one that reads a value back is
    not to read it."""
    held = model.threads.held
    downloads = np.isin(held.call, model.work.launch[model.downloads & (model.work.launch >= 0)])
    return downloads & (held.cause == PLACE[BLOCKING_COPY]) & ~np.append(model.host.facts.read_back, False)[held.call]


def may_only_move(model: Model, finding: Finding) -> bool:
    """Whether a fix may save nothing: more workers may wait for the same disk. Each start of a program has to create
    a context and to load the code that it runs. What is loaded at another moment is in the window still; steps no
    longer have it. What the host does once before the first work may have no part that another thread can do."""
    starts = finding.bottleneck == STARTUP and finding.variant != COMPILING
    starts |= finding.cause == BEFORE_WORK and finding.bottleneck == HOST
    # Workers that read may wait for a disk that is busy all the time.
    reads = finding.cause == INPUT_WAIT and finding.variant == WORKER_READS
    least = BUSY * (model.stretch.end - model.stretch.begin)
    busy = reads and reads_ns(Changes.none(model)) * model.stretch.count >= least
    return (starts and not model.stretch.stepwise) or _polls(model, finding) or busy


def _polls(model: Model, finding: Finding) -> bool:
    """Whether a thread sleeps several times a step, as one that asks again and again for what is not in the trace: it
    may have to wait for that without the sleeps, too."""
    if finding.cause != thread_waits.SLEEP.id or not thread_waits.SLEEPS.search(typed.plain(finding.call or "")):
        return False
    asleep = model.pieces.cause == PLACE[thread_waits.SLEEP.id]
    _, thread = distinct(model.program.thread[model.pieces.owner[asleep]])
    return int(np.bincount(thread).max(initial=0)) >= POLLS * model.stretch.count


def _its_time(model: Model, finding: Finding) -> FixScope:
    """The host time and the waits since the first work of a finding's devices: what is before that in a start is for
    the findings on this time."""
    keys, axis, threads = model.names.keys, model.host.host.axis, model.threads
    since = min(int(model.first[keys.index(each)]) for each in finding.devices or [finding.device] if each in keys)
    lanes = np.arange(len(axis.threads))
    after = axis.place(lanes, Intervals(np.full(len(lanes), since), np.full(len(lanes), model.stretch.end)))
    return FixScope(
        pieces=model.pieces.inside(union(after)) if since > model.stretch.begin else np.ones(len(model.pieces)),
        held=threads.held.end > since,
        full=threads.full.end > since,
        woken=threads.woken.end > since,
    )


def _before_work(changes: Changes, finding: Finding) -> str:
    """What is charged to the finding's bottleneck before the first work of its device."""
    spans = _of_start(changes.model, finding)
    if spans is None:
        return UNKNOWN_CAUSE
    inside = changes.model.pieces.inside(spans)
    changes.time[:] *= 1 - inside
    return "" if inside.any() else NOT_THERE


def _of_start(model: Model, finding: Finding) -> Intervals | None:
    """That time as a set on the axis of threads, by the rules of that account; except for CUDA itself also in other
    threads, as the launching thread may wait for them. None if nothing is known of it."""
    work = model.work
    mine = np.flatnonzero((work.device == model.names.keys.index(finding.device)) & (work.launch >= 0))
    if finding.bottleneck == UNKNOWN or not len(mine):
        return None
    thread = model.host.host.api_calls.rows.busiest_thread(work.launch[mine])
    others = model.host.host.axis.threads.tolist() if finding.bottleneck != STARTUP else []
    until, ranges = int(work.start[mine[0]]), model.names.ranges
    starts = [start_of(model.host, Outside(each, model.stretch.begin, until), ranges) for each in {thread, *others}]
    return union(*(each.own(finding.bottleneck, finding.variant) for each in starts))


def taken_out(model: Model, finding: Finding) -> int | None:
    """For how long, in ns, any thread does what the fix of a start takes out: no more can be saved, as nothing runs
    in another order if that gets shorter. Nor do copies that hand over data save more than their time. None for other
    findings, and if nothing is known of it."""
    if finding.cause == EXPOSED_COPY:
        return handed_over_ns(model)
    spans = _of_start(model, finding) if finding.cause == BEFORE_WORK else None
    if spans is None:
        return None
    begun = model.host.host.axis.time(spans.start)
    return union(Intervals(begun, begun + (spans.end - spans.start))).total()


def _late_rank(changes: Changes, finding: Finding, its: FixScope) -> str:
    """What made it late is joined with it. That stays, as others have it, too; but input comes in time."""
    for each in finding.joined:
        if each.cause == INPUT_WAIT:
            _fix(changes, replace(each, variant=""), [], its)
    return "" if like_the_median(changes) else ALONE


def _fix(changes: Changes, problem: Problem, rest: Sequence[Problem], its: FixScope) -> str:
    if problem.cause in RULES:
        full = problem.variant == FULL_LINK
        return ALL_THE_TIME if full else "" if RULES[problem.cause](changes, its) else NOT_HIDDEN
    cause = CAUSES.get(problem.cause)
    if cause is None or (cause.side == "device" and cause.id != INPUT_WAIT):
        return ON_THE_DEVICE
    if cause.unresolved:
        return UNKNOWN_CAUSE
    variant = next((each for each in cause.variants if each.id == problem.variant), None)
    if variant is not None and variant.hint not in HINTS:
        return IN_SAMPLES
    if cause.id == INPUT_WAIT and problem.variant in OF_WORKERS:
        return _shorten_workers(changes, OF_WORKERS[problem.variant], its)
    return _take_out(changes, problem, rest, its)


def _take_out(changes: Changes, problem: Problem, rest: Sequence[Problem], its: FixScope) -> str:
    part = part_of(changes.model, problem, rest, its)
    if part is None or not part.anything:
        return NOT_THERE if part is None else NOT_SEPARATE
    part = with_rows(changes.model, part.without(_paced(changes)))
    if changes.view == View.LEAST:
        part = FixScope(part.pieces, part.held & ~_results(changes.model), part.full, part.woken)
    if part.anything:
        take_out(changes, problem.cause, part)
    return ""


def _paced(changes: Changes) -> FixScope:
    """The waits that end at a time of their own or from outside: no fix of a finding takes them out."""
    model, threads = changes.model, changes.model.threads
    pieces = np.append(changes.paced & (threads.timed.outside > 0), False)[model.timed_of_piece].astype(np.float64)
    none = (np.zeros(len(each), dtype=np.bool_) for each in (threads.held, threads.full, threads.woken))
    return FixScope(pieces, *none)


def _shorten_workers(changes: Changes, causes: tuple[str, ...], its: FixScope) -> str:
    """What threads that load data did for these causes takes no time; the rest of their work does."""
    model = changes.model
    mine = np.isin(model.program.thread[model.pieces.owner], loaders(model.threads.woken))
    mine &= np.isin(model.pieces.cause, [PLACE[each] for each in causes])
    changes.time[mine] *= 1 - its.pieces[mine]
    changes.elsewhere[:] |= len(model.beside.threads) > 0
    return "" if mine.any() else NOT_THERE


def _exposed_copy(changes: Changes) -> bool:
    work = changes.model.work
    copies, kernels = (int(work.length[work.kind == kind].sum()) for kind in (Class.COPY, Class.COMPUTE))
    return copies <= DWARFED * kernels and overlap(changes, Class.COPY)


def _exposed_mpi(changes: Changes, its: FixScope) -> bool:
    """Of the time in MPI calls stays what kernels cannot hide. In the view that saves least they wait for what no
    kernel may hide: a late rank, or a result that is needed."""
    model = changes.model
    pieces, mpi = model.pieces, union(model.host.host.mpi.spans)
    inside = coverage(mpi, pieces.spans) * its.pieces
    if changes.view == View.LEAST:
        return bool(inside.any())
    compute = int(model.work.length[model.work.kind == Class.COMPUTE].sum())
    threads = len(distinct_values(model.program.thread))
    hidden = min(compute * threads / max(float(inside.sum()), 1.0), 1.0)
    changes.time[:] *= 1 - hidden * pieces.inside(mpi) * its.pieces
    return bool(inside.any())


RULES: dict[str, Callable[[Changes, FixScope], bool]] = {
    EXPOSED_COPY: lambda changes, _: _exposed_copy(changes),
    "exposed_comm": lambda changes, _: overlap(changes, Class.COMMUNICATION),
    IN_MPI: _exposed_mpi,
    HOST_FUNCTION.id: lambda changes, _: without_on_devices(changes, HOST_FUNCTION.id),
}
"""Of findings whose fix is to run kernels at the same time, or that streams do not wait."""
