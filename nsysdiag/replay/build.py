"""Builds the model of a stretch: threads, moments, edges, graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, subtract, union
from nsysdiag.causes import CAUSES, FALLBACK, PLACE
from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.causes.thread_waits import LOCK_WAIT
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.event_waits import HostFunctions
from nsysdiag.events.identity import joint
from nsysdiag.gaps.gaps import LATENCY_HIGHEST_NS
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.replay.beside import Beside
from nsysdiag.replay.device_waits import (
    asked_at_once,
    asked_in,
    device_waits,
    functions_in,
    operations_behind,
    waits_behind_functions,
    with_waiting,
)
from nsysdiag.replay.edges import (
    KnownOrder,
    PlacedWaits,
    Program,
    launch_cost,
    possible_waits,
    program_order,
    staged,
)
from nsysdiag.replay.meetings import Meetings, Met, MpiCalls, meetings_of, within
from nsysdiag.replay.model import Model, OperationNames
from nsysdiag.replay.moments import (
    DEVICE,
    EdgeKind,
    Edges,
    Graph,
    MomentPlaces,
    Moments,
    ThreadActions,
    extended,
    moments_of,
)
from nsysdiag.replay.orders import (
    Before,
    awaited_events,
    barriers,
    explained,
    hidden_order,
    observed_order,
    pace_of,
    paged_until,
    paging_ns,
)
from nsysdiag.replay.pacing import Outlived, Timed, outlived, owned, timed_waits
from nsysdiag.replay.queues import full_queues
from nsysdiag.replay.quotas import outside, quota_stops
from nsysdiag.replay.spins import spins_of
from nsysdiag.replay.wakes import WaitSearch, Wakes, wakes
from nsysdiag.replay.work import HostNames, HostTime, Stretch, Work, host_time, launched_by, on_axis
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind
from nsysdiag.wakeups.loaders import Finder, HostTrace, WaitingThreads


class ReplayInputs(Struct, frozen=True, dict=True):
    """What the model of a stretch is made of: `devices` are the numbers of those that are replayed, ascending;
    `layered` is the evidence on the threads that are `launching`; `met` are kernels that wait for each other and
    `met_by_mpi` such calls. `hidden` is the time of each device, by its number, in which graphs may run whose kernels
    were not recorded. `unseen_ranks`: the program uses MPI, and the trace has none of its calls. Wake-ups less sure
    than `floor` are left out."""

    stretch: Stretch
    activity: DeviceActivity
    devices: Sequence[int]
    layered: LayeredEvidence
    launching: WaitingThreads
    host_trace: HostTrace
    finder: Finder
    strings: Strings
    met: Met
    met_by_mpi: MpiCalls
    hidden: Mapping[int, Intervals]
    unseen_ranks: bool
    floor: float

    @cached_property
    def first_operations(self) -> IntArray:
        """When the first operation of each device of the trace starts, the end of the stretch for none."""
        first = np.full(len(self.activity.devices), self.stretch.end)
        np.minimum.at(first, self.activity.device, self.activity.operations.start)
        return first

    @property
    def calls(self) -> CallRows:
        """All CUDA calls."""
        return self.activity.api_calls.rows


class _HostSide(Struct, frozen=True):
    """The moments of threads and devices and where they are, the threads' time between them, and how that is divided
    by causes."""

    threads: ThreadActions
    moments: Moments
    places: MomentPlaces
    program: Program
    in_order: Edges
    host: LayeredEvidence
    pieces: HostTime
    named: HostNames
    outlived: Outlived


def model_of(given: ReplayInputs) -> Model:
    """The model of a stretch, of what its devices do in it."""
    stretch, activity, host_trace = given.stretch, given.activity, given.host_trace
    work = Work.of(activity, given.devices, stretch)
    functions, meetings = functions_in(activity, work), meetings_of(work, given.met)
    side = _host_side(given, work, functions, meetings)
    threads, places, program, axis = side.threads, side.places, side.program, side.host.host.axis
    uploads = np.append(given.layered.facts.pageable, False)[work.launch]
    uploads &= (work.launch >= 0) & (activity.operations.copy_kind[work.row] == CopyKind.HOST_TO_DEVICE)
    order = _known_order(given, work, functions, meetings, side, uploads)
    known = Graph.of(order.time, order.edges(), LATENCY_HIGHEST_NS)
    late_ns = known.residual[places.operation]
    late_uploads = staged(work, uploads, given.calls, late_ns)
    kept = explained(work, activity, known.beyond[places.operation])
    graph = _with_order(given, known, order, (late_ns > 0) & ~kept & ~late_uploads)
    waits = possible_waits(
        threads.woken, threads.asked, distinct_values(program.thread), host_trace, given.finder, stretch
    )
    placed = PlacedWaits.of(waits, places.end, side.moments, axis)
    thread = launched_by(work, given.calls.thread)
    launching = thread[thread >= 0]
    names = OperationNames.of(work, activity, host_trace.ranges, given.strings)
    waiting = placed.edges(side.pieces, order.length)
    spins = spins_of(program, side.in_order, work, thread, names.short)
    model = Model(
        stretch=stretch,
        work=work,
        threads=replace(threads, woken_cause=_causes(threads.woken, side.host)),
        places=places,
        graph=extended(graph, Edges.concatenate([waiting, spins.edges(program, work, places)])),
        pace=order.pace,
        program=program,
        pieces=side.pieces,
        named=side.named,
        host=side.host,
        cost=order.cost,
        length=order.length,
        names=names,
        outlived=side.outlived,
        first=given.first_operations,
        cpus=len(host_trace.tables.cpus.numbers),
        beside=Beside.of(host_trace, program.thread, launching, threads.woken.awaited, stretch),
        explained=kept,
        paging=paging_ns(work, activity, kept),
        uploads=uploads,
        downloads=activity.operations.copy_kind[work.row] == CopyKind.DEVICE_TO_HOST,
        staged=late_uploads,
        possible=placed,
        spins=spins,
        hidden=_hidden(given, work),
    )
    row = model.program_into[places.woken]
    program.cause[row[row >= 0]] = model.threads.woken_cause[row >= 0]
    return model


def _hidden(given: ReplayInputs, work: Work) -> float:
    """The largest share of the time of a device in which it is idle, as far as it was recorded, and may run a graph."""
    time = Intervals.of([(given.stretch.begin, given.stretch.end)])
    shares = [0.0]
    for device, hidden in given.hidden.items():
        mine = work.device == device
        idle = subtract(intersect(time, hidden), union(Intervals(work.start[mine], work.end[mine])))
        shares.append(idle.total() / max(time.total(), 1))
    return max(shares)


def _host_side(given: ReplayInputs, work: Work, functions: HostFunctions, meetings: Meetings) -> _HostSide:
    """Made once more if waits end by time: these have moments of their own."""
    stretch, calls = given.stretch, given.calls
    threads = _threads(given, work, functions)
    begin = None if stretch.stepwise else stretch.begin
    moments, places = moments_of(work, threads, calls, meetings, begin)
    host = _layers(moments, given)
    program, in_order = program_order(moments)
    pieces, named = host_time(_spans(program, host), host, threads.launches)
    outlasting, unknown = outlived(threads.held, moments.lag(places.held), pieces, host.host.axis, stretch)
    stops, axis = quota_stops(pieces, named, host.host.axis, stretch), host.host.axis
    waits = outside(pieces, axis, stops)
    others = timed_waits(waits, named, axis, stretch, unseen_ranks=given.unseen_ranks)
    timed = Timed.concatenate([others, stops, unknown])
    if len(timed):
        threads = replace(threads, timed=timed)
        moments, places = moments_of(work, threads, calls, meetings, begin)
        program, in_order = program_order(moments)
        spans = _spans(program, host)
        pieces = owned(pieces, spans.owner, spans.spans)
    return _HostSide(threads, moments, places, program, in_order, host, pieces, named, outlasting)


def _known_order(
    given: ReplayInputs,
    work: Work,
    functions: HostFunctions,
    meetings: Meetings,
    side: _HostSide,
    uploads: BoolArray,
) -> KnownOrder:
    activity, behind = given.activity, operations_behind(functions, work)
    awaited, barred = awaited_events(work, activity.waits, len(activity.operations)), barriers(work, activity)
    others = Before.concatenate([awaited, barred])
    cost = launch_cost(work, side.threads, given.calls, others, uploads)
    hidden = hidden_order(work, activity, given.stretch)
    between = paged_until(work, activity)
    between[behind.row] = work.start[behind.row]
    return KnownOrder(
        begin=given.stretch.begin,
        work=work,
        calls=given.calls,
        threads=side.threads,
        meetings=meetings,
        moments=side.moments,
        places=side.places,
        in_order=side.in_order,
        length=meetings.lengths(work),
        cost=cost,
        awaited=awaited,
        barred=barred,
        hidden=hidden,
        pace=pace_of(work, work.issued + cost, others, hidden, between, len(activity.devices)),
        behind=behind,
    )


def _with_order(given: ReplayInputs, known: Graph, order: KnownOrder, unexplained: BoolArray) -> Graph:
    """The graph with the order of operations that the trace shows without a reason, as for those that are late and
    `unexplained`; and with order that is hidden."""
    seen = order.after_end(observed_order(order.work, unexplained), EdgeKind.OBSERVED)
    seen = seen.take(seen.source < seen.target)
    as_asked = replace(known.edges, ns=known.asked)
    graph = Graph.of(known.time, Edges.concatenate([as_asked, seen]), LATENCY_HIGHEST_NS) if len(seen) else known
    hidden = order.after_end(order.hidden, EdgeKind.HIDDEN)
    return extended(graph, hidden.take(hidden.source < hidden.target))


def _spans(program: Program, host: LayeredEvidence) -> Owned:
    return Owned.of(on_axis(host.host.axis, program.thread, program.start, program.end), np.arange(len(program)))


def _causes(woken: Wakes, host: LayeredEvidence) -> IntArray:
    """The index in the registry of the cause that takes most of each wait for another thread; that of unexplained time
    for the start of a thread."""
    waits = Owned.of(on_axis(host.host.axis, woken.thread, woken.begin, woken.end), np.arange(len(woken)))
    pieces, _ = host_time(waits, host, np.empty(0, np.int64))
    key = joint(pieces.owner, pieces.cause, len(CAUSES))
    ns = np.bincount(key, pieces.length, len(woken) * len(CAUSES))
    by_cause = ns.reshape(len(woken), len(CAUSES))
    return np.where(by_cause.any(axis=1), by_cause.argmax(axis=1), PLACE[FALLBACK])


def _threads(given: ReplayInputs, work: Work, functions: HostFunctions) -> ThreadActions:
    """What threads do for the operations of a stretch, and what ends their waits; no wait ends by time yet."""
    calls, begin, host_trace = given.calls, given.stretch.begin, given.host_trace
    launches = distinct_values(work.launch[work.launch >= 0])
    begun = calls.start[launches]
    lo = min(int(begun.min(initial=begin)), begin)
    hi = int(begun.max(initial=begin)) + 1
    own = distinct_values(calls.thread[launches])
    woken = wakes(given.launching, own, WaitSearch(host_trace, given.finder, lo, hi, given.floor))
    evidence = with_waiting(HostEvidence.of(given.layered.host, given.layered.facts), own, woken.waker, host_trace)
    waited = device_waits(evidence, asked_in(evidence, lo, hi), work, given.activity)
    return ThreadActions(
        launches=launches,
        waited=waited,
        full=full_queues(work, calls, given.first_operations),
        woken=woken,
        woken_cause=np.full(len(woken), PLACE[LOCK_WAIT.id]),
        mpi=within(given.met_by_mpi, lo, hi),
        timed=Timed.empty(),
        functions=waits_behind_functions(functions, work, waited.held),
        asked=device_waits(evidence, asked_at_once(evidence, lo, hi), work, given.activity).held,
    )


def _layers(moments: Moments, given: ReplayInputs) -> LayeredEvidence:
    """The layers of all threads that have moments."""
    threads = distinct_values(moments.thread[moments.thread != DEVICE])
    if np.isin(threads, given.launching.host.axis.threads).all():
        return given.layered
    view = given.host_trace.waiting(threads)
    return layer_evidence(HostEvidence.of(view.host, view.facts))
