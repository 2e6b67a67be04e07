"""All threads on one time axis, each in a lane of its own, so that one vectorized pass serves every thread.

```
thread 0            thread 1            thread 2
|---- stride ------|---- stride ------|---- stride ------|
position = rank * stride + (time - origin)
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import is_constant, once
from nsysdiag.activity.streams import distinct_values
from nsysdiag.errors import InputError
from nsysdiag.timeline.intervals import IntArray, Intervals

_POSITION_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class ThreadAxis:
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

    def rank(self, threads: IntArray) -> IntArray:
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
