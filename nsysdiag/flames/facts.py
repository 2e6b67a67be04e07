"""The stacks of flame graphs, as plain data."""

from __future__ import annotations

from nsysdiag.fields import CauseId, Sentence, TotalNs
from nsysdiag.record import Record


class FlameStack(Record, frozen=True):
    """Time by what is said of it, from the general to the particular. Stacks that begin with the same frames are parts
    of one. `cause` is the root cause of idle time, empty for other time."""

    frames: list[Sentence]
    ns: TotalNs
    cause: CauseId = ""


class FlameGraph(Record, frozen=True):
    """The stacks of a device, those with most time first; they divide their time without overlap.

    `idle` is the idle time of the window. Its frames are the root cause, the NVTX ranges of the launching thread, what
    was done then and by which thread, and its functions. `waits` is the time in which threads waited in calls for work
    of the device. Its frames are the operation that ran, the ranges, the call, and the functions."""

    idle: list[FlameStack]
    waits: list[FlameStack]
