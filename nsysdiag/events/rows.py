"""A table as a record of equally long arrays, and how rows are picked from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple, replace

from nsysdiag import typed
from nsysdiag.arrays.constant import is_constant, taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, nearest_before, places_among
from nsysdiag.arrays.nesting import outermost
from nsysdiag.arrays.spill import laid
from nsysdiag.events.identity import joint, once, pid_of
from nsysdiag.fields import Sentence
from nsysdiag.messages import InputError
from nsysdiag.trace.enums import StreamFlag
from nsysdiag.typed import say

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


def picked(mask: npt.NDArray[Any] | slice) -> npt.NDArray[Any] | slice:
    """The positions that an index or a mask picks, in the type that NumPy looks up fastest; for consecutive rows the
    slice that picks them, which copies nothing."""
    if isinstance(mask, slice):
        return mask
    if mask.dtype != np.bool_:
        return slice(int(mask[0]), int(mask[-1]) + 1) if _follow(mask) else mask.astype(np.intp, copy=False)
    first = int(mask.argmax()) if len(mask) else 0
    count = int(np.count_nonzero(mask))
    return slice(first, first + count) if mask[first : first + count].all() else np.flatnonzero(mask)


def _follow(rows: npt.NDArray[Any]) -> bool:
    """Does each of the rows, at least one, follow the one before it?"""
    if len(rows) == 0 or int(rows[0]) < 0 or int(rows[-1]) - int(rows[0]) != len(rows) - 1:
        return False
    return bool(np.all(rows[1:] > rows[:-1]))


def last_before(group: IntArray, time: IntArray, asked: IntArray, moment: IntArray) -> IntArray:
    """For each group that is asked for the row of its last `time` (ns) up to a moment, -1 for none."""
    if not len(group) or not len(asked):
        return np.full(len(asked), -1)
    _, code = distinct(np.concatenate((group, asked)))
    moments, rank = distinct(np.concatenate((time, moment)))
    key, wanted = np.split(joint(code, rank, max(len(moments), 1)), [len(group)])
    order = np.argsort(key, kind="stable")
    row = np.append(order, -1)[nearest_before(key[order], wanted)]
    known = np.append(code[: len(group)], -1)[row] == code[len(group) :]
    return np.where(known, row, -1)


def first_since(group: IntArray, time: IntArray, asked: IntArray, moment: IntArray) -> IntArray:
    """For each group that is asked for the row of its first `time` (ns) from a moment on, -1 for none."""
    row = last_before(group[::-1], -time[::-1], asked, -moment)
    return np.where(row >= 0, len(group) - 1 - row, -1)


def narrowed(values: IntArray) -> IntArray:
    """The values from the lowest on in 16 bits if they fit: these NumPy sorts without comparing."""
    if not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    return (values - low).astype(np.uint16) if high - low < 1 << 16 else values


class RowsOf:
    """The rows of each distinct value of a column, or of those `among` them: one sort for any number of values, no sort
    for one value."""

    def __init__(self, column: IntArray, among: IntArray | list[int] | None = None) -> None:
        every = np.arange(len(column), dtype=np.int32)
        rows = every if among is None else taken(every, picked(once(column, partial(np.isin, test_elements=among))))
        values = taken(column, rows)
        if len(values) and values.min() != values.max():
            order = np.argsort(narrowed(values), kind="stable")
            rows, values = rows[order], values[order]
        first = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)[: len(values)]
        self._rows, self._borders = laid(rows), [*first.tolist(), len(rows)]
        self._at = {value: at for at, value in enumerate(values[first].tolist())}

    def __getitem__(self, value: int) -> IntArray:
        """The rows in their order; none where the column does not hold the value."""
        at = self._at.get(value)
        return self._rows[:0] if at is None else self._rows[self._borders[at] : self._borders[at + 1]]

    def values(self) -> list[int]:
        """The distinct values, sorted."""
        return list(self._at)


class Rows(Struct, frozen=True):
    """Base of tables: all fields are arrays of one length, and an index means the same row in each."""

    def __len__(self) -> int:
        return len(astuple(self)[0])

    def take(self, index: npt.NDArray[Any] | slice) -> Self:
        """The rows at `index`: positions in the requested order, a mask, or a slice, whose rows are not copied."""
        index = picked(index)
        return type(self)(*(taken(values, index) for values in astuple(self)))

    @classmethod
    def empty(cls) -> Self:
        """No rows at all."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in cls.__struct_fields__))

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """All rows of `parts`, one table after the other; `parts` holds at least one."""
        return cls.joined([*parts])

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """The same. `parts` is emptied: each column of a part is released once it is joined."""
        some = [part for part in parts if len(part)] or parts[:1]
        parts.clear()
        if len(some) == 1:
            return some[0]
        columns = [list(each) for each in zip(*map(astuple, some), strict=True)]
        some.clear()
        return cls(*(np.concatenate(columns.pop(0)) for _ in cls.__struct_fields__))


# All threads on one time axis, each in a lane of its own, and rows of calls placed on it.

_POSITION_LIMIT = 1 << 62
"""Positions on the axis of threads stay below it: two of them can be added in 64 bits. Times that do not fit are
damage."""


