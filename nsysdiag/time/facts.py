"""The table of time as columns, as a report holds it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray

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
