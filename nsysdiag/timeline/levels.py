"""A device's timeline in levels of detail: how much of each moment was compute, communication, copies or idle."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress, repeat
from operator import is_not, itemgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.buckets import coarser
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.arrays.intervals import (
    IntArray,
    Intervals,
    ascending,
    clip,
    coverage_between,
    equal_edges,
    places_among,
    rows_from,
    union,
)
from nsysdiag.causes import CAUSES
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.ledger.ledger import Ledger
from nsysdiag.timeline.facts import TimelineLane, TimelineLevel, TimelineLevels

# Chosen rows of a source as a lane of the report: packed columns, names kept once for the whole timeline.

# What a lane is drawn from: rows with a start and an end, and how they are named.

Named = Callable[[IntArray], tuple[IntArray, Sequence[Sentence]]]
Column = Callable[[IntArray], IntArray]
"""For rows of a source, the code of each one's name, and the names that the codes stand for."""


class LaneSource(Struct, frozen=True, dict=True):
    """Rows [start, end) in ns, sorted by start, none of them empty. `kinds` is None if all rows are of one kind;
    `shares` says whether their share of the time means anything. `call` is the row of the CUDA call that each operation
    was launched by, -1 for none, or that each row is; `shape` their amounts and threads per block. Of these columns and
    of names only those of the rows that are asked for are made."""

    kind: str
    start: IntArray
    end: IntArray
    named: Named | None
    label: str = ""
    thread: int | None = None
    depth: int = 0
    kinds: Column | None = None
    shares: bool = True
    call: Column | None = None
    shape: Callable[[IntArray], tuple[IntArray, IntArray]] | None = None

    @cached_property
    def reach(self) -> IntArray:
        """The largest end so far."""
        return self.end if ascending(self.end) else np.maximum.accumulate(self.end)

    def among(self, parts: Intervals) -> tuple[IntArray, IntArray]:
        """For each part the first row and the number of rows among which are all that touch it."""
        first = np.searchsorted(self.reach, parts.start, side="right")
        return first, np.maximum(np.searchsorted(self.start, parts.end, side="left") - first, 0)


def rows_in(source: LaneSource, parts: Intervals) -> IntArray:
    """The rows of a source that touch the set `parts`, each once.

    ```
    rows    [--)[----)    [--)  [-------------)
    parts        [----)          [-)    [-)
                0 no, 1 yes, 2 no, 3 yes, once
    ```
    """
    first, count = source.among(parts)
    row = rows_from(first, count)
    return distinct_values(row[source.end[row] > np.repeat(parts.start, count)])


def codes_of(code: IntArray, names: Sequence[Sentence]) -> Named:
    """Names by a code for each row; only those that the chosen rows have are given."""

    def named(rows: IntArray) -> tuple[IntArray, Sequence[Sentence]]:
        present, place = np.unique(code[rows], return_inverse=True)
        return place.astype(np.int64), [*map(names.__getitem__, present.tolist())]

    return named


FINEST_PACKED, COARSEST_PACKED = 11, 9
FULL = 255
LEFT_OUT, LONGEST = "(name left out)", 1_000
_EFFORT = 6


