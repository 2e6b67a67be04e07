"""What a program did from its first CUDA call to the first work of a device: the start of a cold account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.account.bottlenecks import CODE
from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes import CAUSES, family_of, variant_of
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import CallFacts, HostEvidence, Layer
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostTables, host_activity, place_api_calls, place_os_calls
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence

PART_OF_A_START = ("launch", "sync", "copies")
"""Calls of CUDA before anything ran on the device wait for nothing but the start of CUDA itself."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The time [begin, end) from the first CUDA call of `thread`, a globalTid, to the device's first work."""

    thread: int
    begin: int
    end: int


def outside_of(window: Intervals, device: DeviceTimeline, calls: CallRows) -> Outside | None:
    """The time before the work of a device, by the thread that launched most of it. None where nothing ran, or where
    that thread called CUDA no earlier."""
    launch = device.launch[device.launch >= 0]
    if not len(window) or not len(launch):
        return None
    threads, count = np.unique(calls.thread[launch], return_counts=True)
    thread, end = int(threads[np.argmax(count)]), int(window.start[0])
    begin = int(calls.start[calls.thread == thread].min())
    return Outside(thread, begin, end) if begin < end else None


def evidence_of_start(
    outside: list[Outside], tables: HostTables, activity: DeviceActivity, facts: CallFacts
) -> LayeredEvidence:
    """What the rules of all causes make of the calls of these threads in that time."""
    threads = np.array([each.thread for each in outside], dtype=np.int64)
    axis = ThreadAxis.over(threads, min(each.begin for each in outside), max(each.end for each in outside))
    calls, latest = activity.api_calls, activity.latest_ns
    api, os_calls = place_api_calls(axis, calls, latest), place_os_calls(axis, tables, latest)
    host = host_activity(tables, calls, axis, api, os_calls, latest)
    return layer_evidence(HostEvidence.of(host, facts))


def outside_account(layered: LayeredEvidence, outside: Outside) -> dict[str, int]:
    """Nanoseconds of that time by bottleneck, from what the thread did; they add up to its length."""
    axis = layered.host.axis
    lane = int(axis.rank(np.array([outside.thread], dtype=np.int64))[0])
    begin, until = outside.begin, outside.end
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
