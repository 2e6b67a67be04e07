"""The idle ledger: slices added up by cause, coverage, and every gap in a few bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.claim import CodeTable, EvidenceLabel, Owned
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.groups import sum_of_each, to_text
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    intersect,
    nearest_before,
    stretches,
    subtract,
    union,
)
from nsysdiag.arrays.spill import laid
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.causes.evidence import LEAD_NS, EvidenceLayer
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, ThreadAxis, picked
from nsysdiag.fields import Sentence
from nsysdiag.gaps.gaps import Gaps, LaunchCase, LaunchFrame
from nsysdiag.report import GapsPacked
from nsysdiag.time.facts import GapPlaces

# Slices: which cause each nanosecond of each gap was given to, and on what evidence.


class SliceRows(Rows, frozen=True):
    """Slices [start, end) of gaps in ns. `cause` is an index into the registry's order, `label` and `text` indices into
    their tables, -1 for none."""

    gap: IntArray
    cause: IntArray
    start: IntArray
    end: IntArray
    label: IntArray
    text: IntArray


class Slices(Struct, frozen=True):
    """All slices of one device, and the words that they point to. `calls` are the calls that the texts name, empty for
    those that describe something else."""

    rows: SliceRows
    labels: list[EvidenceLabel]
    texts: list[Sentence]
    calls: list[Sentence]

    @property
    def ns(self) -> IntArray:
        """The length of every slice."""
        return self.rows.end - self.rows.start

    def lengths(self, index: IntArray | BoolArray | slice) -> IntArray:
        """The lengths of those at `index`."""
        return taken(self.rows.end, index) - taken(self.rows.start, index)


Label: TypeAlias = EvidenceLabel | IntArray
Text: TypeAlias = Sentence | IntArray
"""What is said of slices: the same of all, or the code of each."""


class SliceCollector:
    """Gathers slices part by part; labels and texts are kept once. A disabled cause still takes its time, so that no
    other is blamed for it, and leaves it unexplained."""

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self._cause = {cause: number for number, cause in enumerate(CAUSES)}
        self._disabled = disabled
        self._parts: list[SliceRows] = []
        self.labels: CodeTable[EvidenceLabel] = CodeTable()
        self._texts = CodeTable[Sentence]()
        self._calls: set[Sentence] = set()

    def texts(self, texts: Sequence[Sentence], *, are_calls: bool = False) -> IntArray:
        """The code of each text; `are_calls`: they are names of calls."""
        self._calls.update(texts if are_calls else ())
        return self._texts.codes(texts)[:-1].astype(np.int32)

    def add(self, cause: str, pieces: Owned, *, label: Label | None = None, text: Text | None = None) -> None:
        """Give `pieces` (times, not positions) to a cause, with a label and a text, or with their codes."""
        labels = label if isinstance(label, np.ndarray) else self.labels.code(label)
        texts = text if isinstance(text, np.ndarray) else -1 if text is None else self.texts([text])
        if cause in self._disabled:
            cause, labels, texts = FALLBACK, -1, -1
        count = len(pieces)
        if count == 0:
            return
        self._parts.append(
            SliceRows(
                gap=pieces.owner.astype(np.int32),
                cause=np.full(count, self._cause[cause], dtype=np.int8),
                start=pieces.spans.start,
                end=pieces.spans.end,
                label=np.broadcast_to(np.asarray(labels, dtype=np.int16), (count,)),
                text=np.broadcast_to(np.asarray(texts, dtype=np.int32), (count,)),
            )
        )

    def finish(self) -> Slices:
        """Everything that was added."""
        nothing, code = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        empty = SliceRows(code, code.astype(np.int8), nothing, nothing, code.astype(np.int16), code)
        rows = SliceRows.joined(self._parts or [empty])
        calls = [text if text in self._calls else "" for text in self._texts.known]
        return Slices(rows, list(self.labels.known), list(self._texts.known), calls)


UNRESOLVED = frozenset(cause.id for cause in CAUSES.values() if cause.unresolved)
ACCEPTED = frozenset(cause.id for cause in CAUSES.values() if cause.accepted)
_LEVEL = 1
"""Of zlib: the deltas are small already. Higher levels cost seconds on a million gaps and save a tenth."""


class CauseTotals(Struct, frozen=True):
    """`total` is ns by cause, causes in order of precedence, none with 0; `labels` the kinds within a cause."""

    total: dict[str, int]
    labels: dict[str, dict[str, int]]


class Ledger(CauseTotals, frozen=True):
    """Also `dominant`, the cause (place in the registry) with most of each gap."""

    dominant: IntArray


def add_up(slices: Slices) -> CauseTotals:
    """Totals over all gaps."""
    rows, width = slices.rows, len(slices.labels) + 1
    sums = np.zeros(len(CAUSES) * width, dtype=np.int64)
    for part in stretches(len(rows)):
        sums += sum_of_each(joint(rows.cause[part], rows.label[part] + 1, width), slices.lengths(part), len(sums))
    found = sums.reshape(-1, width)
    labels = {
        cause: {slices.labels[code].words: int(ns[code]) for code in np.flatnonzero(ns).tolist()}
        for cause, ns in zip(CAUSES, found[:, 1:], strict=True)
        if ns.any()
    }
    total = {cause: int(ns.sum()) for cause, ns in zip(CAUSES, found, strict=True) if ns.any()}
    return CauseTotals(total, labels)


def ledger_of(slices: Slices, gap_count: int) -> Ledger:
    """Totals over all gaps, and each gap's dominant cause."""
    totals = add_up(slices)
    best, dominant = np.zeros(gap_count, dtype=np.int64), np.zeros(gap_count, dtype=np.int8)
    for number, cause in enumerate(CAUSES):
        if cause not in totals.total:
            continue
        mine = picked(slices.rows.cause == number)
        by_gap = sum_of_each(slices.rows.gap[mine], slices.lengths(mine), gap_count)
        np.copyto(dominant, np.int8(number), where=by_gap > best)
        np.maximum(best, by_gap, out=best)
    return Ledger(totals.total, totals.labels, dominant)


