"""Stragglers: ranks that are late for collectives, how long others wait for them, and why they are late.

```
                 in step                          more than half begin      the late one begins
rank in middle   [AllReduce)  work                  [AllReduce .................)
late rank        [AllReduce)  host code . more work                  [AllReduce)
                 |------------ more: since they were in step --------|
                                                    |- meanwhile ----|
```

A delay often happens early and only shows at the end. So `more` compares all that both ranks did since the start of the
last collective that they began together: between these points of the program both do the same work. Without a recent
one, it compares what they did since the end of the previous collective.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage
from nsysdiag.ledger.ledger import UNRESOLVED
from nsysdiag.ranks.clocks import MatchedCollectives, RankClocks, RankTimeline
from nsysdiag.ranks.facts import RankWait, Straggler

LEAST_LATE_NS = 20_000  # what launches differ by without any rank being late
MOST_BACK = 16
Times = dict[str, int]
"""ns by work or cause of idle time."""


class CollectiveLateness(Struct, frozen=True, eq=False):
    """A group with derived values for each collective. `wait` has a row per member. `last` and `middle` are rows: of
    the rank that began last, and of the one with which more than half of the others had begun. `late`: the last one is
    late by `late_by`, more than the clock error `doubt_ns`."""

    group: MatchedCollectives
    wait: IntArray
    transfer: IntArray
    last: IntArray
    middle: IntArray
    late_by: IntArray
    late: BoolArray
    doubt_ns: int
    spread_ns: int


def lateness_of(group: MatchedCollectives, clocks: RankClocks) -> CollectiveLateness:
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
    return CollectiveLateness(
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


def rank_waits(ranks: list[RankTimeline], found: list[CollectiveLateness], late: list[Straggler]) -> list[RankWait]:
    """One row for each pair of ranks of which one waited for the other; one for a rank's waits without a single late
    rank; most time first."""
    total = np.zeros((len(ranks), len(ranks) + 1), dtype=np.int64)
    for each in found:
        members = np.array(each.group.members)
        for row, rank in enumerate(each.group.members):
            blamed = np.where(each.late, members[each.last], len(ranks))
            np.add.at(total[rank], blamed, each.wait[row])
    reasons = {each.rank: each.more or each.meanwhile for each in late}
    rows = []
    for at, other in zip(*(side.tolist() for side in np.nonzero(total)), strict=True):
        ns, late_rank = int(total[at, other]), ranks[other].rank if other < len(ranks) else None
        causes = divided(ns, reasons.get(late_rank, {})) if late_rank is not None else {}
        rows.append(RankWait(rank=ranks[at].rank, late_rank=late_rank, wait_ns=ns, causes=causes))
    return sorted(rows, key=lambda row: (-row.wait_ns, row.rank, row.late_rank or ""))


def divided(ns: int, shares: Times) -> Times:
    """`ns` in proportion to `shares`, to the nanosecond: what rounding leaves goes to the largest."""
    whole = sum(shares.values())
    if not whole:
        return {}
    parts = {name: ns * share // whole for name, share in shares.items()}
    largest = max(shares, key=lambda name: shares[name])
    parts[largest] += ns - sum(parts.values())
    return {name: part for name, part in parts.items() if part}


class _Delays(Struct, frozen=True, eq=False):
    """The collectives of one group that the rank in row `row` was late for."""

    lateness: CollectiveLateness
    row: int
    column: IntArray

    @property
    def late_by(self) -> IntArray:
        """ns, for each of them."""
        return self.lateness.late_by[self.column]


def stragglers(ranks: list[RankTimeline], clocks: RankClocks, found: list[CollectiveLateness]) -> list[Straggler]:
    """One row a rank that was late for any collective, the most costly first."""
    rows = []
    for at, rank in enumerate(ranks):
        own = [(each, each.group.members.index(at)) for each in found if at in each.group.members]
        delays = [_Delays(each, row, np.flatnonzero(each.late & (each.last == row))) for each, row in own]
        delays = [each for each in delays if len(each.column)]
        if delays:
            rows.append(_straggler(ranks, clocks, rank, delays, of=sum(len(each.group) for each, _ in own)))
    return sorted(rows, key=lambda row: (-row.caused_ns, row.rank))


def _straggler(
    ranks: list[RankTimeline], clocks: RankClocks, rank: RankTimeline, delays: list[_Delays], of: int
) -> Straggler:
    more, meanwhile = _more(ranks, clocks, delays), _meanwhile(rank, clocks, delays)
    worst = max(delays, key=lambda each: int(each.late_by.max()))
    longest = int(worst.column[np.argmax(worst.late_by)])
    return Straggler(
        rank=rank.rank,
        late=sum(len(each.column) for each in delays),
        of=of,
        late_ns=sum(int(each.late_by.sum()) for each in delays),
        caused_ns=sum(int(each.lateness.wait[:, each.column].sum()) for each in delays),
        more=more,
        meanwhile=meanwhile,
        confidence=_confidence(delays, more or meanwhile),
        worst_start_ns=int(worst.lateness.group.start[worst.row, longest]),
        worst_ns=int(worst.lateness.late_by[longest]),
    )


def _meanwhile(rank: RankTimeline, clocks: RankClocks, delays: list[_Delays]) -> Times:
    """What the late rank did since more than half of the others had begun."""
    total: defaultdict[str, int] = defaultdict(int)
    for each in delays:
        start, column = each.lateness.group.start, each.column
        spans = Intervals(start[each.lateness.middle[column], column], start[each.row, column])
        for name, ns in _did(rank, clocks.own(each.lateness.group.members[each.row], spans)).items():
            total[name] += int(ns.sum())
    return _most_first(total)


def _more(ranks: list[RankTimeline], clocks: RankClocks, delays: list[_Delays]) -> Times:
    """What the late rank had more of than the median rank: the differences of each delay explain as much of it as
    possible. Differences that cancel out over all delays are noise."""
    total: defaultdict[str, float] = defaultdict(float)
    for each in delays:
        column = each.column[each.column > 0]
        for middle in np.unique(each.lateness.middle[column]).tolist():
            its = column[each.lateness.middle[column] == middle]
            differences = _differences(ranks, clocks, each.lateness, each.row, middle, its)
            explained = sum(np.maximum(ns, 0) for ns in differences.values())
            weight = each.lateness.late_by[its] / np.maximum(explained, 1)
            for name, ns in differences.items():
                total[name] += float((ns * weight).sum())
    positive = {name: round(ns) for name, ns in total.items() if ns >= 1}
    return _most_first(divided(sum(int(each.late_by.sum()) for each in delays), positive))


def _differences(
    ranks: list[RankTimeline], clocks: RankClocks, lateness: CollectiveLateness, late: int, other: int, column: IntArray
) -> dict[str, IntArray]:
    """What the rank in row `late` did more (or, below 0, less) than that in row `other` before each collective: since
    they began one together, or, if that is too long ago, since the end of the previous one."""
    start, end = lateness.group.start, lateness.group.end
    in_step = np.abs(start[late] - start[other]) <= lateness.doubt_ns
    last = np.maximum.accumulate(np.where(in_step, np.arange(len(in_step)), -1))[column - 1]
    recent = (last >= 0) & (column - last <= MOST_BACK)

    def did(row: int) -> dict[str, IntArray]:
        rank = lateness.group.members[row]
        since = np.where(recent, start[row, last], end[row, column - 1])
        return _did(ranks[rank], clocks.own(rank, Intervals(since, start[row, column])))

    mine, theirs = did(late), did(other)
    nothing = np.zeros(len(column), dtype=np.int64)
    return {name: mine.get(name, nothing) - theirs.get(name, nothing) for name in {**mine, **theirs}}


def _did(rank: RankTimeline, spans: Intervals) -> dict[str, IntArray]:
    """ns in each span by work or cause; `spans` on the rank's own clock."""
    return {name: coverage(part, spans) for name, part in rank.parts.items()}


def _most_first(times: Times) -> Times:
    return dict(sorted(((name, ns) for name, ns in times.items() if ns), key=lambda item: (-item[1], item[0])))


def _confidence(delays: list[_Delays], times: Times) -> float:
    """0..1: the share of delays whose rank also ran the collective for the shortest time, times the share of `times`
    with a cause. The last rank has the shortest run whatever the clocks, as all end together."""
    agreed = total = 0
    for each in delays:
        shortest = each.lateness.wait[each.row, each.column] <= each.lateness.doubt_ns
        agreed, total = agreed + int(each.late_by[shortest].sum()), total + int(each.late_by.sum())
    whole, unresolved = sum(times.values()), sum(ns for name, ns in times.items() if name in UNRESOLVED)
    return round((agreed / total if total else 0.0) * (1 - unresolved / whole if whole else 0.0), 4)
