"""What was not recorded, by the trace itself: launches without a kernel, operations without a launch, and events that
nsys reports as lost."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.diagnosis.cut_ends import launched_before_the_begin, run_after_the_end
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import once, process_of
from nsysdiag.events.rows import RowsOf, distinct_values, taken
from nsysdiag.ledger.untraced_graphs import PartialReplays, has_operations, is_outermost
from nsysdiag.units import format_count, format_share

FEWEST, NOTABLE, MOST = 10, 0.02, 0.2
"""The number and the share of missing rows to be reported, and the share from which nothing is concluded."""
DOUBTED = 0.5
"""Factor on the confidence of findings on a device with missing rows."""
_KERNEL_LAUNCH = re.compile(r"cu(da)?Launch(Cooperative)?(Kernel.*|Grid.*)?(_v\d+)?(_ptsz)?")
_BEGIN, _END = re.compile(r"cu(da)?StreamBeginCapture.*"), re.compile(r"cu(da)?StreamEndCapture.*")


class Missing(Struct, frozen=True):
    """Of a device: `unseen` of the `launches` of its processes have no operation, `unlaunched` of its `operations` no
    launch, and `malformed` of them were left out. `reported` says that nsys lost events. The cut ends of a slice are
    counted separately: `before` operations were launched before it began, `after` launches run after it ends. Of
    `replays`, launches of graphs, `partial` lack nodes that others of the same graph have."""

    unseen: int = 0
    launches: int = 0
    unlaunched: int = 0
    operations: int = 0
    malformed: int = 0
    reported: bool = False
    before: int = 0
    after: int = 0
    partial: int = 0
    replays: int = 0

    @property
    def cut(self) -> int:
        """How many operations the ends of a slice separate from their launches."""
        return self.before + self.after

    @property
    def sliced(self) -> bool:
        """Whether the trace begins or ends in the middle of queued work."""
        return max(self.before, self.after) >= FEWEST

    @property
    def unseen_share(self) -> float:
        """The share of the launches of which nothing was recorded but the call."""
        return self.unseen / self.launches if self.unseen >= FEWEST else 0.0

    def reasons(self) -> list[str]:
        """Parts of a sentence, one for each way in which rows are missing; the worst first."""
        found = []
        if self.unseen_share >= NOTABLE:
            found.append(f"{_of(self.unseen, self.launches)} kernel launches have no kernel in it")
        if self._is_notable(self.malformed):
            found.append(f"{_of(self.malformed, self.operations)} operations have times that cannot be")
        if self._is_notable(self.unlaunched):
            found.append(f"{_of(self.unlaunched, self.operations)} operations have no launch in it")
        if self.partial:
            found.append(f"{_of(self.partial, self.replays)} launches of CUDA graphs lack nodes that others have")
        if self.reported:
            found.append("nsys reports that events were lost")
        return found

    def _is_notable(self, rows: int) -> bool:
        return rows >= FEWEST and rows >= NOTABLE * self.operations

    def note(self) -> list[str]:
        """Sentences for the device, where anything is missing, and where the trace is a slice."""
        reasons = self.reasons()
        if not reasons:
            return self._slice_note()
        return [
            f"The trace is incomplete: {'; '.join(reasons)}. Busy and idle time are those of what was recorded."
            " Capture a shorter time, or fewer kinds of events.",
            *self._slice_note(),
        ]

    def _slice_note(self) -> list[str]:
        """The note on a trace that begins or ends in the middle of queued work."""
        ends = [
            f"{format_count(count)} {what}"
            for count, what in (
                (self.before, "operations were launched before it begins"),
                (self.after, "kernels were launched and start after it ends"),
            )
            if count >= FEWEST
        ]
        return [f"The trace is a slice of a longer run: {', and '.join(ends)}."] if ends else []


def _of(part: int, whole: int) -> str:
    return f"{format_count(part)} of {format_count(whole)} ({format_share(part, whole)})"


class UnseenLaunches(Struct, frozen=True):
    """The process of each kernel launch of a trace; whether only the call was recorded; and whether that is because it
    runs after the end of the trace."""

    process: IntArray
    unseen: BoolArray
    after: BoolArray
    known: bool = True

    @classmethod
    def unknown(cls) -> UnseenLaunches:
        """For a trace of which only a part was read: at its borders, launches and operations are always separated."""
        return cls._none(known=False)

    @classmethod
    def _none(cls, *, known: bool = True) -> UnseenLaunches:
        nothing = np.empty(0, dtype=np.bool_)
        return cls(np.empty(0, dtype=np.int64), nothing, nothing, known=known)

    @classmethod
    def of(cls, activity: DeviceActivity) -> UnseenLaunches:
        """Of successful launches, outermost calls only; not those that were recorded into a graph, which run later."""
        calls, names = activity.api_calls.rows, activity.api_calls.names
        launches = np.flatnonzero(named_like(names, _KERNEL_LAUNCH)[calls.name])
        launches = launches[(calls.returned[launches] == 0) & (calls.correlation[launches] > 0)]
        if len(launches) == 0 or activity.left_out_gpus:
            return cls._none()
        launches = launches[is_outermost(activity, launches)]
        launches = launches[~_into_graphs(activity, launches)]
        unseen = ~has_operations(activity, launches)
        operations = activity.operations
        if np.count_nonzero((operations.correlation <= 0) & ~operations.migration) >= np.count_nonzero(unseen) > 0:
            return cls._none()  # their operations may be those without an id
        after = run_after_the_end(activity, launches, unseen)
        return cls(process_of(taken(calls.thread, launches)), unseen & ~after, after)


def missing_of(
    device: DeviceTimeline,
    activity: DeviceActivity,
    launches: UnseenLaunches,
    partial: PartialReplays,
    *,
    reported: bool,
) -> Missing:
    """What is missing of one device."""
    owners = distinct_values(device.operations.process)
    mine: BoolArray = once(launches.process, lambda each: np.isin(each, owners))
    # Impossible rows are reported by themselves.
    unseen = max(int(np.count_nonzero(mine & launches.unseen)) - device.malformed, 0)
    unlaunched = (device.launch < 0) & ~device.operations.migration & (device.operations.correlation > 0)
    before = launched_before_the_begin(device, activity)
    traced = len(activity.api_calls.rows) > 0 and launches.known
    return Missing(
        unseen=unseen,
        launches=int(np.count_nonzero(mine)),
        unlaunched=int(np.count_nonzero(unlaunched & ~before)) if traced else 0,
        operations=len(device.operations) + device.malformed,
        malformed=device.malformed,
        reported=reported,
        before=int(np.count_nonzero(before & unlaunched)) if traced else 0,
        after=int(np.count_nonzero(mine & launches.after)),
        partial=len(partial.calls) if len(partial.spans.get(device.number, ())) else 0,
        replays=partial.launches,
    )


def unseen_everywhere(launches: UnseenLaunches) -> list[str]:
    """A sentence where kernels were launched and a trace without any device holds none."""
    count = int(np.count_nonzero(launches.unseen))
    return [f"{format_count(count)} kernel launches, but no kernel: GPU work was not recorded"] if count else []


def _into_graphs(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches while their process records a graph, on whatever thread."""
    calls, names = activity.api_calls.rows, activity.api_calls.names
    begins, ends = (np.flatnonzero(named_like(names, pattern)[calls.name]) for pattern in (_BEGIN, _END))
    result = np.zeros(len(launches), dtype=np.bool_)
    if len(begins) == 0:
        return result
    of_process = RowsOf(process_of(calls.thread[launches]))
    for owner in distinct_values(process_of(calls.thread[begins])).tolist():
        rows = of_process[owner]
        time = calls.start[launches[rows]]
        begun, ended = (np.sort(calls.start[at[process_of(calls.thread[at]) == owner]]) for at in (begins, ends))
        result[rows] = np.searchsorted(begun, time, side="right") > np.searchsorted(ended, time, side="right")
    return result
