"""The bounds of a prediction: each rule is a reason why the trace cannot tell it more exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.background import ALONE, Background
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import group_totals
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, union
from nsysdiag.causes import PLACE, PREEMPTION
from nsysdiag.causes.thread_states import untraced_code
from nsysdiag.events.identity import process_of
from nsysdiag.replay import device_rules as device
from nsysdiag.replay.beside import ANSWER_NS, REGULAR, Follower, StepWork, begin_steps
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.entangled import BoundCase, followed, turns
from nsysdiag.replay.fixes import reads_ns
from nsysdiag.replay.helpers import helpers, unseen_helpers
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.moments import EdgeKind
from nsysdiag.replay.pacing import JOINED, NEXT, QUOTA
from nsysdiag.replay.run import Run, borders_of, busy, mean_step, run_of, unchanged
from nsysdiag.replay.sources import (
    in_a_row,
    most_sooner,
    of_devices,
    source_may_limit,
    takes_out_waits,
    unseen_may_limit,
    without_waits,
)
from nsysdiag.replay.work import LEAST_ERROR, Class

SAMPLES, SEED, SPREAD = 200, 1, (2.5, 97.5)
"""For the uncertainty of a step's mean saving: so many samples of the steps, drawn with a fixed seed, and the
percentiles of their means. SPREAD leaves the middle 95%: a wider one moves the bounds apart. More samples take longer,
with fewer the bounds depend on the draw. With the seed each run gives the same bounds."""
LATE_NS = 70_000
"""Threads that were woken went on up to 70 µs later in captured programs."""
MOST_STREAMS = 8
"""Streams whose kernels may meet at other times, those with most kernel time. More take longer, and move no bound: of
all streams the one that computes longest decides."""
FIRST_PART = 0.1
"""Of the operations of a window: as a step of ten, or more of shorter ones. As SETTLING does for steps. A larger part
would say less of all of it."""
MOST_APART = 0.25
"""Of the length: a prediction whose bounds are further apart says only that it cannot tell."""
UNPROVEN = "Most of the idle time has no evidence of what the host did: that may take the time as well."
NO_GRID = np.iinfo(np.int64).max


class BoundRule(Struct, frozen=True):
    """Lengths of a step in ns that may be true as well as the likely one, and why: a sentence. `entangled`: more may be
    saved than what the changes take away. `elsewhere`: the kernels of the steps say nothing about these lengths."""

    why: str
    lengths: Callable[[BoundCase], Sequence[int]]
    entangled: bool = False
    elsewhere: bool = False


class Prediction(Struct, frozen=True):
    """The steps or the window as they were (`now`) and with `changes` (`run`), and between which bounds the length of a
    step is, in ns. `why` says why the bounds are apart: sentences, none if only the spread of the steps is the reason;
    `shorter` is the one for the shortest length. `entangled`: more may be saved than what the changes take away, as if
    processes share a GPU, or ranks wait for each other."""

    changes: Changes
    now: Run
    run: Run
    low_ns: int
    high_ns: int
    why: Sequence[str] = ()
    entangled: bool = False
    shorter: str = ""

    @property
    def cannot_tell(self) -> bool:
        """Whether the bounds are too far apart for the predicted length to say anything."""
        return self.high_ns - self.low_ns > MOST_APART * self.now.ns

    def saving(self, most: float, taken_ns: int | None = None) -> Prediction:
        """The same, but no more than this share is saved; what is entangled may save more. Kernels in several streams
        of one process may run at the same time then, though they did not; those of several take turns. No more is saved
        than `taken_ns`, if it is given. The share is of all judged time: if others work on the device, too, it is
        none of the steps, and the replayed steps may differ from the rest by their spread."""
        model = self.changes.model
        if (model.step_work < StepWork.OWN).any() and taken_ns is None:
            return self
        least, kernels = math.ceil((1 - most) * self.now.ns), computing(model, self.run)
        if len(distinct_values(process_of(model.launched_by))) == 1:
            least -= max(round(computing(model, self.now) - kernels), 0)
        least = max(least, round(kernels))
        least = least if taken_ns is None else max(least, self.now.ns - taken_ns)
        run = replace(self.run, longer=max(least - self.run.ns, 0))
        less = StepSamples.of(self.now.steps, self.run.steps // self.run.each).spread if self.now.count > 1 else 0.0
        less += kernels - _least_computing(model, self.run, kernels)
        low_ns = min(self.low_ns, run.ns) if self.entangled else max(self.low_ns, least - round(less))
        return replace(self, run=run, low_ns=low_ns, high_ns=max(self.high_ns, least))

    def unproven(self) -> Prediction:
        """The same, but nothing may be saved: what the host did around it has no evidence, and may take the time."""
        return replace(self, high_ns=max(self.high_ns, self.now.ns), why=[*self.why, UNPROVEN])


def prediction_of(
    changes: Changes, error: float, others: Sequence[Changes] = (), background: Background = ALONE
) -> Prediction:
    """The prediction of changes, which may be made in `others` ways as well. Its bounds are those of all rules, further
    apart by the spread of the steps and the `error` of the model. That is a share of the length. But no step is shorter
    than the kernels of the device that computes most."""
    case = BoundCase.of(changes, others)
    now, run, model = case.now, case.run, case.model
    found = list(zip(RULES, background.each(lambda rule: rule.lengths(case), [*RULES]), strict=True))
    lengths = [run.ns, *(ns for _, each in found for ns in each)]
    error_ns = LEAST_ERROR * now.ns
    slack = round(
        max(error * now.ns, error_ns) + model.hidden * now.ns + StepSamples.of(now.steps, run.steps // run.each).spread
    )
    runs = [run, *case.runs, *case.unobserved, *(each for each in (case.apart, case.free) if each is not None)]
    kernels = min(_least_computing(model, each, computing(model, each)) for each in runs)
    low = max(min(lengths) - slack, round(min(kernels, run.ns) - error_ns), 0)
    low = min([low, *(ns - slack for rule, each in found if rule.elsewhere for ns in each)])
    why = [rule.why for rule, each in found if any(abs(ns - run.ns) > slack for ns in each)]
    least, shorter = min(((min(each), rule.why) for rule, each in found if each), default=(run.ns, ""))
    entangled = any(rule.entangled for rule, each in found if each)
    shorter = shorter if least < run.ns - slack else ""
    return Prediction(changes, now, run, low, max(lengths) + slack, why, entangled, shorter)


def _other_ways(case: BoundCase) -> Sequence[int]:
    return [each.ns for each in case.runs]


def _uncertain(case: BoundCase) -> Sequence[int]:
    """Uncertain waits for threads are as long as recorded."""
    return [] if case.changes.certain else [case.ns(proven=True)]


def _called_before(case: BoundCase) -> Sequence[int]:
    """Threads that come to a wait only after it would have been ended go on at once: no thread has to wake them."""
    changes, run, model = case.changes, case.run, case.model
    row = model.program_into[model.places.woken]
    comes = device.arrivals(changes, run, case.lengths, model.places.woken, model.threads.woken.begin)
    lag = changes.lag.copy()
    lag[row[(row >= 0) & changes.woken & (run.times[model.places.wake] <= comes)]] = 0
    sooner = (lag * model.program.lag).sum() < (changes.lag * model.program.lag).sum()
    return [min(case.ns(lag=lag), run.ns)] if sooner else []


def _woke_before(case: BoundCase) -> Sequence[int]:
    """Threads woke others up to LATE_NS before these are seen to go on: what they did since then need not be done
    first.

    ```
    waker    [works  ](posts)[works on ........]     half of what it works on: the other one is woken no sooner
    woken    [waits ..............][works
    ```
    """
    changes, model = case.changes, case.model
    edges, woken, pieces = model.graph.edges, model.threads.woken, model.pieces
    if not (changes.time < 1).any() or woken.called.all() or not len(pieces):
        return []
    since = np.maximum(woken.at - LATE_NS, woken.begin)
    spans = model.on_axis(woken.waker, since, woken.at)
    ns = np.where(woken.called > 0, 0, pieces.parts_in(1 - changes.time, spans))
    wakes, more = model.graph.rows[EdgeKind.WAKE], changes.more.copy()
    more[wakes] += ns[edges.row[wakes]]
    return [max(case.ns(more=more), case.run.ns)] if ns.any() else []


def _possible(case: BoundCase) -> Sequence[int]:
    """Threads wait for what had come before, and return late: for requests, threads that they join, and devices."""
    changes, model = case.changes, case.model
    edges, mine = model.graph.edges, model.graph.rows[EdgeKind.POSSIBLE]
    if not len(mine) or not case.saves:
        return []
    ns = model.possible.lengths(model.pieces, changes.time, changes.length)
    more = changes.more.copy()
    more[mine] += (ns - _recorded_waits(model))[edges.row[mine]] + ANSWER_NS
    return [min(max(case.ns(more=more, possible=True), case.run.ns), case.now.ns)]


@once
def _recorded_waits(model: Model) -> IntArray:
    """The lengths of the edges of these waits as it was, in ns."""
    return model.possible.lengths(model.pieces, np.ones(len(model.pieces)), model.length)


def _timed(case: BoundCase) -> Sequence[int]:
    """Waits that may have a time of their own grow by what is saved before them. So do synchronizations that outlast
    what they are known to wait for."""
    changes, model = case.changes, case.model
    timed = model.threads.timed
    gone = bool((timed.sure > changes.paced).any()) or model.outlived.share > 0
    gone |= bool((model.graph.edges.kind == EdgeKind.HIDDEN).any())
    if not gone and not (changes.doubtful_times & np.isin(timed.sure, (0, JOINED))).any():
        return []
    pinned = case.ns(proven=True, pinned=True)
    # Also in steps that did not wait the time may have come but then.
    return [case.now.ns if not gone and 2 * pinned > case.now.ns + case.run.ns else pinned]


def _grids(case: BoundCase) -> Sequence[int]:
    """The next of the equal distances at which waits end has just come: a step is shorter by a whole one."""
    least, shortest = _at_once_ns(case.changes), _grids_ns(case.model)
    return [least] if least < min(case.run.ns, (1 - LEAST_ERROR) * shortest) else []


def _quotas(case: BoundCase) -> Sequence[int]:
    """A thread that has less to do, or spins for less long, may never use up its share of the CPUs."""
    changes, model = case.changes, case.model
    spared = (changes.time < 1).any() or len(model.threads.held) > 0 or not changes.woken.all()
    return [min(case.run.ns, _at_once_ns(changes, QUOTA))] if spared and _of_quotas(model).any() else []


@once
def _grids_ns(model: Model) -> int:
    """The length of a step as it is, if none waits for the next of equal distances."""
    return _at_once_ns(Changes.none(model))


def _of_quotas(model: Model) -> BoolArray:
    """Which pieces of host time are stops by a limit of CPU time."""
    return np.append(model.threads.timed.grid == QUOTA, False)[model.timed_of_piece]


def _at_once_ns(changes: Changes, grid: int = NEXT) -> int:
    """The length of a step if none of the waits of this `grid` takes time; NO_GRID if there is none."""
    model = changes.model
    inside = np.append(model.threads.timed.grid == grid, False)[model.timed_of_piece]
    inside |= of_devices(model) & (grid == NEXT)
    return run_of(replace(changes, time=np.where(inside, 0.0, changes.time))).ns if inside.any() else NO_GRID


def _shared_cpus(case: BoundCase) -> Sequence[int]:
    """Threads that take the CPU of a launching thread do so at other times: never, or more often by chance. They may
    take it in waits as well, and seldom do at all.

    ```
    thread   [prepares].......[prepares][launch][synchronizes ...............][prepares]
    other              [packs]                            [packs]
                       delays the launch                  delays nothing
    ```
    """
    changes, model, pieces = case.changes, case.model, case.model.pieces
    taken = (pieces.cause == PLACE[PREEMPTION]) & np.isin(model.program.thread[pieces.owner], model.launching)
    taken &= (pieces.label != untraced_code(model.named.labels)) & ~_of_quotas(model)
    ns, count = int(pieces.length[taken].sum()) // model.stretch.count, int(taken.sum())
    little = LEAST_ERROR * case.now.ns
    if not count or (changes.time[taken] < 1).any() or ns < little or abs(case.run.ns - case.now.ns) < little:
        return []
    more = round(ns * (2 * np.sqrt(count) + 2) / count)
    return [case.run.ns - ns, max(min(case.run.ns + more, case.now.ns), case.run.ns)]


def _outlasting(case: BoundCase) -> Sequence[int]:
    """Synchronizations end with what they are known to wait for."""
    return [min(case.run.ns, case.ns(brief=True))] if case.model.outlived.share > 0 else []


def _source(case: BoundCase) -> Sequence[int]:
    """A source outside of the program that is asked in each step is no faster."""
    return [case.now.ns] if case.saves and source_may_limit(case.changes) else []


def _unseen_source(case: BoundCase) -> Sequence[int]:
    """What host time without evidence waits for, if it waits, is no faster."""
    return [case.now.ns] if case.saves and unseen_may_limit(case.changes) else []


def _followers(case: BoundCase) -> Sequence[int]:
    """A thread that follows the steps, and was seldom waited for, is once they are shorter than its work. What the
    changes take out of its work is gone."""
    changes, now, run = case.changes, case.now, case.run
    beside, pieces, axis = changes.model.beside, changes.model.pieces, changes.model.host.host.axis
    if not case.saves or not beside.followers:
        return []
    gone = pieces.length * (1 - changes.time)
    taken = np.append(np.bincount(pieces.start // axis.stride, gone, len(axis.threads)), 0.0)  # 0 if not replayed
    gone_ns = taken[axis.lane(np.array([each.thread for each in beside.followers]))] / changes.model.stretch.count
    left = (each.works_ns - ns for each, ns in zip(beside.followers, gone_ns.tolist(), strict=True))
    longest = round(max(_with_uneven(*each, run.ns) for each in zip(left, beside.followers, strict=True)))
    return [min(longest, now.ns)] if longest > run.ns else []


def _with_uneven(left: float, follower: Follower, step_ns: int) -> float:
    """How long a step is with a thread of which `left` ns of its work in each are left. If it works for any time
    from wait to wait, each of its longer turns may be waited for: few results fit between it and the steps."""
    if not len(follower.turns_ns):
        return left
    turns = follower.turns_ns * (left / max(follower.works_ns, 1))
    per_step = left / max(float(turns.mean()), 1.0)
    return max(left, float(np.maximum(turns, step_ns / max(per_step, 1.0)).mean()) * per_step)


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
    """The length of a step if all peers end as much sooner as they can; None if hardly any is waited for."""
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
    edges = case.model.graph.edges
    unsure = (edges.kind == EdgeKind.MEETING) & (edges.row >= 0)
    return [case.ns(dropped=case.changes.dropped | unsure)] if unsure.any() else []


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
    window without steps each of several threads may be meant, whatever ranges there are."""
    model, thread = case.model, case.model.launched_by
    if model.stretch.named and model.stretch.stepwise:
        return []
    several = (thread != thread[0]).any() and not model.stretch.stepwise
    return _of_threads(case, distinct_values(thread[((model.step_work < StepWork.OWN) | several) & (thread >= 0)]))


