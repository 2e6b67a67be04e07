"""Matches the collectives of ranks: by communicator if the trace has it, else by order.

Candidates have the same communicator, kind and number (`candidates`), and are kept if they ran at the same time
(`confirmed`): a collective runs on all of its ranks at once after the last one has entered.

```
rank 0   [==========)
rank 1        [=====)         met
rank 2                [===)   did not: another communicator, or another of their order
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, contains
from nsysdiag.events.collectives import KINDS, MEETINGS
from nsysdiag.fields import Sentence
from nsysdiag.ranks.clocks import MatchedCollectives, RankClocks, RankTimeline
from nsysdiag.typed import joined, say

MOST_NAMED = 4
"""Ranks that a sentence on unmatched collectives names; the others are counted. It changes only the length of the
sentence."""
Rows = dict[int, IntArray]
"""By rank, the rows of some of its collectives."""


def candidates(ranks: list[RankTimeline]) -> tuple[list[MatchedCollectives], list[Sentence]]:
    """What may belong together by communicator, kind and number, and in words what cannot. Whether they met is for
    their times to say."""
    groups: list[MatchedCollectives] = []
    refusals: list[Sentence] = []
    for communicator, kind in _communicators_and_kinds(ranks):
        of_kind = [(rank.collectives.communicator == communicator) & (rank.collectives.kind == kind) for rank in ranks]
        rows = {at: np.flatnonzero(its) for at, its in enumerate(of_kind) if its.any()}
        cut = _recorded_together(ranks, rows)
        for count in sorted({len(own) for own in cut.values()}):
            same_number = {at: own for at, own in cut.items() if len(own) == count}
            for each in [same_number] if communicator else _by_stream(ranks, same_number):
                if len(each) > 1:
                    start = np.stack([ranks[at].collectives.start[own] for at, own in each.items()])
                    end = np.stack([ranks[at].collectives.end[own] for at, own in each.items()])
                    groups.append(MatchedCollectives(kind, communicator, list(each), start, end))
        refusals += _refused(ranks, kind, communicator, rows, cut)
    return groups, refusals


def _communicators_and_kinds(ranks: list[RankTimeline]) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for rank in ranks:
        numbers, number = distinct(rank.collectives.communicator)
        pairs = distinct_values(number * len(KINDS) + rank.collectives.kind)
        found |= {(int(numbers[pair // len(KINDS)]), pair % len(KINDS)) for pair in pairs.tolist()}
    return sorted(found)


def _recorded_together(ranks: list[RankTimeline], rows: Rows) -> Rows:
    """All rows cut to the collectives common to the rank with fewest and those that can be aligned with it; ambiguous
    rows are unchanged."""
    if len(rows) < 2:
        return rows
    shortest = min(rows, key=lambda at: len(rows[at]))
    ends = {at: ranks[at].collectives.end[own] for at, own in rows.items()}
    found = {at: move_of(ends[shortest], ends[at]) for at in rows}
    moves = {at: move for at, move in found.items() if move is not None}
    low = max(-move for move in moves.values())
    high = min(len(rows[at]) - move for at, move in moves.items())
    if high <= low:
        return rows
    return rows | {at: rows[at][low + move : high + move] for at, move in moves.items()}


def _by_stream(ranks: list[RankTimeline], rows: Rows) -> list[Rows]:
    """Without communicators: the streams, if all ranks have equally many streams with equally many collectives on each,
    as most programs use one stream per communicator. Streams match whose ends have the most constant distance.

    ```
    rank 0   stream 7  [A)   [A)  [A)      stream 8   [B)    [B)[B)
    rank 1   stream 9  [A)   [A)  [A)      stream 5   [B)    [B)[B)
    ```
    """
    streams: dict[int, list[IntArray]] = {}
    for at, own in rows.items():
        stream = ranks[at].collectives.stream[own]
        codes, first_use = np.unique(stream, return_index=True)
        streams[at] = [own[stream == code] for code in codes[np.argsort(first_use)].tolist()]
    if len({tuple(sorted(map(len, parts))) for parts in streams.values()}) != 1:
        return [rows]
    ends = {at: [ranks[at].collectives.end[own] for own in parts] for at, parts in streams.items()}
    first = next(iter(streams))
    partner = {at: _partners(ends[first], ends[at]) for at in streams}
    return [{at: streams[at][partner[at][stream]] for at in streams} for stream in range(len(streams[first]))]


def _partners(first: list[IntArray], other: list[IntArray]) -> dict[int, int]:
    """For each stream of one rank that of the other one; the surest are paired first."""
    pairs = []
    for at, ends in enumerate(first):
        for place, theirs in enumerate(other):
            if len(ends) == len(theirs):
                apart = ends - theirs
                pairs.append((float(np.abs(apart - np.median(apart)).sum()), at, place))
    found: dict[int, int] = {}
    for _, at, place in sorted(pairs):
        if at not in found and place not in found.values():
            found[at] = place
    return found


def _refused(ranks: list[RankTimeline], kind: int, communicator: int, rows: Rows, cut: Rows) -> list[Sentence]:
    """In words, the ranks whose number no other rank has, and the collectives that only some ranks recorded."""
    name = KINDS[kind] + (f" on communicator {communicator_name(communicator)}" if communicator else "")
    lines: list[Sentence] = [
        say(
            "{}: {:,} of {:,} of {} are outside what another rank recorded",
            name,
            len(own) - len(cut[at]),
            len(own),
            _shown(ranks[at]),
        )
        for at, own in rows.items()
        if len(cut[at]) < len(own)
    ]
    shared = Counter(len(own) for own in cut.values())
    alone = [say("{} ran {:,}", _shown(ranks[at]), len(own)) for at, own in cut.items() if shared[len(own)] == 1]
    if not alone:
        return lines
    other_numbers = "their counts differ from the other ranks', so they cannot be matched by order"
    return [
        *lines,
        say("{}: {}: {}", name, _listed(alone), "no other rank ran any" if len(rows) == 1 else other_numbers),
    ]


def _shown(rank: RankTimeline) -> Sentence:
    return typed.rank(rank.rank)


def _listed(names: Sequence[Sentence]) -> Sentence:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return joined(", ", names[:MOST_NAMED]) + more


def communicator_name(communicator: int) -> str | None:
    """The number as NCCL writes it, None for none."""
    return f"0x{communicator & (1 << 64) - 1:x}" if communicator else None


FEWEST, MOST_MOVES, CLEARLY, ALIKE_NS = 8, 256, 4, 1_000
"""Collectives that must be opposite each other at a place, and the places that are tried in each direction. The best
place must be CLEARLY times steadier than the next one, or it is ambiguous. Spreads of up to ALIKE_NS are equally good:
clocks do not show more."""
MOST_COMPARED = 1_000
"""Collectives, evenly picked, whose distances are compared at each of the up to 513 places: it bounds the time. A round
number."""


def move_of(first: IntArray, other: IntArray) -> int | None:
    """By how much to move: other[k + move] is what first[k] is. Both are ends in ns, in order. 0 if both are as many
    and fit as they are; None if no place, or more than one, fits well."""
    if len(first) == len(other):  # without a look at all places: far better than the next ones, or as clocks can tell
        here = CLEARLY * _offset_spread(first, other, 0)
        if here <= CLEARLY * ALIKE_NS or here < min(_offset_spread(first, other, move) for move in (-1, 1)):
            return 0
    low, high = -min(MOST_MOVES, len(first) - 1), min(MOST_MOVES, len(other) - 1)
    unsteady = {move: _offset_spread(first, other, move) for move in range(low, high + 1)}
    best, *others = sorted(unsteady, key=lambda move: unsteady[move])
    if len(first) == len(other) and unsteady[0] <= CLEARLY * max(unsteady[best], ALIKE_NS):
        return 0
    clear = not others or CLEARLY * max(unsteady[best], ALIKE_NS) < unsteady[others[0]]
    return best if clear and np.isfinite(unsteady[best]) else None


def _offset_spread(first: IntArray, other: IntArray, move: int) -> float:
    """The median distance of all distances from the median one; infinite if too few collectives stand opposite each
    other to tell."""
    low, high = max(0, -move), min(len(first), len(other) - move)
    if high - low < max(FEWEST, min(len(first), len(other)) // 2):
        return np.inf
    some = distinct_values(np.linspace(low, high - 1, min(high - low, MOST_COMPARED)).astype(np.int64))
    apart = other[some + move] - first[some]
    return float(np.median(np.abs(apart - np.median(apart))))


LEAST_SHARE = 0.9
"""Of the collectives of two ranks: so many must run at the same time, or the ranks do not belong together. If smaller,
ranks of other communicators match; if larger, a few unclear ones separate ranks."""
LOOSE_NS = 1_000_000
"""How long, in ns, after a sender has ended a receiver may begin: what was sent waits in a buffer. If smaller, such
pairs are left out."""


def confirmed(
    ranks: list[RankTimeline], groups: list[MatchedCollectives], clocks: RankClocks
) -> tuple[list[MatchedCollectives], list[Sentence]]:
    """The groups on the common clock: each has ranks whose runs overlap in at least nine of ten of its collectives.
    Collectives without overlap or outside a window are left out. Also a sentence on ranks that match no other rank."""
    found: list[MatchedCollectives] = []
    refusals: list[Sentence] = []
    for group in groups:
        common = clocks.shifted(group)
        alone: list[int] = []
        for rows in _meeting(common, clocks):
            if len(rows) < 2:
                alone += rows
                continue
            part = common.only(rows)
            chosen = _met(part, clocks)
            for row in rows:
                chosen &= contains(ranks[group.members[row]].window, group.start[row])
            if chosen.any():
                found.append(part.at(chosen))
        if alone:
            names = _listed([_shown(ranks[group.members[row]]) for row in alone])
            refusals.append(
                say("{}: those of {} do not run at the same time as those of another rank", KINDS[group.kind], names)
            )
    return found, refusals


def _meeting(group: MatchedCollectives, clocks: RankClocks) -> list[list[int]]:
    """The rows of the group apart, each with the rows that meet the first of them."""
    left, parts = list(range(len(group.members))), []
    while left:
        part = [row for row in left if row == left[0] or _met(group.only([left[0], row]), clocks).mean() >= LEAST_SHARE]
        parts.append(part)
        left = [row for row in left if row not in part]
    return parts


def _met(group: MatchedCollectives, clocks: RankClocks) -> BoolArray:
    """In which of its collectives the members met; in all if it is not known how their clocks differ."""
    error = clocks.error_between(group.members)
    if error is None:
        return np.ones(len(group), dtype=np.bool_)
    slack = error + (0 if KINDS[group.kind] in MEETINGS else LOOSE_NS)
    return group.start.max(axis=0) < group.end.min(axis=0) + slack
