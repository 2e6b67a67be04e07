"""What a program did from its first CUDA call to the first work of a device: the start of a cold account."""

from __future__ import annotations

import numpy as np

from nsysdiag.account.bottlenecks import CODE
from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.causes import CAUSES, family_of, variant_of
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import Layer
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.ledger.classify import LayeredEvidence

PART_OF_A_START = ("launch", "sync", "copies")
"""Calls of CUDA before anything ran on the device wait for nothing but the start of CUDA itself."""


def first_call(layered: LayeredEvidence, lane: IntArray, until: int) -> tuple[int, int] | None:
    """The thread that launched most, of the gaps' launching threads `lane`, and when its process's first CUDA call on
    it began; None where that is not before `until`."""
    known = lane[lane >= 0]
    calls, axis = layered.host.api, layered.host.axis
    if len(known) == 0 or len(calls) == 0:
        return None
    most = int(np.bincount(known).argmax())
    first = int(np.searchsorted(calls.spans.start, most * axis.stride))
    if first == len(calls) or int(calls.spans.start[first]) // axis.stride != most:
        return None
    begun = int(axis.time(calls.spans.start[first : first + 1])[0])
    return (most, begun) if begun < until else None


def outside_account(layered: LayeredEvidence, lane: int, begin: int, until: int) -> dict[str, int]:
    """Nanoseconds of [begin, until) by bottleneck, from what the thread of this lane did; they add up to its length."""
    axis = layered.host.axis
    left = _placed(axis, lane, begin, until)
    found: dict[str, int] = {}
    for cause in CAUSES.values():
        for layer in layered.before.get(cause.id, []):
            taken, left, source = claim(left, layer.spans)
            for code in np.unique(layer.name[source]).tolist():
                ns = int((taken.spans.end - taken.spans.start)[layer.name[source] == code].sum())
                family = _family(cause, layer, layer.names[code])
                found[family] = found.get(family, 0) + ns
    rest = left.spans.total()
    if rest:
        found["unknown"] = found.get("unknown", 0) + rest
    return {name: found[name] for name in sorted(found, key=lambda name: CODE[name])}


def _placed(axis: ThreadAxis, lane: int, begin: int, until: int) -> Owned:
    lanes = np.array([lane], dtype=np.int64)
    return Owned.of(axis.place(lanes, Intervals.of([(begin, until)])), np.zeros(1, dtype=np.int64))


def _family(cause: Cause, layer: Layer, text: str) -> str:
    family = family_of(cause.id, variant_of(cause.id, layer.label or "", text, None))
    return "startup" if family in PART_OF_A_START else family
