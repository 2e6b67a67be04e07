"""Gaps that a synchronization opened: the call emptied the queue, and what follows is its price."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before
from nsysdiag.causes import blocking_copy, sync
from nsysdiag.causes.evidence import LEAD_NS, EvidenceLayer, HostEvidence
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.gaps.launch_frame import LaunchCase, LaunchFrame


class Drained(Struct, frozen=True):
    """For each gap: was it opened by a synchronization, and by a call of which name (an index into `names`)."""

    flag: BoolArray
    name: IntArray
    names: list[str]


def draining_calls(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Calls that return when the device has caught up: synchronization and blocking copies."""
    return [*sync.evidence(evidence), *blocking_copy.evidence(evidence)]


def sync_drained(frame: LaunchFrame, layers: list[EvidenceLayer], axis: ThreadAxis, lane: IntArray) -> Drained:
    """A sync or blocking call of the launching thread began at least 5 µs before the gap. It ended between the start of
    the gap and that of the launch call.

    ```
    device  [==A==)...............[==next==)
    thread   [cudaStreamSync]..[launch]
    ```
    """
    words: dict[str, int] = {}
    spans = Intervals.concatenate(layer.spans for layer in layers)
    name = np.concatenate(
        [
            np.array([words.setdefault(text, len(words)) for text in layer.names], dtype=np.int32)[layer.name]
            for layer in layers
        ]
    )
    order = np.argsort(spans.start, kind="stable")
    spans, name = spans[order], name[order]
    if len(spans) == 0:
        return Drained(np.zeros(len(lane), dtype=np.bool_), np.full(len(lane), -1, dtype=np.int32), [])
    safe = np.maximum(lane, 0)
    opened = axis.position(safe, frame.gaps.opened)
    # The call itself may begin after the gap: what ends a gap may be a migration that is in front of the launched work.
    launched = axis.position(safe, frame.whole_call.start)
    at = nearest_before(spans.start, axis.position(safe, frame.gaps.opened - LEAD_NS))
    end = spans.end[np.maximum(at, 0)]
    flag = (frame.case == LaunchCase.LATE) & (at >= 0) & (end > opened) & (end <= launched)
    return Drained(flag, np.where(flag, name[np.maximum(at, 0)], np.int32(-1)), list(words))
