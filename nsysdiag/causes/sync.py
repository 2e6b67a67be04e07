"""Synchronization: the thread waits for the device."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, Intervals, coverage, union
from nsysdiag.causes.cause import (
    Cause,
    EvidenceRows,
    Hint,
    Variant,
)
from nsysdiag.causes.evidence import (
    DRAINED,
    READ_BACK,
    EvidenceLayer,
    HostEvidence,
    Threshold,
    layer_of,
    named,
    named_rows,
)
from nsysdiag.events.identity import once
from nsysdiag.events.rows import NamedRows
from nsysdiag.gaps.gaps import OTHER_DEVICE
from nsysdiag.units import format_ns

CALLS = re.compile(r"cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize")
STREAM, EVENT, DEVICE = (
    EvidenceLabel("waits for a stream"),
    EvidenceLabel("waits for an event"),
    EvidenceLabel("waits for the device"),
)
_KINDS = (
    (STREAM, re.compile(r".*StreamSynchronize")),
    (EVENT, re.compile(r".*EventSynchronize")),
    (DEVICE, re.compile(r".*(Device|Thread|Ctx)Synchronize")),
)
QUERIES = re.compile(r"(cuda|cu)(Event|Stream)Query")
PAUSES = re.compile(r"_*((clock_)?nanosleep|u?sleep|p?poll|p?select6?|sched_yield|thrd_(sleep|yield))")
SPINS = EvidenceLabel("spins on a query")
NOT_READY = (600, 34)
"""Return values of a query whose work is not done, cudaErrorNotReady: 600 of runtime and driver, 34 of older runtimes.
Without the latter spins in old captures are not found."""
SPIN_NS = 20_000
"""The longest pause between two queries of one wait. A longer pause counts host code as waiting; a shorter one splits
the wait of a thread that only asks again."""
READ_BACK_NS = 50_000
"""A synchronization that begins within this time of a read-back, or of an upload, waits for it."""


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost synchronization calls, and spins on a query."""
    return [*_by_kind(evidence, evidence.calls(CALLS)), query_spins(evidence)]


