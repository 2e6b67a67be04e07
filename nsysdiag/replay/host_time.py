"""What threads did between the moments of the replay, by cause: by the rules of the ledger, over whole threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.causes import FALLBACK, IN_LAUNCH_CALL, PLACE
from nsysdiag.causes.evidence import Layer
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.rows import Rows
from nsysdiag.ledger.classify import LayeredEvidence


@dataclass(frozen=True, slots=True)
class HostTime(Rows):
    """Pieces [start, end) of host time, positions on the axis of threads: the place of the `cause` in the registry, its
    label as a code (-1: none), and `owner`, whose time it is."""

    owner: IntArray
    cause: IntArray
    label: IntArray
    start: IntArray
    end: IntArray


class _Collector:
    """Pieces, and labels, each kept once."""

    def __init__(self) -> None:
        self.parts = [HostTime.empty()]
        self.labels: dict[str, int] = {}

    def add(self, cause: str, pieces: Owned, label: IntArray | str | None = None) -> None:
        """Write pieces down."""
        code = np.full(len(pieces), self.code(label)) if label is None or isinstance(label, str) else label
        place = np.full(len(pieces), PLACE[cause])
        self.parts.append(HostTime(pieces.owner, place, code, pieces.spans.start, pieces.spans.end))

    def code(self, label: str | None) -> int:
        """The code of a label."""
        return -1 if label is None else self.labels.setdefault(label, len(self.labels))

    def by_layers(self, left: Owned, layers: dict[str, list[Layer]]) -> Owned:
        """Let each layer claim in turn; returns what is left."""
        for cause, parts in layers.items():
            for layer in parts:
                claimed, left, _ = claim(left, layer.spans)
                self.add(cause, claimed, layer.label)
        return left


def host_time(spans: Owned, layered: LayeredEvidence, launches: IntArray) -> tuple[HostTime, list[str]]:
    """All time of `spans`, which are on the axis of `layered`, piece by piece, and the labels. `launches` are the rows
    of the calls that launched something: what happens in them is a part of launching."""
    found, api = _Collector(), layered.host.api
    chosen = np.flatnonzero(api.outermost & np.isin(api.row, launches))
    inside, left, source = claim(spans, api.spans[chosen])
    call = api.row[chosen[source]]
    # The pieces inside a call keep its row: what no layer claims is the call's own.
    numbered = Owned(inside.spans, np.arange(len(inside)))
    before = len(found.parts)
    rest = found.by_layers(numbered, layered.inside)
    for cause, own in layered.own_call.items():
        if len(own.flags) and len(rest):
            mine = own.flags[call[rest.owner]]
            theirs = Owned(rest.spans[mine], rest.owner[mine])
            codes = np.array([*(found.code(label) for label in own.labels), -1])
            label = own.label[call[theirs.owner]] if own.labels else np.full(len(theirs), -1)
            found.add(cause, theirs, codes[label])
            rest = Owned(rest.spans[~mine], rest.owner[~mine])
    found.add(IN_LAUNCH_CALL, rest)
    for at in range(before, len(found.parts)):
        part = found.parts[at]
        found.parts[at] = HostTime(inside.owner[part.owner], part.cause, part.label, part.start, part.end)
    found.add(FALLBACK, found.by_layers(left, layered.before))
    return HostTime.concatenate(found.parts), list(found.labels)


def on_axis(axis: ThreadAxis, thread: IntArray, start: IntArray, end: IntArray) -> Owned:
    """Stretches of threads on the axis, each owned by its row."""
    rank = axis.rank(thread)
    kept = np.flatnonzero(rank >= 0)
    return Owned.of(axis.place(rank[kept], Intervals(start[kept], end[kept])), kept)
