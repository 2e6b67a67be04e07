"""The time of one device that findings are about."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals, intersect
from nsysdiag.ledger.busy import WindowSplit


class JudgedTime(Struct, frozen=True):
    """The set `parts` of a device's window, and how many ns of it the device computed, communicated and copied with
    nothing else running; the rest of `ns` it was idle. `account_ns` is the length of its account, which in a cold start
    begins before the window: shares that a reader compares are shares of it."""

    parts: Intervals
    ns: int
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    account_ns: int

    @classmethod
    def of(cls, split: WindowSplit, window: Intervals, focus: Intervals, before_ns: int = 0) -> JudgedTime:
        """What of a device's window is inside the set `focus`; `before_ns` of its account come before the window."""
        parts = intersect(window, focus)
        compute, communication, copies = (intersect(part, focus).total() for part in split.parts)
        ns = parts.total()
        return cls(parts, ns, compute, communication, copies, ns + before_ns)

    def inside(self, time: Intervals) -> int:
        """How much of a set of time is in it."""
        return intersect(self.parts, time).total()

    def share(self, ns: int) -> float:
        """Part of the judged time, 0 where there is none."""
        return ns / self.ns if self.ns else 0.0
