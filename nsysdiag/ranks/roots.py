"""Why a rank came late: what it did while the others waited, and what it had more of than the rank in the middle.

```
                 in step                          more than half begin      the late one begins
rank in middle   [AllReduce)  work                  [AllReduce .................)
late rank        [AllReduce)  host code . more work                  [AllReduce)
                 |------------ more: since they were in step --------|
                                                    |- meanwhile ----|
```

A delay is often caught early and only shows at the end: `more` compares all that either did from the start of the last
collective that they began together, between which points of the program both do the same work. Where there was none of
late, it compares what they did since they left the one before together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage
from nsysdiag.ledger.ledger import UNRESOLVED
from nsysdiag.ranks.clocks import Clocks
from nsysdiag.ranks.facts import Straggler
from nsysdiag.ranks.lateness import Lateness, divided
from nsysdiag.ranks.timeline import RankTimeline

Times = dict[str, int]
MOST_BACK = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Delays:
    """The collectives of one group that the rank in row `row` was late for."""

    lateness: Lateness
    row: int
    column: IntArray


def stragglers(ranks: list[RankTimeline], clocks: Clocks, found: list[Lateness]) -> list[Straggler]:
    """One row a rank that was late for any collective, the most costly first."""
    rows = []
    for at, rank in enumerate(ranks):
        delays = [_delays(each, each.group.members.index(at)) for each in found if at in each.group.members]
        delays = [each for each in delays if len(each.column)]
        if delays:
            of = sum(len(each.group) for each in found if at in each.group.members)
            rows.append(_straggler(ranks, clocks, rank, delays, of))
    return sorted(rows, key=lambda row: (-row.caused_ns, row.rank))


def _delays(lateness: Lateness, row: int) -> _Delays:
    return _Delays(lateness, row, np.flatnonzero(lateness.late & (lateness.last == row)))


def _straggler(
    ranks: list[RankTimeline], clocks: Clocks, rank: RankTimeline, delays: list[_Delays], of: int
) -> Straggler:
    more, meanwhile = _more(ranks, clocks, delays), _meanwhile(rank, clocks, delays)
    late_by = [each.lateness.late_by[each.column] for each in delays]
    worst = max(delays, key=lambda each: int(each.lateness.late_by[each.column].max()))
    longest = int(worst.column[np.argmax(worst.lateness.late_by[worst.column])])
    return Straggler(
        rank=rank.rank,
        late=sum(len(each.column) for each in delays),
        of=of,
        late_ns=sum(int(ns.sum()) for ns in late_by),
        caused_ns=sum(int(each.lateness.wait[:, each.column].sum()) for each in delays),
        more=more,
        meanwhile=meanwhile,
        confidence=round(_agreement(delays) * _resolved(more or meanwhile), 4),
        worst_start_ns=int(worst.lateness.group.start[worst.row, longest]),
        worst_ns=int(worst.lateness.late_by[longest]),
    )


def _meanwhile(rank: RankTimeline, clocks: Clocks, delays: list[_Delays]) -> Times:
    total: Times = {}
    for each in delays:
        start, column = each.lateness.group.start, each.column
        spans = Intervals(start[each.lateness.middle[column], column], start[each.row, column])
        for name, ns in _did(rank, clocks.own(each.lateness.group.members[each.row], spans)).items():
            total[name] = total.get(name, 0) + int(ns.sum())
    return _most_first(total)


def _more(ranks: list[RankTimeline], clocks: Clocks, delays: list[_Delays]) -> Times:
    """In proportion to how late the rank was each time; what cancels out over all delays is noise."""
    total: dict[str, float] = {}
    for each in delays:
        column = each.column[each.column > 0]
        for row in np.unique(each.lateness.middle[column]).tolist():
            its = column[each.lateness.middle[column] == row]
            _gather(total, _differences(ranks, clocks, each.lateness, each.row, row, its), each.lateness.late_by[its])
    positive = {name: round(ns) for name, ns in total.items() if ns >= 1}
    late_ns = sum(int(each.lateness.late_by[each.column].sum()) for each in delays)
    return _most_first(divided(late_ns, positive))


def _gather(total: dict[str, float], differences: dict[str, IntArray], late_by: IntArray) -> None:
    """Adds the differences of each delay, which explain as much of it as they can: all of it together."""
    explained = sum(np.maximum(each, 0) for each in differences.values())
    weight = late_by / np.maximum(explained, 1)
    for name, each in differences.items():
        total[name] = total.get(name, 0.0) + float((each * weight).sum())


def _differences(
    ranks: list[RankTimeline], clocks: Clocks, lateness: Lateness, late: int, other: int, column: IntArray
) -> dict[str, IntArray]:
    """What the rank in row `late` did more (or, below 0, less) than that in row `other` before each collective."""
    mine, theirs = (
        _did(ranks[rank], clocks.own(rank, spans))
        for rank, spans in zip(
            (lateness.group.members[late], lateness.group.members[other]),
            _since_in_step(lateness, late, other, column),
            strict=True,
        )
    )
    nothing = np.zeros(len(column), dtype=np.int64)
    return {name: mine.get(name, nothing) - theirs.get(name, nothing) for name in {**mine, **theirs}}


def _since_in_step(lateness: Lateness, late: int, other: int, column: IntArray) -> tuple[Intervals, Intervals]:
    """Of both rows, the time up to each collective since they began one together; since the end of the one before where
    that is too long ago."""
    start, end = lateness.group.start, lateness.group.end
    in_step = np.abs(start[late] - start[other]) <= lateness.doubt_ns
    last = np.maximum.accumulate(np.where(in_step, np.arange(len(in_step)), -1))[column - 1]
    recent = (last >= 0) & (column - last <= MOST_BACK)
    since = [np.where(recent, start[row, last], end[row, column - 1]) for row in (late, other)]
    return Intervals(since[0], start[late, column]), Intervals(since[1], start[other, column])


def _did(rank: RankTimeline, spans: Intervals) -> dict[str, IntArray]:
    return {name: coverage(part, spans) for name, part in rank.parts.items()}


def _most_first(times: Times) -> Times:
    return dict(sorted(((name, ns) for name, ns in times.items() if ns), key=lambda item: (-item[1], item[0])))


def _agreement(delays: Iterable[_Delays]) -> float:
    """The share of the delays whose rank also ran the collective for the shortest time: where all end together, who
    comes last stays shortest, whatever the clocks say."""
    agreed = total = 0
    for each in delays:
        late_by = each.lateness.late_by[each.column]
        shortest = each.lateness.wait[each.row, each.column] <= each.lateness.doubt_ns
        agreed, total = agreed + int(late_by[shortest].sum()), total + int(late_by.sum())
    return agreed / total if total else 0.0


def _resolved(times: Times) -> float:
    total = sum(times.values())
    return 1 - sum(ns for name, ns in times.items() if name in UNRESOLVED) / total if total else 0.0
