"""Iterations of a program, found by its NVTX ranges or by an operation that comes round regularly."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.nvtx import NvtxRanges, RangeRows
from nsysdiag.activity.operations import Category
from nsysdiag.activity.streams import distinct
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.timeline.nesting import levels

FEWEST = 5
LEAST_SPAN = 0.6
MOST_IRREGULAR = 0.5
MOST_LEVELS = 4
_COUNTER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Iterations:
    """Iteration i is [starts[i], starts[i + 1]) on the device; the last border ends the last one. `source` is `nvtx` or
    `anchor`, `name` the range's name with its counters as `#`, or the string id of the anchor's name in `anchor`."""

    source: str
    name: str
    anchor: int
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def spans(self) -> Intervals:
        """The iterations as intervals."""
        return Intervals(self.starts[:-1], self.starts[1:])


def find_iterations(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals) -> Iterations | None:
    """The iterations inside the span `whole` of a device's work: by NVTX if a range repeats, else by an anchor."""
    if len(whole) == 0:
        return None
    return _by_ranges(device, calls, ranges, whole) or _by_anchor(device, whole)


def _by_ranges(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals) -> Iterations | None:
    """The outermost ranges of one name that repeat and cover most of the work.

    ```
    thread  [train                                   ]     once: not an iteration
             [step 1    ][step 2    ][step 3    ] ...      repeats, covers the span
    device        |==...     |==...      |==...            each from its first operation to the next one's
    ```
    """
    launched = np.flatnonzero(device.running & (device.launch >= 0))
    if len(launched) == 0:
        return None
    thread_of = calls.thread[device.launch[launched]]
    best: tuple[float, str, IntArray] | None = None
    for thread in np.unique(thread_of).tolist():
        rows = ranges.rows.take((ranges.rows.thread == thread) & ~ranges.rows.communication & ~ranges.rows.mpi)
        its = launched[thread_of == thread]
        found = _repeating(device, calls, its, rows, ranges.names, whole) if len(rows) >= FEWEST else None
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    if best is None:
        return None
    return Iterations("nvtx", best[1], -1, np.append(best[2], whole.end[-1:]))


def _repeating(
    device: DeviceTimeline, calls: CallRows, launched: IntArray, rows: RangeRows, names: list[str], whole: Intervals
) -> tuple[float, str, IntArray] | None:
    """The share of the span that the iterations of a thread cover, their name, and where each begins on the device."""
    spans = Intervals(rows.start, np.minimum(rows.end, np.iinfo(np.int64).max // 2))
    depth = levels(spans, MOST_LEVELS + 1)
    words: dict[str, int] = {}
    by_name = [words.setdefault(_COUNTER.sub("#", name), len(words)) for name in names]
    code = np.array(by_name, dtype=np.int64)[rows.name]
    for level in range(MOST_LEVELS):
        at = np.flatnonzero(depth == level)
        counts = np.bincount(code[at], minlength=len(words))
        best: tuple[float, str, IntArray] | None = None
        for word in np.flatnonzero(counts >= FEWEST).tolist():
            starts, share = _projected(device, calls, launched, spans[at[code[at] == word]], whole)
            if len(starts) >= FEWEST and share >= LEAST_SPAN and (best is None or share > best[0]):
                best = (share, list(words)[word], starts)
        if best is not None:
            return best
    return None


def _projected(
    device: DeviceTimeline, calls: CallRows, launched: IntArray, spans: Intervals, whole: Intervals
) -> tuple[IntArray, float]:
    """Where the first operation launched inside each range begins, in order, and the share of the device's span, from
    the first of them on, in which the thread was inside such a range while it launched."""
    issued = calls.start[device.launch[launched]]
    order = np.argsort(issued, kind="stable")
    issued, start = issued[order], device.operations.start[launched[order]]
    first = np.searchsorted(issued, spans.start, side="left")
    behind = np.searchsorted(issued, spans.end, side="left")
    holds = behind > first
    starts = np.unique(start[first[holds]])
    ranges = union(spans[holds])
    if len(starts) == 0:
        return starts, 0.0
    inside = ranges.total() / max(int(ranges.end[-1] - ranges.start[0]), 1)
    reach = (int(whole.end[-1]) - int(starts[0])) / max(whole.total(), 1)
    return starts[starts < whole.end[-1]], min(inside, reach)


def _by_anchor(device: DeviceTimeline, whole: Intervals) -> Iterations | None:
    """The operation whose arrivals are most regular: at least five of them, over at least 60 % of the span.

    ```
    stream  |A|b|b|b|c|....|A|b|b|b|c|....|A|b|b|b|c|      A or c: once a step; b: three times, then a long way
    ```
    """
    operations = device.operations
    chosen = np.flatnonzero(device.running & np.isin(operations.category, (Category.KERNEL, Category.GRAPH)))
    if len(chosen) < FEWEST:
        return None
    # Nodes of one graph launch come with it: the launch is what comes round.
    names, name = distinct(np.where(operations.category[chosen] == Category.GRAPH, -2, operations.name[chosen]))
    order = np.lexsort((operations.start[chosen], name))
    start, name = operations.start[chosen][order], name[order]
    first = np.flatnonzero(np.append(True, name[1:] != name[:-1]))
    count = np.diff(np.append(first, len(name)))
    spread, span = _irregularity(start, name, first, count)
    fits = (count >= FEWEST) & (span >= LEAST_SPAN * whole.total()) & (spread <= MOST_IRREGULAR)
    if not fits.any():
        return None
    # Of anchors as regular as the best the rarest: the others come several times an iteration.
    good = np.flatnonzero(fits & (spread <= max(float(spread[fits].min()) * 1.5, 0.02)))
    pick = int(good[np.lexsort((names[name[first[good]]], spread[good], count[good]))[0]])
    starts = start[first[pick] : first[pick] + count[pick]]
    return Iterations("anchor", "", int(names[name[first[pick]]]), np.append(starts, whole.end[-1:]))


def _irregularity(
    start: IntArray, name: IntArray, first: IntArray, count: IntArray
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], IntArray]:
    """For each name the coefficient of variation of the time between its starts, and the span that they cover."""
    step = np.diff(start, append=start[-1:]).astype(np.float64)
    step[np.append(name[1:] != name[:-1], True)] = 0.0
    intervals = np.maximum(count - 1, 1)
    mean = np.add.reduceat(step, first) / intervals
    square = np.add.reduceat(step * step, first) / intervals
    deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    span = start[first + count - 1] - start[first]
    return np.where(mean > 0, deviation / np.maximum(mean, 1.0), np.inf), span
