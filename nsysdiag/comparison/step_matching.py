"""The operations of single steps, and what is idle in them, as far as a report holds all of a step; and which of them
are the same in two steps, one of each side.

Operations and idle spans are tables with a row for each column below, and are ordered by start.
"""

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
from nsysdiag.report import DeviceReport, Report
from nsysdiag.saved import unpack
from nsysdiag.timeline.facts import TimelineLane, TimelineLevels

START, END, CODE, MARK, KIND, STREAM = range(6)
"""Columns: times in ns; the name of an operation, or the cause of idle time, as a number; the mark of SideSteps. Only
operations have the kind of work, and the stream by its place."""
KINDS = 3
"""Kinds of work in the lanes of a timeline: computing, communication, copies."""


class HeldSteps(Struct, frozen=True):
    """A device of a report: its `steps` of which all operations are held, the median length of all of its steps, its
    operations, and its gaps by cause. Times are on the trace's clock."""

    steps: Steps
    median_ns: int
    operations: IntArray
    names: list[str]
    streams: list[str]
    gaps: IntArray
    cause_ids: list[str]

    def counts(self) -> IntArray:
        """How many operations begin in each of the steps."""
        spans = self.steps.spans
        return np.diff(np.searchsorted(self.operations[START], [spans.start, spans.end]), axis=0)[0]


class StepRows(Struct, frozen=True):
    """Step `number`: its operations, and the spans that none covers, with -1 for an unknown cause. Times count from its
    start; operations of the step before reach so far into it as `carried` says."""

    number: int
    start: int
    length: int
    carried: int
    operations: IntArray
    idle: IntArray


def held_steps(report: Report, device: DeviceReport) -> HeldSteps | None:
    """None if the report does not hold the time of each step. Raises InputError if it is damaged."""
    steps = steady_steps(device.iterations) if device.iterations is not None else None
    levels = report.timeline.get(device.key) if isinstance(report.timeline, dict) else None
    if steps is None or levels is None:
        return None
    streams = [lane for lane in levels.lanes if lane.kind == "stream"]
    try:
        lanes = [_operations(lane, levels.start_ns, number) for number, lane in enumerate(streams)]
        operations = _by_start(np.concatenate([np.empty((STREAM + 1, 0), dtype=np.int64), *lanes], axis=1))
        names = names_from(levels.names, MOST_NAMES_BYTES)
        if operations[KIND].max(initial=-1) >= KINDS or operations[CODE].max(initial=-1) >= len(names):
            raise ValueError("a number of nothing")
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error
    start, length, cause = unpack(device.gaps_packed)
    return HeldSteps(
        steps.take(np.flatnonzero(_held(steps.spans, levels))),
        int(np.median(steps.length)),
        operations,
        names,
        [lane.label for lane in streams],
        _by_start(np.stack([start, start + length, cause])),
        device.gaps_packed.cause_ids,
    )


def _held(spans: Intervals, levels: TimelineLevels) -> BoolArray:
    """True for each span of which all operations are held."""
    parts = Intervals.of(levels.exact_operations)
    at = place_in(parts, np.maximum(spans.start, levels.start_ns))
    return (at >= 0) & (np.minimum(spans.end, levels.end_ns) <= np.append(parts.end, 0)[at])


def _operations(lane: TimelineLane, base: int, number: int) -> IntArray:
    """The operations of one lane. Raises ValueError if they are damaged."""
    steps, length, name, kind = (
        column_from(text, lane.count) if text else np.zeros(lane.count, dtype=np.int64)
        for text in (lane.starts, lane.lengths, lane.names, lane.kinds)
    )
    start = running_sums(steps, base)
    running_sums(length, int(start[-1]) if len(start) else base)
    return np.stack([start, start + length, name, np.zeros_like(name), kind, np.full(lane.count, number)])


def _by_start(rows: IntArray) -> IntArray:
    return rows[:, np.argsort(rows[START], kind="stable")]


def rows_of_step(held: HeldSteps, place: int) -> StepRows:
    """The step at a place among those that are held."""
    start, end = (int(side[place]) for side in (held.steps.spans.start, held.steps.spans.end))
    first, behind = np.searchsorted(held.operations[START], (start, end))
    own = held.operations[:, first:behind]
    carried = max(int(held.operations[END, :first].max(initial=start)), start)
    free = complement(union(Intervals(own[START], own[END]), Intervals.of([(start, carried)])), start, end)
    at = place_in(Intervals(held.gaps[START], held.gaps[END]), free.start)
    idle = [free.start - start, free.end - start, np.append(held.gaps[CODE], -1)[at], np.full(len(free), ALIKE)]
    return StepRows(
        number=int(held.steps.number[place]),
        start=start,
        length=end - start,
        carried=min(carried, end) - start,
        operations=np.concatenate([own[: END + 1] - start, own[CODE:]]),
        idle=np.stack(idle),
    )


