"""The operations of single steps, and what is idle in them, as far as a report holds all of a step; and which of them
are the same in two steps, one of each side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import column_from, names_from, running_sums
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, complement, place_in, union
from nsysdiag.comparison.step_facts import ALIKE, ALONE, LONGER, SHORTER
from nsysdiag.iterations.report import Steps, steady_steps
from nsysdiag.limits import MOST_NAMES_BYTES
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport, GapsPacked, Report
from nsysdiag.saved import unpack
from nsysdiag.timeline.facts import TimelineLane, TimelineLevels

KINDS = 3
"""Kinds of work in the lanes of a timeline: computing, communication, copies."""


class StepOperations(Struct, frozen=True):
    """Operations by start, in ns of the trace's clock: the name, the kind of work, and the stream by its place."""

    spans: Intervals
    name: IntArray
    kind: IntArray
    stream: IntArray

    def take(self, chosen: IntArray | slice) -> StepOperations:
        """Those at these places."""
        return StepOperations(self.spans[chosen], self.name[chosen], self.kind[chosen], self.stream[chosen])


class HeldSteps(Struct, frozen=True):
    """A device of a report: its `steps` of which all operations are held, the median length of all of its steps, and
    its gaps by cause."""

    steps: Steps
    median_ns: int
    operations: StepOperations
    names: list[str]
    streams: list[str]
    gaps: Intervals
    cause: IntArray
    cause_ids: list[str]

    def counts(self) -> IntArray:
        """How many operations begin in each of the steps."""
        first, behind = (
            np.searchsorted(self.operations.spans.start, side)
            for side in (self.steps.spans.start, self.steps.spans.end)
        )
        return behind - first


class StepRows(Struct, frozen=True):
    """Step `number`: its operations, and the spans that none covers, with the place of their cause, -1 for an unknown
    one. Times count from its start; operations of the step before reach so far into it as `carried` says."""

    number: int
    start: int
    length: int
    carried: int
    operations: StepOperations
    idle: Intervals
    cause: IntArray


def held_steps(report: Report, device: DeviceReport) -> HeldSteps | None:
    """None if the report does not hold the time of each step. Raises InputError if it is damaged."""
    steps = steady_steps(device.iterations) if device.iterations is not None else None
    levels = report.timeline.get(device.key) if isinstance(report.timeline, dict) else None
    if steps is None or levels is None:
        return None
    streams = [lane for lane in levels.lanes if lane.kind == "stream"]
    try:
        operations = _held_operations(streams, levels.start_ns)
        names = names_from(levels.names, MOST_NAMES_BYTES)
        if operations.kind.max(initial=-1) >= KINDS or operations.name.max(initial=-1) >= len(names):
            raise ValueError("a number of nothing")
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error
    gaps, cause = _gaps(device.gaps_packed)
    return HeldSteps(
        steps.take(np.flatnonzero(_held(steps.spans, levels))),
        int(np.median(steps.length)),
        operations,
        names,
        [lane.label for lane in streams],
        gaps,
        cause,
        device.gaps_packed.cause_ids,
    )


def _held(spans: Intervals, levels: TimelineLevels) -> BoolArray:
    """True for each span of which all operations are held."""
    parts = Intervals.of(levels.exact_operations)
    at = place_in(parts, np.maximum(spans.start, levels.start_ns))
    if not len(parts):
        return np.zeros(len(spans), dtype=np.bool_)
    return (at >= 0) & (np.minimum(spans.end, levels.end_ns) <= parts.end[at])


def _gaps(packed: GapsPacked) -> tuple[Intervals, IntArray]:
    """All gaps in order and their causes. Raises InputError if they are damaged."""
    start, lengths, cause = unpack(packed)
    order = np.argsort(start, kind="stable")
    return Intervals(start[order], (start + lengths)[order]), cause[order]


def _held_operations(lanes: list[TimelineLane], base: int) -> StepOperations:
    """All operations of the lanes, by start. Raises ValueError if they are damaged."""
    columns = [_columns(lane, base, number) for number, lane in enumerate(lanes)]
    if not columns:
        return StepOperations(Intervals.empty(), *(np.empty(0, dtype=np.int64) for _each in range(3)))
    start, end, name, kind, stream = (np.concatenate(each) for each in zip(*columns, strict=True))
    order = np.argsort(start, kind="stable")
    return StepOperations(Intervals(start, end), name, kind, stream).take(order)


