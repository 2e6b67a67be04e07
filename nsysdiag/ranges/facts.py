"""The time of a device by the paths of NVTX ranges, as plain data."""

from __future__ import annotations

from nsysdiag.fields import CauseId, Count, NsByCause, RangeName, Sentence, TotalCount, TotalNs
from nsysdiag.record import Record


class RangePath(Record, frozen=True):
    """A path of ranges, outermost first, of one thread or of several that have the same ranges.

    `instances` are those of the innermost range that launched work, `projected_ns` the sum of their times on the
    device: from the start of the first operation launched in one to the end of its last. They may overlap, and hold
    work of other ranges and idle time.

    The other figures divide the window; those of the path and of the paths inside it are added up. `operations` were
    launched in it. `work_ns` is the time of these, `own_work_ns` the part without the paths inside it; of several
    operations at once one counts. `idle` is the idle time by cause in which the launching thread was in it,
    `own_idle_ns` the part outside of the paths inside it."""

    path: list[RangeName]
    instances: TotalCount
    projected_ns: TotalNs
    operations: TotalCount
    work_ns: TotalNs
    own_work_ns: TotalNs
    own_idle_ns: TotalNs
    idle: NsByCause

    @property
    def idle_ns(self) -> int:
        """The idle time of all causes."""
        return sum(self.idle.values())

    @property
    def time_ns(self) -> int:
        """Work and idle time: a part of the window."""
        return self.work_ns + self.idle_ns

    @property
    def own_ns(self) -> int:
        """The part of it in no path inside."""
        return self.own_work_ns + self.own_idle_ns


class RangeTree(Record, frozen=True):
    """The paths with most time, at most two hundred of `count`: each before the paths inside it, these by their time.
    The first one is empty and stands for the window: its own time is outside of all ranges. Siblings that differ in a
    counter alone are one path, in which the counter reads `#`, where they are over a hundred or the steps."""

    rows: list[RangePath]
    count: Count


# The stacks of flame graphs, as plain data.


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