MUCH = 0.25
"""What is longer by this share of the shorter one is longer, else chance may have made it so."""
LEAST_NS, LEAST_IDLE = 1_000, 0.005
"""Smaller differences are none; for idle spans also those below this share of the step."""
Sides = tuple[IntArray, IntArray]
"""A table, or a column, before and after."""


class Matched(Struct, frozen=True):
    """Two steps, one of each side. `operations` are on both sides: a column for each, its places before and after, by
    the places before. `in_order` is True for those of them that did not move, `front` for those at whose end both sides
    have done the same work. `idle` are idle spans on both sides."""

    operations: IntArray
    in_order: BoolArray
    front: BoolArray
    idle: IntArray


def match(before: StepRows, after: StepRows) -> Matched:
    """The operations by their name and kind, and in order; the names of both sides are the same numbers. Marks the rows
    of both sides."""
    sides = before.operations, after.operations
    ordered = _joined([_in_order(sides, kind) for kind in np.intersect1d(sides[0][KIND], sides[1][KIND])])
    pairs = _joined([ordered, _moved(sides, ordered)])
    in_order, idle = np.isin(pairs[0], ordered[0]), _idle(before, after, pairs)
    least = max(LEAST_NS, LEAST_IDLE * min(before.length, after.length))
    _mark(sides, pairs, LEAST_NS, 0)
    _mark((before.idle, after.idle), idle, least, least)
    return Matched(pairs, in_order, _front(sides, pairs) & in_order, idle)


def _joined(pairs: Sequence[IntArray]) -> IntArray:
    return _by_start(np.concatenate([np.empty((2, 0), dtype=np.int64), *pairs], axis=1))


def _in_order(sides: Sides, kind: int) -> IntArray:
    """Most operations of a kind of work that have one order on both sides."""
    own = [np.flatnonzero(side[KIND] == kind) for side in sides]
    one, two = in_one_order(*(side[CODE, at].tolist() for side, at in zip(sides, own, strict=True)))
    return np.stack([own[0][one], own[1][two]])


def _moved(sides: Sides, ordered: IntArray) -> IntArray:
    """What is left of a name on both sides: the first with the first, and so on."""
    left = [np.setdiff1d(np.arange(side.shape[1]), taken) for side, taken in zip(sides, ordered, strict=True)]
    first, second = (_numbered(side[CODE, places]) for side, places in zip(sides, left, strict=True))
    _common, one, two = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return np.stack([left[0][one], left[1][two]])


def _numbered(code: IntArray) -> IntArray:
    """Each code with how many of the same are in front of it, as one number."""
    order = np.argsort(code, kind="stable")
    found = np.empty(len(code), dtype=np.int64)
    found[order] = np.arange(len(code)) - np.searchsorted(code[order], code[order])
    return code << 32 | found


def in_one_order(before: list[int], after: list[int]) -> Sides:
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
    one, two = len(before), len(after)
    pairs = []
    while one and two:  # back from the end
        if before[one - 1] == after[two - 1]:
            one, two = one - 1, two - 1
            pairs.append((one, two))
        elif rows[one - 1] >> (two - 1) & 1:
            two -= 1
        else:
            one -= 1
    places = np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _front(sides: Sides, pairs: IntArray) -> BoolArray:
    """True for those of the kind of work with most time at which none of that kind ended later so far, on either
    side."""
    before = sides[0][:, pairs[0]]
    most = np.argmax(np.bincount(before[KIND], before[END] - before[START], minlength=KINDS))
    own = before[KIND] == most
    ends = np.where(own, [before[END], sides[1][END, pairs[1]]], -1)
    return own & (ends == np.maximum.accumulate(ends, axis=1)).all(axis=0)


def _idle(before: StepRows, after: StepRows, pairs: IntArray) -> IntArray:
    """Idle spans are the same if the same operation ends them, or the step."""
    counts = [rows.operations.shape[1] for rows in (before, after)]
    partner = np.full(counts[0] + 1, -1)
    partner[pairs[0]], partner[-1] = pairs[1], counts[1]
    ends = [np.searchsorted(rows.operations[START], rows.idle[END]) for rows in (before, after)]
    span = np.full(counts[1] + 2, -1)
    span[ends[1]] = np.arange(len(ends[1]))
    found = span[partner[ends[0]]]
    return np.stack([np.flatnonzero(found >= 0), found[found >= 0]])


def _mark(sides: Sides, pairs: IntArray, least: float, least_alone: float) -> None:
    """Mark both sides by their lengths; what one side has alone counts from `least_alone` on."""
    for side in sides:
        side[MARK] = np.where(side[END] - side[START] >= least_alone, ALONE, ALIKE)
    one, two = (side[END, at] - side[START, at] for side, at in zip(sides, pairs, strict=True))
    differs = (np.abs(two - one) > MUCH * np.minimum(one, two)) & (np.abs(two - one) >= least)
    sides[0][MARK, pairs[0]] = np.where(differs, np.where(one > two, LONGER, SHORTER), ALIKE)
    sides[1][MARK, pairs[1]] = np.where(differs, np.where(two > one, LONGER, SHORTER), ALIKE)