def _of_threads(case: BoundCase, threads: IntArray) -> Sequence[int]:
    """The lengths of a step, if it is shorter by as much as the loop of each of the threads. Who works for less than
    half of the time has no loop."""
    stretch, thread = case.model.stretch, case.model.launched_by
    loops = [[int(np.ptp(run.end[thread == each])) for run in (case.now, case.run)] for each in threads.tolist()]
    return [round(case.now.ns * took / was) for was, took in loops if 2 * was >= stretch.end - stretch.begin]


def _same_loops(case: BoundCase) -> Sequence[int]:
    """Several threads take the steps in turns, or each takes all of them: one may leave the others behind.

    ```
    A    [step 0]        [step 2]        [step 4]
    B            [step 1]        [step 3]              A needs less time for each than B, and is ahead of it then
    ```
    """
    return _of_threads(case, _alike(case.model))


@once
def _alike(model: Model) -> IntArray:
    """The threads of a process that launch the kernel with which most steps begin, as often as any of them; none if
    only one does. In a window it is the kernel that takes most time. Ranks, of which each has a process, go on
    together."""
    names, thread, stepwise = model.names.short, model.launched_by, model.stretch.stepwise
    launched = (model.work.kind == Class.COMPUTE) & (thread >= 0)
    first = begin_steps(model.work, thread, model.stretch) if stepwise else launched
    if not first.any():
        return np.empty(0, dtype=np.int64)
    weight = None if stepwise else model.work.length[first]
    same = (names == np.bincount(names[first], weight).argmax()) & launched
    threads, count = np.unique(thread[same], return_counts=True)
    threads = threads[count >= REGULAR * count.max(initial=0)]
    _, process, several = np.unique(process_of(threads), return_inverse=True, return_counts=True)
    return threads[several[process] > 1]


