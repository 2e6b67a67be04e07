"""Idle time of a device that waits for another one, charged to what that one did meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.intervals import IntArray, Intervals, nearest_before
from nsysdiag.causes import EVENT_WAIT, PLACE, SYNCHRONIZATION
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.gaps.gaps import OTHER_DEVICE
from nsysdiag.ledger.ledger import Slices
from nsysdiag.time.table import TimeTable

Counted = tuple[Intervals, IntArray, IntArray, IntArray]
"""Spans, their codes, the rows that they are parts of, and the device that was waited for."""


def waited_for(
    slices: Slices, lane: IntArray, calls: Iterable[list[EvidenceLayer]], producer: IntArray, axis: ThreadAxis
) -> IntArray:
    """The number of the other device that each slice waited for, -1 for none. `lane` is the thread that launched after
    each gap; `calls` are synchronizations, on the thread axis. `producer` is, for each gap, the other device whose
    event held its next operation."""
    rows = slices.rows
    found = np.full(len(rows), -1, dtype=np.int16)
    if OTHER_DEVICE not in slices.labels:
        return found
    labelled = rows.label == slices.labels.index(OTHER_DEVICE)
    held = np.flatnonzero(labelled & (rows.cause == PLACE[EVENT_WAIT]))
    found[held] = producer[rows.gap[held]]
    called = np.flatnonzero(labelled & (rows.cause == PLACE[SYNCHRONIZATION]) & (lane[rows.gap] >= 0))
    at = axis.position(lane[rows.gap[called]], rows.start[called])
    for layers in calls:
        found[called] = np.maximum(found[called], _device_at(at, layers))
    return found


def _device_at(position: IntArray, layers: list[EvidenceLayer]) -> IntArray:
    """The device that the calls around these positions waited for, -1 where there is none."""
    known = [(each.spans, each.device) for each in layers if each.device is not None and len(each)]
    if not known:
        return np.full(len(position), -1, dtype=np.int16)
    spans = Intervals.concatenate(each for each, _ in known)
    device = np.concatenate([np.full(len(each), number, dtype=np.int16) for each, number in known])
    order = np.argsort(spans.start, kind="stable")
    at = nearest_before(spans.start[order], position)
    row = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (spans.end[row] > position), device[row], -1)


def followed(number: int, every: dict[int, TimeTable]) -> TimeTable:
    """The time of the device `number`, with waits for other devices charged to what these did. `other` is then the
    device that was waited for last. `every` holds the time of each device before this step.

    ```
    gpu 0       [==kernel===)[copy)[latency][==kernel
    gpu 1       [waits for gpu 0 ............)[==kernel
    charged to  [kernels    )[copies)[launch)[kernels
    ```

    If the other device waits for a third one, the wait is followed to that one, with at most one step per device.
    Devices that wait for each other remain waits. So do waits outside the other device's operations, and waits for a
    device that is not in `every`.
    """
    mine = every[number]
    waiting = np.flatnonzero(mine.other >= 0)
    if not len(waiting):
        return mine
    own = np.flatnonzero(mine.other < 0)
    found: list[Counted] = [(mine.spans[own], mine.bottleneck[own], own, mine.other[own])]
    left, asked = Owned(mine.spans[waiting], waiting), mine.other[waiting]
    for _ in range(len(every)):
        unknown = ~np.isin(asked, list(every))
        found.append(_stays(mine, Owned(left.spans[unknown], left.owner[unknown]), asked[unknown]))
        answers = [_asked(left, asked, device, every) for device in np.unique(asked[~unknown]).tolist()]
        found += [part for did, outside, _, _ in answers for part in (did, _stays(mine, outside))]
        left, asked = _together([(further, other) for _, _, further, other in answers])
    return _in_order(mine, [*found, _stays(mine, left)])


def _asked(
    left: Owned, asked: IntArray, device: int, every: dict[int, TimeTable]
) -> tuple[Counted, Owned, Owned, IntArray]:
    """Of the requested time of `device`: what it did, what is outside its window, and its waits with the device waited
    for."""
    its, theirs = every[device], asked == device
    mine = Owned(left.spans[theirs], left.owner[theirs])
    claimed, outside, source = claim(mine, its.spans)
    waits = its.other[source] >= 0
    did = np.flatnonzero(~waits)
    answer = (claimed.spans[did], its.bottleneck[source[did]], claimed.owner[did], np.full(len(did), device))
    return answer, outside, Owned(claimed.spans[waits], claimed.owner[waits]), its.other[source[waits]]


def _stays(mine: TimeTable, pieces: Owned, other: IntArray | None = None) -> Counted:
    """Pieces that stay what they were; without `other`, the device that each waited for, none is named."""
    named = np.full(len(pieces), -1, dtype=np.int16) if other is None else other
    return pieces.spans, mine.bottleneck[pieces.owner], pieces.owner, named


def _together(parts: list[tuple[Owned, IntArray]]) -> tuple[Owned, IntArray]:
    """All parts in order of time."""
    if not parts:
        return Owned.empty(), np.empty(0, dtype=np.int16)
    spans = Intervals.concatenate(each.spans for each, _ in parts)
    order = np.argsort(spans.start, kind="stable")
    owner, asked = (
        np.concatenate(columns)[order] for columns in zip(*((each.owner, to) for each, to in parts), strict=True)
    )
    return Owned(spans[order], owner), asked


def _in_order(mine: TimeTable, found: list[Counted]) -> TimeTable:
    spans = Intervals.concatenate(each[0] for each in found)
    order = np.argsort(spans.start, kind="stable")
    code, row, other = (np.concatenate([each[at] for each in found])[order] for at in (1, 2, 3))
    return replace(
        mine,
        spans=spans[order],
        state=mine.state[row],
        bottleneck=code.astype(np.int8),
        slice=mine.slice[row],
        other=other.astype(np.int16),
    )
