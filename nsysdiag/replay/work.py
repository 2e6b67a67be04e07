"""The time that is replayed, the operations in it, and what threads did meanwhile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.claim import CodeTable, EvidenceLabel, Owned, claim
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, places_among, union
from nsysdiag.causes import FALLBACK, IN_LAUNCH_CALL, PLACE
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.diagnosis.facts import TooMany
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, ThreadAxis, previous_on_stream
from nsysdiag.ledger.classify import LayeredEvidence


class Class(IntEnum):
    """What an operation is to the programmer: what is overlapped with what."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


class Work(Rows, frozen=True):
    """Operations by device, in order of start: `row` among all operations of the trace, times in ns, `launch` the row
    of the launching call (-1: none) and `issued` when it began, `stream` a code, `device` a number, `kind` one of
    `Class`."""

    row: IntArray
    start: IntArray
    end: IntArray
    launch: IntArray
    issued: IntArray
    stream: IntArray
    device: IntArray
    kind: IntArray

    @classmethod
    def of(cls, activity: DeviceActivity, devices: Sequence[int], stretch: Stretch) -> Work:
        """What starts in the replayed time on `devices` (numbers, ascending), and on each of them the next operation,
        which marks its end. Pages migrate when host code or kernels touch them: that is a part of these."""
        operations, calls = activity.operations, activity.api_calls.rows
        parts = [_inside(operations.start[activity.device == each], stretch) for each in devices]
        first = np.searchsorted(activity.device, np.array(devices, dtype=np.int64))
        row = np.concatenate([np.empty(0, np.int64), *(at + part for at, part in zip(first, parts, strict=True))])
        row = row[~operations.take(row).migration]
        start, launch = operations.start[row], activity.launch[row].astype(np.int64)
        stream = np.concatenate([np.empty(0, np.int64), *(each.stream_code for each in activity.devices)])
        copies = np.isin(operations.category[row], (Category.MEMCPY, Category.MEMSET))
        kind = np.where(activity.communication[row], Class.COMMUNICATION, np.where(copies, Class.COPY, Class.COMPUTE))
        return cls(
            row=row,
            start=start,
            end=operations.end[row],
            launch=launch,
            issued=np.where(launch >= 0, calls.start[launch], start) if len(calls) else start,
            stream=stream[row],
            device=activity.device[row].astype(np.int64),
            kind=kind,
        )

    def ended_before(self) -> IntArray:
        """When the operation before each one on its stream ended, in ns; 0 for a stream's first."""
        return np.append(self.end, 0)[previous_on_stream(self.stream)]

    @property
    def length(self) -> IntArray:
        """How long each takes, in ns."""
        return self.end - self.start


def _inside(start: IntArray, stretch: Stretch) -> IntArray:
    first, behind = np.searchsorted(start, (stretch.begin, stretch.end)).tolist()
    return np.arange(first, min(behind + 1, len(start)))


# Kernels of several processes that run at once on one GPU: each takes the longer the more the others run meanwhile.
#
# ```
# trainer    [== step 1 =====)   [== step 2 =====)      time slices: who has less idle time meets more of the others
# inference       [====)      [====)   [====)
# ```


def beside_others(work: Work, thread: IntArray) -> IntArray:
    """For how long kernels of other processes run on the same device during each operation, in ns; 0 for all if that
    is too little to matter. `thread` launched it (-1: unknown)."""
    process, shared = process_of(thread), np.zeros(len(work), dtype=np.int64)
    computes = (work.kind == Class.COMPUTE) & (thread >= 0)
    for device in distinct_values(work.device).tolist():
        mine = computes & (work.device == device)
        for each in distinct_values(process[mine]).tolist():
            its, others = mine & (process == each), mine & (process != each)
            running = union(Intervals(work.start[others], work.end[others]))
            shared[its] = coverage(running, Intervals(work.start[its], work.end[its]))
    return shared if shared.sum() > LEAST_ERROR * work.length[computes].sum() else np.zeros_like(shared)


