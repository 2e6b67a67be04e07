"""Two sequences of operations aligned: which operation of one is which of the other.

```
one   C G r n G r n C G r n G r n      C and G come as often on both sides: the first is the first, and so on;
two   C G f   G f   C G f   G f        what is between them is paired by the best score
```

If a side does more work, nothing comes as often as on the other one: then only the same names in a row are paired.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains
from nsysdiag.events.rows import RowsOf
from nsysdiag.kernels.kinds import KernelFamily, family_of

SAME_NAME, SAME_FAMILY, KERNELS, ALONE = 8, 6, 2, -1
"""Points of a pair of one name, of one family and of any two kernels, and of an operation without a pair. One pair of a
name and two operations without a pair (6) are worth more than two pairs of any kernels (4). Two operations without a
pair are always worth less than a pair."""
_NEVER = -(10**6)
"""Points of a pair that must not be made: less than all operations of two sequences of LONGEST without a pair."""
LONGEST = 512
"""Operations between two anchors that are scored. Of more, those alone are paired that are the same from either end."""
MOST_NAMES = 500
"""Names and families that are looked at as anchors: the rarest."""
AS_OFTEN, IN_ORDER = 0.02, 0.9
"""An anchor comes as often on both sides, give or take a share. So many of its pairs are in the order of the others."""
LEAST_ALIKE, MOST_LEFT = 0.5, 0.1
"""Shares of the time in kernels: how much must have the same name or family, and how much more of the same work a side
may have."""
LEAST_SAME, MOST_OVER = 0.95, 0.02
"""As LEAST_ALIKE and MOST_LEFT, of two runs that did the same work from first to last."""
FEWEST_PIECES, SPREADS, SINGLE, OF_DEVIATION = 20, 4, 2, 1.4826
"""Pieces that show how much each differs by chance; the standard errors that a total may, and the times that the piece
which differs most does; and the standard deviation for a median distance of 1."""
REGULAR, EVEN = 0.1, 0.8
"""So many units have as many operations as the median one, give or take a tenth."""


class LaunchOrder(Struct, frozen=True):
    """Operations in the order in which they were launched: the start on the device, the ns, and the code of the name
    of each; -1 for those that are not kernels. `names` are the texts of all codes. `until` is where the time that is
    compared ends."""

    start: IntArray
    ns: IntArray
    code: IntArray
    kernel: BoolArray
    names: list[str]
    until: int

    def part(self, at: BoolArray, until: int) -> LaunchOrder:
        """Some of them, of a time that ends at `until`."""
        return LaunchOrder(self.start[at], self.ns[at], self.code[at], self.kernel[at], self.names, until)


class Aligned(Struct, frozen=True):
    """`match` is the place in the second sequence of each operation of the first one, -1 for none. `alike` is the share
    of the time in kernels whose other one has the same name or family, on the side where it is smaller. `left` is the
    share of kernels without another whose names the other side has, on the side where it is larger: more of the same
    work."""

    match: IntArray
    alike: float
    left: float

    @property
    def trusted(self) -> bool:
        """Whether both are the same program, and the same amount of work."""
        return self.alike >= LEAST_ALIKE and self.left <= MOST_LEFT

    @property
    def same(self) -> bool:
        """Whether nearly all of both is the same work."""
        return self.alike >= LEAST_SAME and self.left <= MOST_OVER


class _Coded(Struct, frozen=True):
    """Names and families in numbers that both sequences share, and the ns of each kernel."""

    name: IntArray
    family: IntArray
    kernel: BoolArray
    ns: IntArray

    def part(self, first: int, behind: int) -> _Coded:
        cut = slice(first, behind)
        return _Coded(self.name[cut], self.family[cut], self.kernel[cut], self.ns[cut])

    def share(self, rows: IntArray | BoolArray) -> float:
        """The share of the time in kernels of some of them."""
        return float(self.ns[rows].sum()) / max(float(self.ns.sum()), 1.0)

    def __len__(self) -> int:
        return len(self.name)


def align(one: LaunchOrder, two: LaunchOrder) -> Aligned:
    """The pairs of both sequences, in order."""
    left, right = _coded(one, two)
    match = _anchored(left, right)
    at = np.append(np.flatnonzero(match >= 0), len(left))
    other = np.append(match[at[:-1]], len(right))
    first, begin = np.append(0, at[:-1] + 1), np.append(0, other[:-1] + 1)
    between = (at > first) & (other > begin)
    for low, high, since, until in np.stack([first, at, begin, other], axis=1)[between].tolist():
        pairs = _between(left.part(low, high), right.part(since, until))
        match[low + pairs[:, 0]] = since + pairs[:, 1]
    return _measured(left, right, match)


def _measured(left: _Coded, right: _Coded, match: IntArray) -> Aligned:
    """The pairs of `match`, and how much of both sides is in them."""
    at = np.flatnonzero(match >= 0)
    other = match[at]
    alike = left.kernel[at] & ((left.name[at] == right.name[other]) | (left.family[at] == right.family[other]))
    more = (match < 0) & np.isin(left.name, right.name)
    its_more = ~np.isin(np.arange(len(right)), other) & np.isin(right.name, left.name)
    return Aligned(
        match,
        alike=min(left.share(at[alike]), right.share(other[alike])),
        left=max(left.share(more), right.share(its_more)),
    )


def chance_in(one: LaunchOrder, two: LaunchOrder, spans: tuple[Intervals, Intervals]) -> float | None:
    """The share of the time in these spans, sets of at least one, that chance may change; None unless both sides do the
    same work in them. Spans that begin at different operations are aligned as parts of the whole."""
    inside = contains(spans[0], one.start), contains(spans[1], two.start)
    left, right = one.part(inside[0], int(spans[0].end.max())), two.part(inside[1], int(spans[1].end.max()))
    found = align(left, right)
    if not found.same:
        match = align(one, two).match[inside[0]]
        match = np.where(inside[1][match] & (match >= 0), np.cumsum(inside[1])[match] - 1, -1)
        found = _measured(*_coded(left, right), match)
    return chance_of_total(found, left, right) if found.same else None


def _anchored(left: _Coded, right: _Coded) -> IntArray:
    """The pairs of what comes as often on both sides, by name and else by family, the rarest first; -1 for others."""
    match = np.full(len(left), -1, dtype=np.int64)
    for mine, other in ((left.name, right.name), (left.family, right.family)):
        rows, its = RowsOf(mine), RowsOf(other)
        both = sorted(set(rows.values()) & set(its.values()), key=lambda code: len(rows[code]))
        for code in both[:MOST_NAMES]:
            count = min(len(rows[code]), len(its[code]))
            if max(len(rows[code]), len(its[code])) <= (1 + AS_OFTEN) * count:
                _add(match, np.sort(rows[code])[:count], np.sort(its[code])[:count])
    return match


def _add(match: IntArray, at: IntArray, other: IntArray) -> None:
    """Pair these if nearly all of them are in the order of those that are paired already."""
    known = np.flatnonzero(match >= 0)
    places = np.concatenate([[-1], match[known], [np.iinfo(np.int64).max]])
    behind = np.searchsorted(known, at)
    free = (places[behind] < other) & (other < places[behind + 1]) & (match[at] < 0)
    if float(free.mean()) >= IN_ORDER:
        match[at[free]] = other[free]


def _between(left: _Coded, right: _Coded) -> IntArray:
    """The pairs of two short sequences; of long ones those that are the same from either end."""
    if max(len(left), len(right)) <= LONGEST:
        return _scored(left, right)
    count = min(len(left), len(right))
    head = _run(left.name[:count], right.name[:count])
    tail = min(_run(left.name[::-1][:count], right.name[::-1][:count]), count - head)
    rows = np.append(np.arange(head), np.arange(len(left) - tail, len(left)))
    return np.stack([rows, np.where(rows < head, rows, rows + len(right) - len(left))], axis=1)


def _coded(one: LaunchOrder, two: LaunchOrder) -> tuple[_Coded, _Coded]:
    numbers: dict[str, int] = {}
    found = []
    for side in (one, two):
        texts = [numbers.setdefault(text, len(numbers)) for text in side.names]
        name = np.array(texts, dtype=np.int64)[side.code]
        kinds = np.array([_family(text) for text in side.names], dtype=np.int64)[side.code]
        # A family of its own for whatever has none.
        family = np.where(side.kernel & (kinds != KernelFamily.OTHER), -1 - kinds, name)
        found.append(_Coded(name, family, side.kernel, np.where(side.kernel, side.ns, 0)))
    return found[0], found[1]


def _family(name: str) -> int:
    """That of a matrix product does not depend on its precision."""
    family = family_of(name)
    return int(KernelFamily.PRODUCTS if family == KernelFamily.PRODUCTS_FP32 else family)


def _run(one: IntArray, two: IntArray) -> int:
    """How many names are the same from the first on."""
    differ = one != two
    return int(np.argmax(differ)) if differ.any() else len(differ)


def _scored(left: _Coded, right: _Coded) -> IntArray:
    """The pairs of the best score, a row each."""
    size, width = len(left), len(right)
    along = np.arange(width + 1)
    row = ALONE * along
    moves = np.empty((size, width + 1), dtype=np.int8)
    for at in range(size):
        pair = np.append(_NEVER, row[:-1] + _points(left, right, at))
        alone = row + ALONE
        best = np.maximum(pair, alone)
        row = np.maximum.accumulate(best - ALONE * along) + ALONE * along
        moves[at] = np.where(row == pair, 0, np.where(row == alone, 1, 2))
    at, other = size, width
    pairs = []
    while at > 0:
        move = moves[at - 1, other] if other else 1
        if move == 0:
            pairs.append((at - 1, other - 1))
        at, other = at - (move != 2), other - (move != 1)
    return np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2)


def _points(left: _Coded, right: _Coded, at: int) -> IntArray:
    """What each operation of the second sequence is worth as the other one of an operation of the first."""
    if not left.kernel[at]:
        return np.where(right.name == left.name[at], SAME_NAME, _NEVER)
    family = np.where(right.family == left.family[at], SAME_FAMILY, KERNELS)
    return np.where(right.name == left.name[at], SAME_NAME, np.where(right.kernel, family, _NEVER))


def _with_missed(place: IntArray, end: int) -> IntArray:
    """With a border at equal distances in units that are a multiple of the median one: its operation has no other."""
    size = np.diff(np.append(place, end))
    usual = float(np.median(size)) if len(size) else 1.0
    times = np.maximum(np.rint(size / usual), 1).astype(np.int64)
    times[np.abs(size / times - usual) > REGULAR * usual] = 1
    return np.concatenate(
        [
            np.empty(0, np.int64),
            *(first + length * np.arange(n) // n for first, length, n in zip(place, size, times, strict=True)),
        ]
    )


def chance_of_total(found: Aligned, one: LaunchOrder, two: LaunchOrder) -> float | None:
    """The share of the time of all that was aligned that may be chance, from how much the pieces differ. A piece is the
    time from one operation to the next, or to the end. Pieces that changed in truth are few, or changed alike: neither
    moves the median difference. What a single piece brought may be chance as well. None if there are too few."""
    at = np.flatnonzero(found.match >= 0)
    starts = np.append(one.start[at], one.until), np.append(two.start[found.match[at]], two.until)
    before, after = (np.diff(np.maximum.accumulate(each)) for each in starts)
    known = (before > 0) & (after > 0)
    if int(known.sum()) < FEWEST_PIECES:
        return None
    ratio = np.log(after[known] / before[known])
    spread = OF_DEVIATION * float(np.median(np.abs(ratio - np.median(ratio))))
    squares = np.square(before.astype(np.float64)).sum()
    most = max(SPREADS * spread * float(np.sqrt(squares)), SINGLE * float(np.abs(after - before).max()))
    return most / float(before.sum())


def carried(found: Aligned, two: LaunchOrder, borders: Sequence[int] | IntArray) -> IntArray:
    """The starts, on the device, of the units of the second sequence, from the `borders` of the first one's: places of
    the first operations. Empty if they are not about as many operations each."""
    borders = np.asarray(borders, dtype=np.int64)
    reached = np.maximum.accumulate(np.append(-1, found.match))
    place = np.where(found.match[borders] >= 0, found.match[borders], reached[borders] + 1)
    last = int(reached[-1])
    place = _with_missed(distinct_values(place[place <= last]), last + 1)
    size = np.diff(np.append(place, last + 1))
    even = np.abs(size - np.median(size)) <= REGULAR * np.median(size) if len(size) else size
    if not len(size) or float(np.mean(even)) < EVEN:
        return place[:0]
    starts = two.start[place]
    later: BoolArray = starts[1:] > np.maximum.accumulate(starts)[:-1]
    return starts[np.append(True, later)]
