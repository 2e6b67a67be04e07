"""The rows of the trace behind what a program did before the first work of a device."""

from __future__ import annotations

import numpy as np

from nsysdiag.account.outside import Start
from nsysdiag.arrays.groups import longest
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, subtract, union
from nsysdiag.events.axis import Lane
from nsysdiag.events.host import OS_CALLS, HostActivity
from nsysdiag.events.samples import SAMPLES
from nsysdiag.findings.evidence_rows import RUNTIME
from nsysdiag.report import EvidenceRow


def start_rows(start: Start, spans: Intervals, most: int) -> list[EvidenceRow]:
    """The calls with most of the time `spans`; for host code the first CPU sample of the periods without a call
    that have most samples. `most` of them, each with its part of that time; samples stand for no more than they can.

    ```
    thread    [cudaMalloc [ioctl] ]   . samples . . .  [read      ]
    rows      RUNTIME                 COMPOSITE_EVENTS  OSRT_API
    ```
    """
    host, left = start.host, spans
    api = host.api.take(host.api.outermost)
    found = _calls(host, api, left, RUNTIME, most)
    left = subtract(left, union(api.spans))
    found += _calls(host, host.os_calls, left, OS_CALLS, most)
    found += _samples(host, subtract(left, union(host.os_calls.spans)), most)
    return sorted(found, key=lambda row: (-row.ns, row.start_ns))[:most]


def _calls(host: HostActivity, lane: Lane, spans: Intervals, table: str, most: int) -> list[EvidenceRow]:
    inside = coverage(spans, lane.spans)
    rows = []
    for at in _longest(inside, lane.spans.start, most):
        correlation = int(host.api_calls.rows.correlation[lane.row[at]]) if table == RUNTIME else 0
        name = lane.names[int(lane.name[at])]
        rows.append(_row(host, table, name, int(lane.spans.start[at]), int(inside[at]), correlation))
    return rows


def _samples(host: HostActivity, spans: Intervals, most: int) -> list[EvidenceRow]:
    position = host.samples.position
    first, behind = np.searchsorted(position, spans.start), np.searchsorted(position, spans.end)
    sampled = spans[behind > first]
    at, period = first[behind > first], host.samples.period_ns
    ns = np.minimum(sampled.end - sampled.start, (behind - first)[behind > first] * period)
    return [
        _row(host, SAMPLES, "CPU sample", int(position[at[each]]), int(ns[each]))
        for each in _longest(ns, sampled.start, most)
    ]


def _longest(ns: IntArray, start: IntArray, most: int) -> list[int]:
    order = longest(ns, start, most)
    return [at for at in order.tolist() if ns[at] > 0]


def _row(host: HostActivity, table: str, name: str, position: int, ns: int, correlation: int = 0) -> EvidenceRow:
    axis = host.axis
    return EvidenceRow(
        table=table,
        name=name,
        start_ns=int(axis.time(np.array([position]))[0]),
        ns=ns,
        thread=int(axis.threads[position // axis.stride]),
        correlation=correlation if correlation > 0 else None,
    )