@once
def _prompt_ns(model: Model) -> int | None:
    """The same if no call of MPI waits for a rank; None if hardly any does."""
    prompt = without_waits(Changes.none(model))
    return None if prompt is None else run_of(prompt).ns


def _whole_groups(case: BoundCase) -> Sequence[int]:
    """Only whole groups of steps say what an average step saves, whichever steps these begin with.

    ```
    steps    [trains][trains][trains][evaluates][trains][trains][trains][evaluates][trains
             |------------- a group -----------||-------------- a group ----------|        and a part of one
    ```
    """
    now, run, group = case.now, case.run, case.model.stretch.group
    steps = len(now.steps)
    whole = steps - steps % group
    if group < 2 or whole in (0, steps) or len(run.steps) != steps:
        return []
    was, took = (each.borders[whole:] - each.borders[:-whole] for each in (now, run))
    found = now.ns * took / np.maximum(was, 1)
    return [round(float(found.min())), round(float(found.max()))]


def _queued_before(case: BoundCase) -> Sequence[int]:
    """A window that begins in the middle of a program, without its first part. It does not show what was queued then:
    with the changes that may be more, and the first operations need not wait for theirs.

    ```
    recorded  ..[==)  |   [launch][==)   [launch][==)   [launch][==)
    replayed          |   [launch][==)[==)[==)                       the first launch is in no time of a device
    program   ..[==)[==)[==)[==)                                     but was behind its queue
    ```
    """
    work, stretch, model = case.model.work, case.model.stretch, case.model
    rows = np.flatnonzero(work.start < stretch.end)
    first = rows[np.argsort(work.start[rows], kind="stable")][: round(FIRST_PART * len(rows))]
    if stretch.stepwise or not len(first) or model.first[model.devices].min() >= stretch.begin:
        return []
    # Each of these may end the first step.
    was, took = (each.borders[-1] - np.maximum.accumulate(each.end[first]) for each in (case.now, case.run))
    found = case.now.ns * took / np.maximum(was, 1)
    return [round(float(found.min())), round(float(found.max()))]


