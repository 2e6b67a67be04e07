"""Steps of both sides together as plain data: their operations, what is the same one, and what differs.

Times are integer nanoseconds from the start of the step, unless a field says otherwise. Packed columns hold numbers
from 0 up as planes of bytes: the lowest byte of every number, then the next one of each, as many as the largest needs.
A column of zeros is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from nsysdiag.fields import Base64, CauseId, Count, Index, KernelName, Moment, Ns, OwnText, Sentence
from nsysdiag.record import Packed, PackedColumn, Record

ALIKE, ALONE, LONGER, SHORTER = range(4)
"""The marks of an operation or an idle span: as on the other side, only on this side, longer or shorter than there."""
ONLY_BEFORE, ONLY_AFTER, REPLACED, OTHER_LENGTH, IDLE = "only_before", "only_after", "replaced", "other_length", "idle"
"""The kinds of differences."""


class SideSteps(Packed, frozen=True):
    """Steps of one side, one after another: their `numbers`, from 0, and their starts on the trace's clock. Operations
    of the step before it reach `carried_ns` into each.

    Each has `counts` operations by start. `apart` is the start of each less the end of the one before it, or the start
    of the step; 2n stands for n from 0 up, 2n - 1 for -n. `names` are indices into the names of the steps, `stream`
    into `streams`. Of the `idle` spans of each, what no operation covers, `causes` are indices into `cause_ids` plus 1,
    0 for an unknown one. `marks` and `idle_marks`: 0 as on the other side, 1 only on this one, 2 longer, 3 shorter.
    """

    numbers: list[Index]
    start_ns: list[Moment]
    length_ns: list[Ns]
    carried_ns: list[Ns]
    counts: list[Count]
    idle: list[Count]
    streams: list[OwnText]
    apart: Base64
    lengths: Base64
    names: Base64
    stream: Base64
    marks: Base64
    causes: Base64
    idle_marks: Base64

    def columns(self) -> Iterable[PackedColumn]:
        """Those of operations, then those of idle spans."""
        operations = (self.apart, self.lengths, self.names, self.stream, self.marks)
        return [
            *(PackedColumn(text, sum(self.counts), 8) for text in operations if text),
            *(PackedColumn(text, sum(self.idle), 8) for text in (self.causes, self.idle_marks) if text),
        ]


class StepDifference(Record, frozen=True):
    """What differs in the typical step, `count` times, the first time so far into the step of a side; None for a side
    without it.

    `kind`: `only_before` and `only_after` are operations of one side, and `replaced` ones in the place of others.
    `other_length` is an operation that takes longer or shorter. `idle` is idle time that does, or that one side has
    alone. `before_ns` and `after_ns` are the time of all of them."""

    kind: OwnText
    count: Count
    from_before_ns: Ns | None
    from_after_ns: Ns | None
    names_before: list[KernelName]
    names_after: list[KernelName]
    cause_before: CauseId | None
    cause_after: CauseId | None
    before_ns: Ns
    after_ns: Ns


class AlignedSteps(Packed, frozen=True):
    """Steps of both sides to look at, each before with the one after at the same place: first the two typical ones,
    nearest the median length, then those of the same number, as far as there is room. `median_before_ns` and
    `median_after_ns` are the median steps of all. `differences` are those of the typical step, the largest first.

    `names` are those of operations, `kinds` 0 compute, 1 communication, 2 copies and memory sets, one for each name.
    `matched` operations of each step are on both sides: `places_before` is the place of each before, less that of the
    last one, `places_after` the same of its place after, both signed as `apart` is. `front` is 1 if
    both sides have done the same work: no matched operation of the kind with most time ended later so far.
    `idle_matched` idle spans are on both sides, in the same form.
    """

    before: SideSteps
    after: SideSteps
    names: list[KernelName]
    kinds: list[Index]
    cause_ids: list[CauseId]
    median_before_ns: Ns
    median_after_ns: Ns
    matched: list[Count]
    places_before: Base64
    places_after: Base64
    front: Base64
    idle_matched: list[Count]
    idle_before: Base64
    idle_after: Base64
    differences: list[StepDifference]
    note: Sentence = ""
    encoding: OwnText = "base64(zlib(planes of bytes))"

    def columns(self) -> Iterable[PackedColumn]:
        """Those of operations, then those of idle spans."""
        operations = (self.places_before, self.places_after, self.front)
        return [
            *(PackedColumn(text, sum(self.matched), 8) for text in operations if text),
            *(PackedColumn(text, sum(self.idle_matched), 8) for text in (self.idle_before, self.idle_after) if text),
        ]
