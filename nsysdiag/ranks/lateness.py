"""Inside each collective: how long the transfer took, who came late, and how long each rank waited for which other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.ranks.clocks import Clocks
from nsysdiag.ranks.facts import RankWait, Straggler
from nsysdiag.ranks.matching import Group
from nsysdiag.ranks.timeline import RankTimeline

LEAST_LATE_NS = 20_000  # what launches differ by without anybody being late


@dataclass(frozen=True, slots=True, eq=False)
class Lateness:
    """A group with, for each collective, what follows from its times. `wait` has a row a member; `last` and `middle`
    are rows: of the rank that began last, and of that with which more than half of the others had begun. `late` says
    where the last one is late by `late_by` for certain: by more than `doubt_ns`."""

    group: Group
    wait: IntArray
    transfer: IntArray
    last: IntArray
    middle: IntArray
    late_by: IntArray
    late: BoolArray
    doubt_ns: int
    spread_ns: int


def lateness_of(group: Group, clocks: Clocks) -> Lateness:
    """Of a group on the common clock."""
    column = np.arange(len(group))
    length = group.end - group.start
    transfer = length.min(axis=0)
    order = np.argsort(group.start, axis=0, kind="stable")
    last, middle = order[-1], order[(len(group.members) - 1) // 2]
    late_by = group.start[last, column] - group.start[middle, column]
    spread = int(np.percentile(group.end.max(axis=0) - group.end.min(axis=0), 95))
    error = clocks.error_between(group.members)
    doubt = max(LEAST_LATE_NS, spread, error or 0)
    return Lateness(
        group=group,
        wait=length - transfer,
        transfer=transfer,
        last=last,
        middle=middle,
        late_by=late_by,
        late=(late_by > doubt) & (error is not None),
        doubt_ns=doubt,
        spread_ns=spread,
    )


def rank_waits(ranks: list[RankTimeline], found: list[Lateness], late: list[Straggler]) -> list[RankWait]:
    """One row for each two ranks of which one waited for the other, and one for the waits of a rank that no single one
    can be blamed for; most time first."""
    total = np.zeros((len(ranks), len(ranks) + 1), dtype=np.int64)
    for each in found:
        members = np.array(each.group.members)
        for row, rank in enumerate(each.group.members):
            blamed = np.where(each.late, members[each.last], len(ranks))
            np.add.at(total[rank], blamed, each.wait[row])
    reasons = {each.rank: each.more or each.meanwhile for each in late}
    rows = [
        _wait(ranks, at, other, int(total[at, other]), reasons)
        for at, other in zip(*(side.tolist() for side in np.nonzero(total)), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row.wait_ns, row.rank, row.late_rank or ""))


def _wait(ranks: list[RankTimeline], at: int, other: int, ns: int, reasons: dict[str, dict[str, int]]) -> RankWait:
    late = ranks[other].rank if other < len(ranks) else None
    causes = divided(ns, reasons.get(late, {})) if late is not None else {}
    return RankWait(rank=ranks[at].rank, late_rank=late, wait_ns=ns, causes=causes)


def divided(ns: int, shares: dict[str, int]) -> dict[str, int]:
    """`ns` in proportion to `shares`, to the nanosecond: what rounding leaves goes to the largest."""
    whole = sum(shares.values())
    if not whole:
        return {}
    parts = {name: ns * share // whole for name, share in shares.items()}
    largest = max(shares, key=lambda name: shares[name])
    parts[largest] += ns - sum(parts.values())
    return {name: part for name, part in parts.items() if part}
