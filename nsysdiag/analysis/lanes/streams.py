"""The streams of a device as lanes, the busiest ones first."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.operations import Category
from nsysdiag.analysis.lanes.source import Source, reach_of
from nsysdiag.analysis.naming import operation_names
from nsysdiag.timeline.intervals import IntArray
from nsysdiag.trace.strings import Strings

MOST_STREAMS = 8
COMPUTE, COMMUNICATION, COPIES = range(3)


def work_kinds(device: DeviceTimeline) -> IntArray:
    """For each operation whether it is compute, communication or a copy (or memory set)."""
    category = device.operations.category
    kernels = (category == Category.KERNEL) | (category == Category.GRAPH)
    return np.where(device.communication, COMMUNICATION, np.where(kernels, COMPUTE, COPIES))


def stream_sources(device: DeviceTimeline, strings: Strings, low: int, high: int) -> list[Source]:
    """A lane for each of the busiest streams, and one for all the others together."""
    operations = device.operations
    rows = np.flatnonzero(device.running & (operations.end > low) & (operations.start < high))
    if len(rows) == 0:
        return []
    code = device.stream_code[rows]
    busy = np.bincount(code, (operations.end - operations.start)[rows])
    ranked = np.argsort(-busy, kind="stable")
    ranked = ranked[busy[ranked] > 0]
    shown = ranked[: MOST_STREAMS if len(ranked) <= MOST_STREAMS else MOST_STREAMS - 1]
    kinds = work_kinds(device)
    sources = []
    for stream in np.sort(shown).tolist():
        mine = rows[code == stream]
        label = f"stream {int(operations.stream[mine[0]])}"
        sources.append(_source(device, strings, mine, label, kinds))
    if len(ranked) > len(shown):
        others = rows[~np.isin(code, shown)]
        sources.append(_source(device, strings, others, f"{len(ranked) - len(shown)} other streams", kinds))
    return sources


def _source(device: DeviceTimeline, strings: Strings, rows: IntArray, label: str, kinds: IntArray) -> Source:
    end = device.operations.end[rows]
    return Source(
        kind="stream",
        label=label,
        thread=None,
        depth=0,
        start=device.operations.start[rows],
        end=end,
        reach=reach_of(end),
        named=lambda chosen: operation_names(device, rows[chosen], strings),
        kinds=kinds[rows],
    )