# The time that is replayed: as many whole steps of the judged phase as fit, or all of a judged window.

LEAST_ERROR = 0.005
"""Share of the replayed time: no prediction is better, however well the model reproduces what was recorded. What takes
less changes none."""
FEWEST_STEPS, MOST_STEPS = 3, 100
"""Steps that are replayed: if the judged time has fewer, it is replayed as one window. A larger FEWEST_STEPS refuses
more traces with long steps, a larger MOST_STEPS takes longer for loops with short ones."""
MANY_OPERATIONS = 4_096
"""Steps that hold fewer are replayed even if they are more than MOST_STEPS. A queue holds 1,024 kernels: hardly more
than these may all have been launched before, and then say nothing about the pace of the host."""
SETTLING = 4
"""From so many steps on the first one is left out: what was queued before it belongs to the time as it was."""
MOST_OPERATIONS, MOST_AT_ALL = 100_000, 1_000_000
"""Most operations of all devices in the replayed time, each with two moments, its launch and its start: for as many
steps as fit, and for the fewest steps or a window without steps."""
MOST_APART = 0.05
"""Share of the time from the first to the last judged part that may be between the parts. A larger share replays more
time that is not judged, a smaller one predicts nothing for more traces."""
TIMES_APART = "the judged time is in parts, and what is between them would be replayed as well"
"""Why nothing is replayed if more than MOST_APART of the time from the first to the last part is between them: a fix
would be predicted for time that is not judged."""


class Stretch(Struct, frozen=True):
    """The time [borders[0], borders[-1]) in ns; `borders` are those of its steps if `stepwise`, else two. Steps are
    `named` by ranges of the program, or found by what repeats on a device. `loop` is the first border and the last one
    of all steps of the program, of which these are some; it is empty without steps. So many make a `group` that
    repeats, of unlike steps."""

    borders: IntArray
    stepwise: bool
    named: bool = False
    loop: tuple[int, int] = (0, 0)
    group: int = 1

    @property
    def per(self) -> Literal["step", "window"]:
        """What lengths are those of."""
        return "step" if self.stepwise else "window"

    @property
    def count(self) -> int:
        """How many steps it holds, or 1."""
        return len(self.borders) - 1

    def step(self, time: IntArray) -> IntArray:
        """The step of each time, counted from 0; -1 before the first."""
        return np.searchsorted(self.borders, time, side="right") - 1

    def holds(self, time: IntArray) -> BoolArray:
        """Which of the times are in it."""
        return (time >= self.begin) & (time < self.end)

    @property
    def begin(self) -> int:
        """When it begins."""
        return int(self.borders[0])

    @property
    def end(self) -> int:
        """When it ends."""
        return int(self.borders[-1])


class Repeating(Struct, frozen=True):
    """The judged time (a set), and the borders of its steps in ns, None if it has none; ranges may name them. So many
    are a `group` that repeats."""

    parts: Intervals
    steps: IntArray | None
    named: bool = False
    group: int = 1


def are_apart(parts: Intervals) -> bool:
    """Whether much of the time from the first to the last of these parts, a set, is between them."""
    whole = int(parts.end[-1] - parts.start[0]) if len(parts) else 0
    return whole - int((parts.end - parts.start).sum()) > MOST_APART * whole


def first_border(steps: int) -> int:
    """The place of the step whose end is the first border of those that count."""
    return int(steps > SETTLING)


