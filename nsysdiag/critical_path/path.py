"""The critical path of a model: from the end of its last step back, at each moment along the edge that decided it.

```
thread   [launch A][launch B][launch C][ host code ]
device      [===== A =====)[===== B =====)[== C ==)
path     ###[===== A =====)[===== B =====)[== C ==)             the launch of A, and the operations
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.bottlenecks import OF_WORK, title_of
from nsysdiag.causes import CAUSES, FALLBACK, PLACE
from nsysdiag.causes.device_side import DEVICE_STALL, GPU_CONTEXT_SWITCH
from nsysdiag.causes.memory_calls import UNIFIED_MEMORY
from nsysdiag.critical_path.facts import CriticalPath, PathPart, PathWork
from nsysdiag.events.identity import joint
from nsysdiag.kernels.kernels import GRAPHS
from nsysdiag.kernels.kinds import collective_of, family_of, family_title
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import NEVER_NS, OF_BOUNDS, ORIGIN, EdgeKind
from nsysdiag.replay.run import Run, as_run, behind, causes_in, deciding_edges, late_threads
from nsysdiag.replay.work import Class

_BOTTLENECKS = {
    Class.COMPUTE: OF_WORK["compute"],
    Class.COMMUNICATION: OF_WORK["exposed_comm"],
    Class.COPY: OF_WORK["exposed_copy"],
}
_IDS = list(CAUSES)


class PathLinks(Struct, frozen=True):
    """The links of a path in order of time, each from where the one before it ends: [start, end) in ns, and the row of
    its edge, -1 for the operation at the end of the path. The first `worked` of the time is work of `operation`, both 0
    and -1 for none."""

    start: IntArray
    end: IntArray
    edge: IntArray
    operation: IntArray
    worked: IntArray

    @property
    def begun(self) -> IntArray:
        """Where the work of each link is over."""
        return self.start + self.worked


def critical_path(model: Model) -> CriticalPath | None:
    """The path of the steps that count, or of the window; None if no operation ends them."""
    run = as_run(model, model.graph.time, model.length)
    last = _last(model, run)
    if last < 0:
        return None
    chain = chain_to(model, last)
    first, end = run.span
    on_path = _work(chain, first, end, len(model.work))
    device = int(np.bincount(model.work.device, on_path).argmax())
    parts = [*_parts_of_work(model, on_path), *_parts_of_causes(model, chain, first, end)]
    return CriticalPath(
        per=model.stretch.per,
        steps=run.count,
        total_ns=end - first,
        device=model.names.keys[device],
        parts=sorted(parts, key=lambda each: (-each.ns, each.bottleneck, each.cause)),
        work=_kinds(model, run, on_path, model.work.device == device),
    )


def _last(model: Model, run: Run) -> int:
    """The operation that ends the last step, the longest of those that do; -1 for none."""
    ends = np.flatnonzero((run.end == run.span[1]) & (model.work.start < model.stretch.end))
    return int(ends[model.length[ends].argmax()]) if len(ends) else -1


def chain_to(model: Model, last: int) -> PathLinks:
    """The chain that ends with the operation `last`. Of edges that decide together it is the one that asked for most
    time before it was shortened to what was recorded; none of those that may not be there."""
    graph, places = model.graph, model.places
    ns = np.where(np.isin(graph.edges.kind, OF_BOUNDS), NEVER_NS, graph.edges.ns)
    decided = deciding_edges(graph, graph.time, ns)
    source, into = graph.edges.source.tolist(), decided.tolist()
    at, found = int(places.end[last]), [-1]
    while at != ORIGIN:
        found.append(into[at])
        at = source[into[at]]
    edge = np.array(found[::-1], dtype=np.int64)
    begins, ends = (np.append(graph.time[each], 0)[edge] for each in (graph.edges.source, graph.edges.target))
    begins[-1] = graph.time[places.end[last]]
    ends[-1] = begins[-1] + model.length[last]
    operation = np.append(_operations(model), last)[edge]
    worked = np.where(operation >= 0, np.minimum(model.length[operation], ends - begins), 0)
    return PathLinks(begins, ends, edge, operation, np.maximum(worked, 0))


def _operations(model: Model) -> IntArray:
    """The operation whose time is at the begin of each edge, -1 for none."""
    edges = model.graph.edges
    found = np.where(edges.kind == EdgeKind.FUNCTION, -1, model.operation_in)
    # The nodes of a graph may overlap: then it is the order of their starts.
    return np.where((edges.kind == EdgeKind.STREAM) & (edges.row < 0), model.operation_at[edges.source], found)


def _work(chain: PathLinks, first: int, last: int, count: int) -> IntArray:
    """How much of each operation is on the path in [first, last), in ns."""
    mine = chain.operation >= 0
    begun, until = (np.clip(each[mine], first, last) for each in (chain.start, chain.begun))
    return sum_of_each(chain.operation[mine], until - begun, count)


def _parts_of_work(model: Model, on_path: IntArray) -> list[PathPart]:
    ns = sum_of_each(model.work.kind, on_path, len(Class)).tolist()
    found = [(each, ns[kind]) for kind, each in _BOTTLENECKS.items() if ns[kind]]
    return [PathPart(name=title_of(each), bottleneck=each, cause="", ns=taken) for each, taken in found]


def _parts_of_causes(model: Model, chain: PathLinks, first: int, last: int) -> list[PathPart]:
    """The rest of the path: the causes of what a thread did, else why the GPU was late."""
    edges = model.graph.edges
    kind = np.append(edges.kind, EdgeKind.START)[chain.edge]
    target = np.append(edges.target, ORIGIN)[chain.edge]
    begins, ends = (np.clip(each, first, last) for each in (chain.begun, chain.end))
    changes = Changes.none(model)
    thread, until = _threads(changes, chain, kind, target, ends)
    told = Intervals(begins, np.clip(until, begins, ends))
    total, by_link = causes_in(changes, model.graph.time, thread, told)
    rest = ends - begins - by_link
    late = np.minimum(rest, _late(model, chain, target, first, last))
    total += sum_of_each(_behind(model, chain, kind, target), rest - late, len(CAUSES))
    total += sum_of_each(_why_late(model, target), late, len(CAUSES))
    found = [(CAUSES[_IDS[at]], int(total[at])) for at in np.flatnonzero(total).tolist()]
    return [
        PathPart(name=each.busy_title or each.title, bottleneck=each.bottleneck, cause=each.id, ns=taken)
        for each, taken in found
    ]


def _threads(
    changes: Changes, chain: PathLinks, kind: IntArray, target: IntArray, ends: IntArray
) -> tuple[IntArray, IntArray]:
    """The thread that each link is about, 0 for none, and until when: in a launch until that is on its way."""
    model = changes.model
    into = model.program_into[target]
    thread = np.where((into >= 0) & (kind != EdgeKind.PACED), np.append(model.program.thread, 0)[into], 0)
    until = ends.copy()
    launched = np.flatnonzero(kind == EdgeKind.LAUNCH)
    operation = model.graph.edges.row[chain.edge[launched]]
    thread[launched], until[launched] = late_threads(changes, model.graph.time, operation, kind[launched])
    return thread, until


def _behind(model: Model, chain: PathLinks, kind: IntArray, target: IntArray) -> IntArray:
    """The cause of links that are about no thread: of waits with a time of their own that of the wait."""
    timed, mine = model.timed_of_piece, model.timed_of_piece >= 0
    of_wait = np.full(len(model.threads.timed) + 1, PLACE[FALLBACK])
    of_wait[timed[mine]] = model.pieces.cause[mine]
    row = np.append(model.graph.edges.row, -1)[chain.edge]
    paced = kind == EdgeKind.PACED
    return np.where(paced, of_wait[np.where(paced, row, -1)], behind(model, kind, model.operation_at[target]))


def _late(model: Model, chain: PathLinks, target: IntArray, first: int, last: int) -> IntArray:
    """For how long each link ends later than its edge asks for, in [first, last), in ns."""
    begun = np.maximum(chain.end - model.graph.residual[target], chain.begun)
    return np.clip(chain.end, first, last) - np.clip(begun, first, last)


def _why_late(model: Model, target: IntArray) -> IntArray:
    """Why the operations at some moments start later than their edges ask for."""
    why = np.full(len(model.graph.time), PLACE[DEVICE_STALL.id])
    explained, at = model.explained, model.places.operation
    why[at[explained]] = PLACE[GPU_CONTEXT_SWITCH.id]
    why[at[explained & (model.paging > 0)]] = PLACE[UNIFIED_MEMORY.id]
    return why[target]


# The work of the steps by kind, on the path and off it.


def _kinds(model: Model, run: Run, on_path: IntArray, mine: BoolArray) -> list[PathWork]:
    """The operations that are `mine`: kernels by family, collectives and copies by kind, that with most time first."""
    first, last = run.span
    ns = (np.clip(run.end, first, last) - np.clip(run.start, first, last)) * mine
    code, titles = _titles(model)
    columns = (ns, on_path * mine, (ns > 0).astype(np.int64))
    total, longest, count = (sum_of_each(code, each, len(titles)) for each in columns)
    found = [
        PathWork(
            bottleneck=_BOTTLENECKS[kind],
            name=title,
            count=int(count[at]),
            total_ns=int(total[at]),
            path_ns=int(longest[at]),
        )
        for at, (kind, title) in enumerate(titles)
        if total[at]
    ]
    return sorted(found, key=lambda each: (-each.total_ns, each.bottleneck, each.name))


def _titles(model: Model) -> tuple[IntArray, list[tuple[Class, str]]]:
    """The code of each operation's kind, and the kinds."""
    names = model.names
    key = joint(joint(names.short, names.whole, len(names.texts)), model.work.kind, len(Class))
    keys, code = distinct(key)
    known: dict[tuple[Class, str], int] = {}
    of_key = []
    for each in keys.tolist():
        name, kind = divmod(each, len(Class))
        short, whole = divmod(name, len(names.texts))
        title = _title(Class(kind), names.texts[short], names.texts[whole])
        of_key.append(known.setdefault((Class(kind), title), len(known)))
    return np.array(of_key, dtype=np.int64)[code] if len(keys) else code, list(known)


def _title(kind: Class, short: str, whole: str) -> str:
    if kind == Class.COPY:
        return short or "memset"
    if kind == Class.COMMUNICATION:
        return collective_of(short) or "communication"
    text = whole or short
    return family_title(family_of(text, short), text) if text else GRAPHS
