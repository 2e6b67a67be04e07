"""What happens in each repeat of a loop, and what usually does."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import RowsOf
from nsysdiag.iterations.happened import HOST, Happened

MOST_TOKENS = 2_000
"""Names that are looked at: of more, the most frequent."""
USUAL = 0.4
"""A count that so many repeats have is usual; the smallest of such."""
LEAST_HELD = 0.75
"""Of the usual operations: a repeat with fewer is another kind of work."""


class RepeatCounts(Struct, frozen=True):
    """How often each code happens in each repeat of a loop: `count[code]` by repeat, and what is usual."""

    count: dict[int, IntArray]
    usual: dict[int, int]
    size: int

    @classmethod
    def of(cls, happened: Happened, starts: IntArray, issued: IntArray | None, end: int) -> RepeatCounts:
        on_host = happened.on_host
        place = np.full(len(happened.time), -1)
        place[~on_host] = np.searchsorted(starts, happened.time[~on_host], side="right") - 1
        if issued is not None:
            place[on_host] = np.searchsorted(issued, happened.time[on_host], side="right") - 1
        inside = np.flatnonzero((place >= 0) & (happened.time < end))
        place, code = place[inside], happened.code[inside]
        of_code = RowsOf(code)
        codes = sorted(of_code.values(), key=lambda each: -len(of_code[each]))[:MOST_TOKENS]
        count = {each: np.bincount(place[of_code[each]], minlength=len(starts)) for each in codes}
        return cls(count, {each: _usual(counted[:-1]) for each, counted in count.items()}, len(starts))

    def lacks(self) -> BoolArray:
        """Which repeats lack a good part of the usual operations: there the first one of a repeat comes in what is
        between the inner loops."""
        held = np.zeros(self.size, np.int64)
        for code, count in self.count.items():
            if code < HOST:
                held += np.minimum(count, self.usual[code])
        lacks: BoolArray = held < LEAST_HELD * sum(usual for code, usual in self.usual.items() if code < HOST)
        return lacks

    def alike(self) -> BoolArray:
        """Which repeats, without the last, have exactly as many of the usual operations, whatever else they have."""
        same = np.ones(self.size - 1, np.bool_)
        for code, count in self.count.items():
            if code < HOST and self.usual[code]:
                same &= count[:-1] == self.usual[code]
        return same


def _usual(count: IntArray) -> int:
    times = np.bincount(count)
    often = np.flatnonzero(times >= USUAL * len(count))
    return int(often[0] if len(often) else np.argmax(times))
