"""What a capture leaves open: what held the GPU before it began, and whether two devices are one GPU.

```
run        [work of before   ==========)[==A==)[==B==) ...
capture            |--------------------------------------
thread             | [A][B] ...                                 launched at once, and queued
device             | ..................[==A==)[==B==) ...       what ran here is not in the file
known from         |                   ^
```
"""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import IntArray, Intervals, clip, coverage, nearest_before, union
from nsysdiag.events.calls import ApiCalls, CallRows, named_like
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import process_of
from nsysdiag.events.operations import Category
from nsysdiag.units import format_count, format_share

LONG_NS = 1_000_000
"""The call that creates a context takes at least as long."""
HELD_NS = 100_000
"""An operation that starts so long after its launch was held: ten times the longest usual latency."""
MOST_IDLE, MOST_BEFORE = 0.9, 0.05
"""Of its wait: how long the device does nothing of the file. Of the device's work: what comes before, at most."""
_STARTS = re.compile(
    r"cuInit|cudaInitDevice|cuDevicePrimaryCtx(Retain|Reset)\w*|cu(Green)?CtxCreate\w*|cuModuleGetLoadingMode"
    r"|cu(da)?(Module|Library)Load\w*|cu(da)?\w*(Malloc|Alloc(?!ator)|Free|StreamCreate|HostRegister)\w*"
)
"""Calls that a program makes as it starts, and a step hardly."""
_USES = re.compile(r"(cuda|cu)\w*(Launch|Memcpy|Memset)\w*")
_WAITS = re.compile(r"\w*Synchronize\w*")


def beginning_of(device: DeviceTimeline, api_calls: ApiCalls, *, cut: bool) -> tuple[bool, int | None]:
    """Whether the capture begins in the middle of a run, and if so from when on it shows what held the GPU.

    Its format says so (`cut`), or some work was launched before it, or waited for such. And the process that works on
    the device had a context: nothing initializes CUDA before the first operation, and the first call that needs a
    context takes no time to create one."""
    if not _had_context(device, api_calls):
        return False, None
    known = known_from(device, api_calls.rows)
    inside = cut or known is not None or launched_before(device, api_calls.rows)
    return inside, known


def launched_before(device: DeviceTimeline, calls: CallRows) -> bool:
    """Whether operations have lower correlation ids than all calls."""
    number = device.operations.correlation[(device.launch < 0) & device.running]
    return bool(len(calls) and ((number > 0) & (number < calls.correlation.min())).any())


def _had_context(device: DeviceTimeline, api_calls: ApiCalls) -> bool:
    calls = api_calls.rows
    launch = device.launch[device.launch >= 0]
    if not len(launch):
        return False
    processes, which = distinct(calls.of_threads(process_of(calls.threads), launch))
    process = processes[np.argmax(np.bincount(which))]
    first = int(device.operations.start[device.launch >= 0].min())
    mine = _rows_of(calls, process, np.flatnonzero(calls.start <= first))
    uses = _named(api_calls, mine, _USES)
    if not len(uses):  # later calls only matter without an earlier one
        mine = _rows_of(calls, process, np.arange(len(calls)))
        uses = _named(api_calls, mine, _USES)
    starts, waits = (_named(api_calls, mine, each) for each in (_STARTS, _WAITS))
    if (calls.start[starts] < first).any() or not len(uses):
        return False
    long = np.setdiff1d(mine[calls.end[mine] - calls.start[mine] >= LONG_NS], waits)
    return not (calls.start[long] <= calls.start[uses].min()).any()


def _rows_of(calls: CallRows, process: int, rows: IntArray) -> IntArray:
    return rows[process_of(calls.thread[rows]) == process]


def _named(api_calls: ApiCalls, rows: IntArray, pattern: re.Pattern[str]) -> IntArray:
    return rows[named_like(api_calls.names, pattern)[api_calls.rows.name[rows]]]


def known_from(device: DeviceTimeline, calls: CallRows) -> int | None:
    """When the last first operation of a stream starts that waited for work outside of the file; None without any. If
    the device already works then, it is since when. Work of a stream runs in order, so only the first operation can
    have waited for that."""
    firsts = _first_of_streams(device)
    operations = device.operations
    waits = Intervals(calls.end[device.launch[firsts]], operations.start[firsts])
    held = waits.end - waits.start > HELD_NS
    firsts, waits = firsts[held], waits[held]
    if not len(firsts):
        return None
    busy = union(Intervals(operations.start[device.running], operations.end[device.running]))
    idle = coverage(busy, waits) <= (1 - MOST_IDLE) * (waits.end - waits.start)
    before = coverage(busy, Intervals(np.full(len(waits), operations.start[0]), waits.end))
    known = waits.end[idle & (before <= MOST_BEFORE * busy.total())]
    return int(busy.start[np.searchsorted(busy.start, known.max(), side="right") - 1]) if len(known) else None


def launches_begin(device: DeviceTimeline) -> IntArray:
    """When the first operation starts whose launch is in the file, behind others; empty without others before it."""
    rows = np.flatnonzero(device.running & ~device.operations.migration)
    known = device.launch[rows] >= 0
    first = int(np.argmax(known)) if known.any() else 0
    return device.operations.start[rows[first : first + 1]] if first else np.empty(0, np.int64)


def _first_of_streams(device: DeviceTimeline) -> IntArray:
    """The first operation of each stream, where its launch is in the file."""
    rows = np.flatnonzero(device.running & ~device.operations.migration)
    streams, stream = distinct(device.stream_code[rows])
    first = least_of_each(stream, rows, len(streams))
    return first[device.launch[first] >= 0]


# Whether processes with the same device number share a GPU, in a trace without a map to GPUs.
#
# ```
# launched       |       |                 while the other's kernel runs ...
# one        [==]    [==]    [==]          ... and begun right after it: it waited its turn on one GPU
# other          [==]    [==]    [==]
# ```
#
# Kernels that never run at once may also be those of programs that wait for each other on two GPUs. Kernels that run at
# once may also share one GPU with MPS or time slices.


ENOUGH = 10
"""So many stretches of work must meet the other's by chance, and so many change hands, to tell anything."""
SELDOM = 0.01
"""Of the stretches of a process: if no more than this share overlaps with the other's, the two take turns. If it were
0, a single overlap would decide."""
OFTEN = 0.5
"""Of the stretches: the share that must have waited for its turn, to say that two processes share a GPU. Also of the
overlaps that chance would make: from this share on, two processes run at once."""
AT_ONCE_NS = 100_000
"""How soon after the other's work one that waited its turn begins."""
MOST_DEVICES = 16
"""Devices of which each is compared with each other one, which takes time. Of more, the report only says that they may
share a GPU."""
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