def _columns(lane: TimelineLane, base: int, number: int) -> tuple[IntArray, ...]:
    """Start, end, name, kind and stream of the operations of one lane."""
    steps, length, name, kind = (
        column_from(text, lane.count) if text else np.zeros(lane.count, dtype=np.int64)
        for text in (lane.starts, lane.lengths, lane.names, lane.kinds)
    )
    start = running_sums(steps, base)
    running_sums(length, int(start[-1]) if len(start) else base)
    return start, start + length, name, kind, np.full(lane.count, number)


def rows_of_step(held: HeldSteps, place: int) -> StepRows:
    """The step at a place among those that are held."""
    start, end = (int(side[place]) for side in (held.steps.spans.start, held.steps.spans.end))
    all_of = held.operations
    first, behind = np.searchsorted(all_of.spans.start, (start, end))
    own = all_of.take(slice(int(first), int(behind)))
    carried = max(int(all_of.spans.end[:first].max(initial=start)), start)
    free = complement(union(own.spans, Intervals.of([(start, carried)])), start, end)
    at = place_in(held.gaps, free.start)
    cause = np.where(at >= 0, held.cause[np.maximum(at, 0)], -1) if len(held.gaps) else np.full(len(free), -1)
    return StepRows(
        number=int(held.steps.number[place]),
        start=start,
        length=end - start,
        carried=min(carried, end) - start,
        operations=StepOperations(_from(own.spans, start), own.name, own.kind, own.stream),
        idle=_from(free, start),
        cause=cause,
    )


def _from(spans: Intervals, start: int) -> Intervals:
    return Intervals(spans.start - start, spans.end - start)


MUCH = 0.25
"""What is longer by this share of the shorter one is longer, else chance may have made it so."""
LEAST_NS, LEAST_IDLE = 1_000, 0.005
"""Smaller differences are none; for idle spans also those below this share of the step."""


class MatchedPairs(Struct, frozen=True):
    """The same thing before and after: its places on both sides, in order of the places before."""

    before: IntArray
    after: IntArray

    def __len__(self) -> int:
        return len(self.before)


class Matched(Struct, frozen=True):
    """Two steps, one of each side. `operations` are on both sides, `in_order` those of them that did not move; `front`
    are those at whose end both sides have done the same work. Marks as in SideSteps."""

    operations: MatchedPairs
    in_order: BoolArray
    front: BoolArray
    idle: MatchedPairs
    marks: tuple[IntArray, IntArray]
    idle_marks: tuple[IntArray, IntArray]


def matched(before: StepRows, after: StepRows) -> Matched:
    """The operations by their name and kind, and in order; the names of both sides are the same numbers."""
    operations, in_order = _operations(before, after)
    idle = _idle(before, after, operations)
    least = max(LEAST_NS, LEAST_IDLE * min(before.length, after.length))
    return Matched(
        operations,
        in_order,
        _front(before, after, operations) & in_order,
        idle,
        _marks(_lengths(before.operations.spans), _lengths(after.operations.spans), operations, LEAST_NS, 0),
        _marks(_lengths(before.idle), _lengths(after.idle), idle, least, least),
    )


def _operations(before: StepRows, after: StepRows) -> tuple[MatchedPairs, BoolArray]:
    """Most operations in one order, each kind of work by itself; then, by name, those that moved. True for the first
    ones."""
    found, names = [], (before.operations.name, after.operations.name)
    for kind in np.intersect1d(before.operations.kind, after.operations.kind):
        mine = [np.flatnonzero(rows.operations.kind == kind) for rows in (before, after)]
        one, two = in_one_order(names[0][mine[0]].tolist(), names[1][mine[1]].tolist())
        found.append(MatchedPairs(mine[0][one], mine[1][two]))
    ordered = _joined(found)
    both = _joined([ordered, _moved(ordered, names)])
    return both, np.isin(both.before, ordered.before)


def _moved(ordered: MatchedPairs, names: tuple[IntArray, IntArray]) -> MatchedPairs:
    """What is left of a name on both sides: the first with the first, and so on."""
    left = [
        np.setdiff1d(np.arange(len(name)), taken)
        for name, taken in zip(names, (ordered.before, ordered.after), strict=True)
    ]
    first, second = (_numbered(name[places]) for name, places in zip(names, left, strict=True))
    _common, one, two = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return MatchedPairs(left[0][one], left[1][two])


