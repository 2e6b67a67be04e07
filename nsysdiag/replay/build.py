"""Builds the model of a stretch: threads, moments, edges, graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes import CAUSES, FALLBACK, PLACE
from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.causes.thread_waits import LOCK_WAIT
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import distinct_values
from nsysdiag.gaps.gaps import LATENCY_HIGHEST_NS
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.replay.beside import Beside
from nsysdiag.replay.device_waits import asked_at_once, device_waits, full_queues, with_waiting
from nsysdiag.replay.edges import (
    EdgeKind,
    Edges,
    Graph,
    Program,
    after_end,
    arrivals,
    begun_before,
    extended,
    lag_of,
    launch_cost,
    launched,
    of_devices,
    own_times,
    program_order,
    releases,
    staged,
)
from nsysdiag.replay.function_edges import into_operations, into_waits
from nsysdiag.replay.functions import functions_in, operations_behind, waits_behind_functions
from nsysdiag.replay.host_time import HostNames, HostTime, host_time, on_axis
from nsysdiag.replay.model import Model, OperationNames
from nsysdiag.replay.moments import (
    DEVICE,
    Meetings,
    Met,
    MomentPlaces,
    Moments,
    MpiCalls,
    ThreadActions,
    meetings_of,
    moments_of,
    within,
)
from nsysdiag.replay.pacing import Outlived, Timed, outlived, owned, timed_waits
from nsysdiag.replay.possible import PlacedWaits, possible_waits
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import Wakes, wakes
from nsysdiag.replay.work import (
    Before,
    Pace,
    Work,
    awaited_events,
    barriers,
    explained,
    hidden_order,
    observed_order,
    pace_of,
    paged_until,
    paging_ns,
)
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind
from nsysdiag.wakeups.loaders import Finder, HostTrace, WaitingThreads


class ReplayInputs(Struct, frozen=True):
    """What the model of a stretch is made of: `devices` are the numbers of those that are replayed, ascending;
    `layered` is the evidence on the threads that are `launching`; `met` are kernels that wait for each other and
    `met_by_mpi` such calls. Wake-ups less sure than `floor` are left out."""

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
    floor: float

    @property
    def calls(self) -> CallRows:
        """All CUDA calls."""
        return self.activity.api_calls.rows


class _Timeline(Struct, frozen=True):
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


class _Lengths(Struct, frozen=True):
    """Of operations: the duration, the launch call's time before it is issued, and what else each waits for. The pace
    of devices follows."""

    length: IntArray
    cost: IntArray
    events: Before
    barred: Before
    pace: Pace

    @classmethod
    def of(cls, given: ReplayInputs, work: Work, threads: ThreadActions, meetings: Meetings) -> _Lengths:
        """Those of the operations of a stretch."""
        activity = given.activity
        events, barred = awaited_events(work, activity.waits, len(activity.operations)), barriers(work, activity)
        others = Before.concatenate([events, barred])
        cost = launch_cost(work, threads, given.calls, others)
        between = paged_until(work, activity)
        held = operations_behind(functions_in(activity, work), work).row
        between[held] = work.start[held]
        pace = pace_of(work, work.issued + cost, others, between, len(activity.devices))
        return cls(meetings.lengths(work), cost, events, barred, pace)


class _Late(Struct, frozen=True):
    """Operations that started later than the known edges say: those `kept`, of which rows say why; copies from
    pageable memory (`uploads`), and those of them that are `staged`."""

    ns: IntArray
    kept: BoolArray
    uploads: BoolArray
    staged: BoolArray

    @classmethod
    def of(cls, given: ReplayInputs, work: Work, known: Graph, operation: IntArray) -> _Late:
        """Of operations that are at these moments of the `known` graph."""
        late_ns = known.residual[operation]
        uploads = np.append(given.layered.facts.pageable, False)[work.launch]
        uploads &= (work.launch >= 0) & (given.activity.operations.copy_kind[work.row] == CopyKind.HOST_TO_DEVICE)
        kept = explained(work, given.activity, known.beyond[operation])
        return cls(late_ns, kept, uploads, staged(work, uploads, given.calls, late_ns))

    @property
    def unexplained(self) -> BoolArray:
        """True for operations that are late for no reason that the trace shows."""
        result: BoolArray = (self.ns > 0) & ~self.kept & ~self.staged
        return result


def model_of(given: ReplayInputs) -> Model:
    """The model of a stretch, of what its devices do in it."""
    work = Work.of(given.activity, given.devices, given.stretch)
    meetings = meetings_of(work, given.met)
    timeline = _timeline(given, work, meetings)
    lengths = _Lengths.of(given, work, timeline.threads, meetings)
    known = _known_graph(given, work, timeline, lengths, meetings)
    late = _Late.of(given, work, known, timeline.places.operation)
    threads, program, host = timeline.threads, timeline.program, timeline.host
    threads = replace(threads, woken_cause=_causes(threads.woken, host))
    launching = given.calls.thread[work.launch[work.launch >= 0]]
    waits = possible_waits(
        threads.woken, distinct_values(program.thread), given.host_trace, given.finder, given.stretch
    )
    placed = PlacedWaits.of(waits, timeline.moments, host.host.axis).with_queries(
        threads.asked, timeline.places.end, work, timeline.moments, host.host.axis
    )
    graph = _with_order(given, known, work, timeline.places, lengths.length, late)
    model = Model(
        stretch=given.stretch,
        work=work,
        threads=threads,
        places=timeline.places,
        graph=extended(graph, placed.edges(timeline.pieces, lengths.length)) if len(placed.source) else graph,
        pace=lengths.pace,
        program=program,
        pieces=timeline.pieces,
        named=timeline.named,
        host=host,
        cost=lengths.cost,
        length=lengths.length,
        names=OperationNames.of(work, given.activity, given.host_trace.ranges, given.strings),
        outlived=timeline.outlived,
        first=_first_operations(given),
        cpus=len(given.host_trace.tables.cpus.numbers),
        beside=Beside.of(given.host_trace, program.thread, launching, threads.woken.awaited, given.stretch),
        explained=late.kept,
        paging=paging_ns(work, given.activity, late.kept),
        uploads=late.uploads,
        staged=late.staged,
        possible=placed,
    )
    row = model.program_into[timeline.places.woken]
    program.cause[row[row >= 0]] = threads.woken_cause[row >= 0]
    return model


def _timeline(given: ReplayInputs, work: Work, meetings: Meetings) -> _Timeline:
    """Made once more where waits end by time: these have moments of their own."""
    stretch, calls = given.stretch, given.calls
    threads = _threads(given, work)
    begin = None if stretch.stepwise else stretch.begin
    moments, places = moments_of(work, threads, calls, meetings, begin)
    host = _layers(moments, given)
    program, in_order = program_order(moments)
    pieces, named = host_time(_spans(program, host), host, threads.launches)
    outlasting, unknown = outlived(threads.held, lag_of(moments, places.held), pieces, host.host.axis, stretch)
    timed = Timed.concatenate([timed_waits(pieces, named, host.host.axis, stretch), unknown])
    if len(timed):
        threads = replace(threads, timed=timed)
        moments, places = moments_of(work, threads, calls, meetings, begin)
        program, in_order = program_order(moments)
        spans = _spans(program, host)
        pieces = owned(pieces, spans.owner, spans.spans)
    return _Timeline(threads, moments, places, program, in_order, host, pieces, named, outlasting)


def _known_graph(given: ReplayInputs, work: Work, timeline: _Timeline, lengths: _Lengths, meetings: Meetings) -> Graph:
    """The graph of what the trace says of who waits for whom."""
    threads, moments, places = timeline.threads, timeline.moments, timeline.places
    begin, length = given.stretch.begin, lengths.length
    time = np.append(min(begin, int(moments.time[0])), moments.time)
    edges = Edges.concatenate(
        [
            timeline.in_order,
            begun_before(work, places, begin, time),
            releases(threads, places, moments, length),
            own_times(threads, places, time, timeline.in_order),
            launched(work, threads, places, lengths.cost, lengths.pace),
            of_devices(work, places, lengths.events, lengths.barred, lengths.pace, length),
            arrivals(places, meetings, threads.mpi, moments),
            *_functions(given, work, timeline, lengths),
        ]
    )
    return Graph.of(time, edges.take(edges.source < edges.target), LATENCY_HIGHEST_NS)


def _functions(given: ReplayInputs, work: Work, timeline: _Timeline, lengths: _Lengths) -> list[Edges]:
    """What operations and waits for devices are behind host functions."""
    functions = functions_in(given.activity, work)
    if len(functions) == 0:
        return []
    threads, places, calls = timeline.threads, timeline.places, given.calls
    behind = operations_behind(functions, work)
    launch = np.full(len(work), -1)
    own = work.launch >= 0
    launch[own] = places.launch[np.searchsorted(threads.launches, work.launch[own])]
    gap = lengths.pace.gap[work.device, work.kind]
    lag, launches = lag_of(timeline.moments, places.held), (threads.launches, places.launch)
    return [
        into_operations(behind, work, lengths.length, places.operation, places.end, launch, gap),
        into_waits(
            threads.functions, work, lengths.length, places.held, places.end, lag, launches, calls, threads.held.thread
        ),
    ]


def _with_order(
    given: ReplayInputs, known: Graph, work: Work, places: MomentPlaces, length: IntArray, late: _Late
) -> Graph:
    """The graph with the order of operations that the trace shows without a reason, and with order that is hidden."""
    seen = after_end(length, places, observed_order(work, late.unexplained), EdgeKind.OBSERVED)
    seen = seen.take(seen.source < seen.target)
    as_asked = replace(known.edges, ns=known.asked)
    graph = Graph.of(known.time, Edges.concatenate([as_asked, seen]), LATENCY_HIGHEST_NS) if len(seen) else known
    hidden = after_end(length, places, hidden_order(work, given.activity, given.stretch), EdgeKind.HIDDEN)
    hidden = hidden.take(hidden.source < hidden.target)
    return extended(graph, hidden) if len(hidden) else graph


def _first_operations(given: ReplayInputs) -> IntArray:
    """When the first operation of each device of the trace starts, the end of the stretch for none."""
    first = np.full(len(given.activity.devices), given.stretch.end)
    np.minimum.at(first, given.activity.device, given.activity.operations.start)
    return first


def _spans(program: Program, host: LayeredEvidence) -> Owned:
    return on_axis(host.host.axis, program.thread, program.start, program.end)


def _causes(woken: Wakes, host: LayeredEvidence) -> IntArray:
    """The index in the registry of the cause that takes most of each wait for another thread; that of unexplained time
    for the start of a thread."""
    pieces, _ = host_time(on_axis(host.host.axis, woken.thread, woken.begin, woken.end), host, np.empty(0, np.int64))
    key = joint(pieces.owner, pieces.cause, len(CAUSES))
    ns = np.bincount(key, pieces.end - pieces.start, len(woken) * len(CAUSES))
    by_cause = ns.reshape(len(woken), len(CAUSES))
    return np.where(by_cause.any(axis=1), by_cause.argmax(axis=1), PLACE[FALLBACK])


def _threads(given: ReplayInputs, work: Work) -> ThreadActions:
    """What threads do for the operations of a stretch, and what ends their waits; no wait ends by time yet."""
    calls, begin, host_trace = given.calls, given.stretch.begin, given.host_trace
    launches = np.unique(work.launch[work.launch >= 0])
    begun = calls.start[launches]
    lo = min(int(begun.min(initial=begin)), begin)
    hi = int(begun.max(initial=begin)) + 1
    own = distinct_values(calls.thread[launches])
    woken = wakes(given.launching, own, host_trace, given.finder, lo, hi, given.floor)
    evidence = with_waiting(HostEvidence.of(given.layered.host, given.layered.facts), own, woken.waker, host_trace)
    waited = device_waits(evidence, work, given.activity, lo, hi)
    return ThreadActions(
        launches=launches,
        waited=waited,
        full=full_queues(work, calls),
        woken=woken,
        woken_cause=np.full(len(woken), PLACE[LOCK_WAIT.id]),
        mpi=within(given.met_by_mpi, lo, hi),
        timed=Timed.empty(),
        functions=waits_behind_functions(functions_in(given.activity, work), work, waited.held),
        asked=asked_at_once(evidence, work, given.activity, lo, hi),
    )


def _layers(moments: Moments, given: ReplayInputs) -> LayeredEvidence:
    """The layers of all threads that have moments."""
    threads = distinct_values(moments.thread[moments.thread != DEVICE])
    if np.isin(threads, given.launching.host.axis.threads).all():
        return given.layered
    view = given.host_trace.waiting(threads)
    return layer_evidence(HostEvidence.of(view.host, view.facts))