def coverage(total: dict[str, int]) -> float | None:
    """1 - unresolved / (idle - time not caused by the host); None if the divisor is 0."""
    accountable = sum(ns for cause, ns in total.items() if cause not in ACCEPTED)
    if accountable == 0:
        return None
    return 1 - sum(ns for cause, ns in total.items() if cause in UNRESOLVED) / accountable


def pack_gaps(gaps: Gaps, ledger: Ledger, places: GapPlaces) -> GapsPacked:
    """Starts as deltas, lengths, dominant causes and places of all gaps, in order of time."""
    length = gaps.end - gaps.start
    made = GapsPacked(
        count=len(gaps),
        starts=packed(np.diff(gaps.start, prepend=np.int64(0)).astype("<i8")),
        lengths=packed(length.astype("<i8")),
        causes=packed(ledger.dominant.astype("<u1")),
        cause_ids=list(CAUSES),
        places=places,
    )
    made.keep_unpacked(laid((gaps.start, length, ledger.dominant)))
    return made


def packed(values: npt.NDArray[np.generic]) -> str:
    """The bytes of an array, compressed, as text."""
    return to_text(values.tobytes(), _LEVEL)


# The window split four ways: compute, exposed communication, exposed copies, idle.


class WindowSplit(Struct, frozen=True):
    """Nanoseconds; compute + exposed_comm + exposed_copy + idle = window, exactly. `window` is the set of all of it.
    `kernels` is the time in which any kernel or graph ran, `kernel_ns` its length; `busy` is the set of all work,
    `parts` those of compute, exposed communication, exposed copies."""

    window: Intervals
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    overlapped_comm_ns: int
    kernel_ns: int
    kernels: Intervals
    busy: Intervals
    parts: tuple[Intervals, Intervals, Intervals]

    @property
    def window_ns(self) -> int:
        return self.window.total()

    @property
    def busy_ns(self) -> int:
        return self.compute_ns + self.exposed_comm_ns + self.exposed_copy_ns

    @property
    def idle_ns(self) -> int:
        return self.window_ns - self.busy_ns


