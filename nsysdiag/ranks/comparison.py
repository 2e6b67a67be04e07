"""Ranks compared, step by step: match, align clocks, confirm, find who is late; the sentence on it, and on findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, common_ns, coverage, intersect
from nsysdiag.causes import CAUSES
from nsysdiag.events.collectives import KINDS
from nsysdiag.fields import Sentence
from nsysdiag.ledger.ledger import UNRESOLVED
from nsysdiag.ranks.clocks import MatchedCollectives, RankClocks, RankTimeline, bring_together
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, RankWait, Straggler
from nsysdiag.ranks.matching import candidates, communicator_name, confirmed
from nsysdiag.time.facts import WORK
from nsysdiag.typed import say
from nsysdiag.units import format_ns, format_share

# Stragglers: ranks that are late for collectives, how long others wait for them, and why they are late.
#
# ```
#                  in step                          more than half begin      the late one begins
# rank in middle   [AllReduce)  work                  [AllReduce .................)
# late rank        [AllReduce)  host code . more work                  [AllReduce)
#                  |------------ more: since they were in step --------|
#                                                     |- meanwhile ----|
# ```
#
# A delay often happens early and only shows at the end. So `more` compares all that both ranks did since the start of
# the last collective that they began together: between these points of the program both do the same work. Without a
# recent one, it compares what they did since the end of the previous collective.

LEAST_LATE_NS = 20_000
"""What launches differ by, in ns, without any rank being late. If smaller, ranks are blamed for chance; if larger,
shorter delays have no explanation."""
MOST_BACK = 16
"""Collectives between a delay and the last one that both ranks began together. If larger, differences of other
collectives are in the sum, too; if smaller, delays that began early show only as what the rank did last."""
COMPUTE = "compute"
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
    """The collectives `column` of one group that the rank in row `row` was late for."""

    ranks: list[RankTimeline]
    clocks: RankClocks
    lateness: CollectiveLateness
    row: int
    column: IntArray

    @property
    def late_by(self) -> IntArray:
        """ns, for each of them."""
        return self.lateness.late_by[self.column]

    def did(
        self, row: int, since: IntArray, until: IntArray, names: Iterable[str] | None = None
    ) -> dict[str, IntArray]:
        """ns by work or cause, all or those in `names`, that the rank in `row` spent between moments of the common
        clock."""
        at = self.lateness.group.members[row]
        spans, parts = self.clocks.own(at, Intervals(since, until)), self.ranks[at].parts
        return {name: coverage(parts[name], spans) for name in names or parts}


def stragglers(ranks: list[RankTimeline], clocks: RankClocks, found: list[CollectiveLateness]) -> list[Straggler]:
    """One row a rank that was late for any collective, the most costly first."""
    rows = []
    for at, rank in enumerate(ranks):
        own = [(each, each.group.members.index(at)) for each in found if at in each.group.members]
        columns = [np.flatnonzero(each.late & (each.last == row)) for each, row in own]
        delays = [
            _Delays(ranks, clocks, *each, column) for each, column in zip(own, columns, strict=True) if len(column)
        ]
        if delays:
            rows.append(_straggler(rank.rank, delays, of=sum(len(each.group) for each, _ in own)))
    return sorted(rows, key=lambda row: (-row.caused_ns, row.rank))


def _straggler(rank: str, delays: list[_Delays], of: int) -> Straggler:
    more, meanwhile = _more(delays), _meanwhile(delays)
    worst = max(delays, key=lambda each: int(each.late_by.max()))
    longest = int(worst.column[np.argmax(worst.late_by)])
    return Straggler(
        rank=rank,
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


def _meanwhile(delays: list[_Delays]) -> Times:
    """What the late rank did since more than half of the others had begun."""
    total: Counter[str] = Counter()
    for each in delays:
        start, column = each.lateness.group.start, each.column
        did = each.did(each.row, start[each.lateness.middle[column], column], start[each.row, column])
        total.update({name: int(ns.sum()) for name, ns in did.items()})
    return _most_first(total)


def _more(delays: list[_Delays]) -> Times:
    """What the late rank had more of than the median rank: the differences of each delay explain as much of it as
    possible. Differences that cancel out over all delays are noise."""
    total: defaultdict[str, float] = defaultdict(float)
    for each in delays:
        column = each.column[each.column > 0]
        for middle in distinct_values(each.lateness.middle[column]).tolist():
            its = replace(each, column=column[each.lateness.middle[column] == middle])
            differences = _differences(its, middle)
            explained = sum(np.maximum(ns, 0) for ns in differences.values())
            weight = its.late_by / np.maximum(explained, 1)
            ahead = _computed_ahead(its, middle)
            for name, ns in differences.items():
                total[name] += float(((ns - ahead if name == COMPUTE else ns) * weight).sum())
    positive = {name: round(ns) for name, ns in total.items() if ns >= 1}
    return _most_first(divided(sum(int(each.late_by.sum()) for each in delays), positive))


def _differences(late: _Delays, other: int) -> dict[str, IntArray]:
    """What the late rank did more (or, below 0, less) than that in row `other` before each collective: since they began
    one together, or, if that is too long ago, since the end of the previous one."""
    start, end = late.lateness.group.start, late.lateness.group.end
    last = _last_in_step(late, other)

    def did(row: int) -> dict[str, IntArray]:
        since = np.where(last >= 0, start[row, last], end[row, late.column - 1])
        return late.did(row, since, start[row, late.column])

    mine, theirs = did(late.row), did(other)
    nothing = np.zeros(len(late.column), dtype=np.int64)
    return {name: mine.get(name, nothing) - theirs.get(name, nothing) for name in {**mine, **theirs}}


def _computed_ahead(late: _Delays, other: int) -> IntArray:
    """How much longer the rank in row `other` than the late one computed during the collective before each, in ns: the
    late one does so after it. That is not a reason to be late: it was late before. 0 if both are compared since they
    began a collective together.

    ```
    late   [input ...........)[forward)[==1==)[backward)[==2==)
    other  [forward)[=========1==============)          [==2==)
                     [backward)                                     ahead: backward
    ```
    """
    group, before = late.lateness.group, late.column - 1
    mine, theirs = (
        late.did(row, group.start[row, before], group.end[row, before], [COMPUTE])[COMPUTE] for row in (late.row, other)
    )
    return np.where(_last_in_step(late, other) < 0, np.maximum(theirs - mine, 0), 0)


def _last_in_step(late: _Delays, other: int) -> IntArray:
    """The last collective before each that the late rank and that in row `other` began together; -1 if that is too long
    ago."""
    start = late.lateness.group.start
    in_step = np.abs(start[late.row] - start[other]) <= late.lateness.doubt_ns
    last = np.maximum.accumulate(np.where(in_step, np.arange(len(in_step)), -1))[late.column - 1]
    return np.where(late.column - last <= MOST_BACK, last, -1)


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


COMPARED = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns", "wait_ns")
EVEN, WORTH_SAYING = 0.01, 0.05
"""Of the longest own time: ranks that differ by less have no fastest and slowest one. Of a delay: a reason with a
smaller share is not named in the sentence."""
COLLECTIVES, ITERATIONS, WINDOW = "collectives", "iterations", "window"
WORK_TITLES = {COMPUTE: "compute", "exposed_comm": "exposed communication", "exposed_copy": "exposed copies"}


def compare_ranks(ranks: list[RankTimeline]) -> RankComparison:
    """Of at least two ranks. If no collectives match, `groups` is empty and the windows are compared as they are."""
    proposed, unmatched = candidates(ranks)
    clocks = bring_together(ranks, proposed)
    groups, apart = confirmed(ranks, proposed, clocks)
    found = [lateness_of(group, clocks) for group in groups]
    late = stragglers(ranks, clocks, found)
    basis, spans = _spans(ranks, clocks, found)
    rows = [_row(ranks, clocks, found, late, at, spans[at]) for at in range(len(ranks))]
    fastest, slowest = _ends(rows) if basis != WINDOW else (None, None)
    return RankComparison(
        basis=basis,
        sentence=_sentence(found, late, clocks),
        ranks=rows,
        groups=[
            CollectiveGroup(
                kind=KINDS[each.group.kind],
                communicator=communicator_name(each.group.communicator),
                ranks=[ranks[member].rank for member in each.group.members],
                count=len(each.group),
                transfer_ns=int(each.transfer.sum()),
                wait_ns=int(each.wait.sum()),
                spread_ns=each.spread_ns,
                late=int(np.count_nonzero(each.late)),
            )
            for each in found
        ],
        unmatched=[*unmatched, *apart],
        stragglers=late,
        waits=rank_waits(ranks, found, late),
        imbalance={name: _imbalance([getattr(row, name) for row in rows]) for name in COMPARED},
        slowest=slowest,
        fastest=fastest,
        clock=clocks.how,
        clock_error_ns=clocks.largest_error,
    )


def _spans(
    ranks: list[RankTimeline], clocks: RankClocks, found: list[CollectiveLateness]
) -> tuple[str, list[Intervals]]:
    """The compared time of each rank, on its own clock: from the end of the first to the end of the last collective
    common to all ranks, equally long for all."""
    whole = [each.group for each in found if len(each.group.members) == len(ranks) and len(each.group) > 1]
    if not whole:
        steps = _iterations(ranks)
        return (ITERATIONS, steps) if steps else (WINDOW, [rank.window for rank in ranks])
    low = min(whole, key=lambda group: int(group.end[:, 0].max()))
    high = max(whole, key=lambda group: int(group.end[:, -1].max()))
    spans = []
    for at in range(len(ranks)):
        start, end = low.end[low.members.index(at), 0], high.end[high.members.index(at), -1]
        span = clocks.own(at, Intervals.of([(int(start), int(end))]))
        spans.append(intersect(span, ranks[at].window))
    return COLLECTIVES, spans


def _iterations(ranks: list[RankTimeline]) -> list[Intervals]:
    """From the first to the last iteration of each rank, if all have as many of one name; nothing if not."""
    found = [rank.iterations for rank in ranks if rank.iterations is not None and rank.iterations.closed]
    if len(found) < len(ranks) or len({(each.source, each.name, each.count) for each in found}) > 1:
        return []
    reach = [(min(row.start_ns for row in each.rows), max(row.end_ns for row in each.rows)) for each in found]
    return [intersect(Intervals.of([each]), rank.window) for each, rank in zip(reach, ranks, strict=True)]


def _row(
    ranks: list[RankTimeline],
    clocks: RankClocks,
    found: list[CollectiveLateness],
    late: list[Straggler],
    at: int,
    span: Intervals,
) -> RankRow:
    rank = ranks[at]
    own = [(each, each.group.members.index(at)) for each in found if at in each.group.members]
    straggler = next((each for each in late if each.rank == rank.rank), None)
    compute, communication, copies = (common_ns(span, rank.parts[name]) for name in WORK)
    return RankRow(
        rank=rank.rank,
        file=rank.file,
        device=rank.device,
        name=rank.name,
        offset_ns=clocks.shift[at].ns,
        offset_error_ns=clocks.error[at],
        span_start_ns=int(clocks.shift[at].forward(span.start[:1])[0]) if len(span) else 0,
        span_ns=span.total(),
        compute_ns=compute,
        exposed_comm_ns=communication,
        exposed_copy_ns=copies,
        idle_ns=span.total() - compute - communication - copies,
        collectives=len(rank.collectives),
        matched=sum(len(each.group) for each, _ in own),
        wait_ns=sum(int(each.wait[row].sum()) for each, row in own),
        transfer_ns=sum(int(each.transfer.sum()) for each, _ in own),
        late=straggler.late if straggler else 0,
        late_ns=straggler.late_ns if straggler else 0,
        caused_ns=straggler.caused_ns if straggler else 0,
        drift_ppm=round(1e6 * clocks.shift[at].rate, 3) + 0.0,  # never -0.0
    )


def _ends(rows: list[RankRow]) -> tuple[str | None, str | None]:
    """The ranks with least and with most time of their own; none if that is even."""
    own = sorted((row.span_ns - row.exposed_comm_ns, row.rank) for row in rows)
    uneven = own[-1][0] - own[0][0] > EVEN * own[-1][0]
    return (own[0][1], own[-1][1]) if uneven else (None, None)


def _imbalance(values: list[int]) -> float:
    mean = sum(values) / len(values)
    return round((max(values) - min(values)) / mean, 6) if mean else 0.0


def _sentence(found: list[CollectiveLateness], late: list[Straggler], clocks: RankClocks) -> Sentence:
    if not found:
        return "No collective of one rank could be matched with a collective of another rank."
    unknown = any(clocks.error_between(each.group.members) is None for each in found)
    if not late and unknown:
        return "Collectives match, but the clock offset is unknown, and so is which rank is late."
    count = sum(len(each.group) for each in found)
    if not late:
        doubt = format_ns(max(each.doubt_ns for each in found))
        return f"No rank is late by more than {doubt}, the smallest measurable delay, for any of {count:,} collectives."
    first = late[0]
    times = first.more or first.meanwhile
    whole = sum(times.values())
    # The two largest reasons; the second one only if it matters.
    largest = [(name, ns) for name, ns in times.items() if name and ns >= WORTH_SAYING * whole][:2]
    why = ", ".join(f"{format_share(ns, whole)} {_title(name)}" for name, ns in largest)
    collectives = "collective" if first.of == 1 else "collectives"
    return say(
        "{} is late for {:,} of {:,} {}, by {} in all, and the others wait {} for it{}.",
        typed.rank(first.rank),
        first.late,
        first.of,
        collectives,
        format_ns(first.late_ns),
        format_ns(first.caused_ns),
        f". Why: {why}" if why else "",
    )


def _title(name: str) -> str:
    """Work or a cause of idle time in the middle of a sentence."""
    return WORK_TITLES.get(name) or (CAUSES[name].title.lower() if name in CAUSES else name)
