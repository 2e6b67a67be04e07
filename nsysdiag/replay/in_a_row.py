"""Waits in a row, which are for the same work: a value that is read back, and the synchronization behind the copy."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes import BLOCKING_COPY, PLACE, SYNCHRONIZATION
from nsysdiag.causes.sync import READ_BACK_NS
from nsysdiag.replay.model import Model
from nsysdiag.replay.transforms import FixScope


def with_rows(model: Model, part: FixScope) -> FixScope:
    """A part with the waits that are in a row with one of its own: without that one, they would wait in its place.

    ```
    thread   [launch]  [copy of 4 bytes to the host      )[sync)   host     [launch]
    without  [launch]  [copy)[sync                       )         host     [launch]
    both     [launch]  [copy)          host     [launch]
    ```
    """
    held = part.held & _for_results(model)
    if not held.any():
        return part
    group = _rows_of(model)
    also = np.isin(group, group[held]) & (group >= 0)
    return FixScope(part.pieces, part.held | also, part.full, part.woken)


def _for_results(model: Model) -> BoolArray:
    """Which waits for a device are synchronizations, or copies of a few bytes to the host."""
    held, facts = model.threads.held, model.host.facts
    copies = (held.cause == PLACE[BLOCKING_COPY]) & (held.call >= 0)
    copies[copies] = facts.read_back[held.call[copies]]
    found: BoolArray = copies | (held.cause == PLACE[SYNCHRONIZATION])
    return found


def _rows_of(model: Model) -> IntArray:
    """The number of the row of each wait for results, -1 for other waits. A launch, another wait for a device, or host
    code is between rows."""
    held, able = model.threads.held, _for_results(model)
    launches = np.sort(model.launch_spans.start)
    spans = model.on_axis(held.thread, held.begin, held.end)
    order = np.argsort(spans.start, kind="stable")
    start, end, able_there = spans.start[order], spans.end[order], able[order]
    same = able_there[1:] & able_there[:-1] & (held.thread[order][1:] == held.thread[order][:-1])
    same &= np.searchsorted(launches, start[1:]) <= np.searchsorted(launches, end[:-1])
    same &= start[1:] - end[:-1] <= READ_BACK_NS
    group = np.empty(len(held), dtype=np.int64)
    group[order] = np.append(0, np.cumsum(~same)) if len(held) else 0
    return np.where(able, group, -1)
