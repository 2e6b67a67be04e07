"""Rows of the table of time, charged as the accounts of the phases are.

Some time is charged by what is known of the whole job. Communication in which a device waited for a late one counts to
what made that one late. Idle time that would stay without a wait, by replay, counts to what the thread did behind it.
An account knows how much that is, not when it was; so it gets an equal part of each row in question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

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
    """What other bottlenecks get of the rows of a phase, and is no longer in `left`. Time behind a wait goes to what
    its own root cause counts to, as far as there is such time."""
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


def portions(ns: IntArray, part: int) -> IntArray:
    """`part` of the sum of `ns`, above 0, divided among them in proportion; exact, and none is above its own."""
    reached, total = np.cumsum(ns), int(ns.sum())
    about = (reached * (part / total)).astype(np.int64)
    # Both products may pass 64 bits, and wrap around; what they differ by is small, and exact.
    about += (reached * np.int64(part) - about * np.int64(total)) // total
    return np.diff(about, prepend=0)


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
