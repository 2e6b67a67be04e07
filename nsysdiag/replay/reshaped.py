"""Other shapes of the same work: fewer and larger kernels, several steps in one, more workers, kernels in streams of
their own, a host that runs further ahead.

How much such a change saves depends on what no trace shows, so each is made three ways: as expected, and with the least
and the most that it may save (`changes.view`).
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.causes import BLOCKING_COPY, PLACE, SYNCHRONIZATION, input_output
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import first_since, last_before, previous_on_stream
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.entangled import dependent
from nsysdiag.replay.model import WAITS, Model
from nsysdiag.replay.moments import EdgeKind, Edges
from nsysdiag.replay.sources import of_unknown_sources
from nsysdiag.replay.wakes import loaders
from nsysdiag.replay.work import Class, first_border

ON_DEMAND = 0.05
"""Of the time of workers: if they wait for others for longer, they load what is asked for, and more of them may have
nothing to do."""


def merge(changes: Changes, chosen: BoolArray) -> bool:
    """Kernels that follow each other in a stream are one launch. In the bound that saves least it is made when the last
    of them was launched; in the one that saves most no host code is left between, and the kernel takes as long as the
    longest.

    ```
    T    [l][l][l]               [l]
    gpu     [k1 )[k2 )[k3 )  ->     [k1)[k2)[k3)
    ```
    """
    model, work = changes.model, changes.model.work
    kernels = chosen & (work.kind == Class.COMPUTE) & (work.launch >= 0)
    before = previous_on_stream(work.stream)
    mine = np.flatnonzero(kernels & (before >= 0) & np.append(kernels, False)[before])
    mine = mine[work.launch[mine] != work.launch[before[mine]]]
    mine = mine[~_apart(model, before[mine], mine)]
    if not len(mine):
        return False
    _at_once(changes, mine)
    joins = np.zeros(len(work), dtype=np.bool_)
    joins[mine] = True
    order = np.argsort(work.stream, kind="stable")
    group = np.empty(len(work), dtype=np.int64)
    group[order] = order[np.maximum.accumulate(np.where(joins[order], 0, np.arange(len(work))))]
    calls = np.isin(model.call_of_piece, model.call_of_operation[mine])
    changes.time[calls] = 0
    if changes.view == View.LEAST:
        _launched_last(changes, group, joins)
    elif changes.view == View.MOST:
        _nothing_between(changes, before[mine], mine)
        longest = np.zeros(len(work), dtype=np.int64)
        np.maximum.at(longest, group, changes.length)
        grouped = np.isin(group, group[mine])
        changes.length[grouped & joins] = 0
        changes.length[grouped & ~joins] = longest[grouped & ~joins]
    return True


def _apart(model: Model, one: IntArray, other: IntArray) -> BoolArray:
    """Whether two launches are of two threads or steps, or the thread waited for a device between them."""
    work, held, thread = model.work, model.threads.held, model.launched_by
    apart = (thread[one] != thread[other]) | (step_of(model)[one] != step_of(model)[other])
    wait = first_since(held.thread, held.begin, thread[one], work.issued[one])
    return apart | ((wait >= 0) & (np.append(held.begin, 0)[wait] < work.issued[other]))


def _at_once(changes: Changes, mine: IntArray) -> None:
    """These operations start when the one before them in their stream ends, whatever else they waited for."""
    model, edges = changes.model, changes.model.graph.edges
    into = model.graph.at(model.places.operation[mine], True, False)[edges.target]
    order = into & (edges.kind == EdgeKind.STREAM)
    changes.dropped[into & ~order & ~np.isin(edges.kind, (EdgeKind.EVENT, EdgeKind.BARRIER))] = True
    changes.more[order] -= np.maximum(edges.ns[order] - model.length[edges.row[order]], 0)
    changes.cost[mine] = 0
    changes.prompt[mine] = True


def _launched_last(changes: Changes, group: IntArray, joins: BoolArray) -> None:
    """The last kernel of each group starts as if all before it had begun with its launch."""
    model, edges = changes.model, changes.model.graph.edges
    total = np.bincount(group, changes.length, len(group)).astype(np.int64)
    last = np.zeros(len(group), dtype=np.int64)
    np.maximum.at(last, group, np.arange(len(group)))
    ends = distinct_values(last[group[joins]])
    row = model.graph.at(model.places.operation[ends], ends, -1)[edges.target]
    launches = np.flatnonzero((edges.kind == EdgeKind.LAUNCH) & (row >= 0))
    changes.dropped[launches] = False
    changes.more[launches] += total[group[row[launches]]] - changes.length[row[launches]]


def _nothing_between(changes: Changes, one: IntArray, other: IntArray) -> None:
    """What the thread does from one launch to the other takes no time."""
    model = changes.model
    spans = model.launch_spans
    first, last = model.call_of_operation[one], model.call_of_operation[other]
    between = union(Intervals(spans.end[first], np.maximum(spans.start[last], spans.end[first])))
    changes.time[:] *= 1 - model.pieces.inside(between)


def step_of(model: Model) -> IntArray:
    """The step of each operation, counted from 0; -1 before the first."""
    return model.stretch.step(model.work.start)


def batch(changes: Changes, count: int) -> bool:
    """So many steps are one: kernels and copies take as long as in all of them, the host does its part once, and an
    exchange is one. In the bound that saves least only launches and waits for the device are made once; in the one that
    saves most kernels take no longer. Lengths stay those of one of the steps."""
    model, work = changes.model, changes.model.work
    steps = len(model.stretch.borders) - 1
    begin = first_border(steps)
    groups = (steps - 1 - begin) // max(count, 1) if model.stretch.stepwise else 0
    if not groups or count < 2:
        return False
    skipped = steps - groups * count
    place = step_of(model)
    grown = (place >= skipped) & (place < steps)
    folded = grown & ((place - skipped) % count > 0)
    first = grown & ~folded
    _at_once(changes, np.flatnonzero(folded))
    changes.length[folded] = 0
    if changes.view != View.MOST:
        longer = first & (work.kind == Class.COMPUTE)
        changes.length[longer] *= count
    changes.length[first & (work.kind == Class.COPY)] *= count
    _host_once(changes, skipped, steps, count)
    changes.counted[:] = (skipped - 1, count)
    return True


def _host_once(changes: Changes, skipped: int, steps: int, count: int) -> None:
    """The launching threads do nothing in the steps that are folded into others; in doubt they only launch nothing."""
    model, held, full = changes.model, changes.model.threads.held, changes.model.threads.full

    def folded(thread: IntArray, time: IntArray) -> BoolArray:
        step = _host_step(model, thread, time)
        return (step >= skipped) & (step < steps) & ((step - skipped) % count > 0)

    axis, pieces, program = model.host.host.axis, model.pieces, model.program
    mine = folded(program.thread[pieces.owner], axis.time(pieces.start))
    mine &= (model.call_of_piece >= 0) | (changes.view != View.LEAST)
    changes.time[mine] = 0
    waits = folded(held.thread, held.begin)
    changes.held[waits] = changes.others[waits] = False
    changes.full[folded(full.thread, full.begin)] = False
    changes.return_at_once(model.places.held[waits])


def _host_step(model: Model, thread: IntArray, time: IntArray) -> IntArray:
    """The step in which a launching thread is at a time: that of the last operation that it had launched; -1 for other
    threads."""
    issued, rows, count = model.work.issued, np.flatnonzero(model.launched_by >= 0), len(model.stretch.borders) + 1
    rows = rows[np.lexsort((issued[rows], model.launched_by[rows]))]
    launching = model.launched_by[rows]
    latest = np.maximum.accumulate(joint(distinct(launching)[1], step_of(model)[rows] + 1, count)) % count - 1
    return np.append(latest, -1)[last_before(launching, issued[rows], thread, time)]


def workers(changes: Changes, count: int) -> bool:
    """So many threads or processes load data: together they are that much faster. In the bound that saves least there
    are no more CPUs than the trace shows, and files are read no faster. Nothing is saved if they load on demand. In the
    one that saves most, waits for unknown threads are for them. If all of them wait for each other, it is not known
    how many of them there are."""
    model, woken = changes.model, changes.model.threads.woken
    every = loaders(woken)
    idle = distinct_values(woken.thread[np.isin(woken.thread, every) & np.isin(woken.waker, every)])
    loading = np.setdiff1d(every, idle) if len(every) > len(idle) else every
    mine = np.isin(model.program.thread, loading)
    pieces = mine[model.pieces.owner]
    unknown = np.isin(model.pieces.cause, WAITS) & ~pieces
    known = int((woken.end - woken.begin)[(woken.loader > 0) & ~np.isin(woken.thread, loading)].sum())
    if not len(loading) or count < 1 or model.pieces.length[unknown].sum() > known:
        return False
    factor = len(loading) / count
    if len(loading) == len(idle) and changes.view != View.LIKELY:  # any of them may be a stage behind the workers
        if changes.view == View.LEAST:
            return True
        factor = min(factor, 1 / count)
    if changes.view == View.LEAST and count > len(loading):
        if _waits_for_others(changes, loading) > ON_DEMAND:
            return True
        free = model.cpus - len(np.setdiff1d(model.program.thread, loading)) if model.cpus else count
        factor = len(loading) / min(count, max(free, len(loading)))
        pieces &= model.pieces.cause != PLACE[input_output.IO_WAIT.id]
    if changes.view != View.MOST:  # more of them are given no more by what is outside of the program
        pieces &= ~of_unknown_sources(model)
    changes.time[pieces] *= factor
    changes.unseen[mine] *= factor
    changes.elsewhere[:] |= len(model.beside.threads) > 0
    if changes.view == View.MOST and count > len(loading):
        changes.time[unknown] = 0
    return True


def mostly_read(model: Model) -> bool:
    """Whether threads that load data wait for files for more time than they do anything else."""
    mine = np.isin(model.program.thread[model.pieces.owner], loaders(model.threads.woken))
    ns = model.pieces.length[mine]
    return 2 * int(ns[model.pieces.cause[mine] == PLACE[input_output.IO_WAIT.id]].sum()) > int(ns.sum())


def _waits_for_others(changes: Changes, threads: IntArray) -> float:
    """The share of their time in which threads wait for others than each other, or may do so."""
    model = changes.model
    woken, program, pieces = model.threads.woken, model.program, model.pieces
    waits = np.isin(woken.thread, threads) & ~np.isin(woken.waker, threads)
    unknown = np.isin(program.thread, threads)[pieces.owner] & dependent(model)
    waited = int((woken.end - woken.begin)[waits].sum() + pieces.length[unknown].sum())
    worked = int((program.end - program.start)[np.isin(program.thread, threads)].sum())
    return waited / max(waited + worked, 1)


def order_apart(model: Model, chosen: BoolArray) -> Edges:
    """The order that is left in each stream once the `chosen` operations have streams of their own. A wait for a device
    that was for one side is for the last of the other, too."""
    work, places, held = model.work, model.places, model.threads.held
    side = distinct(joint(work.stream, chosen.astype(np.int64), 2))[1]
    own = previous_on_stream(side)
    after = np.flatnonzero((own >= 0) & (own != previous_on_stream(work.stream)))
    order = Edges.of(
        places.end[own[after]], places.operation[after], model.length[own[after]], EdgeKind.CLASS, own[after]
    )
    other = _last_of_the_other(work.stream, chosen)
    waits = np.flatnonzero(other[held.target] >= 0)
    last = other[held.target[waits]]
    ns = model.length[last] + _lag(model, waits)
    more = Edges.concatenate([order, Edges.of(places.end[last], places.held[waits], ns, EdgeKind.FINISHED, last)])
    return more.take(more.source < more.target)


def _lag(model: Model, waits: IntArray) -> IntArray:
    """In what time each of these waits for a device returns, in ns."""
    row = model.program_into[model.places.held[waits]]
    return np.append(model.program.lag, 0)[row]


def _last_of_the_other(stream: IntArray, chosen: BoolArray) -> IntArray:
    """For each operation the last one before it in its stream that is chosen if it is not, or the other way round;
    -1 for none."""
    row, side = np.arange(len(stream)), 2 * stream + chosen
    return last_before(side, row, 2 * stream + ~chosen, row)


def leave_order(changes: Changes, chosen: BoolArray) -> bool:
    """The `chosen` operations and the others no longer wait for each other in a stream; only for events. What they
    compute may need the order, so the bound that saves least has it."""
    model, edges = changes.model, changes.model.graph.edges
    if changes.view == View.LEAST:
        return bool(chosen.any())
    rows = np.flatnonzero((edges.kind == EdgeKind.STREAM) & (edges.row >= 0))
    apart = chosen[edges.row[rows]] != chosen[model.operation_at[edges.target[rows]]]
    changes.dropped[rows[apart]] = True
    return bool(chosen.any())


def waits_behind(model: Model, count: int) -> Edges:
    """Waits that keep the host from being ahead, as waits for the same operation so many steps before."""
    held, places = model.threads.held, model.places
    waits = np.flatnonzero(holding(model, doubted=True))
    earlier = _steps_before(model, count)[held.target[waits]]
    waits, earlier = waits[earlier >= 0], earlier[earlier >= 0]
    ns = model.length[earlier] + _lag(model, waits)
    return Edges.of(places.end[earlier], places.held[waits], ns, EdgeKind.AHEAD, earlier)


def holding(model: Model, *, doubted: bool) -> BoolArray:
    """Which waits for a device are synchronizations; with `doubted` also copies of a few bytes to the host."""
    held = model.threads.held
    holding: BoolArray = held.cause == PLACE[SYNCHRONIZATION]
    read_back = np.append(model.host.facts.read_back, False)[held.call] & (held.cause == PLACE[BLOCKING_COPY])
    return holding | read_back if doubted else holding


def _steps_before(model: Model, count: int) -> IntArray:
    """The operation that is to an earlier step what each one is to its own: that of the same place in its stream, or
    the last; -1 for none."""
    place, steps = step_of(model), len(model.stretch.borders) + 1
    key = joint(distinct(model.work.stream)[1], place + 1, steps + 1)
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(key[order], key)
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key))
    asked = key - count
    lo, hi = (np.searchsorted(key[order], asked, side) for side in ("left", "right"))
    at = np.minimum(lo + rank - begin, hi - 1)
    return np.where((hi > lo) & (place >= count), np.append(order, -1)[np.maximum(at, 0)], -1)


def ahead(changes: Changes) -> bool:
    """Waits that keep the host from being ahead hold it no longer, but for what `waits_behind` says. In the bound that
    saves least values that are read back are waited for."""
    model = changes.model
    if not model.stretch.stepwise:
        return False
    gone = holding(model, doubted=changes.view != View.LEAST)
    changes.held[gone] = changes.others[gone] = False
    changes.cost[np.isin(model.work.launch, model.threads.held.call[gone])] = 0
    if changes.view == View.LEAST:
        edges, kept = model.graph.edges, model.graph.at(model.places.held[~gone], True, False)
        changes.dropped[(edges.kind == EdgeKind.AHEAD) & kept[edges.target]] = True
    return bool(holding(model, doubted=True).any())