def _slowed(case: BoundCase) -> Sequence[int]:
    """Recording functions takes host time, too, which the program alone does not need."""
    changes, model = case.changes, case.model
    shorter = bool((changes.time < 1).any() or (changes.cost < model.cost).any())
    return [case.now.ns] if shorter and len(model.host.host.functions) else []


RULES = (
    BoundRule("How much the change itself brings depends on how it is made.", _other_ways),
    BoundRule(
        "Kernels of several processes share the GPU: with other gaps they meet at other times.", device.slices, True
    ),
    BoundRule("Some waits for threads have no waker that is sure.", _uncertain),
    BoundRule("Threads that come later to a wait do not have to be woken.", _called_before),
    BoundRule(
        "Threads wake others a little before these go on: what they did since then may be for later.", _woke_before
    ),
    BoundRule("Threads may have to wait for what had come before: requests, other threads, or the device.", _possible),
    BoundRule("Some waits may end at a time of their own: they grow by what is saved before them.", _timed),
    BoundRule("Some waits end at the next of equal distances: a whole one may be saved.", _grids, True),
    BoundRule(
        "Threads are stopped at equal distances, as if their CPU time is limited: less work may spare that.",
        _quotas,
        True,
    ),
    BoundRule("Other threads take the CPU of a launching thread now and then.", _shared_cpus, True),
    BoundRule("Some synchronizations last longer than what they are known to wait for.", _outlasting),
    BoundRule("A source outside of the program may be no faster than it was.", _source),
    BoundRule("OS calls were not captured: time between CUDA calls may be a wait.", _unseen_source),
    BoundRule("A thread follows the steps, and may take longer than they do then.", _followers),
    BoundRule("A thread that launches next to the steps is ahead of them, and may not be then.", helpers),
    BoundRule("OS calls were not captured: another thread that launches may be waited for.", unseen_helpers),
    BoundRule("Some synchronizations are for what another thread has launched by then.", device.other_targets),
    BoundRule("Threads read files at once: the disk may be no faster than it was.", _disk),
    BoundRule("Calls of MPI wait for a rank, and the trace does not say for which of its calls.", _mpi_peers, True),
    BoundRule("Some calls of MPI may not have to wait for their peers.", _unsure_messages),
    BoundRule("Work next to the steps may belong to them.", _beside),
    BoundRule("Another thread has a loop of its own, and no range says which of both is meant.", _other_loops),
    BoundRule("Several threads do the same, each at a pace of its own.", _same_loops, elsewhere=True),
    BoundRule("Several unlike steps repeat together, and the replay holds a part of such a group.", _whole_groups),
    BoundRule("Work was queued when the window began, which the replay does not hold.", _queued_before),
    BoundRule("Threads take turns, as with a lock: with shorter steps they meet at other times.", turns),
    BoundRule("Kernels that send or receive are not paired with those of their peers.", device.unpaired),
    BoundRule("A thread asks for the device and sleeps between: it notices later that the work is done.", device.polls),
    BoundRule("Hardly any operation was queued: how soon queued ones follow each other is not known.", device.gaps),
    BoundRule("Uploads from pageable memory may be staged once their stream is empty.", device.staged),
    BoundRule("Uploads from pageable memory may have been staged while their stream was busy.", device.staged_behind),
    BoundRule("Copies to the host may start sooner if their call does not wait.", device.staged_downloads),
    BoundRule(
        "Functions that streams call on the host were not recorded: they may be shorter, or waited for.",
        device.functions,
        elsewhere=True,
    ),
    BoundRule("A copy whose call does not wait is launched all the same.", device.still_launched),
    BoundRule("Streams wait for events that were not recorded.", device.not_late),
    BoundRule("Recording operators and functions slows the host: how much of its time this takes is unknown.", _slowed),
    BoundRule("Some operations start late for a reason that other rows show.", device.explained),
    BoundRule("Operations start late for a reason that is not in the trace.", device.unexplained),
    BoundRule("The queue of a stream was full, and would not be: then the device waits for launches.", device.emptied),
    BoundRule("Host code ends with the work of the device, as if it asks for that in memory.", device.spins),
    BoundRule("Some operations and threads wait for something that is not in the trace.", followed),
)


