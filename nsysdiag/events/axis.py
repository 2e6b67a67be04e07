"""All threads on one time axis, each in a lane of its own, and rows of calls placed on it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before
from nsysdiag.arrays.nesting import is_constant, outermost
from nsysdiag.errors import InputError
from nsysdiag.events.identity import joint, once
from nsysdiag.events.rows import distinct_values, picked, taken

_POSITION_LIMIT = 1 << 62


class ThreadAxis(Struct, frozen=True):
    """Lanes for `threads` (sorted globalTids), each holding the time [origin, origin + span)."""

    threads: IntArray
    origin: int
    span: int

    @classmethod
    def over(cls, threads: IntArray, low: int, high: int) -> ThreadAxis:
        """An axis with a lane for each of `threads` over [low, high). Raises InputError where it has no room."""
        unique = distinct_values(threads)
        axis = cls(unique, low, max(high - low, 1))
        if max(len(unique), 1) * axis.stride >= _POSITION_LIMIT:
            raise InputError(
                f"times from {low} to {high} ns on {len(unique)} launching threads are too far apart to be real",
                hint="the export holds malformed times; export the report again",
            )
        return axis

    @property
    def stride(self) -> int:
        """The length of a lane; one ns more than its span, so that lanes never touch."""
        return self.span + 1

    def lane(self, threads: IntArray) -> IntArray:
        """The lane of each thread, -1 for a thread that has none."""
        if len(self.threads) == 0:
            return np.full(len(threads), -1, dtype=np.int64)
        rank: IntArray = once(threads, self._found)
        return rank

    def _found(self, threads: IntArray) -> IntArray:
        at = np.minimum(np.searchsorted(self.threads, threads), len(self.threads) - 1)
        return np.where(self.threads[at] == threads, at, -1)

    def position(self, rank: IntArray, time: IntArray) -> IntArray:
        """Positions of times on lanes; times outside the span are moved to its borders."""
        # Clipped first: an open range ends at the largest number, and a difference would wrap around.
        position: IntArray = np.clip(time, self.origin, self.origin + self.span)
        position += (rank[:1] if is_constant(rank) else rank).astype(np.int64, copy=False) * self.stride - self.origin
        return position

    def place(self, rank: IntArray, intervals: Intervals) -> Intervals:
        """Intervals on their lanes, clipped to the span."""
        return Intervals(self.position(rank, intervals.start), self.position(rank, intervals.end))

    def time(self, position: IntArray) -> IntArray:
        """The time of each position."""
        return position % self.stride + self.origin


class CallTable(Struct, frozen=True):
    """A table of calls as the export has it: times in ns, globalTids, `name` an index into `names`; the meaning of
    `kind` depends on the table (overhead type, return value)."""

    thread: IntArray
    start: IntArray
    end: IntArray
    name: IntArray
    names: list[str]
    kind: IntArray


class NamedRows(Struct, frozen=True):
    """Named rows on the thread axis, sorted by start, outer rows before inner ones. `row` is the row's index in its
    table. `shown` is an index into `shown_names`, the displayed text: the name with its enclosing calls."""

    spans: Intervals
    name: IntArray
    names: list[str]
    row: IntArray
    kind: IntArray
    outermost: BoolArray
    shown: IntArray
    shown_names: list[str]

    def __len__(self) -> int:
        return len(self.spans)

    def take(self, rows: IntArray | BoolArray | slice) -> NamedRows:
        """The rows at these places, or under a mask; rows that follow each other are not copied."""
        index = picked(rows)
        name = self.name[index]
        return NamedRows(
            self.spans[index],
            name,
            self.names,
            self.row[index],
            taken(self.kind, index),
            self.outermost[index],
            name if self.shown is self.name else self.shown[index],
            self.shown_names,
        )


def place_calls(axis: ThreadAxis, table: CallTable, latest: int) -> tuple[NamedRows, int]:
    """The calls of the axis's threads, and how many were left out: without 0 <= start <= end, or ending after `latest`,
    long after the capture."""
    rank = axis.lane(table.thread)
    valid = (table.start >= 0) & (table.start <= table.end) & (table.end <= latest)
    row = np.flatnonzero((rank >= 0) & valid).astype(np.int32)
    if len(row) == len(rank):
        spans, name, kind = axis.place(rank, Intervals(table.start, table.end)), table.name, table.kind
    else:
        spans = axis.place(rank[row], Intervals(table.start[row], table.end[row]))
        name, kind = table.name[row], taken(table.kind, row)
    if len(row) > 1 and not _ordered(spans, name):
        # By name last: which of two calls at the very same time is the outer one must not depend on the order of rows.
        order = np.lexsort((name, -spans.end, spans.start))
        row, spans, name, kind = row[order], spans[order], name[order], taken(kind, order)
    shown = [typed.api(each) for each in table.names]
    lane = NamedRows(spans, name, table.names, row, kind, outermost(spans), name, shown)
    return lane, int(np.count_nonzero((rank >= 0) & ~valid))


def _ordered(spans: Intervals, name: IntArray) -> bool:
    later = spans.start[1:] > spans.start[:-1]
    if later.all():
        return True
    same, shorter = spans.start[1:] == spans.start[:-1], spans.end[1:] < spans.end[:-1]
    tied = (spans.end[1:] == spans.end[:-1]) & (name[1:] >= name[:-1])
    return bool(np.all(later | (same & (shorter | tied))))


def within(calls: NamedRows, libraries: NamedRows) -> NamedRows:
    """`calls` shown with the library call that encloses them: `cudaMalloc in cublasCreate`."""
    if len(libraries) == 0 or len(calls) == 0:
        return calls
    at = nearest_before(libraries.spans.start, calls.spans.start)
    inside = (at >= 0) & (libraries.spans.end[at] >= calls.spans.end)
    width = len(libraries.names) + 1
    pair = joint(calls.name, np.where(inside, libraries.name[at] + 1, 0), width)
    present, shown = np.unique(pair, return_inverse=True)
    in_library = ["", *(f" in {library}" for library in libraries.shown_names)]
    names = [calls.shown_names[key // width] + in_library[key % width] for key in present.tolist()]
    return replace(calls, shown=shown.astype(np.int64), shown_names=names)
