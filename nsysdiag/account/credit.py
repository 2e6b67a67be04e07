"""Idle time that synchronizations made: what the host did after a wait, and could have done during it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before
from nsysdiag.causes.blocking_copy import READS_BACK
from nsysdiag.causes.evidence import Layer
from nsysdiag.events.axis import ThreadAxis


class Waits(Struct, frozen=True):
    """Calls in which threads waited for the device, by where they begin on the thread axis, one after another in each
    lane. `credit_ns` is how long the device worked meanwhile; 0 for blocking copies of data, which have to wait. Waits
    in a row with no launch between them wait for the same work: `leading` is the row of the longest of them, which has
    the credit of all. `copies` is True for blocking copies. `name` is an index into `names`."""

    spans: Intervals
    credit_ns: IntArray
    leading: IntArray
    copies: BoolArray
    name: IntArray
    names: list[str]

    @classmethod
    def of(
        cls,
        synchronizations: list[Layer],
        copies: list[Layer],
        device: int,
        busy: Intervals,
        launches: IntArray,
        axis: ThreadAxis,
    ) -> Waits:
        """The synchronizations that wait for this device, as far as the trace shows it, and all blocking copies. Copies
        that read back a few bytes are waits as well. `busy` is the set of time in which the device worked, `launches`
        are the starts of its launch calls on the axis, sorted."""
        layers = [layer for layer in synchronizations if layer.device in (None, device)]
        words: dict[str, int] = {}
        parts = [(layer, False) for layer in layers] + [(layer, True) for layer in copies]
        nothing = (np.empty(0, dtype=np.int64),) * 5
        rows = [nothing, *(_columns(layer, is_copy, words) for layer, is_copy in parts)]
        start, end, name, copied, counts = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        order = np.argsort(start, kind="stable")
        spans = Intervals(start, end)[order]
        begun = axis.time(spans.start)
        worked = coverage(busy, Intervals(begun, begun + (spans.end - spans.start)))
        waits = counts[order] > 0
        leading, credit = _in_a_row(spans, np.where(waits, worked, 0), waits, launches, axis)
        return cls(spans, credit, leading, copied[order] > 0, name[order], list(words))


def _in_a_row(
    spans: Intervals, credit: IntArray, waits: BoolArray, launches: IntArray, axis: ThreadAxis
) -> tuple[IntArray, IntArray]:
    """Of waits in a row the row of the one with most credit, and the credits, where that one has those of all.

    ```
    thread   [launch]  [copy of 4 bytes to the host      )[sync)   host     [launch]
    credit              100                               0.1      100.1 of the copy
    ```
    """
    if len(spans) == 0:
        return np.empty(0, dtype=np.int64), credit
    lane = spans.start // axis.stride
    same = waits[1:] & waits[:-1] & (lane[1:] == lane[:-1])
    same &= np.searchsorted(launches, spans.start[1:]) == np.searchsorted(launches, spans.end[:-1])
    group = np.append(0, np.cumsum(~same))
    leads = np.lexsort((-credit, group))[np.flatnonzero(np.append(True, ~same))]
    together = credit.copy()
    together[leads] = np.add.reduceat(credit, np.flatnonzero(np.append(True, ~same)))
    return leads[group], together


def _columns(layer: Layer, is_copy: bool, words: dict[str, int]) -> tuple[IntArray, ...]:
    code = np.array([words.setdefault(text, len(words)) for text in layer.names], dtype=np.int64)
    flags = (is_copy, not is_copy or layer.label == READS_BACK)
    return layer.spans.start, layer.spans.end, code[layer.name], *(np.full(len(layer), int(flag)) for flag in flags)


class Made(Struct, frozen=True):
    """Idle time caused by waits: parts of slices, each from the beginning of its slice. `slice` is the row of the
    slice, `wait` the row of the wait."""

    slice: IntArray
    wait: IntArray
    spans: Intervals


def made_by_waits(waits: Waits, spans: Intervals, lane: IntArray, eligible: BoolArray, axis: ThreadAxis) -> Made:
    """The idle time of the `eligible` slices that was caused by the last wait of their thread.

    ```
    device   [====A====).....host.....[==B==)........host.......
    thread   [-- wait --][   host    ][w][   host               ]
    credit   10          uses 10          3 uses 3; what was left of the first wait is gone
    ```

    Without the wait, the thread would have done its next work while the device was busy, and the device would not have
    been idle. So a wait causes no more idle time than its own length, and none after the next wait of the same thread
    for later work.
    `spans` are the slices in time, `lane` is the thread that launched next, -1 for none.
    """
    chosen = np.flatnonzero(eligible & (lane >= 0)) if len(waits.spans) else np.empty(0, dtype=np.int64)
    begins = axis.position(lane[chosen], spans.start[chosen])
    order = np.argsort(begins, kind="stable")
    chosen, begins = chosen[order], begins[order]
    wait = nearest_before(waits.spans.start, begins)
    last = np.maximum(wait, 0)
    over = (wait >= 0) & (waits.spans.end[last] <= begins) if len(chosen) else np.empty(0, dtype=np.bool_)
    over &= waits.spans.start[last] // axis.stride == lane[chosen]
    chosen, wait = chosen[over], waits.leading[wait[over]]
    ns = _used(wait, waits.credit_ns[wait], (spans.end - spans.start)[chosen])
    used = ns > 0
    begun = spans.start[chosen[used]]
    return Made(chosen[used], wait[used], Intervals(begun, begun + ns[used]))


def _used(wait: IntArray, credit: IntArray, length: IntArray) -> IntArray:
    """How many ns of each length are covered by the remaining credit of its wait. Lengths of one wait are adjacent, in
    order."""
    before = np.cumsum(length) - length
    first = np.flatnonzero(np.append(True, wait[1:] != wait[:-1]))[: len(wait)]
    before = before - np.repeat(before[first], np.diff(np.append(first, len(wait))))
    used: IntArray = np.clip(credit - before, 0, length)
    return used