class NameTable:
    """Names by number, each stored once, up to `characters` in all: further ones are left out. Very long ones are cut.
    `sentences` are those with names in them, by their displayed text."""

    def __init__(self, characters: int) -> None:
        self._known: dict[str, int] = {LEFT_OUT: 0}
        self.sentences: dict[str, Sentence] = {}
        self._room = characters

    def fork(self) -> NameTable:
        """A table of its own with the same names and the same room."""
        made = NameTable(self._room)
        made._known, made.sentences = dict(self._known), dict(self.sentences)
        return made

    def size(self) -> int:
        """What the names take in a report, in bytes."""
        return len(self.packed())

    def packed(self) -> str:
        """All names by number."""
        return encoded(json.dumps(list(self._known), ensure_ascii=False).encode("utf-8", "backslashreplace"))

    def numbers(self, code: IntArray, names: Sequence[Sentence]) -> IntArray:
        """The number of each row's name. New names get theirs by the alphabet: codes depend on the order in which the
        trace holds its rows, which means nothing."""
        texts = [*map(typed.plain, names)]
        for name, text in compress(zip(names, texts, strict=True), map(is_not, names, texts)):
            self.sentences.setdefault(text[:LONGEST], typed.cut(name, LONGEST))
        shown = [*map(itemgetter(slice(LONGEST)), texts)]  # the steps of a long run: no loop over them
        self._take(sorted(set(shown) - self._known.keys()))
        return np.fromiter(map(self._known.get, shown, repeat(0)), np.int64, len(shown))[code]

    def _take(self, new: list[str]) -> None:
        """Number new names, as far as there is room."""
        lengths = [*map(len, new)]
        if sum(lengths) > self._room:
            fits = []
            for name, length in zip(new, lengths, strict=True):
                if length <= self._room:
                    fits.append(name)
                    self._room -= length
        else:
            fits, self._room = new, self._room - sum(lengths)
        self._known.update(zip(fits, range(len(self._known), len(self._known) + len(fits)), strict=True))


class Packing(Struct, frozen=True, dict=True):
    """The parameters for packing lanes of one timeline: its names, and its time [low, high)."""

    names: NameTable
    low: int
    high: int

    @cached_property
    def edges(self) -> IntArray:
        """Those of the finest buckets, which are added up in pairs."""
        return equal_edges(self.low, self.high, 1 << FINEST_PACKED)

    def fork(self) -> Packing:
        """The same with names of its own."""
        return replace(self, names=self.names.fork())

    def lane(self, source: LaneSource, rows: IntArray) -> TimelineLane:
        """The lane with the exact `rows`, and the shares of all."""
        return replace(self.slices(source, rows), levels=self.shares(source))

    def slices(self, source: LaneSource, rows: IntArray) -> TimelineLane:
        """The lane with the exact `rows`; what began before the timeline begins with it."""
        start = np.maximum(source.start[rows], self.low)
        named = self.names.numbers(*source.named(rows)) if source.named is not None else None
        shape = source.shape(rows) if source.shape is not None else ()
        return TimelineLane(
            kind=source.kind,
            label=source.label,
            thread=source.thread,
            depth=source.depth,
            levels=[],
            count=len(rows),
            starts=_column(np.diff(start, prepend=np.int64(self.low))),
            lengths=_column(source.end[rows] - start),
            names=_column(named) if named is not None else "",
            kinds=_column(source.kinds(rows)) if source.kinds is not None else "",
            **dict(zip(("amounts", "blocks_of"), map(_column, shape), strict=False)),
        )

    def shares(self, source: LaneSource) -> list[str]:
        """How much of each bucket all rows cover, if that says anything."""
        if not source.shares:
            return []
        covered = coarser(coverage_between(union(Intervals(source.start, source.end)), self.edges), COARSEST_PACKED)
        sizes = coarser(np.diff(self.edges), COARSEST_PACKED)
        return [share_bytes(part, size) for part, size in zip(covered, sizes, strict=True)]


def exact_size(lanes: list[TimelineLane]) -> int:
    """What the exact rows of lanes take in a report, in bytes."""
    return sum(len(column) for lane in lanes for column in lane.slice_columns)


def share_bytes(covered: IntArray, size: IntArray) -> str:
    """`covered` of `size` as bytes, 0 for nothing, 255 for all, at least 1 for anything."""
    return encoded(np.ceil(covered / np.maximum(size, 1) * FULL).astype("<u1").tobytes())


def _column(values: IntArray) -> str:
    return encoded(to_planes(values))


