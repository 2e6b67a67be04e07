"""The evidence that a thread ended a wait, and what was found for each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from nsysdiag.activity.rows import Rows
from nsysdiag.analysis.roots.candidates import Pairs, nearest
from nsysdiag.timeline.intervals import FloatArray, IntArray


class How(IntEnum):
    """The evidence that a thread ended a wait."""

    NOTHING = 0
    CALL = 1
    CALL_OF_SEVERAL = 2
    RAN = 3
    RAN_OFTEN = 4
    RAN_NEAREST = 5
    RETURNED = 6
    ENDED = 7
    USUAL = 8


CONFIDENCE = {
    How.NOTHING: 0.0,
    How.CALL: 0.95,  # its wake call is the only one around
    How.CALL_OF_SEVERAL: 0.6,  # several threads made wake calls: the one that does so each time, else the nearest
    How.RAN: 0.85,  # the only thread that ran until then
    How.RAN_OFTEN: 0.65,  # of several the one that ran until then again and again, more than chance has it
    How.RAN_NEAREST: 0.4,  # of several the one that stopped running closest
    How.RETURNED: 0.5,  # without scheduling: the only thread whose call ended or began then
    How.ENDED: 0.8,  # the process whose last sign of life was just before
    How.USUAL: 0.75,  # the thread whose calls ended nearly all other such waits was there
}
"""Lower than what the captured waits in tests/fixtures give, where the first, third, fourth and last were always right
and the nearest of several in 19 of 26."""


@dataclass(frozen=True, slots=True)
class Wakers(Rows):
    """For each wait: the thread that ended it (globalTid, 0: nobody known), when in ns, by what call (an index into the
    names of OS calls, -1: none known), how that is known (`How`), and how sure it is, 0 to 1."""

    thread: IntArray
    at: IntArray
    call: IntArray
    how: IntArray
    confidence: FloatArray

    @classmethod
    def nobody(cls, at: IntArray) -> Wakers:
        """Nothing known of any."""
        nothing = np.zeros(len(at), dtype=np.int64)
        return cls(nothing, at.copy(), np.full(len(at), -1, dtype=np.int64), nothing.copy(), np.zeros(len(at)))

    def put(self, rows: IntArray, others: Wakers) -> None:
        """Write others down in some rows."""
        for field in dataclasses.fields(Wakers):
            getattr(self, field.name)[rows] = getattr(others, field.name)

    def settle(self, pairs: Pairs, how: How) -> None:
        """Write down the nearest pair of each wait that is still open."""
        pairs = nearest(pairs.take(self.how[pairs.wait] == How.NOTHING))
        self.thread[pairs.wait] = pairs.thread
        self.at[pairs.wait] = pairs.at
        self.call[pairs.wait] = pairs.call
        self.how[pairs.wait] = how
        self.confidence[pairs.wait] = CONFIDENCE[how]
