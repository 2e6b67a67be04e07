"""Where a cause happens: its time divided by kind and by place in the program."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.bottlenecks import DeviceWaitCalls, Made
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.constant import constant, taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_after, nearest_before
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import BLOCKING_COPY, CAUSES, OTHER_PROCESS, PLACE, SYNCHRONIZATION, sync, variant_of
from nsysdiag.causes.blocking_copy import READS_BACK
from nsysdiag.causes.cause import HINTS
from nsysdiag.causes.evidence import CallFacts, named
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import NamedRows, Rows
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys, normal_paths
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.time.table import TimeTable
from nsysdiag.wakeups.batches import RootSlices

AROUND = (BOTTLENECK_NUMBER["other_process"], BOTTLENECK_NUMBER["startup"])
"""Bottlenecks of idle time by what went on around it, whatever its cause; `startup` inside ranges that compile."""


class Attribution(Struct, frozen=True):
    """The cause that each slice counts for, which is its root: its place in the registry, and its label, an index into
    `labels` or -1. `own` is what the launching thread itself did then."""

    cause: IntArray
    label: IntArray
    labels: list[EvidenceLabel]
    own: IntArray

    @classmethod
    def by_root(cls, rooted: RootSlices) -> Attribution:
        """Each slice of the root ledger counts for its cause there."""
        slices = rooted.slices
        return cls(slices.rows.cause, slices.rows.label, slices.labels, rooted.own)


class Shares(Rows, frozen=True):
    """Idle time inside the judged time, in ns, as rows of two kinds. First a row for each part of a slice: `lost` is
    its time, for its root cause; `slice` is its index, and `wait` is -1. Then a row for each part of a slice that a
    wait caused: the device idled on after the wait, although another cause explains that. `made` is this time, `wait`
    the row of the wait, `behind` the index of that slice, and `slice` is -1.

    `counts` tells whether it is charged to `bottleneck`, an index into BOTTLENECK_IDS. What a wait caused is charged to
    the wait, unless it may be another wait. `path` is the place in the program of the gap, or of the waiting call.
    `other` is the number of the device waited for, to whose time it counts, -1 for none."""

    gap: IntArray
    slice: IntArray
    wait: IntArray
    behind: IntArray
    cause: IntArray
    kind: IntArray
    path: IntArray
    lost: IntArray
    made: IntArray
    counts: BoolArray
    bottleneck: IntArray
    other: IntArray

    @property
    def counted(self) -> IntArray:
        """The time of each row that is charged to its bottleneck, in ns."""
        return np.where(self.counts, self.lost + self.made, 0)


def shares_of(
    context: GapContext,
    evidence: LayeredEvidence,
    keys: GapGroupKeys,
    attribution: Attribution,
    kinds: IntArray,
    slice_bottlenecks: IntArray,
    time: TimeTable,
    waited: tuple[DeviceWaitCalls, Made],
    focus: Intervals,
) -> tuple[Shares, list[list[str]]]:
    """All idle time, and what waits caused, inside the set `focus`, with cause, variant and NVTX path. Also the paths
    of the codes: those of `keys`, then those only of waits. `waited` are the waits for the device, and the idle time
    that they caused. `kinds` and `slice_bottlenecks` are the variant and the bottleneck of each slice. For a wait for
    another device, the bottleneck is what that device did. If counters show another program at work,
    that is the cause, whatever the host did meanwhile."""
    made, paths = _made(context, evidence, keys, *waited, focus)
    parts = [_explained(context, keys, attribution, kinds, slice_bottlenecks, time, focus), made]
    return Shares.joined(parts), paths


def _explained(
    context: GapContext,
    keys: GapGroupKeys,
    attribution: Attribution,
    kinds: IntArray,
    slice_bottlenecks: IntArray,
    time: TimeTable,
    focus: Intervals,
) -> Shares:
    """The rows of slices."""
    inside = np.flatnonzero(time.slice >= 0).astype(np.int32)
    lost = coverage(focus, time.spans, inside)
    if not lost.all():
        kept = np.flatnonzero(lost)
        inside, lost = inside[kept], lost[kept]
    row = taken(time.slice, inside)
    gap, code = taken(context.slices.rows.gap, row), taken(time.bottleneck, inside)
    other = taken(time.other, inside)
    waits = other >= 0
    foreign = (code == BOTTLENECK_NUMBER["other_process"]) & ~waits
    around, its_own = np.isin(code, AROUND) | waits, taken(slice_bottlenecks, row)
    return Shares(
        gap=gap,
        slice=row,
        wait=constant(np.full(1, -1, dtype=np.int32), len(row)),
        behind=constant(np.full(1, -1, dtype=np.int32), len(row)),
        cause=np.where(foreign, PLACE[OTHER_PROCESS], taken(attribution.cause, row)),
        kind=np.where(foreign, len(CAUSES[OTHER_PROCESS].variants) - 1, taken(kinds, row)),
        path=keys.path_of(gap),
        lost=lost,
        made=constant(np.zeros(1, dtype=np.int64), len(row)),
        counts=around | (code == its_own),
        bottleneck=np.where(around, code, its_own),
        other=other,
    )


def slice_kinds(context: GapContext, evidence: LayeredEvidence, attribution: Attribution) -> IntArray:
    """The variant of each slice, an index into those of its cause; found once for each combination of its words."""
    rows, texts = context.slices.rows, [*context.slices.texts, ""]
    labels = [*attribution.labels, None]
    after = np.zeros(len(rows), dtype=np.int8)
    waits = np.flatnonzero(rows.cause == PLACE[SYNCHRONIZATION])
    after[waits] = _CallsAt.of(context, evidence, rows.gap[waits], rows.start[waits]).after()
    ids, sizes = list(CAUSES), (len(labels), len(texts), len(HINTS))
    key: IntArray = attribution.cause.astype(np.int32 if len(ids) * math.prod(sizes) < 1 << 31 else np.int64)
    for column, size in zip((attribution.label, rows.text, after), sizes, strict=True):
        key *= size
        key += column
        if (none := column < 0).any():
            key[none] += size
    present, code = distinct(key)
    kinds = []
    for combination in present.tolist():
        rest, hint = divmod(combination, len(HINTS))
        rest, text = divmod(rest, len(texts))
        cause, label = divmod(rest, len(labels))
        kinds.append(variant_of(ids[cause], labels[label], typed.called(texts[text]), HINTS[hint]))
    return taken(np.array(kinds, dtype=np.int16), code)


class _CallsAt(Struct, frozen=True):
    """The last outermost API calls that began, on their launching threads, before some moments: `at` is their place in
    `calls`, -1 for none. `stride` is the length of a lane."""

    calls: NamedRows
    at: IntArray
    facts: CallFacts
    stride: int

    @classmethod
    def of(cls, context: GapContext, evidence: LayeredEvidence, gap: IntArray, time: IntArray) -> _CallsAt:
        """The calls of the threads that launched after the gaps `gap`, at `time`."""
        calls = evidence.host.api.take(evidence.host.api.outermost)
        lane = context.lane[gap]
        at = nearest_before(calls.spans.start, context.axis.position(np.maximum(lane, 0), time))
        return cls(calls, np.where(lane >= 0, at, -1), evidence.facts, context.axis.stride)

    def after(self) -> IntArray:
        """The place in HINTS of synchronizations right after such a copy; 0 for others. A value is read back by a copy
        of a few bytes to the host.

        ```
        thread  [cudaMemcpyAsync DtoH, 4 bytes][cudaStreamSynchronize     ]
        ```
        """
        if len(self.calls) == 0:
            return np.zeros(len(self.at), dtype=np.int64)
        at, before = np.maximum(self.at, 0), np.maximum(self.at - 1, 0)
        start, ended = self.calls.spans.start[at], self.calls.spans.end[before]
        near = (start - ended <= READ_BACK_NS) & (start // self.stride == ended // self.stride)
        waits = (self.at > 0) & near & named(self.calls, sync.CALLS)[at]
        return np.where(waits, self.facts.copied(self.calls.row[before]), 0)


def calls_around(context: GapContext, host: HostActivity, slices: IntArray) -> tuple[IntArray, IntArray, list[str]]:
    """The outermost CUDA calls of the launching thread around each slice: the last that it began before, and the first
    that it began behind it. Each is an index into the names, -1 for none."""
    calls, gap = host.api.take(host.api.outermost), context.slices.rows.gap[slices]
    owner, rows = context.lane[gap].astype(np.int64, copy=False), context.slices.rows
    lane, length = np.maximum(owner, 0), context.axis.stride
    before = nearest_before(calls.spans.start, context.axis.position(lane, rows.start[slices]))
    behind = nearest_after(calls.spans.start, context.axis.position(lane, rows.end[slices]))

    def named(at: IntArray) -> IntArray:
        if not len(calls):
            return np.full(len(slices), -1, dtype=np.int64)
        into = calls.spans.start.take(at, mode="clip") - owner * length
        known = (owner >= 0) & (at >= 0) & (at < len(calls)) & (into >= 0) & (into < length)
        return np.where(known, calls.name.take(at, mode="clip"), np.int64(-1))

    return named(before), named(behind), calls.names


def _made(
    context: GapContext,
    evidence: LayeredEvidence,
    keys: GapGroupKeys,
    waits: DeviceWaitCalls,
    made: Made,
    focus: Intervals,
) -> tuple[Shares, list[list[str]]]:
    """A row for each part of a slice that a synchronization or a read-back caused, with the call's variant and place in
    the program; and all paths."""
    ns = coverage(focus, made.spans)
    inside = np.flatnonzero(ns)
    wait, gap = made.wait[inside], context.slices.rows.gap[made.slice[inside]]
    begun = context.axis.time(waits.spans.start[wait])
    called, row = distinct(wait)
    begins = waits.spans.start[called]
    path, paths = normal_paths(context, begins // context.axis.stride, context.axis.time(begins))
    place = {tuple(each): code for code, each in enumerate(keys.paths)}
    recode = np.array([place.setdefault(tuple(each), len(place)) for each in paths], dtype=np.int32)
    after = _CallsAt.of(context, evidence, gap, begun).after()
    copies = waits.copies[wait]
    present, code = distinct(joint(waits.name[wait], after, len(HINTS)))
    names = [typed.called(each) for each in waits.names]
    said = [(names[each // len(HINTS)], HINTS[each % len(HINTS)]) for each in present.tolist()]
    kinds = np.array([variant_of(SYNCHRONIZATION, sync.label_of(name), name, hint) for name, hint in said])
    read_back = variant_of(BLOCKING_COPY, READS_BACK)
    rows = Shares(
        gap=gap.astype(np.int32),
        slice=np.full(len(gap), -1, dtype=np.int32),
        wait=wait.astype(np.int32),
        behind=made.slice[inside].astype(np.int32),
        cause=np.where(copies, PLACE[BLOCKING_COPY], PLACE[SYNCHRONIZATION]).astype(np.int8),
        kind=np.where(copies, np.int16(read_back), kinds.astype(np.int16)[code]),
        path=recode[path][row],
        lost=np.zeros(len(gap), dtype=np.int64),
        made=ns[inside],
        counts=made.counts[inside],
        bottleneck=np.full(len(gap), BOTTLENECK_NUMBER["sync"], dtype=np.int8),
        other=np.full(len(gap), -1, dtype=np.int16),
    )
    return rows, [list(each) for each in place]
