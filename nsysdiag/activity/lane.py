"""Rows of a table of calls, placed on the lanes of their threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import joint
from nsysdiag.activity.rows import picked, taken
from nsysdiag.paged import laid_away
from nsysdiag.timeline.intervals import BoolArray, IntArray, Intervals, nearest_before
from nsysdiag.timeline.nesting import outermost


@dataclass(frozen=True, slots=True)
class CallTable:
    """A table of calls as the export has it: times in ns, globalTids, `name` an index into `names`; `kind` is a number
    whose meaning the table gives (overhead type, return value)."""

    thread: IntArray
    start: IntArray
    end: IntArray
    name: IntArray
    names: list[str]
    kind: IntArray


@dataclass(frozen=True, slots=True)
class Lane:
    """Named rows on the thread axis, sorted by start, outer rows before inner ones. `row` is the row's place in its own
    table. `shown` is an index into `shown_names`, what people read: the name, with what encloses it."""

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

    def take(self, rows: IntArray | BoolArray) -> Lane:
        """The rows at these places, or under a mask; rows that follow each other are not copied."""
        index = picked(rows)
        name = self.name[index]
        return Lane(
            self.spans[index],
            name,
            self.names,
            self.row[index],
            taken(self.kind, index),
            self.outermost[index],
            name if self.shown is self.name else self.shown[index],
            self.shown_names,
        )


def place_calls(axis: ThreadAxis, table: CallTable, latest: int) -> tuple[Lane, int]:
    """The calls of the axis's threads, and how many were left out: without 0 <= start <= end, or ending after `latest`,
    when the capture was long over."""
    rank = axis.rank(table.thread)
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
    lane = Lane(spans, name, table.names, row, kind, outermost(spans), name, table.names)
    return laid_away(lane), int(np.count_nonzero((rank >= 0) & ~valid))


def _ordered(spans: Intervals, name: IntArray) -> bool:
    later = spans.start[1:] > spans.start[:-1]
    if later.all():
        return True
    same, shorter = spans.start[1:] == spans.start[:-1], spans.end[1:] < spans.end[:-1]
    tied = (spans.end[1:] == spans.end[:-1]) & (name[1:] >= name[:-1])
    return bool(np.all(later | (same & (shorter | tied))))


def within(calls: Lane, libraries: Lane) -> Lane:
    """`calls` shown with the library call that encloses them: `cudaMalloc in cublasCreate`."""
    if len(libraries) == 0 or len(calls) == 0:
        return calls
    at = nearest_before(libraries.spans.start, calls.spans.start)
    inside = (at >= 0) & (libraries.spans.end[at] >= calls.spans.end)
    width = len(libraries.names) + 1
    pair = joint(calls.name, np.where(inside, libraries.name[at] + 1, 0), width)
    present, shown = np.unique(pair, return_inverse=True)
    names = [_in_library(calls.names[key // width], libraries.names, key % width) for key in present.tolist()]
    return replace(calls, shown=shown.astype(np.int64), shown_names=names)


def _in_library(name: str, libraries: list[str], library: int) -> str:
    return f"{name} in {libraries[library - 1]}" if library else name
