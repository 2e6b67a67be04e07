"""Iterations of a program, found by its NVTX ranges or by an operation that repeats regularly."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, union
from nsysdiag.arrays.nesting import levels
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, distinct
from nsysdiag.pseudonyms import pseudonym

FEWEST = 5
LEAST_SPAN = 0.6
MOST_IRREGULAR = 0.5
MOST_LEVELS, MOST_NAMES = 4, 256
_COUNTER = re.compile(r"\d+")
# What frameworks write around every operator: one may well be as long as a step, and is none.
OPERATOR = re.compile(r"(aten|autograd|c10d?|torch|prims)::|.*, (seq|op_id|sizes) = ")


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
    copies       [c]   [c]   [c]                           those of a stream that runs ahead begin no step
    ```
    """
    launched = np.flatnonzero(device.running & (device.launch >= 0))
    if len(launched) == 0 or len(ranges.rows) < FEWEST:
        return None
    kinds = _Kinds.of(ranges)
    thread_of = calls.thread[device.launch[launched]]
    chosen = ~kinds.operator[ranges.rows.name] & ~ranges.rows.communication & ~ranges.rows.mpi
    best: _Repeating | None = None
    issued_by = RowsOf(thread_of)
    of_thread = RowsOf(ranges.rows.thread, issued_by.values())
    for thread in issued_by.values():
        mine = of_thread[thread]
        rows = ranges.rows.take(mine[chosen[mine]])
        if len(rows) >= FEWEST:
            work = _Launched.of(device, calls, launched[issued_by[thread]])
            best = _better(best, _repeating(work, rows, kinds, whole))
    return None if best is None else Iterations("nvtx", best.name, -1, np.append(best.starts, whole.end[-1:]))


@dataclass(frozen=True, slots=True)
class _Repeating:
    """Ranges of one name: the share of the device's span that they cover, and where each begins on the device."""

    share: float
    name: str
    starts: IntArray


def _better(first: _Repeating | None, second: _Repeating | None) -> _Repeating | None:
    """The one that covers more; the first of equal ones."""
    if first is None or second is None:
        return first or second
    return second if second.share > first.share else first


@dataclass(frozen=True, slots=True)
class _Kinds:
    """For each name of a range: the code of the name without its counters, and whether it is that of an operator."""

    code: IntArray
    operator: BoolArray
    words: list[str]

    @classmethod
    def of(cls, ranges: NvtxRanges) -> _Kinds:
        words: dict[str, int] = {}
        code = [words.setdefault(pseudonym(name) or _COUNTER.sub("#", name), len(words)) for name in ranges.names]
        operator = np.array([OPERATOR.match(word) is not None for word in words], dtype=np.bool_)
        codes = np.array(code, dtype=np.int64)
        return cls(codes, operator[codes], list(words))


@dataclass(frozen=True, slots=True)
class _Launched:
    """What one thread launched, in the order of its calls: when it was issued, when it started and ended, and whether
    on the stream on which its work takes most time."""

    issued: IntArray
    start: IntArray
    end: IntArray
    main: BoolArray

    @classmethod
    def of(cls, device: DeviceTimeline, calls: CallRows, rows: IntArray) -> _Launched:
        issued = calls.start[device.launch[rows]]
        order = np.argsort(issued, kind="stable")
        rows = rows[order]
        start, end, stream = device.operations.start[rows], device.operations.end[rows], device.stream_code[rows]
        computes = device.operations.category[rows] != Category.MEMCPY
        time = np.bincount(stream, weights=np.where(computes, end - start, 0))
        return cls(issued[order], start, end, stream == int(np.argmax(time)))

    def on_main_stream(self) -> _Launched:
        """The work of that stream alone."""
        return _Launched(self.issued[self.main], self.start[self.main], self.end[self.main], self.main[self.main])


def _repeating(work: _Launched, rows: RangeRows, kinds: _Kinds, whole: Intervals) -> _Repeating | None:
    """Of the outermost level on which anything repeats, the name that covers most."""
    spans = Intervals(rows.start, np.minimum(rows.end, np.iinfo(np.int64).max // 2))
    depth = levels(spans, MOST_LEVELS + 1)
    code = kinds.code[rows.name]
    for level in range(MOST_LEVELS):
        at = np.flatnonzero(depth == level)
        best: _Repeating | None = None
        of_word = RowsOf(code[at])
        for word in _most_frequent(code[at]):
            starts, share = _projected(work, spans[at[of_word[word]]], whole)
            if len(starts) >= FEWEST and share >= LEAST_SPAN:
                best = _better(best, _Repeating(share, kinds.words[word], starts))
        if best is not None:
            return best
    return None


def _most_frequent(code: IntArray) -> list[int]:
    """The codes that repeat, in order; of more than MOST_NAMES those with most rows. Each costs a look at all work."""
    count = np.bincount(code, minlength=1)
    repeated = np.flatnonzero(count >= FEWEST)
    most = repeated[np.argsort(-count[repeated], kind="stable")][:MOST_NAMES]
    return [int(each) for each in np.sort(most).tolist()]


def _projected(work: _Launched, spans: Intervals, whole: Intervals) -> tuple[IntArray, float]:
    """Where the work launched inside each range begins on the device, in order, and the share of the device's span that
    the ranges cover: on the device from the first to the last operation of theirs, and on the thread without gaps.

    A stream whose operations run ahead of the others begins no iteration: what is launched on the main stream does,
    unless a range has nothing there."""
    issued = work.issued
    holds = _holds(issued, spans)
    if not holds.any():
        return np.empty(0, dtype=np.int64), 0.0
    main = work.on_main_stream()
    counted = main if np.array_equal(_holds(main.issued, spans), holds) else work
    starts = np.unique(counted.start[np.searchsorted(counted.issued, spans.start[holds], side="left")])
    ranges = union(spans[holds])
    inside = ranges.total() / max(int(ranges.end[-1] - ranges.start[0]), 1)
    reach = int(work.end[contains(ranges, issued)].max()) - int(starts[0])
    return starts, min(inside, reach / max(whole.total(), 1))


def _holds(issued: IntArray, spans: Intervals) -> BoolArray:
    """Whether anything is issued inside each range."""
    first = np.searchsorted(issued, spans.start, side="left")
    holds: BoolArray = np.searchsorted(issued, spans.end, side="left") > first
    return holds


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
    # Nodes of one graph launch come with it: the launch is what repeats.
    names, name = distinct(np.where(operations.category[chosen] == Category.GRAPH, -2, operations.name[chosen]))
    order = np.argsort(name, kind="stable")  # the operations of a device are in order of time
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
