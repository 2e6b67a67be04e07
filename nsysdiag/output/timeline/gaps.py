"""The gaps that the page's timeline draws exactly at every level: all of them, or the longest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.output.packed import unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.model import DeviceReport

MOST_GAPS, FEWEST_GAPS = 20_000, 500


@dataclass(frozen=True, slots=True)
class DrawnGaps:
    """Start and length in ns and place of the cause in `cause_ids` of `count` gaps in order of time, out of `total`;
    all that last `threshold` ns or longer are among them."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    cause: npt.NDArray[np.int64]
    cause_ids: list[str]
    total: int
    threshold: int

    @property
    def count(self) -> int:
        """How many are drawn."""
        return len(self.start)

    @property
    def all(self) -> bool:
        """Are these all gaps of the device?"""
        return self.count == self.total


def drawn_gaps(device: DeviceReport, devices: int) -> DrawnGaps:
    """The gaps to draw of one of so many devices. Of gaps as long as the threshold all or none are drawn, unless they
    alone are too many. Raises InputError where the report is damaged."""
    start, length, cause = unpack(device.gaps_packed)
    order = np.argsort(start, kind="stable")
    start, length, cause = start[order], length[order], cause[order]
    most = max(MOST_GAPS // max(devices, 1), FEWEST_GAPS)
    threshold = 0
    if len(start) > most:
        ranked = np.sort(length)[::-1]
        threshold = int(ranked[most]) + 1
        kept = length >= threshold
        start, length, cause = start[kept], length[kept], cause[kept]
    return DrawnGaps(start, length, cause, device.gaps_packed.cause_ids, device.gaps_packed.count, threshold)