def only_graphs(device: DeviceTimeline, compute: Intervals) -> Intervals:
    """The part of its `compute` time in which nothing is recorded but CUDA graphs as a whole."""
    operations = device.operations
    graphs = operations.category == Category.GRAPH
    if not graphs.any():
        return Intervals.empty()
    spans, kernels = Intervals(operations.start, operations.end), operations.category == Category.KERNEL
    return intersect(compute, subtract(union(spans[graphs]), union(spans[kernels])))


def split_window(device: DeviceTimeline, parts: Intervals) -> WindowSplit:
    """Time inside the set `parts` by what the device did; where several things ran at once, compute hides
    communication, and both hide copies."""
    operations = device.operations
    spans = Intervals(operations.start, operations.end)
    computes = (operations.category == Category.KERNEL) & ~device.communication
    computes |= operations.category == Category.GRAPH
    compute = intersect(parts, union(spans[computes]))
    communication = intersect(parts, union(spans[device.communication]))
    both = union(compute, communication)
    copies = intersect(parts, union(spans[~(computes | device.communication)]))
    busy = union(both, copies)
    return WindowSplit(
        window=parts,
        compute_ns=compute.total(),
        exposed_comm_ns=both.total() - compute.total(),
        exposed_copy_ns=busy.total() - both.total(),
        overlapped_comm_ns=compute.total() + communication.total() - both.total(),
        kernel_ns=both.total(),
        kernels=both,
        busy=busy,
        parts=(compute, subtract(communication, compute), subtract(copies, both)),
    )


# Gaps that a synchronization opened: the call emptied the queue, and what follows is its price.


class LayerRows(Struct, frozen=True):
    """The evidence of several layers by start: the name of each row, an index into `names`, and its layer."""

    spans: Intervals
    name: IntArray
    names: list[Sentence]
    layer: IntArray

    @classmethod
    def of(cls, layers: list[EvidenceLayer]) -> LayerRows:
        """All rows of these."""
        words = CodeTable[Sentence]()
        spans = Intervals.concatenate(each.spans for each in layers)
        none = np.empty(0, dtype=np.int32)
        name = np.concatenate([none, *(words.codes(each.names).astype(np.int32)[each.name] for each in layers)])
        order = np.argsort(spans.start, kind="stable")
        layer = np.repeat(np.arange(len(layers)), [len(each) for each in layers])
        return cls(spans[order], name[order], list(words.known), layer[order])


class Drained(Struct, frozen=True):
    """For each gap: was it opened by a synchronization, and by a call of which name (an index into `names`)."""

    flag: BoolArray
    name: IntArray
    names: list[Sentence]


def sync_drained(frame: LaunchFrame, layers: list[EvidenceLayer], axis: ThreadAxis, lane: IntArray) -> Drained:
    """A sync or blocking call of the launching thread, which returns when the device has caught up, began at least 5 µs
    before the gap. It ended between the start of the gap and that of the launch call.

    ```
    device  [==A==)...............[==next==)
    thread   [cudaStreamSync]..[launch]
    ```
    """
    calls = LayerRows.of(layers)
    if len(calls.spans) == 0:
        return Drained(np.zeros(len(lane), dtype=np.bool_), np.full(len(lane), -1, dtype=np.int32), [])
    safe = np.maximum(lane, 0)
    opened = axis.position(safe, frame.gaps.opened)
    # The call itself may begin after the gap: what ends a gap may be a migration that is in front of the launched work.
    launched = axis.position(safe, frame.issue_start)
    at = nearest_before(calls.spans.start, axis.position(safe, frame.gaps.opened - LEAD_NS))
    end = calls.spans.end[at]
    flag = (frame.case == LaunchCase.LATE) & (at >= 0) & (end > opened) & (end <= launched)
    return Drained(flag, np.where(flag, calls.name[at], np.int32(-1)), calls.names)
