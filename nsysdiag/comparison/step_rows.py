"""The operations of single steps, and what is idle in them, as far as a report holds all of a step."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import column_from, names_from, running_sums
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, complement, place_in, union
from nsysdiag.iterations.steps import Steps, steady_steps
from nsysdiag.limits import MOST_NAMES_BYTES
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport, GapsPacked, Report
from nsysdiag.saved.files import unpack
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
    """None where the report does not hold the time of each step. Raises InputError where it is damaged."""
    steps = steady_steps(device.iterations) if device.iterations is not None else None
    levels = report.timeline.get(device.key) if isinstance(report.timeline, dict) else None
    if steps is None or levels is None:
        return None
    streams = [lane for lane in levels.lanes if lane.kind == "stream"]
    try:
        operations = _operations(streams, levels.start_ns)
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
    held: BoolArray = (at >= 0) & (np.minimum(spans.end, levels.end_ns) <= parts.end[at])
    return held


def _gaps(packed: GapsPacked) -> tuple[Intervals, IntArray]:
    """All gaps in order and their causes. Raises InputError where they are damaged."""
    start, lengths, cause = unpack(packed)
    order = np.argsort(start, kind="stable")
    return Intervals(start[order], (start + lengths)[order]), cause[order]


def _operations(lanes: list[TimelineLane], base: int) -> StepOperations:
    """All operations of the lanes, by start. Raises ValueError where they are damaged."""
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
