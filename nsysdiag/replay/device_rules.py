"""Bounds of a prediction that come from devices: when operations start, and when waits for them end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, coverage, union
from nsysdiag.causes import PLACE
from nsysdiag.causes.evidence import named_rows
from nsysdiag.causes.sync import PAUSES
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.replay.beside import ANSWER_NS
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.entangled import BoundCase, taken_out
from nsysdiag.replay.model import Model, once
from nsysdiag.replay.moments import ENDS, EdgeKind
from nsysdiag.replay.orders import LATENCY_NS, LONGEST_GAP_NS, SHORTEST_GAP_NS
from nsysdiag.replay.pacing import NOISE_NS
from nsysdiag.replay.run import Run, run_of
from nsysdiag.replay.sources import takes_at_once
from nsysdiag.replay.work import LEAST_ERROR

MOSTLY = 0.9
"""Of the uploads that are seen to be staged: so many take no longer, next to their copy."""
LEAST_LATE = 0.02
"""Of a step: delays without a reason that are longer are not only those of launches that take their time. A model that
is so far off predicts nothing."""
FREED_NS = ANSWER_NS // 2
"""The longest that it usually takes a thread that a function has woken to launch the next operation."""
MOST_TURNS = 4
"""So often it is tried again which operations a synchronization is for."""
EMPTIED, CAUGHT_UP = 0.5, 0.1
"""A device catches up if its last launches are so much less ahead than they were, as a share; chance in the length of
kernels changes that by less. Launches over a shorter share of the replayed time say nothing of all of it: it may
be as long as ever then. Round numbers: nothing depends on them closely."""


def slices(case: BoundCase) -> Sequence[int]:
    """With less idle time kernels may also meet more of those of other processes, and nothing is saved."""
    return [] if case.apart is None else [case.apart.ns, case.now.ns]


def unpaired(case: BoundCase) -> Sequence[int]:
    """Kernels that send or receive last as long as they did, as their peers are late for another reason; or none waits
    for its peer any more."""
    model = case.model
    if not model.unpaired.any():
        return []
    alone, length = np.flatnonzero(model.unpaired), case.changes.length.copy()
    least = least_of_each(model.names.short[alone], model.length[alone], len(model.names.texts))
    length[alone] = np.minimum(length[alone], least[model.names.short[alone]])
    return [case.now.ns, case.ns(length=length)]


def staged(case: BoundCase) -> Sequence[int]:
    """Uploads from pageable memory may be staged only once their stream is empty, even if it always was.

    ```
    thread   [launch][sync.....][cudaMemcpy.......]      without   [launch][cudaMemcpy................]
    stream            [==k====)        [= copy =)       the sync           [==k====)          [= copy =)
    staging                    [======]                                             [========]
    ```
    """
    changes, model = case.changes, case.model
    uploads = model.uploads & np.isin(model.work.launch, model.threads.held.call[changes.held])
    ns = np.where(uploads, changes.costs(), 0)
    more = changes.later(model.places.operation, ns, EdgeKind.STREAM)
    return [max(case.ns(more=more), case.run.ns)] if (more != changes.more).any() else []


def staged_behind(case: BoundCase) -> Sequence[int]:
    """Uploads from pageable memory were staged while their stream was busy, which no row shows: for as long, next to
    the copy itself, as others were that are seen; all of that time if none is.

    ```
    thread   [launch][cudaMemcpy: staging? ..... ]      a shorter kernel leaves less of the call
    stream           [== k ==============)[= copy =)
    ```
    """
    changes, model, now = case.changes, case.model, case.now
    held = np.isin(model.work.launch, model.threads.held.call[changes.held])
    hidden = np.where(held, hidden_staging(model, np.where(model.staged, 0, model.cost)), 0)
    found = []
    if hidden.any():
        longer = case.ns(cost=np.maximum(changes.cost, hidden))
        found += [min(max(longer, case.run.ns), now.ns)]
    return [*found, *_staged_from_the_call(case, held)]


def _staged_from_the_call(case: BoundCase, held: BoolArray) -> list[int]:
    """Uploads that were late may have been staged from their calls on, not only once the stream was empty; then others
    were, too. Those that were a little late may have been, which the replay takes for a gap between queued operations.

    ```
    thread   [launch][prepares][cudaMemcpy: staging  ]        prepares for less: the copy starts sooner
    stream           [== k ========)..............[= copy =)
    ```
    """
    changes, model, work = case.changes, case.model, case.model.work
    ended = work.ended_before()
    gap = np.where(ended > work.issued, work.start - ended, 0)
    late, little = held & model.staged, held & model.uploads & ~model.staged & (gap > LATENCY_NS)
    if not (late | little).any():
        return []
    since = np.where(late | little, np.maximum(work.start - work.issued, 0), 0)
    alike = np.where(held, hidden_staging(model, np.where(late, since, model.cost)), 0)
    more = changes.later(model.places.operation, np.where(little, LATENCY_NS - gap, 0), EdgeKind.STREAM)
    costs = (np.maximum(changes.cost, each) for each in (since, np.maximum(since, alike)))
    lengths = [case.ns(cost=cost, prompt=changes.prompt | late, more=more) for cost in costs]
    return [min(each, max(case.now.ns, case.run.ns)) for each in lengths]


def hidden_staging(model: Model, seen: IntArray) -> IntArray:
    """For how long each upload from pageable memory may have been staged while its stream was busy, in ns. `seen` is
    how long each was seen to be staged, 0 if it was not."""
    work, length = model.work, np.maximum(model.work.length, 1)
    shown = model.uploads & (seen > 0)
    usual = float(np.quantile(seen[shown] / length[shown], MOSTLY)) if shown.any() else np.inf
    busy = np.where(model.uploads & (model.cost == 0) & ~model.staged, np.maximum(work.start - work.issued, 0), 0)
    return np.minimum(busy, usual * length + LATENCY_NS).astype(np.int64)


def staged_downloads(case: BoundCase) -> Sequence[int]:
    """A copy to pageable memory whose call no longer waits starts as soon as what is before it has ended: the start of
    its call may have been behind that.

    ```
    thread   [launch][cudaMemcpy ...............]
    stream           [=k=).........[= copy =)          the kernel is shorter than the start of the copy
    sooner           [=k=)[= copy =)
    ```
    """
    changes, model, held = case.changes, case.model, case.model.threads.held
    free = np.isin(model.work.launch, held.call[~changes.held & (held.call >= 0)]) & model.downloads
    return [min(case.ns(eager=changes.eager | free), case.run.ns)] if free.any() else []


def not_late(case: BoundCase) -> Sequence[int]:
    """If streams wait for events that were not recorded: operations start as early as the launch, the stream and what
    else is known let them, with the changes and without. No more is saved than what the changes take out."""
    changes, now = case.changes, case.now.ns
    if not len(case.model.graph.rows[EdgeKind.HIDDEN]):
        return []
    sooner = now - _soonest(case.model) + _soonest_ns(changes)
    return [min(max(sooner, round(max(now - taken_out(changes), 0))), case.run.ns)]


def _soonest_ns(changes: Changes) -> int:
    """The length of a step, if no operation is later than what is known to hold it back."""
    every = np.ones(len(changes.model.work), dtype=np.bool_)
    return run_of(replace(changes, eager=every, observed=False)).ns


@once
def _soonest(model: Model) -> int:
    """The same of the program as it is."""
    return _soonest_ns(Changes.none(model))


def functions(case: BoundCase) -> Sequence[int]:
    """Functions that streams call on the host, of which only the launch was recorded, may end before the operation
    behind them is launched: then they do not hold it back once that comes sooner.

    ```
    thread   [launch][function ][prepares ...............][launch]      the function ran for any time until B
    stream           [== A ==)  (f ? .....................)        [== B ==)
    ```

    If the thread takes what others may post, and never waits for that, these functions may post it: once it is faster,
    it waits for them, and launches the next operation behind that.
    """
    unsure = _unsure_functions(case.model)
    if not case.saves or not unsure.any():
        return []
    sooner = min(case.ns(dropped=case.changes.dropped | unsure), case.run.ns)
    if not takes_at_once(case.model):
        return [sooner]
    later = case.ns(more=case.changes.more + np.where(unsure, FREED_NS, 0))
    return [sooner, min(max(later, case.run.ns), case.now.ns)]


@once
def _unsure_functions(model: Model) -> BoolArray:
    """Which edges are those of functions into operations that start as soon as they are launched, too."""
    graph, edges = model.graph, model.graph.edges
    holds = graph.time[edges.target] - graph.time[edges.source] - graph.asked <= NOISE_NS
    behind, launched = (
        graph.at(edges.target[holds & (edges.kind == kind)], values=True, other=False)
        for kind in (EdgeKind.FUNCTION, EdgeKind.LAUNCH)
    )
    found: BoolArray = (edges.kind == EdgeKind.FUNCTION) & (behind & launched)[edges.target]
    return found


def still_launched(case: BoundCase) -> Sequence[int]:
    """A copy whose call no longer waits is launched by one that takes as long as others that do not wait.

    ```
    thread   [cudaMemcpy ........][cudaMemcpy ........]
    instead  [Async][Async]
    ```
    """
    changes, model, held = case.changes, case.model, case.model.threads.held
    gone = np.flatnonzero(~changes.held & np.isin(held.call, model.threads.launches))
    length = model.launch_spans.end - model.launch_spans.start
    others = length[~np.isin(model.threads.launches, held.call)]
    if not len(gone) or not len(others):
        return []
    ns = np.minimum(held.end - held.begin, int(np.median(others)))[gone]
    more = changes.later(model.places.held[gone], ns, EdgeKind.PROGRAM)
    return [max(case.ns(more=more), case.run.ns)]


def explained(case: BoundCase) -> Sequence[int]:
    """Operations do not start late if other rows explain why they did; or all pages move only once what is before
    them in their stream has ended.

    ```
    launch   [l]                        pages move while the launch is on its way
    stream   [== k0 ==).[pages][= k1 =)
    sooner   [== k0 ==)[pages].[= k1 =)
    ```
    """
    changes, model = case.changes, case.model
    if not model.explained.any():
        return []
    graph, operation = model.graph, model.places.operation
    late = graph.at(operation, model.paging - graph.residual[operation])
    more = np.maximum(late[graph.edges.target] - np.maximum(graph.edges.ns - graph.asked, 0), 0)
    more[graph.edges.kind != EdgeKind.STREAM] = 0
    behind, prompt = case.ns(more=changes.more + more), case.ns(prompt=changes.prompt | model.explained)
    return [min(prompt, case.run.ns), min(behind, max(case.now.ns, case.run.ns))]


def unexplained(case: BoundCase) -> Sequence[int]:
    """Operations that start late for a reason that is not in the trace do so for twice as long. Of steps that are no
    longer by these delays nothing is said.

    ```
    thread   [prepares ..........][launch]      [prepares ..........][launch]
    other      [= has the GPU =====]                 [= has the GPU =====]      out of the trace: some delays are
    device                           [== k0 ==)                       [== k1    hidden behind the host
    faster   [l]................[== k0 ==).................[== k1 ==)           it waits for all of them
    ```
    """
    changes, run, model = case.changes, case.run, case.model
    late, stretch = ~(model.explained | model.staged), model.stretch
    delays = model.graph.residual[model.places.operation[late]].sum()
    if not case.saves or delays <= LEAST_LATE * (stretch.end - stretch.begin):
        return []
    ns = run.ns - case.ns(prompt=changes.prompt | late)
    return [min(run.ns + ns, case.now.ns)] if ns > LEAST_LATE * case.now.ns else []


def polls(case: BoundCase) -> Sequence[int]:
    """Who sleeps between queries of a device notices sooner or later that it has finished: a wait ends with its work,
    or a whole sleep later. But no wait for shorter work is longer. None if all come to their waits as long before the
    end as ever.

    ```
    thread   [query][sleep ....][query][sleep ....][query]       kernels that are a third shorter bring nothing,
    device   [== kernels ========)                               or all of a sleep
    ```
    """
    changes, model, held, naps = case.changes, case.model, case.model.threads.held, nap_ns(case.model)
    if not naps.any():
        return []
    row = model.program_into[model.places.held]
    lag = np.append(model.program.lag * changes.lag, 0)[row].astype(np.int64)
    was = model.work.end[held.target] - held.begin
    took = case.run.end[held.target] - arrivals(changes, case.run, case.lengths, model.places.held, held.begin)
    other = (naps > 0) & changes.held & (lag > 0) & (np.abs(took - was) > NOISE_NS)
    if not other.any():
        return []
    longer = np.minimum(np.maximum(naps - lag, 0), np.where(took < was, was - took, naps))
    sooner, later = (changes.later(model.places.held, np.where(other, ns, 0), *ENDS) for ns in (-lag, longer))
    # Who comes after the work is done does not sleep at all.
    kept = changes.lag.copy()
    kept[row[other & (row >= 0)]] = 0
    return [case.ns(more=sooner, lag=kept), case.ns(more=later)]


@once
def nap_ns(model: Model) -> IntArray:
    """How long a thread sleeps between two queries in each wait for a device, in ns; 0 for waits that are not polls."""
    held, found = model.threads.held, np.zeros(len(model.threads.held), dtype=np.int64)
    polls = np.flatnonzero((held.cause == PLACE[SLEEP.id]) & (held.call < 0))
    if not len(polls):
        return found
    sleeps = union(named_rows(model.host.host.os_calls, PAUSES).spans)
    waits = model.on_axis(held.thread[polls], held.begin[polls], held.end[polls])
    count = np.searchsorted(sleeps.start, waits.end) - np.searchsorted(sleeps.start, waits.start)
    found[polls] = coverage(sleeps, waits) // np.maximum(count, 1)
    return found


def arrivals(changes: Changes, run: Run, ns: IntArray, place: IntArray, begin: IntArray) -> IntArray:
    """When, in a replay with edges of `ns`, threads come to the waits that end at the moments `place`, in ns; `begin`
    is when they came in the recording, for waits at the border of the replayed time."""
    model = changes.model
    edges, program = model.graph.edges, model.program
    mine, comes = model.graph.rows[EdgeKind.PROGRAM], np.zeros(len(program) + 1, dtype=np.int64)
    comes[edges.row[mine]] = run.times[edges.source[mine]] + ns[mine]
    comes[:-1] -= np.round(program.lag * changes.lag).astype(np.int64)
    row = model.program_into[place]
    return np.where(row >= 0, comes[row], begin)


def other_targets(case: BoundCase) -> Sequence[int]:
    """Synchronizations are for what other threads have launched by then, which is another operation once either is
    faster: tried again and again."""
    edge, operation, wait = _across_threads(case.model)
    found: list[int] = []
    made, latest = case.changes, case.run
    for _turn in range(MOST_TURNS if len(edge) else 0):
        later = np.zeros(len(made.dropped), dtype=np.bool_)
        later[edge[_launched_later(made, latest, operation, wait)]] = True
        if not (later & ~made.dropped).any():
            break
        made = replace(made, dropped=made.dropped | later)
        latest = run_of(made)
        found.append(min(latest.ns, max(case.now.ns, case.run.ns)))
    return found


@once
def _across_threads(model: Model) -> tuple[IntArray, IntArray, IntArray]:
    """The edges by which threads wait for operations that other threads have launched: their rows among all edges, and
    the operation and the wait of each."""
    edges, held, places = model.graph.edges, model.threads.held, model.places
    edge = np.flatnonzero(np.isin(edges.kind, (EdgeKind.DEVICE_WAIT, EdgeKind.FINISHED)))
    known = np.flatnonzero(places.finished >= 0)
    of = model.graph.at(np.append(places.finished[known], places.held), np.append(known, np.arange(len(held))), -1)
    wait, operation = of[edges.target[edge]], model.operation_in[edge]
    thread = model.launched_by[operation]
    others = (thread >= 0) & (thread != held.thread[wait])
    return edge[others], operation[others], wait[others]


def _launched_later(changes: Changes, run: Run, operation: IntArray, wait: IntArray) -> BoolArray:
    """Whether the thread comes to each wait before the operation is launched. It may come in the middle of the launch,
    but sooner than it did."""
    model, held = changes.model, changes.model.threads.held
    call = model.call_of_operation
    launched = np.where(call >= 0, run.times[np.append(model.places.launch, 0)[call]], run.start)
    ahead = arrivals(changes, run, changes.edges()[0], model.places.held, held.begin)[wait] - launched[operation]
    sooner = ahead < held.begin[wait] - model.work.issued[operation]
    return sooner & (ahead < changes.cost[operation])


def gaps(case: BoundCase) -> Sequence[int]:
    """Queued operations follow each other by the shortest or the longest gap that may be, if no gap is known. None if
    that says the same.

    ```
    recorded    [launch A][launch B]          the device waits for each launch: none is queued
    device               [A=)      [B=)
    changed     [A][B]
    device         [A=)??[B=)                 what lies between is not in the trace
    ```
    """
    more = _more_ns(case.model)
    if more is None or _most_ns(case, more) < LEAST_ERROR * case.run.ns * case.run.count:
        return []
    return [case.ns(more=case.changes.more + each) for each in more]


@once
def _more_ns(model: Model) -> Sequence[IntArray] | None:
    """What the shortest and the longest gap add to the length of each edge, in ns; None if each gap is known. An
    edge that decided when its operation started is known, and none is longer than it was."""
    graph, edges, time = model.graph, model.graph.edges, model.graph.time
    operation, pace = model.places.operation, (model.work.device, model.work.kind)
    known = graph.at(operation, model.pace.known[pace], True)
    slack = time[edges.target] - time[edges.source] - edges.ns
    unknown = (edges.kind == EdgeKind.STREAM) & ~known[edges.target] & (slack > 0)
    if not unknown.any():
        return None
    usual = graph.at(operation, model.pace.gap[pace])
    return [
        np.where(unknown, np.minimum(ns - usual[edges.target], slack), 0) for ns in (SHORTEST_GAP_NS, LONGEST_GAP_NS)
    ]


def _most_ns(case: BoundCase, more: Sequence[IntArray]) -> int:
    """By how much other gaps change all of the replayed time at most, in ns: those that decide when operations start
    may be shorter, and others may come to decide."""
    shorter, longer = more
    edges, times = case.model.graph.edges, case.run.times
    slack = times[edges.target] - times[edges.source] - case.lengths
    decide = (slack <= 0) & (shorter < 0)
    return max(int(-shorter[decide].sum()), int(np.maximum(longer - slack, 0)[longer > 0].sum()))


def spins(case: BoundCase) -> Sequence[int]:
    """Host code that ends with the work of the device waits for that. What is left of it is the time behind it."""
    if not len(case.model.spins):
        return []
    left = np.clip(case.changes.time - _spinning(case.model), 0.0, None)
    return [case.ns(time=left, spins=True)]


@once
def _spinning(model: Model) -> FloatArray:
    """The part of each piece of host time that may be a wait for a device, 0 to 1."""
    rows, program = model.spins.row, model.program
    ended = np.maximum(model.work.end[model.spins.operation], program.start[rows])
    return model.pieces.inside(union(model.on_axis(program.thread[rows], program.start[rows], ended)))


def emptied(case: BoundCase) -> Sequence[int]:
    """The host is ahead of a device by a full queue, with which the replay begins. If the device catches up with it,
    what is left is as long as the launches take that the queue held before.

    ```
    recorded  [launch ...)[launch ...)[launch ...)[launch ...)    each waits until there is room
    device    [==)[==)[==)[==)[==)[==)..[==)..[==)..[==)..[==)    queued before, then as fast as the host
    replayed  |---------------------------------|
    ```
    """
    model, now, run = case.model, case.now, case.run
    place = np.searchsorted(model.threads.launches, np.unique(model.threads.full.call))
    operation = np.flatnonzero(np.isin(model.call_of_operation, place))
    if not len(operation):
        return []
    issued = model.places.launch[model.call_of_operation[operation]]
    issued, operation = (each[np.argsort(now.times[issued], kind="stable")] for each in (issued, operation))
    last = slice(-max(len(operation) // 10, 1), None)
    led, leads = (float(np.median((each.start[operation] - each.times[issued])[last])) for each in (now, run))
    if leads > EMPTIED * led:
        return []
    # Of a window any part may hold other work than the rest.
    parts = [issued, *(issued[len(issued) // share :] for share in (2, 4))]
    was, took = (np.array([np.ptp(each.times[part]) for part in parts]) for each in (now, run))
    long = was >= CAUGHT_UP * (now.span[1] - now.span[0])
    return [round(now.ns * ratio) for ratio in took[long] / was[long]] or [now.ns]
