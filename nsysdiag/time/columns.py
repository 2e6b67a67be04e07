"""The table of time in full, as columns of numbers and the names that they point to: also phase, step, thread and
place, and the time before the first work of a device."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, nearest_before, place_in
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.causes import CAUSES
from nsysdiag.time.facts import EVERY_STATE, OUTSIDE, NameColumn, TimeColumns
from nsysdiag.time.table import TimeTable


class OfSlices(Struct, frozen=True):
    """What is known of each slice of idle time: codes, -1 for none, and names."""

    thread: IntArray
    named: dict[str, NameColumn]


class TimeBefore(Struct, frozen=True):
    """Time before the first work of a device: disjoint spans, the number of the bottleneck of each, and what the host
    did, an index into `words`."""

    spans: Intervals
    bottleneck: IntArray
    call: IntArray
    words: list[str]


def time_columns(
    device: str,
    table: TimeTable,
    of_slices: OfSlices,
    before: TimeBefore,
    phases: Intervals,
    judged: Iterable[int],
    steps: Intervals,
    devices: dict[int, str],
) -> TimeColumns:
    """All of it. `phases` touch; `judged` are the places of those that the diagnosis is about; `steps` are disjoint;
    `devices` are the keys of all devices by number. Time `before` belongs to the first phase."""
    row, spans = cut(table.spans, np.concatenate((phases.start, phases.end, steps.start, steps.end)))
    ahead = len(before.spans)
    piece = table.slice[row]
    phase = np.append(np.full(ahead, 0 if len(phases) else -1), place_in(phases, spans.start))
    named = {
        "state": NameColumn(_joined(ahead, EVERY_STATE.index(OUTSIDE), table.state[row]), list(EVERY_STATE)),
        "bottleneck": NameColumn(np.append(before.bottleneck, table.bottleneck[row]), list(BOTTLENECK_IDS)),
        "cause": NameColumn(_joined(ahead, -1, _of_slice(table.own, piece)), list(CAUSES)),
        "root_cause": NameColumn(_joined(ahead, -1, _of_slice(table.root, piece)), list(CAUSES)),
        "waits_for": NameColumn(_joined(ahead, -1, _numbered(table.other[row], devices)), list(devices.values())),
    }
    for name, column in of_slices.named.items():
        named[name] = NameColumn(_joined(ahead, -1, _of_slice(column.code, piece)), column.names)
    calls = named["call"]
    called = np.append(before.call + len(calls.names), calls.code[ahead:])
    named["call"] = NameColumn(called, [*calls.names, *before.words])
    return TimeColumns(
        device=device,
        start=np.append(before.spans.start, spans.start),
        end=np.append(before.spans.end, spans.end),
        phase=phase,
        judged=np.isin(phase, list(judged)),
        step=_joined(ahead, -1, place_in(steps, spans.start)),
        thread=_joined(ahead, -1, _of_slice(of_slices.thread, piece)),
        named=named,
    )


def cut(spans: Intervals, borders: IntArray) -> tuple[IntArray, Intervals]:
    """Disjoint, sorted intervals cut at all borders inside them: of which interval each part is, and the parts.

    ```
    spans     [0----------)[1----)      [2---)
    borders       |   |    |                 |
    parts     [0-)[0-)[0--)[1----)      [2---)
    ```
    """
    borders = np.unique(borders)
    owner = nearest_before(spans.start, borders)
    inside = (owner >= 0) & (borders > spans.start[owner]) & (borders < spans.end[owner]) if len(spans) else owner > 0
    start = np.sort(np.concatenate((spans.start, borders[inside])))
    row = nearest_before(spans.start, start)
    last = np.append(row[1:] != row[:-1], True)[: len(row)]
    return row, Intervals(start, np.where(last, spans.end[row], np.append(start[1:], 0)[: len(row)]))


def _of_slice(values: IntArray, piece: IntArray) -> IntArray:
    """The value of the slice that each row is a part of, -1 for work."""
    return np.append(values, -1)[piece]


def _joined(ahead: int, value: int, rest: IntArray) -> IntArray:
    return np.concatenate((np.full(ahead, value, dtype=rest.dtype), rest))


def _numbered(other: IntArray, devices: dict[int, str]) -> IntArray:
    """The place of each device number among `devices`, -1 for none."""
    place = {number: at for at, number in enumerate(devices)}
    code = np.array([*(place.get(number, -1) for number in range(max(devices, default=-1) + 1)), -1])
    return code[np.minimum(other, len(code) - 1)]
