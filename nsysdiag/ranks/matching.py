"""Which collective of one rank is which of another: by communicator where the trace names it, else by their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.collectives import KINDS
from nsysdiag.events.streams import distinct, distinct_values
from nsysdiag.ranks.timeline import RankTimeline

MOST_NAMED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Collectives of one kind that `members` (indices of ranks) ran together. `start` and `end` are tables of ns with a
    row a member and a column a collective; `communicator` is 0 where the trace does not name it."""

    kind: int
    communicator: int
    members: list[int]
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return int(self.start.shape[1])

    def only(self, rows: list[int]) -> Group:
        """Some of the members, by their rows."""
        members = [self.members[row] for row in rows]
        return Group(self.kind, self.communicator, members, self.start[rows], self.end[rows])

    def at(self, columns: IntArray | BoolArray) -> Group:
        """Some of the collectives."""
        return Group(self.kind, self.communicator, self.members, self.start[:, columns], self.end[:, columns])


def candidates(ranks: list[RankTimeline]) -> tuple[list[Group], list[str]]:
    """What may belong together by communicator, kind and number, and in words what cannot. Whether they met is for
    their times to say."""
    groups: list[Group] = []
    refusals: list[str] = []
    for communicator, kind in _keys(ranks):
        rows = {at: _rows(rank, communicator, kind) for at, rank in enumerate(ranks)}
        rows = {at: own for at, own in rows.items() if len(own)}
        cut = _moved(ranks, rows)
        for part in _same_number(cut):
            streams = [part] if communicator else _by_stream(ranks, part)
            groups += [_group(ranks, kind, communicator, each) for each in streams if len(each) > 1]
        refusals += _refused(ranks, kind, communicator, rows, cut)
    return groups, refusals