def computing(model: Model, run: Run, among: BoolArray | bool = True) -> float:
    """How long the device that computes most does so in a step, in ns. That is by the kernels of the counted steps,
    wherever they are in the replay; of those `among` them.

    ```
    copies   [==0==)[1][2][3]                   a fix may let copies run ahead, or the first kernels run before
    kernels  [0)[1)[2)[3)                       the copy of the first step is done: before the counted time
                   |  |  |                      borders: each step is shorter than its kernels
    ```
    """
    own, stretch = (model.step_work == StepWork.OWN) & among, model.stretch
    if not stretch.stepwise or run.count < 2:
        return max(busy(model, run, each, [Class.COMPUTE], own).total() for each in model.devices) / run.count
    work = model.work
    own &= (work.kind == Class.COMPUTE) & (work.start < stretch.end)
    own &= stretch.step(work.start) >= stretch.count - run.count
    mine = (np.flatnonzero(own & (work.device == each)) for each in model.devices)
    return max(union(Intervals(run.start[rows], run.end[rows])).total() for rows in mine) / run.count


def _least_computing(model: Model, run: Run, kernels: float) -> float:
    """The same, which is `kernels`, if some may run at the same time: those of threads that all do the same, or of
    streams that already do."""
    apart = [model.launched_by == each for each in _alike(model).tolist()]
    apart = apart or [model.work.stream == each for each in _at_once(model).tolist()]
    return max((computing(model, run, mine) for mine in apart), default=kernels)


