"""Ranks compared, step by step: match, align clocks, confirm, find who is late; the sentence on it, and on findings."""

from __future__ import annotations

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals, intersect
from nsysdiag.causes import CAUSES
from nsysdiag.events.collectives import KINDS
from nsysdiag.ranks.clocks import WORK, RankClocks, RankTimeline, bring_together
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, Straggler
from nsysdiag.ranks.matching import candidates, communicator_name, confirmed
from nsysdiag.ranks.stragglers import CollectiveLateness, lateness_of, rank_waits, stragglers
from nsysdiag.units import format_ns, format_share

COMPARED = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns", "wait_ns")
EVEN, WORTH_SAYING = 0.01, 0.05
COLLECTIVES, ITERATIONS, WINDOW = "collectives", "iterations", "window"
WORK_TITLES = {
    "compute": "compute",
    "exposed_comm": "exposed communication",
    "exposed_copy": "exposed copies",
}


def compare_ranks(ranks: list[RankTimeline]) -> RankComparison:
    """Of at least two ranks. Where no collectives match, `groups` is empty and the windows are compared as they are."""
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
    """From the first to the last iteration of each rank, where all have as many of one name; nothing where not."""
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
    compute, communication, copies = (intersect(span, rank.parts[name]).total() for name in WORK)
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
    """The ranks with least and with most time of their own; none where that is even."""
    own = sorted((row.span_ns - row.exposed_comm_ns, row.rank) for row in rows)
    uneven = own[-1][0] - own[0][0] > EVEN * own[-1][0]
    return (own[0][1], own[-1][1]) if uneven else (None, None)


def _imbalance(values: list[int]) -> float:
    mean = sum(values) / len(values)
    return round((max(values) - min(values)) / mean, 6) if mean else 0.0


def _sentence(found: list[CollectiveLateness], late: list[Straggler], clocks: RankClocks) -> str:
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
    # The two largest reasons; the second one only where it matters.
    largest = [(name, ns) for name, ns in times.items() if name and ns >= WORTH_SAYING * whole][:2]
    why = ", ".join(f"{format_share(ns, whole)} {_title(name)}" for name, ns in largest)
    collectives = "collective" if first.of == 1 else "collectives"
    return (
        f"{typed.rank(first.rank)} is late for {first.late:,} of {first.of:,} {collectives}, "
        f"by {format_ns(first.late_ns)} in all, "
        f"and the others wait {format_ns(first.caused_ns)} for it{f'. Why: {why}' if why else ''}."
    )


def _title(name: str) -> str:
    """Work or a cause of idle time in the middle of a sentence."""
    return WORK_TITLES.get(name) or (CAUSES[name].title.lower() if name in CAUSES else name)
