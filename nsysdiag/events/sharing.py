"""Whether processes with the same device number share a GPU, in a trace without a map to GPUs.

```
launched       |       |                 while the other's kernel runs ...
one        [==]    [==]    [==]          ... and begun right after it: it waited its turn on one GPU
other          [==]    [==]    [==]
```

Kernels that never run at once may also be those of programs that wait for each other on two GPUs. Kernels that run at
once may also share one GPU with MPS or time slices.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, clip, coverage, nearest_before, union
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.units import format_count, format_share

ENOUGH = 10
"""So many stretches of work must meet the other's by chance, and so many change hands, to tell anything."""
SELDOM = 0.01
OFTEN = 0.5
AT_ONCE_NS = 100_000
"""How soon after the other's work one that waited its turn begins."""
MOST_DEVICES = 16
_KEPT_APART = "Several processes use this device number and the trace has no map to GPUs: they are kept apart here"


class _KernelStretches(Struct, frozen=True):
    """Stretches in which kernels of a process ran without a break, and the end of the call that launched the first of
    each; the largest number if unknown."""

    stretches: Intervals
    launched: IntArray

    @classmethod
    def of(cls, device: DeviceTimeline, call_end: IntArray) -> _KernelStretches:
        rows = np.flatnonzero(device.running & (device.operations.category == Category.KERNEL))
        start, end = device.operations.start[rows], device.operations.end[rows]
        stretches = union(Intervals(start, end))
        launch = device.launch[rows[np.searchsorted(start, stretches.start)]]
        never = np.iinfo(np.int64).max
        ends = call_end[np.maximum(launch, 0)] if len(call_end) else launch
        return cls(stretches, np.where(launch >= 0, ends, never))


class _ProcessPair(Struct, frozen=True):
    """Two processes while both were at work: the `stretches` of the one; how many of them overlapped with the other
    (`met`); how many at least would by chance (`expected`); and how many `waited` their turn. `turns` is how often work
    alternated, `beside` the share of the stretches' time that overlapped."""

    stretches: int = 0
    met: int = 0
    expected: float = 0
    turns: int = 0
    waited: int = 0
    beside: float = 0

    @property
    def takes_turns(self) -> bool:
        enough = self.expected >= ENOUGH and self.turns >= ENOUGH
        return enough and self.met <= SELDOM * self.stretches

    @property
    def waits_its_turn(self) -> bool:
        return self.takes_turns and self.waited >= max(ENOUGH, OFTEN * self.stretches)

    @property
    def at_once(self) -> bool:
        return self.expected >= ENOUGH and self.met >= OFTEN * self.expected


class Sharing(Struct, frozen=True):
    """Devices that may be the same GPU as others: by device key a sentence, and the keys of those that take turns."""

    notes: dict[str, str]
    in_turns: list[str]


def sharing_of(activity: DeviceActivity) -> Sharing:
    """What the trace shows of processes that use the same device number."""
    found = Sharing({}, [])
    if not activity.assumed_apart:
        return found
    apart = [device for device in activity.devices if device.gpu_id is None]
    few = len(apart) <= MOST_DEVICES
    work = {device.key: _KernelStretches.of(device, activity.api_calls.rows.end) for device in apart} if few else {}
    for device in apart:
        numbers = {number for _, number in device.ids}
        others = [each for each in apart if each is not device and numbers & {number for _, number in each.ids}]
        if others:
            pairs = [_pair(work[device.key], work[each.key]) for each in others] if few else []
            found.notes[device.key] = _note(pairs)
            if (most := _most_in_turns(pairs)) and most.waits_its_turn:
                found.in_turns.append(device.key)
    return found


def _most_in_turns(pairs: list[_ProcessPair]) -> _ProcessPair | None:
    in_turns = [pair for pair in pairs if pair.takes_turns]
    return max(in_turns, key=lambda pair: (pair.waited, pair.stretches), default=None)


def _note(pairs: list[_ProcessPair]) -> str:
    most = _most_in_turns(pairs)
    if most is not None:
        meetings = (
            f"{_KEPT_APART}. {most.met or 'None'} of {format_count(most.stretches)} stretches of its kernels overlaps"
            f" with those of another process; by chance {format_count(round(most.expected))} would"
        )
        if not most.waits_its_turn:
            return f"{meetings}: they share a GPU (use --same-gpu), or wait for each other."
        return (
            f"{meetings}. {format_count(most.waited)} were launched meanwhile and began as soon as those ended:"
            " they take turns, as on one GPU. --same-gpu merges them."
        )
    if pairs and all(pair.at_once for pair in pairs):
        beside = format_share(max(pair.beside for pair in pairs), 1)
        return (
            f"{_KEPT_APART}. While both are at work, up to {beside} of its kernels' time overlaps with kernels of"
            " another process. These are different GPUs, or one with MPS or time slices: --same-gpu merges them."
        )
    return f"{_KEPT_APART}, and may share a GPU. --same-gpu merges them."


def _pair(one: _KernelStretches, other: _KernelStretches) -> _ProcessPair:
    mine, others = one.stretches, other.stretches
    if len(mine) == 0 or len(others) == 0:
        return _ProcessPair()
    low, high = max(int(mine.start[0]), int(others.start[0])), min(int(mine.end[-1]), int(others.end[-1]))
    if low >= high:
        return _ProcessPair()
    mine, others = clip(mine, low, high), clip(others, low, high)
    beside = coverage(others, mine)
    order = np.argsort(np.concatenate((mine.start, others.start)), kind="stable")
    chance = float((others.end - others.start).sum()) / (high - low)
    return _ProcessPair(
        stretches=len(mine),
        met=int(np.count_nonzero(beside)),
        expected=len(mine) * chance,
        turns=int(np.count_nonzero(np.diff((order < len(mine)).astype(np.int8)))),
        waited=_waited(one, other.stretches, low, high),
        beside=float(beside.sum()) / max(int((mine.end - mine.start).sum()), 1),
    )


def _waited(one: _KernelStretches, others: Intervals, low: int, high: int) -> int:
    """How many stretches were launched while the other worked, and begun right after."""
    inside = (one.stretches.start >= low) & (one.stretches.start < high)
    start, launched = one.stretches.start[inside], one.launched[inside]
    before = nearest_before(others.end, start)
    known = before >= 0
    before = np.maximum(before, 0)
    right_after = known & (start - others.end[before] <= AT_ONCE_NS)
    return int(np.count_nonzero(right_after & (launched < others.end[before]) & (launched >= others.start[before])))