@once
def _at_once(model: Model) -> IntArray:
    """The streams of a program that runs kernels of several at the same time: with other gaps more or fewer of them.
    Those with most kernel time; none if it hardly does."""
    run, work = unchanged(model), model.work
    kernels = np.flatnonzero(work.kind == Class.COMPUTE)
    streams = group_totals(work.stream[kernels], work.end[kernels] - work.start[kernels]).code[:MOST_STREAMS]
    if len(streams) < 2 or len(model.devices) > 1:
        return streams[:0]
    each = sum(computing(model, run, work.stream == stream) for stream in streams.tolist())
    several = each - computing(model, run, np.isin(work.stream, streams))
    return streams if several >= LEAST_ERROR * run.ns else streams[:0]


class StepSamples(Struct, frozen=True):
    """Samples of the steps, a row for each: what each step of it saves, in ns, and how long it is. `mean_ns` is the
    length of all steps on average."""

    saved: FloatArray
    length: FloatArray
    mean_ns: float

    @classmethod
    def of(cls, now: IntArray, then: IntArray) -> StepSamples:
        """Of steps by their lengths as they are, and with the changes. One step alone tells nothing."""
        count = min(len(now), len(then))
        if count < 2:
            return cls(np.zeros((1, 1)), np.ones((1, 1)), 1.0)
        picks = np.random.default_rng(SEED).integers(0, count, (SAMPLES, count))
        saved, length = (each.astype(np.float64) for each in (now[:count] - then[:count], now[:count]))
        return cls(saved[picks], length[picks], float(length.mean()))

    @property
    def of_mean(self) -> float:
        """The uncertainty of the mean saving of a step: half of the middle 95% of its means."""
        return _middle(self.saved.mean(axis=1))

    @property
    def of_share(self) -> float:
        """The same of the share that is saved, as time of a mean step: other steps may be longer.

        ```
        replayed   [  ][  ][          ][  ][  ][  ][  ]      each saves as much: 10% of these, if one in seven is long,
        all        [  ][  ][          ][  ][          ]      and less of all, if more of them are
        ```
        """
        return _middle(self.saved.sum(axis=1) / np.maximum(self.length.sum(axis=1), 1)) * self.mean_ns

    @property
    def spread(self) -> float:
        """The larger one of both."""
        return max(self.of_mean, self.of_share)


def _middle(sampled: FloatArray) -> float:
    low, high = np.percentile(sampled, SPREAD)
    return float(high - low) / 2
