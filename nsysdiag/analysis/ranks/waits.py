"""What each rank waited for each other one, divided by why that one was late."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.ranks.lateness import Lateness
from nsysdiag.analysis.ranks.timeline import RankTimeline
from nsysdiag.model_ranks import RankWait, Straggler


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