def _keys(ranks: list[RankTimeline]) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for rank in ranks:
        numbers, number = distinct(rank.collectives.communicator)
        pairs = distinct_values(number * len(KINDS) + rank.collectives.kind)
        found |= {(int(numbers[pair // len(KINDS)]), pair % len(KINDS)) for pair in pairs.tolist()}
    return sorted(found)


def _rows(rank: RankTimeline, communicator: int, kind: int) -> IntArray:
    its = rank.collectives
    return np.flatnonzero((its.communicator == communicator) & (its.kind == kind))


def _moved(ranks: list[RankTimeline], rows: dict[int, IntArray]) -> dict[int, IntArray]:
    """All rows cut to what the rank with fewest and those that can be moved along it recorded together; those of which
    that is not clear stay as they are."""
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


def _same_number(rows: dict[int, IntArray]) -> Iterator[dict[int, IntArray]]:
    """The ranks apart by how many they ran."""
    for count in sorted({len(own) for own in rows.values()}):
        yield {at: own for at, own in rows.items() if len(own) == count}


def _by_stream(ranks: list[RankTimeline], rows: dict[int, IntArray]) -> list[dict[int, IntArray]]:
    """Without communicators, the streams, where all ranks divide their collectives among as many with as many on each:
    in most programs a communicator has a stream of its own. Those belong together whose ends keep their distance best.

    ```
    rank 0   stream 7  [A)   [A)  [A)      stream 8   [B)    [B)[B)
    rank 1   stream 9  [A)   [A)  [A)      stream 5   [B)    [B)[B)
    ```
    """
    streams = {at: _divided(own, ranks[at].collectives.stream[own]) for at, own in rows.items()}
    if len({tuple(sorted(map(len, parts))) for parts in streams.values()}) != 1:
        return [rows]
    ends = {at: [ranks[at].collectives.end[own] for own in parts] for at, parts in streams.items()}
    first = next(iter(streams))
    partner = {at: _partners(ends[first], ends[at]) for at in streams}
    return [{at: streams[at][partner[at][stream]] for at in streams} for stream in range(len(streams[first]))]


def _partners(first: list[IntArray], other: list[IntArray]) -> dict[int, int]:
    """For each stream of one rank that of the other one; the surest are paired first."""
    pairs = [
        (_spread(ends - theirs), at, place)
        for at, ends in enumerate(first)
        for place, theirs in enumerate(other)
        if len(ends) == len(theirs)
    ]
    found: dict[int, int] = {}
    for _, at, place in sorted(pairs):
        if at not in found and place not in found.values():
            found[at] = place
    return found


def _divided(rows: IntArray, stream: IntArray) -> list[IntArray]:
    """The rows of each stream, the streams in the order of their first use."""
    codes, first = np.unique(stream, return_index=True)
    return [rows[stream == code] for code in codes[np.argsort(first)].tolist()]


def _spread(apart: IntArray) -> float:
    return float(np.abs(apart - np.median(apart)).sum())


def _group(ranks: list[RankTimeline], kind: int, communicator: int, rows: dict[int, IntArray]) -> Group:
    return Group(
        kind=kind,
        communicator=communicator,
        members=list(rows),
        start=np.stack([ranks[at].collectives.start[own] for at, own in rows.items()]),
        end=np.stack([ranks[at].collectives.end[own] for at, own in rows.items()]),
    )


def _refused(
    ranks: list[RankTimeline], kind: int, communicator: int, rows: dict[int, IntArray], cut: dict[int, IntArray]
) -> list[str]:
    """In words, the ranks whose number no other rank has, and the collectives that only some ranks recorded."""
    name = KINDS[kind] + (f" on communicator {communicator_name(communicator)}" if communicator else "")
    left_out = [at for at in rows if len(cut[at]) < len(rows[at])]
    told = [f"{name}: {len(rows[at]) - len(cut[at]):,} of {len(rows[at]):,} of {ranks[at].rank}" for at in left_out]
    lines = [f"{each} lie outside what another rank recorded" for each in told]
    shared = Counter(len(own) for own in cut.values())
    alone = [f"{ranks[at].rank} ran {len(own):,}" for at, own in cut.items() if shared[len(own)] == 1]
    if not alone:
        return lines
    more = f" and {len(alone) - MOST_NAMED} more" if len(alone) > MOST_NAMED else ""
    why = (
        "no other rank ran any"
        if len(rows) == 1
        else "other numbers than the rest, so that their order matches nothing"
    )
    return [*lines, f"{name}: {', '.join(alone[:MOST_NAMED])}{more}: {why}"]


def communicator_name(communicator: int) -> str | None:
    """The number as NCCL writes it, None for none."""
    return f"0x{communicator & (1 << 64) - 1:x}" if communicator else None


FEWEST, MOST_MOVES, CLEARLY, ALIKE_NS = 8, 256, 4, 1_000
MOST_COMPARED = 1_000


def move_of(first: IntArray, other: IntArray) -> int | None:
    """By how much to move: other[k + move] is what first[k] is. Both are ends in ns, in order. 0 where both are as many
    and fit as they are; None where no place, or more than one, fits well."""
    if len(first) == len(other) and _fits_as_it_is(first, other):
        return 0
    low, high = -min(MOST_MOVES, len(first) - 1), min(MOST_MOVES, len(other) - 1)
    unsteady = {move: _offset_spread(first, other, move) for move in range(low, high + 1)}
    best, *others = sorted(unsteady, key=lambda move: unsteady[move])
    if len(first) == len(other) and unsteady[0] <= CLEARLY * max(unsteady[best], ALIKE_NS):
        return 0
    clear = not others or CLEARLY * max(unsteady[best], ALIKE_NS) < unsteady[others[0]]
    return best if clear and np.isfinite(unsteady[best]) else None


def _fits_as_it_is(first: IntArray, other: IntArray) -> bool:
    """Without a look at all places: far better than one place before or behind, or as well as clocks can tell."""
    here = CLEARLY * _offset_spread(first, other, 0)
    return here <= CLEARLY * ALIKE_NS or here < min(_offset_spread(first, other, move) for move in (-1, 1))


def _offset_spread(first: IntArray, other: IntArray, move: int) -> float:
    """The median distance of all distances from the median one; infinite where too few collectives stand opposite each
    other to tell."""
    low, high = max(0, -move), min(len(first), len(other) - move)
    if high - low < max(FEWEST, min(len(first), len(other)) // 2):
        return np.inf
    some = np.unique(np.linspace(low, high - 1, min(high - low, MOST_COMPARED)).astype(np.int64))
    apart = other[some + move] - first[some]
    return float(np.median(np.abs(apart - np.median(apart))))
