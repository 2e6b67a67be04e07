"""How work reached the device: launches, the delay in the queue, and the API calls of its processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nsysdiag import typed
from nsysdiag.arrays.groups import group_durations, group_totals
from nsysdiag.arrays.intervals import BoolArray, IntArray, contains
from nsysdiag.causes import CAUSES
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.operations import Category, Operations
from nsysdiag.events.rows import distinct_values, picked
from nsysdiag.gaps.launch_frame import Case, Frame
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.ledger.assignment import Slices
from nsysdiag.report import ApiRow, Distribution, Launch

PERCENTILES = (5, 25, 50, 75, 95, 99)
EDGES = np.array([0, *(step * 10**power for power in range(2, 18) for step in (1, 2, 5))], dtype=np.int64)


def launch_summary(
    device: DeviceTimeline,
    api_calls: ApiCalls,
    inside: BoolArray,
    frame: Frame,
    slices: Slices,
    window: AnalysisWindow,
) -> Launch:
    """The launches of the operations inside the window. Migrations have no launch and count as neither."""
    calls, operations = api_calls.rows, device.operations
    api = _api_rows(device, api_calls, window, _cause_by_name(api_calls, slices))
    launched = inside & (device.launch >= 0)
    kernel = inside & (operations.category == Category.KERNEL)
    row, start = _pick(device.launch, launched), _pick(operations.start, launched)
    alone = _pick(kernel & (operations.graph_node <= 0), launched)
    call, alone_call = _distinct(row, len(calls)), _distinct(_pick(row, alone), len(calls))
    found = {
        **_kernel_lengths(operations, kernel),
        **_intervals(calls.start[call]),
        **_delays(calls, row, start, alone),
        "call": distribution(_sorted(calls.end[alone_call] - calls.start[alone_call])),
    }
    return Launch(
        launched_ops=len(row),
        unlaunched_ops=int(np.count_nonzero(inside & (device.launch < 0) & ~operations.migration)),
        found_device_idle=int(np.isin(frame.case, (Case.LATE, Case.ISSUING)).sum()),
        api=api,
        calls=len(call),
        **found,
    )


# Each of these releases its arrays before the next one allocates.


def _kernel_lengths(operations: Operations, kernel: BoolArray) -> dict[str, Any]:
    length = _sorted(_pick(operations.end, kernel) - _pick(operations.start, kernel))
    return {"median_kernel_ns": _median(length), "kernel": distribution(length)}


def _intervals(begin: IntArray) -> dict[str, Any]:
    """From the beginning of each launch to that of the next."""
    begin = np.sort(begin, kind="stable")
    interval = _sorted(begin[1:] - begin[:-1])
    apart = interval[np.searchsorted(interval, 1) :]
    return {"median_interval_ns": _median(apart), "interval": distribution(interval)}


def _delays(calls: CallRows, row: IntArray, start: IntArray, alone: BoolArray) -> dict[str, Any]:
    """From each call and from its return to the start of its operation; those of graphs are no delays of one call."""
    delay = np.maximum(start - calls.end[row], 0)
    of_calls = distribution(_sorted(delay[alone]))
    delay = _sorted(delay)
    found = {"median_queue_delay_ns": _median(delay), "queue_delay": of_calls}
    row, start = _pick(row, alone), _pick(start, alone)
    np.subtract(start, calls.start[row], out=delay[: len(row)])
    return found | {"to_start": distribution(_sorted(np.maximum(delay[: len(row)], 0)))}


def distribution(ordered: IntArray) -> Distribution | None:
    """Sorted values from 0 up, in ns, as percentiles and a histogram on a logarithmic scale; None without any.
    Percentile p is the smallest value that p % do not exceed, so it occurs."""
    if len(ordered) == 0:
        return None
    found = [int(ordered[-(-len(ordered) * percent // 100) - 1]) for percent in PERCENTILES]
    first, behind = np.searchsorted(EDGES, ordered[[0, -1]], side="right") - (1, 0)
    edges = EDGES[first:behind]
    counts = np.diff(np.searchsorted(ordered, edges), append=len(ordered))
    return Distribution(
        count=len(ordered),
        total_ns=int(ordered.sum()),
        p5_ns=found[0],
        p25_ns=found[1],
        p50_ns=found[2],
        p75_ns=found[3],
        p95_ns=found[4],
        p99_ns=found[5],
        max_ns=int(ordered[-1]),
        bins=list(zip(edges.tolist(), counts.tolist(), strict=True)),
    )


def _pick(values: npt.NDArray[Any], chosen: BoolArray) -> npt.NDArray[Any]:
    """The chosen values; without a copy where they follow each other."""
    return values[picked(chosen)]


def _distinct(rows: IntArray, count: int) -> IntArray:
    """The rows of a table of `count` that occur, each once."""
    seen = np.zeros(count, dtype=np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen).astype(np.int32)


def _sorted(values: IntArray) -> IntArray:
    """Sorted once: percentiles, medians and histograms follow from it without looking at each value again."""
    values.sort()
    return values


def _median(ordered: IntArray) -> int | None:
    """The mean of the two middle values where their number is even, rounded down."""
    middle = len(ordered) // 2
    return int(np.mean(ordered[middle - 1 + len(ordered) % 2 : middle + 1])) if len(ordered) else None


def _cause_by_name(api_calls: ApiCalls, slices: Slices) -> dict[str, str]:
    """The cause that calls of each name were given most idle time of, where they were given any."""
    names = {typed.api(name) for name in api_calls.names}
    texts = np.array([text in names for text in slices.texts] + [False], dtype=np.bool_)
    rows = np.flatnonzero(texts[slices.rows.text])
    said = joint(slices.rows.text[rows], slices.rows.cause[rows], len(CAUSES))
    groups = group_totals(said, slices.lengths(rows))
    ids = list(CAUSES)
    found: dict[str, str] = {}
    for code in groups.code.tolist():
        found.setdefault(typed.plain(slices.texts[code // len(CAUSES)]), ids[code % len(CAUSES)])
    return found


def _calls_of(device: DeviceTimeline, calls: CallRows, window: AnalysisWindow) -> CallRows:
    """The calls of the processes that worked on the device, inside the window where it is narrowed."""
    process, owners = process_of(calls.thread), distinct_values(device.operations.process)
    if not window.narrowed and np.all(np.isin(distinct_values(process), owners)):
        return calls
    return calls.take(np.isin(process, owners) & (contains(window.parts, calls.start) | (not window.narrowed)))


def _api_rows(
    device: DeviceTimeline, api_calls: ApiCalls, window: AnalysisWindow, causes: dict[str, str]
) -> list[ApiRow]:
    calls = _calls_of(device, api_calls.rows, window)
    groups = group_durations(calls.name, calls.end - calls.start)
    mean = groups.mean
    return [
        ApiRow(
            name=api_calls.names[code],
            cause=causes.get(api_calls.names[code]),
            count=int(groups.count[at]),
            total_ns=int(groups.total[at]),
            mean_ns=int(mean[at]),
            median_ns=int(groups.median[at]),
            min_ns=int(groups.shortest[at]),
            max_ns=int(groups.longest[at]),
        )
        for at, code in enumerate(groups.code.tolist())
    ]