def nested_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Synchronization inside another call."""
    return _by_kind(evidence, evidence.calls(CALLS, nested=True))


def _by_kind(evidence: HostEvidence, calls: NamedRows) -> list[EvidenceLayer]:
    """A layer for each kind of synchronization and each device that was waited for."""
    kinds = [(label, named_rows(calls, pattern)) for label, pattern in _KINDS]
    devices = [evidence.facts.synchronized[kind.row] for _, kind in kinds]
    return [
        layer_of(kind.take(device == number), label, number if number >= 0 else None)
        for (label, kind), device in zip(kinds, devices, strict=True)
        for number in distinct_values(device).tolist()
    ]


def label_of(name: str) -> EvidenceLabel:
    """What a call of this name waits for; a query that holds its thread is part of a spin."""
    return next((label for label, pattern in _KINDS if pattern.match(name)), SPINS)


def query_spins(evidence: HostEvidence) -> EvidenceLayer:
    """Two or more queries in a row with no other call between, all but the last not ready, under 20 µs apart.

    ```
    thread  [query 600][query 600][query 600][query 0]    one wait from the first start to the last end
    ```
    """
    calls = evidence.calls()
    query = named(calls, QUERIES)
    follows = query[1:] & query[:-1]
    at, stride = np.flatnonzero(follows), evidence.host.axis.stride
    this, following = calls.spans[at], calls.spans.start[at + 1]
    follows[at] = np.isin(calls.kind[at], NOT_READY) & (following - this.end < SPIN_NS)
    follows[at] &= following // stride == this.start // stride
    first = np.flatnonzero(np.append(follows, False) & ~np.append(False, follows))
    last = np.flatnonzero(np.append(False, follows) & ~np.append(follows, False))
    spins = Intervals(calls.spans.start[first], calls.spans.end[last])
    return EvidenceLayer(spins, calls.shown[first], calls.shown_names, SPINS)


def query_waits(evidence: HostEvidence) -> tuple[Intervals, BoolArray]:
    """Spins on a query, and which of them are polls: the thread sleeps for most of a time between two queries."""
    calls = evidence.calls()
    query, stride = named(calls, QUERIES), evidence.host.axis.stride
    if not query.any():
        return Intervals.empty(), query[:0]
    at = np.flatnonzero(query[1:] & query[:-1])
    at = at[np.isin(calls.kind[at], NOT_READY)]
    this, following = calls.spans.end[at], calls.spans.start[at + 1]
    asleep = coverage(union(evidence.os_calls(PAUSES).spans), Intervals(this, np.maximum(following, this)))
    sleeps = 2 * asleep > following - this
    near = (sleeps | (following - this < SPIN_NS)) & (following // stride == calls.spans.start[at] // stride)
    follows, slept = np.zeros((2, len(calls) - 1), np.bool_)
    follows[at[near]], slept[at[near & sleeps]] = True, True
    first = np.flatnonzero(np.append(follows, False) & ~np.append(False, follows))
    last = np.flatnonzero(np.append(False, follows) & ~np.append(follows, False))
    count = np.append(0, np.cumsum(slept))
    return Intervals(calls.spans.start[first], calls.spans.end[last]), count[last] > count[first]


def queries_at_once(evidence: HostEvidence) -> Intervals:
    """Queries that found the work done at their first time, of threads that always ask until it is: a thread that goes
    on if it is not waits for nothing. What threads do after the analyzed time says nothing of that."""
    calls, axis = evidence.calls(), evidence.host.axis
    query = named(calls, QUERIES)
    if not query.any():
        return Intervals.empty()
    refused = query & once(calls.kind, lambda kind: np.isin(kind, NOT_READY))
    if not refused.any():
        return calls.spans[query]
    lane = calls.spans.start // axis.stride
    follows = np.append(lane[1:] == lane[:-1], False)
    first = query & ~np.append(False, (refused & follows)[:-1])
    # Who has nothing else to do waits for the device in another call: it asks several events for the first one.
    other = ~(query | named(calls, CALLS)) & (calls.spans.start % axis.stride < axis.span)
    goes_on = distinct_values(lane[refused & follows & np.append(other[1:], False)])
    return calls.spans[first & ~refused & ~np.isin(lane, goes_on)]


CAUSE = Cause(
    id="sync",
    title="Synchronization",
    meaning="The launching thread was inside a call that waits for the device, a stream or an event, so it could not launch.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    bottleneck="sync",
    shade=0,
    thresholds=(
        Threshold("spin", format_ns(SPIN_NS), "the longest pause between two queries of one wait"),
        DRAINED,
        READ_BACK,
        Threshold(
            "read_back_pause", format_ns(READ_BACK_NS), "the longest pause between a read-back copy and its wait"
        ),
    ),
    rows=(EvidenceRows.CALL,),
    variants=(
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            hint=Hint.AFTER_READ_BACK,
        ),
        Variant(
            "upload",
            "pageable memory is uploaded",
            "build the value once on the device, or pin it and do not wait",
            hint=Hint.AFTER_UPLOAD,
        ),
        Variant(
            "query_spin",
            "a query is repeated in a loop",
            "wait with an event made with cudaEventBlockingSync, or poll from another thread",
            labels=(SPINS,),
        ),
        Variant(
            "other_device",
            "waits for another device",
            "order the devices by events, not by the host",
            labels=(OTHER_DEVICE,),
        ),
        Variant("event", "waits for an event", "wait on the device: cudaStreamWaitEvent", labels=(EVENT,)),
        Variant("device", "waits for the whole device", "take cudaDeviceSynchronize out of the step", labels=(DEVICE,)),
        Variant("stream", "waits for a stream", "synchronize once per many steps", labels=(STREAM,)),
        Variant("other", "", "remove or delay the synchronization"),
    ),
    host=evidence,
    call=nested_evidence,
    call_order=40,
)