class ThreadAxis(Struct, frozen=True):
    """Lanes for `threads` (sorted globalTids), each holding the time [origin, origin + span)."""

    threads: IntArray
    origin: int
    span: int

    @classmethod
    def over(cls, threads: IntArray, low: int, high: int) -> ThreadAxis:
        """An axis with a lane for each of `threads` over [low, high). Raises InputError if it has no room."""
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
        return once(threads, lambda each: places_among(self.threads, each))

    def position(self, rank: IntArray, time: IntArray) -> IntArray:
        """Positions of times on lanes; times outside the span are moved to its borders."""
        # Clipped first: an open range ends at the largest number, and a difference would wrap around.
        position: IntArray = np.clip(time, self.origin, self.origin + self.span)
        lane = np.multiply(rank[:1] if is_constant(rank) else rank, self.stride, dtype=np.int64)
        lane -= self.origin
        position += lane
        return position

    def place(self, rank: IntArray, intervals: Intervals) -> Intervals:
        """Intervals on their lanes, clipped to the span."""
        return Intervals(self.position(rank, intervals.start), self.position(rank, intervals.end))

    def time(self, position: IntArray) -> IntArray:
        """The time of each position."""
        return (position if len(self.threads) == 1 else position % self.stride) + self.origin


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
    shown_names: list[Sentence]

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
    lane = taken(rank, row)
    if not ascending(lane):
        row = row[np.argsort(narrowed(lane), kind="stable")]  # calls in order of time are then in order on the axis
    columns = (rank, table.start, table.end, table.name, table.kind)
    lane, start, end, name, kind = (taken(each, picked(row)) for each in columns)
    spans = axis.place(lane, Intervals(start, end))
    if len(row) > 1 and not _ordered(spans, name):
        # By name last: which of two calls at the very same time is the outer one must not depend on the order of rows.
        order = np.lexsort((name, -spans.end, spans.start))
        row, spans, name, kind = row[order], spans[order], name[order], taken(kind, order)
    shown: list[Sentence] = [typed.api(each) for each in table.names]
    placed = NamedRows(spans, name, table.names, row, kind, outermost(spans), name, shown)
    return placed, int(np.count_nonzero((rank >= 0) & ~valid))


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
    in_library = ["", *(say(" in {}", library) for library in libraries.shown_names)]
    names: list[Sentence] = [calls.shown_names[key // width] + in_library[key % width] for key in present.tolist()]
    return replace(calls, shown=shown.astype(np.int64), shown_names=names)


# Streams: one code for each (process, context, stream), and which of them is a legacy default stream.

_NO_STREAM = 0xFFFFFFFF
"""The null stream of a context that has none, as exports write it: 32 bits, all of them set."""


class Streams(Struct, frozen=True):
    """`null` and `non_blocking` say for each code what the tables of streams and contexts hold of the stream."""

    null: BoolArray
    non_blocking: BoolArray


def coded_tuples(*columns: IntArray) -> tuple[IntArray, list[tuple[Any, ...]]]:
    """The code of the combination of values in each row, and the values of each code."""
    code, keys = combinations(*columns)
    return code, list(zip(*(key.tolist() for key in keys), strict=True))


def combinations(*columns: IntArray) -> tuple[IntArray, list[IntArray]]:
    """The code of the combination of values in each row, in order of the columns; and of each column the value that a
    code stands for."""
    first, code = distinct(columns[0])
    keys: list[IntArray] = [first]
    for column in columns[1:]:
        values, inverse = distinct(column)
        width = max(len(values), 1)
        if width == 1 or len(keys[0]) == 1:
            combined, code = np.arange(len(keys[0]) * width), inverse if width > 1 else code
        else:
            combined, code = distinct(code * width + inverse)
        keys = [key[combined // width] for key in keys] + [values[combined % width]]
    return code, keys


def describe_streams(trace: Trace, keys: list[tuple[int, int, int]]) -> Streams:
    """What the export says of each stream; a stream that it does not mention is neither null nor non-blocking."""
    owner = ("processId", "contextId")
    flagged = trace.read("TARGET_INFO_CUDA_STREAM", *owner, "streamId", "flag").tuples()
    named = trace.read("TARGET_INFO_CUDA_CONTEXT_INFO", *owner, "nullStreamId").tuples()
    null = {key[:3] for key in flagged if key[3] == StreamFlag.NULL}
    null |= set(trace.read("TARGET_INFO_CUDA_NULL_STREAM", *owner, "streamId").tuples())
    null |= {key for key in named if key[2] not in (-1, _NO_STREAM)}
    # A stream that rows contradict each other about is what most restricts it: null before non-blocking.
    non_blocking = {key[:3] for key in flagged if key[3] == StreamFlag.NON_BLOCKING} - null
    known = [(pid_of(process), context, stream) for process, context, stream in keys]
    return Streams(
        null=np.array([key in null for key in known], dtype=np.bool_),
        non_blocking=np.array([key in non_blocking for key in known], dtype=np.bool_),
    )


def previous_on_stream(code: IntArray) -> IntArray:
    """For each operation, in order of start, the one before it on its stream; -1 for a stream's first."""
    if len(code) and code.min() == code.max():
        return np.arange(-1, len(code) - 1)
    order = np.argsort(narrowed(code), kind="stable")
    follows = code[order][1:] == code[order][:-1]
    previous = np.full(len(code), -1, dtype=np.int64)
    previous[order[1:][follows]] = order[:-1][follows]
    return previous