def stretch_of(
    parts: Intervals, steps: IntArray | None, starts: IntArray, wanted: int = MOST_OPERATIONS, most: int = 0
) -> Stretch | str:
    """The replayed part of the judged time `parts` (a set) with step borders `steps` (None without steps), or a
    sentence why there is none.

    `starts` are the starts of all operations, ascending. As many steps are replayed as hold `wanted` operations, but
    FEWEST_STEPS at least. These, or a window without steps, may hold `most`, if that is more. Steps are taken from the
    middle, as the first ones of a phase may not be steady."""
    most = max(wanted, most)
    if len(parts) == 0:
        return "no GPU work was recorded in the judged time"
    lo, hi = int(parts.start[0]), int(parts.end[-1])
    steps = np.empty(0, np.int64) if steps is None else steps
    inside = steps[(steps >= lo) & (steps <= hi)]
    if len(inside) <= FEWEST_STEPS:
        return _whole(lo, hi, starts, most)
    before = np.searchsorted(starts, inside)
    per_step = max(int(before[-1] - before[0]) // (len(inside) - 1), 1)
    most_steps = max(MOST_STEPS, MANY_OPERATIONS // per_step)
    count = min(len(inside) - 1, most_steps, max(wanted // per_step, FEWEST_STEPS))
    if FEWEST_STEPS * per_step > most:
        return TooMany(f"{FEWEST_STEPS} steps hold more than {most:,} operations, too many to replay")
    first = (len(inside) - 1 - count) // 2
    if before[first] == before[first + count]:
        return "no GPU work was recorded in the steps of the judged time"
    return Stretch(inside[first : first + count + 1], stepwise=True, loop=(int(steps[0]), int(steps[-1])))


def _whole(lo: int, hi: int, starts: IntArray, most: int) -> Stretch | str:
    count = int(np.searchsorted(starts, hi) - np.searchsorted(starts, lo))
    if count > most:
        return TooMany(f"the judged time holds {count:,} operations and no steps, too many to replay")
    if count == 0:
        return "no GPU work was recorded in the judged time"
    return Stretch(np.array([lo, hi], np.int64), stepwise=False)


# What threads did between the moments of the replay, by cause: by the rules of the ledger, over whole threads.


class HostTime(Rows, frozen=True, dict=True):
    """Pieces [start, end) of host time, positions on the axis of threads: the index of the `cause` in the registry, its
    label and the call as codes (-1: none), and `owner`, the number of its owner."""

    owner: IntArray
    cause: IntArray
    label: IntArray
    call: IntArray
    start: IntArray
    end: IntArray

    @property
    def length(self) -> IntArray:
        """How long each piece takes, in ns."""
        return self.end - self.start

    @property
    def spans(self) -> Intervals:
        """The pieces as intervals."""
        return Intervals(self.start, self.end)

    def inside(self, spans: Intervals) -> FloatArray:
        """The fraction of each piece that overlaps the set `spans`, 0 to 1."""
        return coverage(spans, self.spans) / np.maximum(self.length, 1)

    @cached_property
    def _by_start(self) -> tuple[IntArray, IntArray, IntArray]:
        """The rows in order of their start, and their starts and lengths."""
        order = np.argsort(self.start, kind="stable")
        return order, self.start[order], self.length[order]

    def parts_in(self, part: FloatArray, queries: Intervals) -> IntArray:
        """How many ns of each query a `part` of each piece takes, 0 to 1, if each piece is evenly thinned."""
        order, start, length = self._by_start
        part = part[order]
        whole = np.concatenate(([0.0], np.cumsum(length * part)))

        def before(time: IntArray) -> FloatArray:
            at = np.maximum(np.searchsorted(start, time, side="right") - 1, 0)
            return whole[at] + part[at] * np.clip(time - start[at], 0, length[at])

        return np.round(before(queries.end) - before(queries.start)).astype(np.int64)


class HostNames(NamedTuple):
    """What the codes of pieces stand for."""

    labels: list[EvidenceLabel]
    calls: list[str]

    def calls_like(self, pattern: re.Pattern[str], *, without: bool = False) -> BoolArray:
        """Which calls have such a whole name, and behind them what holds of pieces `without` a call."""
        return np.append(named_like(self.calls, pattern), without)


class _Collector:
    """Pieces, and their labels and calls, each kept once."""

    def __init__(self) -> None:
        self.parts = [HostTime.empty()]
        self.labels, self.calls = CodeTable[EvidenceLabel](), CodeTable[str]()

    def add(self, cause: str, pieces: Owned, label: IntArray | int = -1, call: IntArray | int = -1) -> None:
        """Write pieces down."""
        count = len(pieces)
        place, labels, calls = (
            np.broadcast_to(np.asarray(each, dtype=np.int64), (count,)) for each in (PLACE[cause], label, call)
        )
        self.parts.append(HostTime(pieces.owner, place, labels, calls, pieces.spans.start, pieces.spans.end))

    def by_layers(self, left: Owned, layers: dict[str, list[EvidenceLayer]]) -> Owned:
        """Let each layer claim in turn; returns what is left."""
        for cause, parts in layers.items():
            for layer in parts:
                claimed, left, source = claim(left, layer.spans)
                names, code = distinct(layer.name[source])
                shown = [typed.plain(layer.names[each]) if each >= 0 else None for each in names.tolist()]
                self.add(cause, claimed, self.labels.code(layer.label), self.calls.codes(shown)[code])
        return left


def host_time(spans: Owned, layered: LayeredEvidence, launches: IntArray) -> tuple[HostTime, HostNames]:
    """All time of `spans`, which are on the axis of `layered`, piece by piece, and what its codes stand for. `launches`
    are the rows of the calls that launched something: what happens in them is a part of launching."""
    found, api = _Collector(), layered.host.api
    launched = np.zeros(len(layered.host.api_calls.rows), dtype=np.bool_)
    launched[launches] = True
    chosen = np.flatnonzero(api.outermost & taken(launched, api.row))
    inside, left, source = claim(spans, api.spans[chosen])
    # The pieces inside a call keep its place: what no layer claims is the call's own.
    rest = found.by_layers(Owned(inside.spans, np.arange(len(inside))), layered.inside)
    row, name = api.row[chosen[source]], found.calls.codes(api.names)[api.name[chosen[source]]]
    for cause, own in layered.own_call.items():
        if len(own.flags) and len(rest):
            mine = own.flags[row[rest.owner]]
            theirs = Owned(rest.spans[mine], rest.owner[mine])
            label = found.labels.codes(own.labels)[own.labels_of(row[theirs.owner])]
            found.add(cause, theirs, label, name[theirs.owner])
            rest = Owned(rest.spans[~mine], rest.owner[~mine])
    found.add(IN_LAUNCH_CALL, rest, -1, name[rest.owner])
    found.parts = [replace(part, owner=inside.owner[part.owner]) for part in found.parts]
    found.add(FALLBACK, found.by_layers(left, layered.before))
    return HostTime.joined(found.parts), HostNames(list(found.labels.known), list(found.calls.known))


def on_axis(axis: ThreadAxis, thread: IntArray, start: IntArray, end: IntArray) -> Intervals:
    """Stretches of threads on the axis; those of threads without a lane are empty."""
    lane = axis.lane(thread)
    known = lane >= 0
    return axis.place(np.maximum(lane, 0), Intervals(np.where(known, start, 0), np.where(known, end, 0)))


def keyed(*tables: tuple[IntArray, IntArray]) -> list[IntArray]:
    """For the rows (a, b) of each table a number: the same for the same pair in all tables, ascending by a, then b."""
    first, second = (distinct(np.concatenate(columns)) for columns in zip(*tables, strict=True))
    key = joint(first[1], second[1], max(len(second[0]), 1))
    return np.split(key, np.cumsum([len(each) for each, _ in tables])[:-1])


def launched_by(work: Work, thread: IntArray) -> IntArray:
    """The thread that launched each operation, -1 if that is not known; `thread` is that of each call."""
    return np.where(work.launch >= 0, thread.take(work.launch), -1) if len(thread) else work.launch


def row_of(asked: IntArray, values: IntArray) -> IntArray:
    """The first row of `values` that is equal to each asked one, -1 for none."""
    order = np.argsort(values, kind="stable")
    return np.append(order, -1)[places_among(values[order], asked)]
