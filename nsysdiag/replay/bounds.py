"""The bounds of a prediction: each rule is a reason why the trace cannot tell it more exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import FloatArray, IntArray
from nsysdiag.events.rows import distinct_values
from nsysdiag.replay.ahead import of_helpers, of_other_targets, with_other_gaps
from nsysdiag.replay.beside import ANSWER_NS
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.edges import EdgeKind
from nsysdiag.replay.entangled import loosened, met_by_chance, most_removed_ns, others_work_ns, taken_out, unknown_ns
from nsysdiag.replay.fixes import reads_ns
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.mpi import in_a_row, most_sooner, takes_out_waits, without_waits
from nsysdiag.replay.pacing import JOINED
from nsysdiag.replay.polling import with_other_sleeps
from nsysdiag.replay.run import Run, as_run, borders_of, busy, mean_step, run_of
from nsysdiag.replay.shared_cpus import off_cpu_ns
from nsysdiag.replay.sources import of_devices, source_may_limit
from nsysdiag.replay.step_work import StepWork
from nsysdiag.replay.stretch import LEAST_ERROR
from nsysdiag.replay.wakes import LOCKS
from nsysdiag.replay.work import LATENCY_NS, Class

SAMPLES, SEED, SPREAD = 200, 1, (2.5, 97.5)


LATE_NS = 70_000
"""Threads that were woken went on up to 70 µs later in captured programs."""
MOSTLY = 0.9
"""Of the uploads that are seen to be staged: so many take no longer, next to their copy."""
NO_GRID = np.iinfo(np.int64).max


class BoundCase(Struct, frozen=True):
    """Changes, and the same ones made in `others` ways: the steps as they were (`now`), with the changes (`run`), and
    with those others. `apart` are kernels that meet none of another process; None where none do. `turns` says whether
    threads take turns, and `free` are the steps if no thread waits there; None where that saves nothing."""

    changes: Changes
    now: Run
    run: Run
    others: Sequence[Changes]
    runs: Sequence[Run]
    apart: Run | None
    turns: bool = False
    free: Run | None = None

    @classmethod
    def of(cls, changes: Changes, others: Sequence[Changes] = ()) -> BoundCase:
        """Replays all of them."""
        model, apart = changes.model, _without_slices(changes)
        now, runs = as_run(model, model.graph.time, model.length), [run_of(each) for each in others]
        loose, run = loosened(changes), run_of(changes)
        free = None if loose is None else run_of(loose)
        kept = free if free is not None and free.ns < (1 - LEAST_ERROR) * run.ns else None
        return cls(changes, now, run, others, runs, None if apart is None else run_of(apart), loose is not None, kept)


class BoundRule(Struct, frozen=True):
    """Lengths of a step in ns that may be true as well as the likely one, and why: a sentence. `entangled`: more may be
    saved than what the changes take away."""

    why: str
    lengths: Callable[[BoundCase], Sequence[int]]
    entangled: bool = False


class Bounds(Struct, frozen=True):
    """The shortest and the longest length of a step in ns. `why` says why they are apart: sentences, none where only
    the spread of the steps is the reason; `shorter` is the one for the shortest length. `entangled`: more may be saved
    than what the changes take away."""

    low_ns: int
    high_ns: int
    why: Sequence[str] = ()
    entangled: bool = False
    shorter: str = ""


def bounds_of(case: BoundCase, error: float) -> Bounds:
    """The bounds of all rules, further apart by the spread of the steps and the `error` of the model, a share of the
    length. But no step is shorter than the kernels of the device that computes most."""
    now, run, model = case.now, case.run, case.changes.model
    found = [(rule, rule.lengths(case)) for rule in RULES]
    lengths = [run.ns, *(ns for _, each in found for ns in each)]
    error_ns = LEAST_ERROR * now.ns
    slack = round(max(error * now.ns, error_ns) + spread_of_mean(now.steps, run.steps // run.each))
    runs = [run, *case.runs, *(each for each in (case.apart, case.free) if each is not None)]
    kernels = min(computing(model, each) for each in runs)
    low = max(min(lengths) - slack, round(min(kernels, run.ns) - error_ns), 0)
    why = [rule.why for rule, each in found if any(abs(ns - run.ns) > slack for ns in each)]
    least, shorter = min(((min(each), rule.why) for rule, each in found if each), default=(run.ns, ""))
    entangled = any(rule.entangled for rule, each in found if each)
    return Bounds(low, max(lengths) + slack, why, entangled, shorter if least < run.ns - slack else "")


def _other_ways(case: BoundCase) -> Sequence[int]:
    return [each.ns for each in case.runs]


def _slices(case: BoundCase) -> Sequence[int]:
    """With less idle time kernels may also meet more of those of other processes, and nothing is saved."""
    return [] if case.apart is None else [case.apart.ns, case.now.ns]


def _uncertain(case: BoundCase) -> Sequence[int]:
    """Uncertain waits for threads are as long as recorded."""
    return [] if case.changes.certain else [run_of(case.changes, proven=True).ns]


def _called_before(case: BoundCase) -> Sequence[int]:
    """Threads that come to a wait only after it would have been ended go on at once: no thread has to wake them."""
    changes, run, model = case.changes, case.run, case.changes.model
    edges, program, ns = model.graph.edges, model.program, changes.edges()[0]
    mine, comes = edges.kind == EdgeKind.PROGRAM, np.zeros(len(program) + 1)
    comes[edges.row[mine]] = run.times[edges.source[mine]] + ns[mine]
    comes[:-1] -= program.lag * changes.lag
    row = model.program_into[model.places.woken]
    gone = (row >= 0) & changes.woken & (run.times[model.places.wake] <= comes[row])
    lag = changes.lag.copy()
    lag[row[gone]] = 0
    sooner = bool((lag * program.lag).sum() < (changes.lag * program.lag).sum())
    return [min(run_of(replace(changes, lag=lag)).ns, run.ns)] if sooner else []


def _woke_before(case: BoundCase) -> Sequence[int]:
    """Threads woke others up to LATE_NS before these are seen to go on: what they did since then need not be done
    first.

    ```
    waker    [works  ](posts)[works on ........]     half of what it works on: the other one is woken no sooner
    woken    [waits ..............][works
    ```
    """
    changes, model = case.changes, case.changes.model
    edges, woken, pieces = model.graph.edges, model.threads.woken, model.pieces
    if not (changes.time < 1).any() or woken.called.all() or not len(pieces):
        return []
    since = np.maximum(woken.at - LATE_NS, woken.begin)
    spans = model.on_axis(woken.waker, since, woken.at)
    ns = np.where(woken.called > 0, 0, pieces.parts_in(1 - changes.time, spans))
    wakes = edges.kind == EdgeKind.WAKE
    more = changes.more.copy()
    more[wakes] += ns[edges.row[wakes]]
    return [max(run_of(replace(changes, more=more)).ns, case.run.ns)] if ns.any() else []


def _possible(case: BoundCase) -> Sequence[int]:
    """Threads wait for what had come before, and return late: for requests, threads that they join, and devices."""
    changes, model = case.changes, case.changes.model
    edges = model.graph.edges
    mine = np.flatnonzero(edges.kind == EdgeKind.POSSIBLE)
    if not len(mine) or case.run.ns >= (1 - LEAST_ERROR) * case.now.ns:
        return []
    ns = [
        model.possible.lengths(model.pieces, time, length)
        for time, length in ((changes.time, changes.length), (np.ones_like(changes.time), model.length))
    ]
    more = changes.more.copy()
    more[mine] += (ns[0] - ns[1])[edges.row[mine]] + ANSWER_NS
    return [min(max(run_of(replace(changes, more=more), possible=True).ns, case.run.ns), case.now.ns)]


def _timed(case: BoundCase) -> Sequence[int]:
    """Waits that may have a time of their own grow by what is saved before them. So do synchronizations that outlast
    what they are known to wait for."""
    changes, model = case.changes, case.changes.model
    timed = model.threads.timed
    gone = bool((timed.sure > changes.paced).any()) or model.outlived.share > 0
    gone |= bool((model.graph.edges.kind == EdgeKind.HIDDEN).any())
    if not gone and not (changes.doubtful_times & np.isin(timed.sure, (0, JOINED))).any():
        return []
    pinned = run_of(changes, proven=True, pinned=True).ns
    # Also in steps that did not wait the time may have come but then.
    return [case.now.ns if not gone and 2 * pinned > case.now.ns + case.run.ns else pinned]


def _grids(case: BoundCase) -> Sequence[int]:
    """The next of the equal distances at which waits end has just come: a step is shorter by a whole one."""
    least, shortest = _at_once_ns(case.changes), _grids_ns(case.changes.model)
    return [least] if least < min(case.run.ns, (1 - LEAST_ERROR) * shortest) else []


@once
def _grids_ns(model: Model) -> int:
    """The length of a step as it is, if none waits for the next of equal distances."""
    return _at_once_ns(Changes.none(model))


def _at_once_ns(changes: Changes) -> int:
    model = changes.model
    inside = np.append(model.threads.timed.grid > 0, False)[model.timed_of_piece] | of_devices(model)
    return run_of(replace(changes, time=np.where(inside, 0.0, changes.time))).ns if inside.any() else NO_GRID


def _shared_cpus(case: BoundCase) -> Sequence[int]:
    """Threads that take the CPU of a launching thread do so at other times: never, or more often by chance."""
    kept, more = off_cpu_ns(case.changes)
    if kept < LEAST_ERROR * case.now.ns or abs(case.run.ns - case.now.ns) < LEAST_ERROR * case.now.ns:
        return []
    longer = max(min(case.run.ns + more, case.now.ns), case.run.ns)
    return [case.run.ns - kept, longer]


def _outlasting(case: BoundCase) -> Sequence[int]:
    """Synchronizations end with what they are known to wait for."""
    return [min(case.run.ns, run_of(case.changes, brief=True).ns)] if case.changes.model.outlived.share > 0 else []


def _source(case: BoundCase) -> Sequence[int]:
    """A source outside of the program that is asked in each step is no faster."""
    saves = case.run.ns < (1 - LEAST_ERROR) * case.now.ns
    return [case.now.ns] if saves and source_may_limit(case.changes) else []


def _followers(case: BoundCase) -> Sequence[int]:
    """A thread that follows the steps, and was seldom waited for, is once they are shorter than its work. What the
    changes take out of its work is gone."""
    changes, now, run = case.changes, case.now, case.run
    beside, pieces, axis = changes.model.beside, changes.model.pieces, changes.model.host.host.axis
    if run.ns >= (1 - LEAST_ERROR) * now.ns or not len(beside.followers):
        return []
    gone = (pieces.end - pieces.start) * (1 - changes.time)
    taken = np.append(np.bincount(pieces.start // axis.stride, gone, len(axis.threads)), 0.0)  # 0 where not replayed
    left = beside.follower_ns - taken[axis.lane(beside.followers)] / changes.model.stretch.count
    longest = round(
        max(map(_with_uneven, left.tolist(), beside.follower_ns.tolist(), beside.each_ns, [run.ns] * len(left)))
    )
    return [min(longest, now.ns)] if longest > run.ns else []


def _with_uneven(left: float, works_ns: int, each: IntArray, step_ns: int) -> float:
    """How long a step is with a thread of which `left` ns of its work in each are left. Where it works for any time
    from wait to wait, each of its longer turns may be waited for: few results fit between it and the steps."""
    if not len(each):
        return left
    turns = each * (left / max(works_ns, 1))
    per_step = left / max(float(turns.mean()), 1.0)
    return max(left, float(np.maximum(turns, step_ns / max(per_step, 1.0)).mean()) * per_step)


def _helpers(case: BoundCase) -> Sequence[int]:
    """Threads that launch next to the steps, and work ahead of them, are waited for."""
    if case.run.ns >= (1 - LEAST_ERROR) * case.now.ns:
        return []
    longest = min(of_helpers(case.changes, case.now), case.now.ns)
    return [longest] if longest > case.run.ns else []


def _other_targets(case: BoundCase) -> Sequence[int]:
    """Synchronizations are for what other threads have launched by then."""
    return [min(each, max(case.now.ns, case.run.ns)) for each in of_other_targets(case.changes, case.run)]


def _disk(case: BoundCase) -> Sequence[int]:
    """A disk from which threads read at once is no faster than it was."""
    busy = max(reads_ns(each) for each in (case.changes, *case.others))
    return [min(busy, case.now.ns)] if busy > case.run.ns else []


def _mpi_peers(case: BoundCase) -> Sequence[int]:
    """The peers are late for another reason, or end as much sooner as the same changes make them, however they are
    made. Waits that are taken out bring a peer no more than they bring a rank that waits for none. Each rank may wait
    for one that waits."""
    made = zip((case.changes, *case.others), (case.run, *case.runs), strict=True)
    sooner = [ns for changes, run in made if (ns := _prompt_peers(changes, run)) is not None]
    return [case.now.ns, *sooner] if sooner else []


def _prompt_peers(changes: Changes, run: Run) -> int | None:
    """The length of a step if all peers end as much sooner as they can; None where hardly any is waited for."""
    prompt, before = without_waits(changes), _prompt_ns(changes.model)
    if prompt is None or before is None:
        return None
    least, sooner = run_of(prompt).ns, most_sooner(changes)
    if takes_out_waits(changes):
        sooner += max(before - least, 0)
    sooner *= in_a_row(changes.model)
    return max(least, math.ceil(max(run.ns - sooner, 0)))


def _unsure_messages(case: BoundCase) -> Sequence[int]:
    """Calls that exchange messages do not wait for calls of which it is not known whether they have to."""
    changes, unsure = case.changes, case.changes.model.unsure_arrivals
    return [run_of(replace(changes, dropped=changes.dropped | unsure)).ns] if unsure.any() else []


def _beside(case: BoundCase) -> Sequence[int]:
    """Work next to the steps, which may belong to them, does."""
    now, run, changes = case.now, case.run, case.changes
    if not (changes.model.step_work == StepWork.MAYBE).any():
        return []
    first, each = changes.counted.tolist()
    whole = [borders_of(changes.model, one.start, one.end, first, each, StepWork.MAYBE) for one in (now, run)]
    return [now.ns - round((mean_step(whole[0]) - mean_step(whole[1])) / run.each)]


def _other_loops(case: BoundCase) -> Sequence[int]:
    """Steps that no range names are not those that were found, but what another thread does in a loop of its own. In a
    window without steps each of several threads may be meant. Who works for less than half of the time has no loop."""
    model, now = case.changes.model, case.now
    if model.stretch.named:
        return []
    thread = model.launched_by
    several = (thread != thread[0]).any() and not model.stretch.stepwise
    found = []
    for other in distinct_values(thread[((model.step_work < StepWork.OWN) | several) & (thread >= 0)]).tolist():
        was, took = (int(np.ptp(one.end[thread == other])) for one in (now, case.run))
        if 2 * was >= model.stretch.end - model.stretch.begin:
            found.append(round(now.ns * took / was))
    return found


def _turns(case: BoundCase) -> Sequence[int]:
    """Who is faster waits for all that the others do in a step, at most until nothing is saved; or no thread waits
    where threads take turns, but no more is saved than the changes take out."""
    model = case.changes.model
    if case.free is None:
        # Who is faster may wait for a lock more often.
        turns = case.turns and (met_by_chance(model).any() or (model.unknown_waits & model.in_calls(LOCKS)).any())
        return [min(case.now.ns, case.run.ns + others_work_ns(model))] if turns else []
    held = min(case.now.ns, max(case.run.ns, case.free.ns + others_work_ns(model)))
    return [held, round(max(case.now.ns - taken_out(case.changes), case.free.ns))]


def _unpaired(case: BoundCase) -> Sequence[int]:
    """Kernels that send or receive last as long as they did, as their peers are late for another reason; or none waits
    for its peer any more."""
    changes, model = case.changes, case.changes.model
    if not model.unpaired.any():
        return []
    alone, length = np.flatnonzero(model.unpaired), changes.length.copy()
    least = np.full(len(model.names.texts), np.iinfo(np.int64).max)
    np.minimum.at(least, model.names.short[alone], model.length[alone])
    length[alone] = np.minimum(length[alone], least[model.names.short[alone]])
    return [case.now.ns, run_of(replace(changes, length=length)).ns]


def _polls(case: BoundCase) -> Sequence[int]:
    """Who sleeps between queries notices sooner or later that a device has finished."""
    return with_other_sleeps(case.changes, case.run)


def _gaps(case: BoundCase) -> Sequence[int]:
    """Queued operations follow each other sooner, or later, than usual."""
    return with_other_gaps(case.changes, case.run)


def _staged(case: BoundCase) -> Sequence[int]:
    """Uploads from pageable memory may be staged only once their stream is empty, also where it always was.

    ```
    thread   [launch][sync.....][cudaMemcpy.......]      without   [launch][cudaMemcpy................]
    stream            [==k====)        [= copy =)       the sync           [==k====)          [= copy =)
    staging                    [======]                                             [========]
    ```
    """
    changes, model = case.changes, case.changes.model
    edges = model.graph.edges
    uploads = model.uploads & np.isin(model.work.launch, model.threads.held.call[changes.held])
    staging = np.zeros(len(model.graph.time), dtype=np.int64)
    staging[model.places.operation] = np.where(uploads, changes.costs(), 0)
    more = np.where(edges.kind == EdgeKind.STREAM, staging[edges.target], 0)
    return [max(run_of(replace(changes, more=changes.more + more)).ns, case.run.ns)] if more.any() else []


def _staged_behind(case: BoundCase) -> Sequence[int]:
    """Uploads from pageable memory were staged while their stream was busy, which no row shows: for as long, next to
    the copy itself, as others were that are seen; all of that time, where none is.

    ```
    thread   [launch][cudaMemcpy: staging? ..... ]      a shorter kernel leaves less of the call
    stream           [== k ==============)[= copy =)
    ```
    """
    changes, model, now = case.changes, case.changes.model, case.now
    held = np.isin(model.work.launch, model.threads.held.call[changes.held])
    hidden = np.where(held, hidden_staging(model), 0)
    # One that was late may have been staged from its call on, not only once the stream was empty.
    late = held & model.staged
    since = np.where(late, np.maximum(model.work.start - model.work.issued, 0), 0)
    found = []
    if hidden.any():
        longer = run_of(replace(changes, cost=np.maximum(changes.cost, hidden))).ns
        found += [min(max(longer, case.run.ns), now.ns)]
    if late.any():
        early = replace(changes, cost=np.maximum(changes.cost, since), prompt=changes.prompt | late)
        found += [min(run_of(early).ns, max(now.ns, case.run.ns))]
    return found


def hidden_staging(model: Model) -> IntArray:
    """For how long each upload from pageable memory may have been staged while its stream was busy, in ns."""
    work, cost = model.work, model.cost
    seen = model.uploads & (cost > 0) & ~model.staged
    usual = float(np.quantile(cost[seen] / np.maximum(work.length[seen], 1), MOSTLY)) if seen.any() else np.inf
    busy = np.where(model.uploads & (cost == 0) & ~model.staged, np.maximum(work.start - work.issued, 0), 0)
    found: IntArray = np.minimum(busy, usual * np.maximum(work.length, 1) + LATENCY_NS).astype(np.int64)
    return found


def _explained(case: BoundCase) -> Sequence[int]:
    """Operations do not start late where other rows explain why they did; or all pages move only once what is before
    them in their stream has ended.

    ```
    launch   [l]                        pages move while the launch is on its way
    stream   [== k0 ==).[pages][= k1 =)
    sooner   [== k0 ==)[pages].[= k1 =)
    ```
    """
    changes, model = case.changes, case.changes.model
    if not model.explained.any():
        return []
    graph, operation = model.graph, model.places.operation
    late = np.zeros(len(graph.time), dtype=np.int64)
    late[operation] = model.paging - graph.residual[operation]
    more = np.maximum(late[graph.edges.target] - np.maximum(graph.edges.ns - graph.asked, 0), 0)
    more[graph.edges.kind != EdgeKind.STREAM] = 0
    behind = run_of(replace(changes, more=changes.more + more)).ns
    prompt = run_of(replace(changes, prompt=changes.prompt | model.explained)).ns
    return [min(prompt, case.run.ns), min(behind, max(case.now.ns, case.run.ns))]


def _followed(case: BoundCase) -> Sequence[int]:
    """Operations do not wait for work that they only followed, and threads not for unknown ones; but no more is saved
    than is taken out."""
    changes, now = case.changes, case.now
    if changes.complete:
        return []
    every = (changes, *case.others)
    least = min(map(_unobserved_ns, every))
    alike = now.ns - _all_unobserved_ns(changes.model) + least
    # Of threads that are known by some of their waits alone, the others are not in the replay.
    least = min(least, case.run.ns - unknown_ns(changes.model))
    return [min(alike, case.run.ns), min(max(least, now.ns - most_removed_ns(every)), case.run.ns)]


def _unobserved_ns(changes: Changes) -> int:
    """The length of a step, if no operation waits for work that it only followed, and no thread for unknown ones."""
    found = replace(changes, time=np.where(changes.model.asks_again, 0.0, changes.time))
    return run_of(found, observed=False).ns


@once
def _all_unobserved_ns(model: Model) -> int:
    """The same of the program as it is."""
    return _unobserved_ns(Changes.none(model))


@once
def _prompt_ns(model: Model) -> int | None:
    """The same if no call of MPI waits for a rank; None where hardly any does."""
    prompt = without_waits(Changes.none(model))
    return None if prompt is None else run_of(prompt).ns


def _slowed(case: BoundCase) -> Sequence[int]:
    """Recording functions takes host time, too, which the program alone does not need."""
    changes, model = case.changes, case.changes.model
    shorter = bool((changes.time < 1).any() or (changes.cost < model.cost).any())
    return [case.now.ns] if shorter and len(model.host.host.functions) else []


RULES = (
    BoundRule("How much the change itself brings depends on how it is made.", _other_ways),
    BoundRule("Kernels of several processes share the GPU: with other gaps they meet at other times.", _slices, True),
    BoundRule("Some waits for threads have no waker that is sure.", _uncertain),
    BoundRule("Threads that come later to a wait do not have to be woken.", _called_before),
    BoundRule(
        "Threads wake others a little before these go on: what they did since then may be for later.", _woke_before
    ),
    BoundRule("Threads may have to wait for what had come before: requests, other threads, or the device.", _possible),
    BoundRule("Some waits may end at a time of their own: they grow by what is saved before them.", _timed),
    BoundRule("Some waits end at the next of equal distances: a whole one may be saved.", _grids, True),
    BoundRule("Other threads take the CPU of a launching thread now and then.", _shared_cpus, True),
    BoundRule("Some synchronizations last longer than what they are known to wait for.", _outlasting),
    BoundRule("A source outside of the program may be no faster than it was.", _source),
    BoundRule("A thread follows the steps, and may take longer than they do then.", _followers),
    BoundRule("A thread that launches next to the steps is ahead of them, and may not be then.", _helpers),
    BoundRule("Some synchronizations are for what another thread has launched by then.", _other_targets),
    BoundRule("Threads read files at once: the disk may be no faster than it was.", _disk),
    BoundRule("Calls of MPI wait for a rank, and the trace does not say for which of its calls.", _mpi_peers, True),
    BoundRule("Some calls of MPI may not have to wait for their peers.", _unsure_messages),
    BoundRule("Work next to the steps may belong to them.", _beside),
    BoundRule("Another thread has a loop of its own, and no range says which of both is meant.", _other_loops),
    BoundRule("Threads take turns, as with a lock: with shorter steps they meet at other times.", _turns),
    BoundRule("Kernels that send or receive are not paired with those of their peers.", _unpaired),
    BoundRule("A thread asks for the device and sleeps between: it notices later that the work is done.", _polls),
    BoundRule("Hardly any operation was queued: how soon queued ones follow each other is not known.", _gaps),
    BoundRule("Uploads from pageable memory may be staged once their stream is empty.", _staged),
    BoundRule("Uploads from pageable memory may have been staged while their stream was busy.", _staged_behind),
    BoundRule("Recording operators and functions slows the host: how much of its time this takes is unknown.", _slowed),
    BoundRule("Some operations start late for a reason that other rows show.", _explained),
    BoundRule("Some operations and threads wait for something that is not in the trace.", _followed),
)


def _without_slices(changes: Changes) -> Changes | None:
    """The same with kernels that meet none of another process, None where none do. With less idle time they may also
    meet more of them, and nothing is saved."""
    model = changes.model
    left = 1 - model.beside_others / np.maximum(model.work.length, 1)
    return replace(changes, length=np.round(changes.length * left).astype(np.int64)) if (left < 1).any() else None


def computing(model: Model, run: Run) -> float:
    """How long the device that computes most does so in a step, in ns."""
    own = model.step_work == StepWork.OWN
    return max(busy(model, run, each, [Class.COMPUTE], own).total() for each in model.devices) / run.count


def spread_of_mean(now: IntArray, then: IntArray) -> float:
    """The uncertainty of the mean saving of a step: half of the middle 95% of its means in samples of the steps."""
    count = min(len(now), len(then))
    if count < 2:
        return 0.0
    saved: FloatArray = (now[:count] - then[:count]).astype(np.float64)
    picks = np.random.default_rng(SEED).integers(0, count, (SAMPLES, count))
    low, high = np.percentile(saved[picks].mean(axis=1), SPREAD)
    return float(high - low) / 2
