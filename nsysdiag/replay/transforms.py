"""What each transform means for a model: which of its waits, pieces of host time and operations it is about."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from fnmatch import fnmatchcase

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, contains, subtract, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes import (
    BLOCKING_COPY,
    CAUSES,
    EVENT_WAIT,
    FALLBACK,
    INPUT_WAIT,
    LAUNCH_LATENCY,
    OTHER_PROCESS,
    PLACE,
    SYNCHRONIZATION,
    places,
)
from nsysdiag.causes.device_side import DEVICE_STALL, HOST_FUNCTION, STREAM_BARRIER
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.messages import UsageError
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.facts import Transform, text_of
from nsysdiag.replay.model import Model, time_behind
from nsysdiag.replay.moments import EdgeKind, Edges
from nsysdiag.replay.rank_like import like_the_median
from nsysdiag.replay.reshaped import ahead, batch, leave_order, merge, order_apart, waits_behind, workers
from nsysdiag.replay.sources import of_unknown_sources
from nsysdiag.replay.wakes import LOCKS, PROCESSES, SURE_LOCK, THREADS
from nsysdiag.replay.work import Class

MOST_NEAR = 5
"""Names that the hint of an error suggests if an option matches nothing. A round number: nothing else depends on it."""
OF_KIND = {EVENT_WAIT: EdgeKind.EVENT, STREAM_BARRIER.id: EdgeKind.BARRIER, HOST_FUNCTION.id: EdgeKind.FUNCTION}
EAGER = (DEVICE_STALL.id, FALLBACK, OTHER_PROCESS)
"""Causes for which an operation starts later than anything known holds it back."""
UNRESOLVED = places(lambda cause: cause.unresolved)
"""What explains nothing: if a thread did that, a wait for it is its own cause."""
NAMELESS = "kernels of graphs that were recorded as a whole have no names, see --cuda-graph-trace=node of nsys"
OVERLAPPED = {"copies": Class.COPY, "communication": Class.COMMUNICATION}


def apply(changes: Changes, transform: Transform) -> None:
    """Make the changes of one transform. Raises UsageError, with similar names, if it matches nothing in the replayed
    time, and ValueError for an unknown option."""
    if transform.option not in TRANSFORMS:
        raise ValueError(f"there is no transform '{transform.option}'")
    if not TRANSFORMS[transform.option](changes, transform):
        raise UsageError(
            f"{text_of([transform])} matches nothing in the replayed time", hint=_near(changes.model, transform)
        )


class FixScope(Struct, frozen=True):
    """What a fix is about: how much of each piece of host time, 0 to 1, and masks over the waits of the three
    kinds."""

    pieces: FloatArray
    held: BoolArray
    full: BoolArray
    woken: BoolArray

    @property
    def anything(self) -> bool:
        """Whether there is any."""
        return any(bool(each.any()) for each in (self.pieces, self.held, self.full, self.woken))

    def within(self, other: FixScope) -> FixScope:
        """What of it is in another part, too."""
        return FixScope(
            self.pieces * other.pieces, self.held & other.held, self.full & other.full, self.woken & other.woken
        )

    def without(self, other: FixScope) -> FixScope:
        """What of it is not in another part."""
        pieces = np.maximum(self.pieces - other.pieces, 0.0)
        return FixScope(pieces, self.held & ~other.held, self.full & ~other.full, self.woken & ~other.woken)


def _without(changes: Changes, cause: str) -> bool:
    """The host time of a cause becomes 0, and its waits vanish; on devices nothing waits for it."""
    if cause not in CAUSES:
        return False
    part = of_cause(changes.model, cause)
    take_out(changes, cause, part)
    return without_on_devices(changes, cause) or part.anything


def of_cause(model: Model, cause: str) -> FixScope:
    """All host time and all waits of a cause. Input waits are those for threads that load data."""
    threads, place = model.threads, PLACE[cause]
    loads = threads.woken.loader > 0
    return FixScope(
        pieces=(model.pieces.cause == place).astype(np.float64),
        held=threads.held.cause == place,
        full=threads.full.cause == place,
        woken=loads if cause == INPUT_WAIT else (threads.woken_cause == place) & ~loads,
    )


def take_out(changes: Changes, cause: str, part: FixScope) -> None:
    """A part of the host time of a cause takes no time, and nothing waits where a part of its waits is. A wait for
    another thread stays as long as that one works: the wait's own may be what nothing explains of that, and its return.
    A lock need not be waited for, though in doubt what its holder does is needed. So is what an unknown thread does
    that ends a wait for no lock, and the return of another thread that the waiting one woke. A wait before a call of
    MPI stays, too. In the view that saves most, only one whose result MPI is seen to copy does. In the one that saves
    least, other threads than those of the steps still wait for the device."""
    model = changes.model
    needed = model.waits_for_mpi if changes.view == View.MOST else model.waits_before_mpi
    if changes.view == View.LEAST and cause == SYNCHRONIZATION:
        needed = needed | model.waits_of_others
    part = replace(part, held=part.held & ~needed)
    # Who sleeps between queries still waits for the device, and only returns sooner.
    held = part.held & (cause != SLEEP.id)
    changes.elsewhere[:] |= len(model.beside.threads) > 0
    changes.unknown[(part.pieces > 0) & of_unknown_sources(model)] = True
    changes.time[:] *= 1 - part.pieces
    # No work of another thread is awaited at a lock. A thread that is needed has to be started.
    unsure = (model.unknown_waits & ~model.in_calls(LOCKS)) | model.returns_of_others
    unsure |= model.in_calls(THREADS) | model.in_calls(PROCESSES)
    changes.unknown[(part.pieces > 0) & unsure] = True
    _leave_to_wakers(changes, cause, part.woken)
    if CAUSES[cause].after_call:
        calls = model.call_of_piece[part.pieces > 0]
        changes.eager[np.isin(model.call_of_operation, calls[calls >= 0])] = True
    changes.held[held], changes.full[part.full] = False, False
    changes.others[held] = False
    _call_nothing(changes, held)
    places = model.places
    for at, waits in ((places.held, part.held), (places.full, part.full), (places.woken, part.woken)):
        changes.return_at_once(at[waits])


def _call_nothing(changes: Changes, held: BoolArray) -> None:
    """The launch in a call that waits takes no time any more. An upload is not staged, even if the driver stages it
    after what is before it in the stream.

    ```
    thread   [cudaMemcpy..........][cudaMemcpy........................]
             [== staging =]         ........[== staging =]
    stream                [= copy =)                     [= copy =)
    ```
    """
    model = changes.model
    mine = np.isin(model.work.launch, model.threads.held.call[held]) & (model.work.launch >= 0)
    changes.cost[mine] = 0
    changes.eager[mine & model.uploads] = True


def _leave_to_wakers(changes: Changes, cause: str, waits: BoolArray) -> None:
    model, woken = changes.model, changes.model.threads.woken
    if cause == INPUT_WAIT:
        changes.woken[waits] = False
        return
    unexplained = np.isin(model.pieces.cause, UNRESOLVED)
    behind = model.pieces.inside(time_behind(model, waits)) * unexplained
    changes.time[:] *= 1 - behind
    changes.unknown[behind > 0] = True
    locks = model.graph.of_rows(EdgeKind.WAKE, waits & (woken.lock == SURE_LOCK))
    changes.dropped[locks] = changes.doubted[locks] = True


def without_on_devices(changes: Changes, cause: str) -> bool:
    """Operations and waits for them are not held back by a cause on devices; False if it holds none."""
    model, edges = changes.model, changes.model.graph.edges
    if cause == LAUNCH_LATENCY:
        launches = edges.kind == EdgeKind.LAUNCH
        changes.cost[:] = changes.cost - model.pace.latency[model.work.device, model.work.kind]
        return bool(launches.any())
    if cause in EAGER:
        changes.eager[:] = True
        return len(model.work) > 0
    dropped = edges.kind == OF_KIND[cause] if cause in OF_KIND else np.zeros(len(edges), dtype=np.bool_)
    changes.dropped[dropped] = True
    return bool(dropped.any())


def operations_like(model: Model, pattern: str) -> BoolArray:
    """The kernels whose short or whole name matches; if none does, copies."""
    names = zip(model.names.texts, model.names.shown, strict=True)
    fits = np.array([*(any(fnmatchcase(text, pattern) for text in each) for each in names), False], dtype=np.bool_)
    mine: BoolArray = fits[model.names.short] | fits[model.names.whole]
    kernels = mine & (model.work.kind != Class.COPY)
    return kernels if kernels.any() else mine


def _kernel(changes: Changes, transform: Transform) -> bool:
    """These take `factor` of their time. In the view that saves most graphs do so, too, whose kernels were not
    recorded."""
    mine = operations_like(changes.model, transform.of)
    if changes.view == View.MOST:
        mine |= changes.model.names.graphs
    changes.length[mine] = np.round(changes.length[mine] * transform.factor).astype(np.int64)
    return bool(mine.any())


def _host(changes: Changes, transform: Transform) -> bool:
    """What threads did inside ranges whose name matches takes `factor` of its time. Host time that leads to what
    happens behind the last step shortens none, though its first part may be in that step."""
    model = changes.model
    codes, rows = _codes_like(model, transform.of), model.names.ranges.rows
    inside = model.pieces.inside(union(model.ranges_of(codes, rows)))
    changes.time[:] *= 1 - (1 - transform.factor) * inside
    threads = distinct_values(rows.thread[np.isin(rows.name, codes)])
    changes.elsewhere[:] |= np.isin(threads, model.beside.threads).any()
    replayed = model.program.end[model.pieces.owner] <= model.stretch.end
    return bool((inside[replayed] > 0).any())


def _codes_like(model: Model, pattern: str) -> list[int]:
    return [code for code, name in enumerate(model.names.ranges.names) if fnmatchcase(name, pattern)]


def overlap(changes: Changes, kind: Class) -> bool:
    """Operations of a class and the others no longer wait for each other, only each for its own in a stream. In doubt,
    communication still waits for the kernels before it, which may make its data. Kernels wait for the communication
    before them, whose data they may use. A call that waits for one of them still waits for the kernels before that,
    unless it is an upload from pageable memory.
    In doubt, too, a copy that operations of another device wait for hands over data of the kernels before it."""
    model = changes.model
    mine = model.work.kind == kind
    rows, first, second = _orders(model, EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.BARRIER)
    before, after = mine[first], mine[second]
    handed = _handed_over(model, first, second)
    changes.dropped[rows[before != after]] = True
    doubted = (kind == Class.COMMUNICATION) | handed
    changes.doubted[rows[before != after]] = doubted[before != after]
    if kind == Class.COPY:
        held = model.threads.held
        blocking, launch = held.cause == PLACE[BLOCKING_COPY], model.work.launch
        changes.held[blocking] = False
        _call_nothing(changes, blocking)
        up = blocking & np.isin(held.call, launch[model.uploads])
        changes.others[up] = False
        changes.return_at_once(model.places.held[up])
    return bool(mine.any())


def handed_over_ns(model: Model) -> int | None:
    """For how long in a step, or in the window, copies run if some hand over data from one GPU to another, and none
    blocks. To overlap them saves no more, as the other GPU needs the data. None otherwise."""
    held, copies = model.threads.held, model.work.kind == Class.COPY
    _, first, second = _orders(model, EdgeKind.EVENT, EdgeKind.BARRIER)
    over = copies[first] & (second >= 0) & (model.work.device[first] != model.work.device[second])
    if not over.any() or (held.cause == PLACE[BLOCKING_COPY]).any():
        return None
    return int(model.work.length[copies].sum()) // model.stretch.count


def _orders(model: Model, *kinds: EdgeKind) -> tuple[IntArray, IntArray, IntArray]:
    """The edges of these kinds that begin at operations: their rows, these operations, and those that wait for them, -1
    if something else does."""
    edges = model.graph.edges
    rows = np.flatnonzero(np.isin(edges.kind, kinds) & (edges.row >= 0))
    return rows, edges.row[rows], model.operation_at[edges.target[rows]]


def _handed_over(model: Model, before: IntArray, after: IntArray) -> BoolArray:
    """Which orders of two operations have one that waits for another device, or that another device waits for.

    ```
    GPU 0   [== k0 ==)[copy)
    GPU 1   ................[== k1 ==)     both orders: k0 made what the copy moves, and k1 uses it
    ```
    """
    across = (after >= 0) & (model.work.device[before] != model.work.device[after])
    linked = np.zeros(len(model.work), dtype=np.bool_)
    linked[before[across]] = linked[after[across]] = True
    return linked[before] | linked[after]


def _graphs(changes: Changes, transform: Transform) -> bool:
    """The launches inside each range of a name cost one launch, and so do those of another thread that it waits for."""
    model, work, woken = changes.model, changes.model.work, changes.model.threads.woken
    spans = model.ranges_of(_codes_like(model, transform.of), model.names.ranges.rows)
    spans = spans[outermost(spans)]
    waits = contains(union(spans), model.on_axis_of(woken).start)
    behind = subtract(time_behind(model, waits), union(spans))
    spans = Intervals(np.append(spans.start, behind.start), np.append(spans.end, behind.end))
    spans = spans[np.argsort(spans.start, kind="stable")]
    calls = model.launch_spans
    of_range = np.searchsorted(spans.start, calls.start, side="right") - 1
    inside = np.flatnonzero((of_range >= 0) & (calls.start < np.append(spans.end, 0)[of_range]))
    _, first = np.unique(of_range[inside], return_index=True)
    # From the end of the first launch to the end of the range: the graph does what was launched one by one.
    replaced = union(Intervals(calls.end[inside[first]], spans.end[of_range[inside[first]]]))
    changes.time[:] *= 1 - model.pieces.inside(replaced)
    later = np.delete(inside, first)
    changes.cost[np.isin(work.launch, model.threads.launches[later])] = 0
    _launched_as_one(changes, inside[first], np.diff(np.append(first, len(inside))))
    return len(later) > 0


def _launched_as_one(changes: Changes, calls: IntArray, nodes: IntArray) -> None:
    """The launch of a graph of so many nodes is likely as long as the first of the `calls`: in the bounds as long as it
    takes on a fast host, or on a slow one."""
    model = changes.model
    length = model.launch_spans.end[calls] - model.launch_spans.start[calls]
    if changes.view == View.MOST:
        part = np.ones(len(model.launch_spans) + 1)
        part[calls] = np.minimum(FAST_GRAPH_NS / np.maximum(length, 1), 1.0)
        changes.time[:] *= part[model.call_of_piece]
    elif changes.view == View.LEAST:
        longer = np.zeros(len(model.launch_spans) + 1, dtype=np.int64)
        longer[calls] = np.maximum(SLOW_GRAPH_NS + NODE_NS * nodes - length, 0)
        changes.cost[:] += longer[model.call_of_operation] * np.isin(model.call_of_operation, calls)
        edges, after = model.graph.edges, model.graph.at(model.places.launch[calls], longer[calls])
        changes.more[:] += np.where(edges.kind == EdgeKind.PROGRAM, after[edges.source], 0)


def edges_of(model: Model, transform: Transform) -> Edges:
    """What the operations and waits of a model wait for with a transform, besides what they wait for without it."""
    if transform.option == "stream":
        return order_apart(model, operations_like(model, transform.of))
    if transform.option == "ahead" and model.stretch.stepwise:
        return waits_behind(model, round(transform.factor))
    return Edges.empty()


FAST_GRAPH_NS, SLOW_GRAPH_NS, NODE_NS = 2_500, 12_000, 200
"""How long a launch of a graph takes. NVIDIA measured 2.5 µs for nodes in a row from CUDA 12.6 on. Before it was 2 µs
and 200 ns a node ("Constant Time Launch for Straight-Line CUDA Graphs"). Frameworks and profilers add to that."""
SHAPES = ("graphs", "merge", "stream", "workers", "ahead", "batch", "rank-like")
"""Transforms that are made in three ways."""
NEEDS = {
    "workers": "no thread or process that loads data ends most waits there",
    "ahead": "it needs steps in which the host waits for a GPU",
    "batch": "it needs as many steps",
}
"""What is not there if a transform without names matches nothing."""
TRANSFORMS: dict[str, Callable[[Changes, Transform], bool]] = {
    "without": lambda changes, each: _without(changes, each.of),
    "kernel": _kernel,
    "host": _host,
    "async-copies": lambda changes, _: _without(changes, BLOCKING_COPY),
    "overlap": lambda changes, each: each.of in OVERLAPPED and overlap(changes, OVERLAPPED[each.of]),
    "graphs": _graphs,
    "rank-like": lambda changes, _: like_the_median(changes),
    "merge": lambda changes, each: merge(changes, operations_like(changes.model, each.of)),
    "stream": lambda changes, each: leave_order(changes, operations_like(changes.model, each.of)),
    "workers": lambda changes, each: workers(changes, round(each.factor)),
    "ahead": lambda changes, _: ahead(changes),
    "batch": lambda changes, each: batch(changes, round(each.factor)),
}
"""The options of changes. Each makes its changes and says whether it matches anything in the replayed time."""


def causes_of(model: Model) -> list[str]:
    """The causes with time in the replay, most first."""
    pieces, ids = model.pieces, list(CAUSES)
    ns = np.bincount(pieces.cause, pieces.length, len(ids))
    held, full, woken = model.threads.held, model.threads.full, model.threads.woken
    woken_cause = np.where(woken.loader > 0, PLACE[INPUT_WAIT], model.threads.woken_cause)
    for waits, cause in ((held, held.cause), (full, full.cause), (woken, woken_cause)):
        ns += np.bincount(cause, waits.end - waits.begin, len(ids))
    return [ids[at] for at in np.argsort(-ns, kind="stable").tolist() if ns[at]]


def _near(model: Model, transform: Transform) -> str | None:
    """Names that could have been meant; None for an option without a name."""
    kernels = lambda: sorted({model.names.shown[code] for code in distinct_values(model.names.whole).tolist()} - {""})  # noqa: E731
    named: dict[str, Callable[[], list[str]]] = {
        "without": lambda: causes_of(model),
        **dict.fromkeys(("kernel", "merge", "stream"), kernels),
        "overlap": lambda: list(OVERLAPPED),
        "host": lambda: sorted(set(model.names.ranges.names)),
        "graphs": lambda: sorted(set(model.names.ranges.names)),
    }
    if transform.option not in named:
        return NEEDS.get(transform.option)
    known = named[transform.option]()
    if transform.option == "host" and any(fnmatchcase(name, transform.of) for name in known):
        return "ranges of this name are elsewhere in the trace: choose their time with --from and --to"
    near = difflib.get_close_matches(transform.of, known, MOST_NEAR, 0.3) or known[:MOST_NEAR]
    told = "near names: " + ", ".join(near) if near else "there are no names to choose from"
    return f"{told}; {NAMELESS}" if named[transform.option] is kernels and model.names.graphs.any() else told
