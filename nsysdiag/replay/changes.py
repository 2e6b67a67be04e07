"""What a transform changes in a model: host time, waits, the lengths of operations and what they wait for."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import ENDS, NEVER_NS, EdgeKind
from nsysdiag.replay.orders import GAP_NS
from nsysdiag.replay.pacing import OUTLIVED

SURE = 0.8
"""A wake-up that is less sure is none in the bound that promises least."""


class View(IntEnum):
    """What is made of a change whose effect no trace shows: what saves least, what is likely, and what saves most."""

    LEAST = -1
    LIKELY = 0
    MOST = 1


class Changes(Struct, frozen=True):
    """A model with changes, made in place.

    Factors: `time` of each piece of host time; `unseen` of host time in no piece; `lag` of the cost of each wait, by
    the rows of `program`. `length` is the duration of each operation in ns, `cost` that of its launch. `held`, `full`
    and `woken` mark the remaining waits, `others` the waits that still are for all but their target.
    `dropped` marks the removed edges, `doubted` those of them that the fix may have to keep. `unknown` are the
    pieces of host time that it may have to keep. `eager` marks the operations that start as early as possible, `prompt`
    those without a residual. `more` is added to the length of each edge, in ns. `counted`: the place of the first
    border that counts, -1 for the usual one, and how many steps are one. `elsewhere` (one value): threads that the
    graph does not hold may change, too.

    What is assumed besides: with `loose`, waits for threads have no time of their own. With `proven`, doubted edges
    stay, and an uncertain wait for a thread takes as long as recorded, as does the return from any. If not `observed`,
    no operation waits for work that it only followed, and waits for unknown threads take no time. With `pinned`, waits
    that may end at a time of their own do, and what streams may wait for is kept. With `brief`, no wait outlasts what
    it is known to be for. With `possible`, threads wait for what they may have to wait for. With `spins`, host code
    that may wait for a device does."""

    model: Model
    time: FloatArray
    unseen: FloatArray
    lag: FloatArray
    length: IntArray
    cost: IntArray
    held: BoolArray
    others: BoolArray
    full: BoolArray
    woken: BoolArray
    dropped: BoolArray
    doubted: BoolArray
    unknown: BoolArray
    eager: BoolArray
    prompt: BoolArray
    more: IntArray
    counted: IntArray
    elsewhere: BoolArray
    view: View = View.LIKELY
    loose: bool = False
    proven: bool = False
    observed: bool = True
    pinned: bool = False
    brief: bool = False
    possible: bool = False
    spins: bool = False

    @classmethod
    def none(cls, model: Model, view: View = View.LIKELY) -> Changes:
        """Everything as it was."""
        threads, work = model.threads, model.work
        return cls(
            model=model,
            time=np.ones(len(model.pieces)),
            unseen=np.ones(len(model.program)),
            lag=np.ones(len(model.program)),
            length=model.length.copy(),
            cost=model.cost.copy(),
            held=np.ones(len(threads.held), dtype=np.bool_),
            others=np.ones(len(threads.held), dtype=np.bool_),
            full=np.ones(len(threads.full), dtype=np.bool_),
            woken=np.ones(len(threads.woken), dtype=np.bool_),
            dropped=np.zeros(len(model.graph.edges), dtype=np.bool_),
            doubted=np.zeros(len(model.graph.edges), dtype=np.bool_),
            unknown=np.zeros(len(model.pieces), dtype=np.bool_),
            eager=np.zeros(len(work), dtype=np.bool_),
            prompt=np.zeros(len(work), dtype=np.bool_),
            more=np.zeros(len(model.graph.edges), dtype=np.int64),
            counted=np.array([-1, 1]),
            elsewhere=np.zeros(1, dtype=np.bool_),
            view=view,
        )

    def later(self, moments: IntArray, ns: IntArray, *kinds: EdgeKind) -> IntArray:
        """`more`, with `ns` in addition for the edges of these kinds into the moments."""
        graph = self.model.graph
        return self.more + np.isin(graph.edges.kind, kinds) * graph.at(moments, ns)[graph.edges.target]

    def return_at_once(self, moments: IntArray) -> None:
        """The waits that end at these moments have no cost at their end."""
        row = self.model.program_into[moments]
        self.lag[row[row >= 0]] = 0

    def edges(self) -> tuple[IntArray, IntArray]:
        """The lengths of the edges and the residuals of the moments, in ns."""
        model, edges, gone = self.model, self.model.graph.edges, self._gone()
        residual = model.graph.residual.copy()
        residual[model.places.operation[self.eager | self.prompt]] = 0
        if not self.observed:
            residual[edges.target[model.graph.rows[EdgeKind.OBSERVED]]] = 0
        # A moment that would lose all of its edges keeps them.
        left = np.bincount(edges.target[~gone], minlength=len(model.graph.time))
        gone &= left[edges.target] > 0
        lengths = self._lengths() + self.more - (self._outlived() if self.brief else 0)
        return np.where(gone, NEVER_NS, lengths), residual

    def _gone(self) -> BoolArray:
        """The edges that hold nothing back."""
        graph, row = self.model.graph, self.model.graph.edges.row
        waits = {
            EdgeKind.DEVICE_WAIT: self.held,
            EdgeKind.FUNCTION: np.append(self.held, True),
            EdgeKind.RELEASED: self.others,
            EdgeKind.WAKE: self.woken,
            EdgeKind.SLOT: self.full,
        }
        gone = self.dropped.copy()
        for kind, there in waits.items():
            gone[graph.rows[kind]] |= ~there[row[graph.rows[kind]]]
        finished = graph.rows[EdgeKind.FINISHED]
        kept = graph.at(self.model.places.held, self.others, True)
        gone[finished] |= ~kept[graph.edges.target[finished]]
        gone[graph.rows[EdgeKind.HIDDEN]] = not self.pinned
        if not self.observed:
            gone[graph.rows[EdgeKind.OBSERVED]] = True
        gone[graph.rows[EdgeKind.POSSIBLE]] |= not self.possible
        gone[graph.rows[EdgeKind.SPIN]] |= not self.spins
        return (gone & ~self.doubted) | graph.of_rows(EdgeKind.WAKE, self._unsure) if self.proven else gone

    def _lengths(self) -> IntArray:
        model, graph, edges = self.model, self.model.graph, self.model.graph.edges
        ns, row, time = edges.ns.copy(), edges.row, graph.time
        program, launches, woken, paced = (
            graph.rows[kind] for kind in (EdgeKind.PROGRAM, EdgeKind.LAUNCH, EdgeKind.WAKE, EdgeKind.PACED)
        )
        host, spins = self._host_ns(), graph.rows[EdgeKind.SPIN]
        ns[program] = host[row[program]]
        behind = model.spins.take(row[spins])
        ns[spins] = model.length[behind.operation] + host[behind.row]
        kept = (self.doubtful_times if self.pinned else self.paced)[row[paced]]
        ns[paced] = np.where(kept, time[edges.target[paced]] - time[edges.source[paced]], 0)
        ns -= np.append(model.length - self.length, 0)[model.operation_in]
        ends = np.concatenate([graph.rows[kind] for kind in ENDS])
        sooner = np.append(model.program.lag * (1 - self.lag), 0)
        ns[ends] -= np.round(sooner[model.program_into[edges.target[ends]]]).astype(np.int64)
        ns[launches] = np.maximum(ns[launches] - (model.cost - self.costs())[row[launches]], 0)
        lag = np.append(self._lags(), 1.0)
        ns[woken] = np.round(ns[woken] * lag[model.program_into[edges.target[woken]]])
        return self._eager(ns) if self.eager.any() else ns

    def _eager(self, ns: IntArray) -> IntArray:
        """The lengths, in place, of which those into the operations that start as early as possible are shorter."""
        model, graph, edges = self.model, self.model.graph, self.model.graph.edges
        soon = graph.at(model.places.operation[self.eager], True, False)[edges.target]
        ns[soon] = np.minimum(ns[soon], graph.asked[soon])
        soon &= edges.kind == EdgeKind.STREAM
        ns[soon] = np.minimum(ns[soon], np.append(self.length, 0)[edges.row[soon]] + GAP_NS)
        return ns

    def _outlived(self) -> IntArray:
        """By how much each edge is shorter if no wait outlasts what it is known to be for."""
        model, edges = self.model, self.model.graph.edges
        after = model.graph.at(model.places.held, model.outlived.ns)
        unknown = np.append(model.threads.timed.sure == OUTLIVED, False)[model.timed_of_piece]
        kept = model.pieces.length * self.time * unknown
        alone = np.bincount(model.pieces.owner, kept, len(model.program)).astype(np.int64)
        program = edges.kind == EdgeKind.PROGRAM
        less = np.where(np.isin(edges.kind, ENDS), after[edges.target], 0)
        lag = np.minimum(after[edges.target[program]], self.model.program.lag[edges.row[program]])
        less[program] = lag * (self.lag[edges.row[program]] > 0) + alone[edges.row[program]]
        return less

    @property
    def certain(self) -> bool:
        """Whether all wake-ups are sure, and all removed edges and returns from waits."""
        doubted = self.doubted.any() or self.unknown.any()
        return not (self._unsure.any() or doubted or (self.lag[self._returns] != 1).any())

    @property
    def complete(self) -> bool:
        """Whether all is known that operations and waits of threads waited for."""
        return not (self.model.graph.edges.kind == EdgeKind.OBSERVED).any() and not self.model.unresolved.any()

    @property
    def paced(self) -> BoolArray:
        """Which of the waits that surely end at a time of their own are not taken out."""
        timed = self.model.threads.timed
        return (self._timed > 0) & (timed.sure > 0) & ((timed.outside > 0) | (not self.loose))

    @property
    def doubtful_times(self) -> BoolArray:
        """Which of the waits that end at a time of their own hold back in the longer bound. These are all that are
        sure, also if they are taken out; all that outlast what is known; others, unless a part of them is taken out."""
        return (self.model.threads.timed.sure != 0) | (self._timed >= 1)

    @property
    def _timed(self) -> FloatArray:
        """The factor of the time of each wait that may end at a time of its own."""
        model, kept = self.model, np.ones(len(self.model.threads.timed))
        inside = model.timed_of_piece >= 0
        np.minimum.at(kept, model.timed_of_piece[inside], self.time[inside])
        return kept

    @property
    def not_woken(self) -> BoolArray:
        """The waits for other threads that no longer are."""
        edges, gone = self.model.graph.edges, ~self.woken
        gone[edges.row[self.dropped & (edges.kind == EdgeKind.WAKE)]] = True
        return gone

    def costs(self) -> IntArray:
        """How long the launch of each operation takes: the part of its call that stays."""
        model, call = self.model, self.model.call_of_piece
        length = model.pieces.length
        inside = call >= 0
        count = len(model.threads.launches)
        whole = np.bincount(call[inside], length[inside], count)
        kept = np.bincount(call[inside], (length * self.time)[inside], count)
        part = np.append(np.where(whole > 0, kept / np.maximum(whole, 1), 1.0), 1.0)
        return np.round(self.cost * part[model.call_of_operation]).astype(np.int64)

    @property
    def _unsure(self) -> BoolArray:
        return self.model.threads.woken.confidence < SURE

    @property
    def _returns(self) -> IntArray:
        """The rows of `program` that end the remaining waits for other threads."""
        row = self.model.program_into[self.model.places.woken[self.woken]]
        return row[row >= 0]

    def _lags(self) -> FloatArray:
        """The factor of the cost of each wait. A thread that is woken may take as long as ever to run."""
        lag = self.lag.copy()
        if self.proven:
            lag[self._returns] = 1.0
        return lag

    def _host_ns(self) -> IntArray:
        """The length of each PROGRAM edge. A wait that has lost its end, as it is not sure, takes as long as it did."""
        model = self.model
        pieces, program = model.pieces, model.program
        kept = pieces.length * np.where(self.unknown & self.proven, 1.0, self.time)
        if not self.observed:
            kept = np.where(self.model.unresolved, 0, kept)
        # A wait until a time is as short as what comes before leaves it.
        kept = np.where(np.append(self.paced, False)[model.timed_of_piece], 0, kept)
        ns = np.bincount(pieces.owner, kept, len(program)) + model.unseen * self.unseen
        ns += program.lag * self._lags()
        if self.proven:
            unsure = np.flatnonzero(self._unsure & self.woken)
            row = model.program_into[model.places.woken[unsure]]
            known, woken = row >= 0, model.threads.woken
            whole = woken.end[unsure] - np.maximum(woken.begin[unsure], program.end[row])
            ns[row[known]] += np.maximum(whole - program.lag[row], 0)[known]
        return np.round(ns).astype(np.int64)
