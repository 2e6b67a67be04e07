"""The places of the gaps of a device in a report, packed in a few bytes each."""

from __future__ import annotations

from collections.abc import Iterable

from nsysdiag.fields import Base64, Count, KernelName, OwnText, RangeName
from nsysdiag.record import Packed, PackedColumn


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
