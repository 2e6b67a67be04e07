"""What threads did between the moments of the replay, by cause: by the rules of the ledger, over whole threads."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.claim import CodeTable, EvidenceLabel, Owned, claim
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage
from nsysdiag.causes import FALLBACK, IN_LAUNCH_CALL, PLACE
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.calls import named_like
from nsysdiag.events.rows import Rows, ThreadAxis, distinct
from nsysdiag.ledger.classify import LayeredEvidence


class HostTime(Rows, frozen=True):
    """Pieces [start, end) of host time, positions on the axis of threads: the index of the `cause` in the registry, its
    label and the call as codes (-1: none), and `owner`, the number of its owner."""

    owner: IntArray
    cause: IntArray
    label: IntArray
    call: IntArray
    start: IntArray
    end: IntArray

    @property
    def spans(self) -> Intervals:
        """The pieces as intervals."""
        return Intervals(self.start, self.end)

    def inside(self, spans: Intervals) -> FloatArray:
        """The fraction of each piece that overlaps the set `spans`, 0 to 1."""
        part: FloatArray = coverage(spans, self.spans) / np.maximum(self.end - self.start, 1)
        return part

    def parts_in(self, part: FloatArray, queries: Intervals) -> IntArray:
        """How many ns of each query a `part` of each piece takes, 0 to 1, if each piece is evenly thinned."""
        order = np.argsort(self.start, kind="stable")
        start, length, part = self.start[order], (self.end - self.start)[order], part[order]
        whole = np.concatenate(([0.0], np.cumsum(length * part)))

        def before(time: IntArray) -> FloatArray:
            at = np.maximum(np.searchsorted(start, time, side="right") - 1, 0)
            found: FloatArray = whole[at] + part[at] * np.clip(time - start[at], 0, length[at])
            return found

        return np.round(before(queries.end) - before(queries.start)).astype(np.int64)


class HostNames(NamedTuple):
    """What the codes of pieces stand for."""

    labels: list[EvidenceLabel]
    calls: list[str]

    def calls_like(self, pattern: re.Pattern[str], *, without: bool = False) -> BoolArray:
        """Which calls have such a whole name, and behind them what holds of pieces `without` a call."""
        return np.append(named_like(self.calls, pattern), without)


class _Collector:
    """Pieces, and their labels and calls, each kept once."""

    def __init__(self) -> None:
        self.parts = [HostTime.empty()]
        self.labels, self.calls = CodeTable[EvidenceLabel](), CodeTable[str]()

    def add(self, cause: str, pieces: Owned, label: IntArray | int = -1, call: IntArray | int = -1) -> None:
        """Write pieces down."""
        count = len(pieces)
        place, labels, calls = (
            np.broadcast_to(np.asarray(each, dtype=np.int64), (count,)) for each in (PLACE[cause], label, call)
        )
        self.parts.append(HostTime(pieces.owner, place, labels, calls, pieces.spans.start, pieces.spans.end))

    def by_layers(self, left: Owned, layers: dict[str, list[EvidenceLayer]]) -> Owned:
        """Let each layer claim in turn; returns what is left."""
        for cause, parts in layers.items():
            for layer in parts:
                claimed, left, source = claim(left, layer.spans)
                names, code = distinct(layer.name[source])
                shown = [typed.plain(layer.names[each]) if each >= 0 else None for each in names.tolist()]
                self.add(cause, claimed, self.labels.code(layer.label), self.calls.codes(shown)[code])
        return left


def host_time(spans: Owned, layered: LayeredEvidence, launches: IntArray) -> tuple[HostTime, HostNames]:
    """All time of `spans`, which are on the axis of `layered`, piece by piece, and what its codes stand for. `launches`
    are the rows of the calls that launched something: what happens in them is a part of launching."""
    found, api = _Collector(), layered.host.api
    launched = np.zeros(len(layered.host.api_calls.rows), dtype=np.bool_)
    launched[launches] = True
    chosen = np.flatnonzero(api.outermost & launched[api.row])
    inside, left, source = claim(spans, api.spans[chosen])
    # The pieces inside a call keep its place: what no layer claims is the call's own.
    rest = found.by_layers(Owned(inside.spans, np.arange(len(inside))), layered.inside)
    row, name = api.row[chosen[source]], found.calls.codes(api.names)[api.name[chosen[source]]]
    for cause, own in layered.own_call.items():
        if len(own.flags) and len(rest):
            mine = own.flags[row[rest.owner]]
            theirs = Owned(rest.spans[mine], rest.owner[mine])
            label = found.labels.codes(own.labels)[own.labels_of(row[theirs.owner])]
            found.add(cause, theirs, label, name[theirs.owner])
            rest = Owned(rest.spans[~mine], rest.owner[~mine])
    found.add(IN_LAUNCH_CALL, rest, -1, name[rest.owner])
    found.parts = [replace(part, owner=inside.owner[part.owner]) for part in found.parts]
    found.add(FALLBACK, found.by_layers(left, layered.before))
    return HostTime.concatenate(found.parts), HostNames(list(found.labels.known), list(found.calls.known))


def on_axis(axis: ThreadAxis, thread: IntArray, start: IntArray, end: IntArray) -> Owned:
    """Stretches of threads on the axis, each owned by its row."""
    rank = axis.lane(thread)
    kept = np.flatnonzero(rank >= 0)
    return Owned.of(axis.place(rank[kept], Intervals(start[kept], end[kept])), kept)
