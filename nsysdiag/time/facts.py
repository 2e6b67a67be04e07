"""Tables of a device as columns, as a report holds them: its time, and the places of its gaps, in a few bytes each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.fields import Base64, Count, KernelName, OwnText, RangeName
from nsysdiag.record import Packed, PackedColumn

STATES = ("compute", "exposed_comm", "exposed_copy", "idle")
"""What a device does. Of several things at once: computing hides communication, and both hide copies."""
WORK = STATES[:3]
OUTSIDE = "outside"
"""The state of a device before its first work, from the first CUDA call on."""
EVERY_STATE = (*STATES, OUTSIDE)
NAMED = ("state", "bottleneck", "cause", "root_cause", "waits_for", "call", "place", "operation")
"""The columns of names, in their order."""


class NameColumn(Struct, frozen=True):
    """A column of names: `code` is an index into `names`, -1 for none."""

    code: IntArray
    names: list[str]


class TimeColumns(Struct, frozen=True):
    """The rows [start, end) of one device in ns, sorted and disjoint, cut where a phase or a step begins or ends.

    `phase` and `step` are indices into the phases of the report and into the iterations of the device, -1 for none.
    `judged`: the row is part of the time that the diagnosis is about. `thread` is the id of the thread that launched
    what ended an idle row, -1 for none.
    """

    device: str
    start: IntArray
    end: IntArray
    phase: IntArray
    judged: BoolArray
    step: IntArray
    thread: IntArray
    named: dict[str, NameColumn]

    @classmethod
    def empty(cls) -> TimeColumns:
        """Those of a trace without a device."""
        none = np.empty(0, dtype=np.int64)
        named = {name: NameColumn(none, []) for name in NAMED}
        return cls("", none, none, none, none.astype(np.bool_), none, none, named)


_OF_THE_PROGRAM = ("call", "place", "operation")
"""Columns that hold names of the program."""


def hidden_names(tables: Iterable[TimeColumns]) -> list[TimeColumns]:
    """The same tables without names of the program: these columns are empty."""

    def hidden(table: TimeColumns) -> dict[str, NameColumn]:
        none = NameColumn(np.full(len(table.start), -1, dtype=np.int64), [])
        return table.named | dict.fromkeys(_OF_THE_PROGRAM, none)

    return [replace(each, named=hidden(each)) for each in tables]


class GapPlaces(Packed, frozen=True):
    """The operations on both sides of every gap, and its NVTX path, by their names in `signatures`: counters read `#`.

    For each of `count` gaps, `previous_op` and `next_op` hold an index into `operations`; `nvtx` is 0 if the launching
    thread is unknown, else 1 + the index of a path. For each of `paths` paths, `path_lengths` holds how many ranges it
    has. `path_ranges` holds their indices into `ranges`, outermost first, path after path: `elements` of them. Numbers
    are planes of bytes: the lowest byte of every number, then the next one of each, as many as the largest needs. If
    names would take too much of the report, they are left out, and references to them are empty."""

    count: Count
    operations: list[KernelName]
    previous_op: Base64
    next_op: Base64
    ranges: list[RangeName]
    paths: Count
    elements: Count
    path_lengths: Base64
    path_ranges: Base64
    nvtx: Base64
    encoding: OwnText = "base64(zlib(planes of bytes))"

    def columns(self) -> Iterable[PackedColumn]:
        """The numbers for each gap, and what the paths are made of."""
        operation, path = width_of(len(self.operations)), width_of(self.paths + 1)
        columns = [
            PackedColumn(self.previous_op, self.count, operation),
            PackedColumn(self.next_op, self.count, operation),
            PackedColumn(self.nvtx, self.count, path),
            PackedColumn(self.path_lengths, self.paths, 1),
            PackedColumn(self.path_ranges, self.elements, width_of(len(self.ranges))),
        ]
        return [column for column in columns if column.text]


def width_of(numbers: int) -> int:
    """The bytes that each of so many numbers, from 0 up, fits into."""
    return max((max(numbers - 1, 0).bit_length() + 7) // 8, 1)
