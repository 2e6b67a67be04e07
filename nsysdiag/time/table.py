"""The time of one device as a table: rows that cover its window without overlap, and sums of them by any column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.constant import constant
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import portions, sum_of_each
from nsysdiag.arrays.intervals import (
    IntArray,
    Intervals,
    ascending,
    near,
    nearest_before,
    place_in,
    shared,
    sorted_times,
    stretches,
    union,
)
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECK_NUMBER, BottleneckId
from nsysdiag.causes import CAUSES
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import coded_tuples
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.time.facts import EVERY_STATE, OUTSIDE, STATES, WORK, NameColumn, TimeColumns

IDLE = STATES.index("idle")
_MANY = 1 << 11
"""Rows of a span from which on it is summed on its own."""


class TimeTable(Struct, frozen=True):
    """Rows [start, end) in ns, disjoint and sorted, that cover the window of a device.

    `state` is an index into STATES, `bottleneck` one into BOTTLENECK_IDS. `slice` is the slice of idle time of which
    the row is a part, -1 for work. `other` is the number of the device that was waited for, -1 for none. `own` and
    `root` are the causes of each slice, places in the registry: what the launching thread itself did, and what caused
    that.
    """

    spans: Intervals
    state: IntArray
    bottleneck: IntArray
    slice: IntArray
    other: IntArray
    own: IntArray
    root: IntArray

    def __len__(self) -> int:
        return len(self.spans)

    def states(self, spans: Intervals) -> dict[str, IntArray]:
        """The ns of each of `spans` by state."""
        return dict(zip(STATES, sums(self.spans, self.state, len(STATES), spans), strict=True))

    def bottlenecks(self, spans: Intervals) -> dict[str, IntArray]:
        """The ns of each of `spans` by bottleneck, of those that occur in the window."""
        return self._by_name(self.bottleneck, self.bottleneck, BOTTLENECK_IDS, spans)

    def work_and_causes(self, spans: Intervals) -> dict[str, IntArray]:
        """The ns of each of `spans` by kind of work, and its idle ns by what the launching thread itself did. That is
        of the causes that occur."""
        occur, names = np.flatnonzero(np.bincount(self.own)).tolist(), [*CAUSES, *WORK]
        code = np.where(self.slice >= 0, self._of_rows(self.own), len(CAUSES) + self.state)
        return self._named([*range(len(CAUSES), len(names)), *occur], code, names, spans)

    def root_causes(self, spans: Intervals) -> dict[str, IntArray]:
        """The idle ns of each of `spans` by root cause, of the causes that occur."""
        return self._by_name(self.root, self._of_rows(self.root), list(CAUSES), spans)

    def _of_rows(self, cause: IntArray) -> IntArray:
        """The cause of each row by that of each slice, one more than the last for work."""
        found, known = np.empty(len(self), dtype=cause.dtype), np.append(cause, cause.dtype.type(len(CAUSES)))
        for part in stretches(len(self)):
            known.take(self.slice[part], mode="wrap", out=found[part])
        return found

    def waited(self, spans: Intervals) -> dict[tuple[int, str], IntArray]:
        """The ns of each of `spans` in which another device was waited for, by its number and by bottleneck."""
        waits = np.flatnonzero(self.other >= 0)
        if not len(waits):
            return {}
        code, pairs = coded_tuples(self.other[waits], self.bottleneck[waits])
        found = sums(self.spans[waits], code, len(pairs), spans)
        return {(number, BOTTLENECK_IDS[each]): ns for (number, each), ns in zip(pairs, found, strict=True)}

    def set_of(self, name: BottleneckId) -> Intervals:
        """The time that is charged to one bottleneck, as a set."""
        return union(self.spans[self.bottleneck == BOTTLENECK_NUMBER[name]])

    def work_of(self, name: BottleneckId) -> Intervals:
        """The part of it in which the device worked, as a set."""
        return union(self.spans[(self.bottleneck == BOTTLENECK_NUMBER[name]) & (self.slice < 0)])

    def _by_name(self, occurs: IntArray, code: IntArray, names: Sequence[str], spans: Intervals) -> dict[str, IntArray]:
        """The ns of each of `spans` by the names that occur; `code` is by row, with one more for those of none."""
        return self._named(np.flatnonzero(np.bincount(occurs)).tolist(), code, names, spans)

    def _named(
        self, wanted: Sequence[int], code: IntArray, names: Sequence[str], spans: Intervals
    ) -> dict[str, IntArray]:
        """The ns of each of `spans` of the `wanted` names; `code` is by row. Added up for the codes that occur: of many
        iterations, a table of all takes more memory than the trace."""
        codes = np.flatnonzero(np.bincount(code, minlength=1))
        place = np.zeros(len(names) + 1, dtype=code.dtype)
        place[codes] = np.arange(len(codes))
        found = dict(zip(codes.tolist(), sums(self.spans, place.take(code), len(codes), spans), strict=True))
        none = constant(np.zeros(1, dtype=np.int64), len(spans))
        return {names[at]: found.get(at, none) for at in wanted}


def sums(rows: Intervals, code: IntArray, count: int, spans: Intervals) -> IntArray:
    """The ns of each code, 0 to `count` - 1, in each of `spans`, as an array (count, len(spans)). `rows` are disjoint
    and sorted, one code each.

    ```
    rows    [a----)[b---)[a-)[b-------)
    spans      [0----------)   [1--)
    a           3       2
    b               5           4
    ```
    """
    first, behind = np.searchsorted(rows.end, spans.start, "right"), np.searchsorted(rows.start, spans.end, "left")
    many = (behind - first > _MANY) & (spans.end > spans.start)
    if not many.any():
        return _sums_of_pairs(rows, code, count, spans)
    total = np.empty((count, len(spans)), dtype=np.int64)
    total[:, ~many] = _sums_of_pairs(rows, code, count, spans[~many])
    for at in np.flatnonzero(many).tolist():
        part = slice(int(first[at]), int(behind[at]))
        total[:, at] = _sums_in(rows[part], code[part], count, int(spans.start[at]), int(spans.end[at]))
    return total


def _sums_of_pairs(rows: Intervals, code: IntArray, count: int, spans: Intervals) -> IntArray:
    """The same from each pair of a row and a span that it has time in common with."""
    total = np.zeros(count * len(spans), dtype=np.int64)
    in_order = ascending(spans.start) and ascending(spans.end)
    for part in stretches(len(rows) if len(spans) else 0):
        mine = rows[part]
        there = near(spans, mine) if in_order else slice(0, len(spans))
        span, row, ns = shared(mine, spans[there])
        np.add.at(total, joint(code[part][row], span + there.start, len(spans)), ns)
    return total.reshape(count, len(spans))


def _sums_in(rows: Intervals, code: IntArray, count: int, start: int, end: int) -> IntArray:
    """The ns of each code in [start, end), which all the `rows` have time in common with: nothing is picked."""
    total = np.zeros(count, dtype=np.int64)
    for part in stretches(len(rows)):
        total += sum_of_each(code[part], rows.end[part] - rows.start[part], count)
    total[code[0]] -= max(start - int(rows.start[0]), 0)
    total[code[-1]] -= max(int(rows.end[-1]) - end, 0)
    return total


# The table of time in full, as columns of numbers and the names that they point to: also phase, step, thread and
# place, and the time before the first work of a device.


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
    borders = distinct_values(borders)
    owner = nearest_before(spans.start, borders)
    inside = (owner >= 0) & (borders > spans.start[owner]) & (borders < spans.end[owner]) if len(spans) else owner > 0
    start = sorted_times(np.concatenate((spans.start, borders[inside])))
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


# Rows of the table of time, charged as the accounts of the phases are.
#
# The accounts attribute some time by evidence from the whole job. Communication time in which a device waited for a
# straggler is attributed to the cause that delayed the straggler. Idle time that replay predicts to remain without a
# synchronization is attributed to what the thread did after it. An account gives the amount, not the moments, so an
# equal part of each row in question is reattributed.


_OF_ROOT_CAUSE = np.array([*(BOTTLENECK_NUMBER[each.bottleneck] for each in CAUSES.values()), -1])
"""The bottleneck of each root cause; the last one is for none."""


class _Piece(Struct, frozen=True):
    """The `ns` of each of `rows` that are charged to the bottleneck with this number."""

    rows: IntArray
    ns: IntArray
    bottleneck: int


def charged_as(table: TimeColumns, phases: Sequence[PhaseDevice]) -> TimeColumns:
    """The table with rows whose sums in each phase are the account of its device. What a row gives up is its end.

    ```
    rows      [sync --------)[sync--)[input)     6 + 4 of sync; the account has 5 of sync and 5 of host code
    charged   [sync)[host -)[sync)[host)[input)  half of each
    ```
    """
    left, pieces = table.end - table.start, list[_Piece]()
    for at, phase in enumerate(phases):
        rows = np.flatnonzero(table.phase == at)
        if phase.account_base != "start":
            rows = rows[table.named["state"].code[rows] != EVERY_STATE.index(OUTSIDE)]
        pieces += _taken(table, rows, phase.account, left)
    return _split(table, left, pieces) if pieces else table


def _taken(table: TimeColumns, rows: IntArray, account: Mapping[str, int], left: IntArray) -> list[_Piece]:
    """The parts of the rows of a phase that are reattributed; they are subtracted from `left`. Idle time after a
    synchronization is attributed to the bottleneck of its own root cause first."""
    code = table.named["bottleneck"].code[rows]
    behind = _OF_ROOT_CAUSE[table.named["root_cause"].code[rows]]
    sums = np.zeros(len(BOTTLENECK_IDS), dtype=np.int64)
    np.add.at(sums, code, left[rows])
    more = np.array([account.get(name, 0) for name in BOTTLENECK_IDS]) - sums
    pieces = []
    for any_root in (False, True):
        for target in np.flatnonzero(more > 0).tolist():
            for source in np.flatnonzero(more < 0).tolist():
                mine = rows[(code == source) & (any_root | (behind == target))]
                part = int(min(more[target], -more[source], left[mine].sum()))
                if part > 0:
                    piece = _Piece(mine, portions(left[mine], part), target)
                    left[mine] -= piece.ns
                    more[target] -= part
                    more[source] += part
                    pieces.append(piece)
    return pieces


def _split(table: TimeColumns, left: IntArray, pieces: Sequence[_Piece]) -> TimeColumns:
    """Each row as what is left of it, and its pieces behind that."""
    names = table.named["bottleneck"]
    row = np.concatenate((np.arange(len(left)), *(each.rows for each in pieces)))
    ns = np.concatenate((left, *(each.ns for each in pieces)))
    code = np.concatenate((names.code, *(np.full(len(each.rows), each.bottleneck) for each in pieces)))
    order = np.argsort(row, kind="stable")
    order = order[ns[order] > 0]
    row, ns, code = row[order], ns[order], code[order]
    whole = table.end - table.start
    start = table.start[row] + (np.cumsum(ns) - ns) - (np.cumsum(whole) - whole)[row]
    named = {name: NameColumn(column.code[row], column.names) for name, column in table.named.items()}
    return replace(
        table,
        start=start,
        end=start + ns,
        phase=table.phase[row],
        judged=table.judged[row],
        step=table.step[row],
        thread=table.thread[row],
        named=named | {"bottleneck": NameColumn(code, names.names)},
    )
