"""The gaps that the page's timeline draws exactly at every level: all of them, or the longest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.document.packed import unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import DeviceReport

MOST_GAPS, FEWEST_GAPS = 20_000, 500


class DrawnGaps(Struct, frozen=True):
    """Start and length in ns and place of the cause in `cause_ids` of `count` gaps in order of time, out of `total`.
    All that last `threshold` ns or longer are among them, `longest` of them, and all that touch exact windows."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    cause: npt.NDArray[np.int64]
    cause_ids: list[str]
    total: int
    threshold: int
    longest: int

    @property
    def count(self) -> int:
        """How many are drawn."""
        return len(self.start)

    @property
    def all(self) -> bool:
        """Are these all gaps of the device?"""
        return self.count == self.total


def drawn_gaps(device: DeviceReport, exact: list[tuple[int, int]], devices: int) -> DrawnGaps:
    """The gaps to draw of one of so many devices; `exact` are the windows that hold all operations, in order. Gaps of
    equal length are among the longest together or not at all. Raises InputError where the report is damaged."""
    start, length, cause = unpack(device.gaps_packed)
    order = np.argsort(start, kind="stable")
    start, length, cause = start[order], length[order], cause[order]
    most = max(MOST_GAPS // max(devices, 1), FEWEST_GAPS)
    threshold, longest = 0, len(start)
    if len(start) > most:
        threshold = int(np.sort(length)[-most - 1]) + 1
        long = length >= threshold
        kept = long | _touches(start, start + length, exact)
        longest = int(np.count_nonzero(long))
        start, length, cause = start[kept], length[kept], cause[kept]
    packed = device.gaps_packed
    return DrawnGaps(start, length, cause, packed.cause_ids, packed.count, threshold, longest)


def _touches(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], parts: list[tuple[int, int]]
) -> npt.NDArray[np.bool_]:
    """True where a gap shares time with any of the parts, which are disjoint and in order."""
    if not parts:
        return np.zeros(len(start), dtype=np.bool_)
    begins, ends = np.array(parts, dtype=np.int64).T
    at = np.minimum(np.searchsorted(ends, start, side="right"), len(parts) - 1)
    touches: npt.NDArray[np.bool_] = (begins[at] < end) & (ends[at] > start)
    return touches