def launch_column(call: IntArray, shown: IntArray) -> str:
    """Where the launch of each operation is among the calls that lanes of threads show; `call` and `shown` are rows of
    the table of calls."""
    order = np.argsort(shown, kind="stable")
    place = places_among(shown[order], call)
    known = place >= 0
    steps = np.diff(order[place[known]], prepend=0)
    column = np.zeros(len(call), dtype=np.int64)
    column[known] = 1 + np.where(steps < 0, -2 * steps - 1, 2 * steps)
    return _column(column) if known.any() else ""


def encoded(data: bytes) -> str:
    """Bytes as text: compressed, in base64."""
    return to_text(data, _EFFORT) if data else ""


# Where every slice of the timeline is kept, and how many fit.

LEAST_PAD_NS, MOST_PAD_NS = 50_000, 5_000_000
WINDOWS = 12
"""No window takes more than this part of the room, so that one of many rows leaves some to the others."""


def exact_parts(
    sources: list[LaneSource], gaps: Intervals, low: int, high: int, room: int, whole: Intervals | None = None
) -> Intervals:
    """The time, as a set, in which all rows of `sources` are kept: `room` rows in all, or a few more.

    All of [low, high) if they fit. Else `whole`, if it takes at most half of the room. Further a window around each
    of `gaps`, the first ones first, as long as there is room. A window is cut where it would take too much: it always
    reaches the end of its gap, where the next operation was launched.

    ```
    rows    ||||||||   |    |||||||||||||||
    gap             [------)
    window       [------------)
    ```
    """
    if sum(len(source.start) for source in sources) <= room:
        return Intervals.of([(low, high)])
    windows = _windows(sources, gaps, max(room // (2 * WINDOWS), 1))
    if whole is not None and _rows(sources, whole) <= room // 2:
        windows = Intervals.concatenate([whole, windows])
    windows = clip(windows, low, high)
    # More windows hold more rows; whatever number is found, its rows were counted and have room.
    few, many = 0, len(windows)
    while few < many:
        middle = (few + many + 1) // 2
        if _rows(sources, union(windows[:middle])) <= room:
            few = middle
        else:
            many = middle - 1
    return union(windows[:few])


def _windows(sources: list[LaneSource], gaps: Intervals, most: int) -> Intervals:
    """A window for each gap, with at most so many rows of a source before the end of the gap, and as many after it. No
    source is without rows."""
    pad = np.clip((gaps.end - gaps.start) // 4, LEAST_PAD_NS, MOST_PAD_NS)
    first, last = gaps.start - pad, gaps.end + pad
    for source in sources:
        count = len(source.start)
        at = np.searchsorted(source.start, gaps.end, side="left")
        before, after = np.maximum(at - most, 0), np.minimum(at + most, count - 1)
        first = np.where(at > most, np.maximum(first, source.start[before]), first)
        last = np.where(at + most < count, np.minimum(last, source.start[after]), last)
    return Intervals(np.minimum(first, gaps.end), np.maximum(last, gaps.end))


def _rows(sources: list[LaneSource], parts: Intervals) -> int:
    """How many rows touch the parts; one that touches several counts for each."""
    return sum(int(source.among(parts)[1].sum()) for source in sources)


CAUTION, FEWEST_ROWS = 0.9, 300
"""How far under the room the next try aims, and the number of rows below which there is none."""

Chosen = Callable[[LaneSource, Intervals, int], IntArray]
"""The rows of a source to keep, by the exact parts and the number of rows that there is room for."""


class Room(Struct, frozen=True):
    """So many rows, which take so many bytes in a report together with their names."""

    rows: int
    size: int


class Fitted(Struct, frozen=True):
    """Lanes, the time [start, end) in ns in which they hold every row, and all names so far. `calls` has the call of
    each kept row of each lane, nothing if a lane has none."""

    lanes: list[TimelineLane]
    exact: list[tuple[int, int]]
    names: NameTable
    calls: list[IntArray]


def fitted(
    packing: Packing,
    sources: list[LaneSource],
    wanted: Intervals,
    room: Room,
    chosen: Chosen,
    whole: Intervals | None = None,
) -> Fitted:
    """The lanes of `sources`, exact in `whole` and around as many of the gaps `wanted`, the first ones first, as there
    is room for.

    What packed rows weigh is known once they are packed; if it is too much, the next try has fewer of them.
    """
    rows = room.rows
    while True:
        parts = exact_parts(sources, wanted, packing.low, packing.high, rows, whole)
        trial = packing.fork()
        kept = [chosen(source, parts, rows) for source in sources]
        lanes = [trial.slices(source, each) for source, each in zip(sources, kept, strict=True)]
        size = exact_size(lanes) + trial.names.size() - packing.names.size()
        if size <= room.size or rows <= FEWEST_ROWS:
            break
        held = min(sum(lane.count for lane in lanes), rows)
        rows = max(int(held * max(room.size, 0) / size * CAUTION), FEWEST_ROWS)
    lanes = [replace(lane, levels=packing.shares(source)) for lane, source in zip(lanes, sources, strict=True)]
    calls = [each[:0] if source.call is None else source.call(each) for source, each in zip(sources, kept, strict=True)]
    return Fitted(lanes, list(zip(parts.start.tolist(), parts.end.tolist(), strict=True)), trial.names, calls)


FINEST, COARSEST = 14, 9
MANY_DEVICES = 16


def finest_level(devices: int) -> int:
    """The exponent of the finest level: fewer buckets where many devices share one report."""
    return max(FINEST - max((devices // MANY_DEVICES).bit_length(), 0), COARSEST)


def overview(
    device: DeviceTimeline, window: AnalysisWindow, gaps: Gaps, ledger: Ledger, finest: int
) -> TimelineLevels | None:
    """Lanes in 2^finest buckets and fewer, from first to last operation or over a narrowed window; None if nothing
    ran."""
    operations = device.operations
    if not device.running.any():
        return None
    low, high = int(operations.start[device.running].min()), int(operations.end[device.running].max())
    if window.narrowed and len(window.parts):
        low, high = int(window.parts.start[0]), int(window.parts.end[-1])
    edges = equal_edges(low, high, 1 << finest)
    lanes = {name: coarser(coverage_between(spans, edges), COARSEST) for name, spans in _lanes(device, gaps).items()}
    idle = Intervals(gaps.start, gaps.end)
    by_cause = {
        number: coarser(coverage_between(idle[ledger.dominant == number], edges), COARSEST)
        for number in np.flatnonzero(np.bincount(ledger.dominant, minlength=len(CAUSES))).tolist()
    }
    sizes = coarser(np.diff(edges), COARSEST)
    levels = [
        TimelineLevel(
            buckets=len(size),
            **{name: share_bytes(lane[depth], size) for name, lane in lanes.items()},
            cause=_leading({number: lane[depth] for number, lane in by_cause.items()}, len(size)),
        )
        for depth, size in enumerate(sizes)
    ]
    return TimelineLevels(start_ns=low, end_ns=high, cause_ids=list(CAUSES), levels=levels)


def _lanes(device: DeviceTimeline, gaps: Gaps) -> dict[str, Intervals]:
    operations = device.operations
    spans = Intervals(operations.start, operations.end)
    kernels = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    return {
        "compute": union(spans[kernels & ~device.communication]),
        "communication": union(spans[device.communication]),
        "copies": union(spans[~kernels]),
        "idle": Intervals(gaps.start, gaps.end),
    }


def _leading(by_cause: dict[int, IntArray], buckets: int) -> str:
    best, leading = np.zeros(buckets, dtype=np.int64), np.full(buckets, FULL, dtype=np.int64)
    for number, ns in by_cause.items():
        leading = np.where(ns > best, number, leading)
        best = np.maximum(best, ns)
    return encoded(leading.astype("<u1").tobytes())