def _numbered(code: IntArray) -> IntArray:
    """Each code with how many of the same are in front of it, as one number."""
    order = np.argsort(code, kind="stable")
    found = np.empty(len(code), dtype=np.int64)
    found[order] = np.arange(len(code)) - np.searchsorted(code[order], code[order])
    return code << 32 | found


def _joined(parts: Sequence[MatchedPairs]) -> MatchedPairs:
    before, after = (
        np.concatenate([np.empty(0, dtype=np.int64), *(getattr(each, side) for each in parts)])
        for side in ("before", "after")
    )
    order = np.argsort(before, kind="stable")
    return MatchedPairs(before[order], after[order])


def in_one_order(before: list[int], after: list[int]) -> tuple[IntArray, IntArray]:
    """The places of a longest sequence that both lists hold, in its order.

    Row i has a bit for each element of `after`. It is 0 if the elements up to it match one more of the first i of
    `before` than those in front of it do. A row follows from the last one by one addition.

    ```
    before   a b c        after   a x c
    rows     a: 110   b: 110   c: 010        lowest bit first on the right
    ```
    """
    full = (1 << len(after)) - 1
    bits: dict[int, int] = {}
    for place, name in enumerate(after):
        bits[name] = bits.get(name, 0) | 1 << place
    rows, row = [], full
    for name in before:
        hit = row & bits.get(name, 0)
        row = ((row + hit) | (row - hit)) & full
        rows.append(row)
    return _back(before, after, rows)


def _back(before: list[int], after: list[int], rows: list[int]) -> tuple[IntArray, IntArray]:
    """The places, found from the end."""
    one, two = len(before), len(after)
    found = []
    while one and two:
        if before[one - 1] == after[two - 1]:
            one, two = one - 1, two - 1
            found.append((one, two))
        elif rows[one - 1] >> (two - 1) & 1:
            two -= 1
        else:
            one -= 1
    places = np.array(found[::-1], dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _front(before: StepRows, after: StepRows, pairs: MatchedPairs) -> BoolArray:
    """True for those of the kind of work with most time at which none of that kind ended later so far, on either
    side."""
    ends = [
        rows.operations.spans.end[at] for rows, at in zip((before, after), (pairs.before, pairs.after), strict=True)
    ]
    kind = before.operations.kind[pairs.before]
    if not len(kind):
        return np.zeros(0, dtype=np.bool_)
    most = np.argmax(np.bincount(kind, _lengths(before.operations.spans)[pairs.before]))
    first, second = (np.where(kind == most, end, -1) for end in ends)
    reached = [end == np.maximum.accumulate(end) for end in (first, second)]
    return reached[0] & reached[1] & (kind == most)


def _idle(before: StepRows, after: StepRows, pairs: MatchedPairs) -> MatchedPairs:
    """Idle spans are the same if the same operation ends them, or the step."""
    partner = np.full(len(before.operations.name) + 1, -1)
    partner[pairs.before], partner[-1] = pairs.after, len(after.operations.name)
    ends = [np.searchsorted(rows.operations.spans.start, rows.idle.end) for rows in (before, after)]
    span = np.full(len(after.operations.name) + 2, -1)
    span[ends[1]] = np.arange(len(after.idle))
    found = span[partner[ends[0]]]
    kept = np.flatnonzero(found >= 0)
    return MatchedPairs(kept, found[kept])


def _marks(
    before: IntArray, after: IntArray, pairs: MatchedPairs, least: float, least_alone: float
) -> tuple[IntArray, IntArray]:
    """The marks of both sides by their lengths; what one side has alone counts from `least_alone` on."""
    one, two = before[pairs.before], after[pairs.after]
    differs = (np.abs(two - one) > MUCH * np.minimum(one, two)) & (np.abs(two - one) >= least)
    marks = [np.where(length >= least_alone, ALONE, ALIKE) for length in (before, after)]
    marks[0][pairs.before] = np.where(differs, np.where(one > two, LONGER, SHORTER), ALIKE)
    marks[1][pairs.after] = np.where(differs, np.where(two > one, LONGER, SHORTER), ALIKE)
    return marks[0], marks[1]


def _lengths(spans: Intervals) -> IntArray:
    return spans.end - spans.start
