"""Where a cause happens: its time divided by kind and by place in the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, IntArray, nearest_before
from nsysdiag.causes import BLOCKING_COPY, CAUSES, PLACE, SYNCHRONIZATION, blocking_copy, sync, variant_of
from nsysdiag.causes.evidence import CallFacts, named
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.causes.variant import AFTER_READ_BACK
from nsysdiag.events.axis import Lane
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.keys import GapKeys
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.wakeups.root_attribution import RootSlices


@dataclass(frozen=True, slots=True)
class Attribution:
    """The cause that each slice counts for, which is its root: its place in the registry, and its label, an index into
    `labels` or -1. `own` is what the launching thread itself did then."""

    cause: IntArray
    label: IntArray
    labels: list[str]
    own: IntArray

    @classmethod
    def by_root(cls, rooted: RootSlices) -> Attribution:
        """Each slice of the root ledger counts for its cause there."""
        slices = rooted.slices
        return cls(slices.rows.cause, slices.rows.label, slices.labels, rooted.own)


@dataclass(frozen=True, slots=True)
class Shares(Rows):
    """A row a slice, then one a sync-drained gap: whose time it is. `lost` is the slice's ns, `drained` the ns of a gap
    that a call of this kind opened; a row has one of them. `slice` is the slice's place, -1 for a drained gap."""

    gap: IntArray
    slice: IntArray
    cause: IntArray
    kind: IntArray
    path: IntArray
    lost: IntArray
    drained: IntArray


def shares_of(context: GapContext, evidence: LayeredEvidence, keys: GapKeys, attribution: Attribution) -> Shares:
    """All slices and all sync-drained gaps of a device, each with cause, kind and NVTX path."""
    rows, count = context.slices.rows, len(context.slices.rows)
    slices = Shares(
        gap=rows.gap,
        slice=np.arange(count, dtype=np.int32),
        cause=attribution.cause,
        kind=_kinds(context, evidence, attribution),
        path=keys.path[rows.gap],
        lost=context.slices.ns,
        drained=np.broadcast_to(np.int64(0), count),
    )
    return Shares.concatenate([slices, _drained(context, evidence, keys)])


def _kinds(context: GapContext, evidence: LayeredEvidence, attribution: Attribution) -> IntArray:
    """The kind of each slice, an index into the kinds of its cause; found once for each combination of its words."""
    rows, texts = context.slices.rows, [*context.slices.texts, ""]
    labels = [*attribution.labels, ""]
    after = np.zeros(len(rows), dtype=np.bool_)
    waits = np.flatnonzero(rows.cause == PLACE[SYNCHRONIZATION])
    after[waits] = _CallsAt.of(context, evidence, rows.gap[waits], rows.start[waits]).after_read_back()
    said = joint(attribution.cause, attribution.label % len(labels), len(labels))
    key = joint(said, rows.text % len(texts), len(texts))
    present, code = distinct(joint(key, after.astype(np.int64), 2))
    ids = list(CAUSES)
    kinds = []
    for combination in present.tolist():
        rest, read_back = divmod(combination, 2)
        rest, text = divmod(rest, len(texts))
        cause, label = divmod(rest, len(labels))
        kinds.append(
            variant_of(ids[cause], labels[label], typed.plain(texts[text]), AFTER_READ_BACK if read_back else None)
        )
    return np.array(kinds, dtype=np.int32)[code]


@dataclass(frozen=True, slots=True)
class _CallsAt:
    """The last outermost API calls that began, on their launching threads, before some moments: `at` is their place in
    `calls`, -1 for none. `stride` is the length of a lane."""

    calls: Lane
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

    def flagged(self, flags: BoolArray) -> BoolArray:
        """A flag of the table of calls for each of the calls."""
        if len(self.calls) == 0:
            return np.zeros(len(self.at), dtype=np.bool_)
        return (self.at >= 0) & flags[self.calls.row[np.maximum(self.at, 0)]]

    def after_read_back(self) -> BoolArray:
        """True for synchronizations right after a copy of a few bytes to the host: that is how a value is read back.

        ```
        thread  [cudaMemcpyAsync DtoH, 4 bytes][cudaStreamSynchronize     ]
        ```
        """
        if len(self.calls) == 0:
            return np.zeros(len(self.at), dtype=np.bool_)
        at, before = np.maximum(self.at, 0), np.maximum(self.at - 1, 0)
        start, ended = self.calls.spans.start[at], self.calls.spans.end[before]
        near = (start - ended <= READ_BACK_NS) & (start // self.stride == ended // self.stride)
        copied = self.facts.read_back[self.calls.row[before]]
        result: BoolArray = (self.at > 0) & near & copied & named(self.calls, sync.CALLS)[at]
        return result


def _drained(context: GapContext, evidence: LayeredEvidence, keys: GapKeys) -> Shares:
    """A row for each sync-drained gap, under the cause and kind of the call that emptied the queue."""
    gap = np.flatnonzero(context.drained.flag)
    calls = _CallsAt.of(context, evidence, gap, context.frame.gaps.opened[gap])
    # One number for what is known of a call: 0 nothing, 1 a sync after a read-back, 2 a read-back, 3 pageable memory.
    known = np.select(
        [calls.after_read_back(), calls.flagged(evidence.facts.read_back), calls.flagged(evidence.facts.pageable)],
        [1, 2, 3],
    )
    present, code = distinct(joint(context.drained.name[gap], known, 4))
    drained = [_drained_kind(typed.plain(context.drained.names[each // 4]), each % 4) for each in present.tolist()]
    causes, kinds = (np.array([each[side] for each in drained], dtype=np.int32) for side in (0, 1))
    return Shares(
        gap=gap.astype(np.int32),
        slice=np.full(len(gap), -1, dtype=np.int32),
        cause=causes[code],
        kind=kinds[code],
        path=keys.path[gap],
        lost=np.zeros(len(gap), dtype=np.int64),
        drained=(context.frame.gaps.end - context.frame.gaps.start)[gap],
    )


def _drained_kind(name: str, known: int) -> tuple[int, int]:
    if blocking_copy.COPIES.fullmatch(name.partition(" ")[0]):
        label = blocking_copy.LABELS[known - 2 if known >= 2 else 2]
        return PLACE[BLOCKING_COPY], variant_of(BLOCKING_COPY, label, name, None)
    hint = AFTER_READ_BACK if known == 1 else None
    return PLACE[SYNCHRONIZATION], variant_of(SYNCHRONIZATION, sync.label_of(name), name, hint)
