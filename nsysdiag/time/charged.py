"""Rows of the table of time, charged as the accounts of the phases are.

The accounts attribute some time by evidence from the whole job. Communication time in which a device waited for a
straggler is attributed to the cause that delayed the straggler. Idle time that replay predicts to remain without a
synchronization is attributed to what the thread did after it. An account gives the amount, not the moments, so an equal
part of each row in question is reattributed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import portions
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECK_NUMBER
from nsysdiag.causes import CAUSES
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.time.facts import EVERY_STATE, OUTSIDE, NameColumn, TimeColumns

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
