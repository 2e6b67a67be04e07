"""The steady steps of a device as a report holds them: the number of each, and its time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import column_from, running_sums
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.messages import InputError
from nsysdiag.report import IterationReport, IterationsPacked


class Steps(Struct, frozen=True):
    """Steady steps in order of time: their numbers among all iterations, from 0, and their spans in ns."""

    number: IntArray
    spans: Intervals

    @property
    def length(self) -> IntArray:
        """The ns of each."""
        return self.spans.end - self.spans.start

    def take(self, chosen: IntArray) -> Steps:
        """Those at these places."""
        return Steps(self.number[chosen], self.spans[chosen])

    def nearest(self, ns: float) -> int:
        """The place of the one nearest a length, the first of equals; there is at least one."""
        return int(np.argmin(np.abs(self.length - ns)))


def steady_steps(found: IterationReport) -> Steps | None:
    """All steady steps; None where the report does not hold the time of each. Raises InputError where it is damaged."""
    packed = found.packed
    if packed is None or packed.first_ns is None or packed.each != 1 or not packed.count:
        return None
    steady = np.setdiff1d(np.arange(found.count), found.left_out)
    try:
        spans = _spans(packed, packed.first_ns)
    except ValueError as error:
        raise InputError("the iterations of this report cannot be read: the file is damaged") from error
    return Steps(steady, spans) if len(steady) == packed.count else None


def _spans(packed: IterationsPacked, first: int) -> Intervals:
    """Raises ValueError where the columns are damaged."""
    lengths, apart = (column_from(text, packed.count) for text in (packed.lengths, packed.apart))
    end = running_sums(lengths, first) + running_sums(apart)
    return Intervals(end - lengths, end)
