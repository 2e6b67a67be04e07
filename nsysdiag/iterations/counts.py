"""What happens in each repeat of a loop, and what usually does: how often each name comes.

```
repeats     |a b |a b |a b e|a b |        a once in each, e once in the third
```
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, nearest_before, searched, sorted_times
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import picked
from nsysdiag.iterations.happened import Happened, NameKinds

MOST_TOKENS = 2_000
"""Names that are looked at: of more, the most frequent."""
USUAL = 0.4
"""A count that so many repeats have is usual; the smallest of such."""
LEAST_HELD = 0.75
"""Of the usual operations: a repeat with fewer is another kind of work."""
ALIKE = 0.8
"""Of repeats so many have the same operations."""
_MOST_KEPT = 1 << 19
"""Counts that are kept for the next rule: little memory."""


class RepeatCounts(Struct, frozen=True, dict=True):
    """How often names happen in each of `size` repeats of a loop, the most frequent name first, and how often is
    `usual`. A row for each name in a `repeat`, where it happens so many `times`, by name and then by repeat: names and
    repeats can be many, and most names then happen in few repeats. Those of a name begin at its place in `first`."""

    names: NameKinds
    size: int
    first: IntArray
    repeat: IntArray
    times: IntArray
    usual: IntArray

    @classmethod
    def of(cls, happened: Happened, starts: IntArray, end: int | None = None, *, host: bool = False) -> RepeatCounts:
        """Up to `end`, in ns, or all. With the calls of the `host` if those that launch the repeats are known."""
        end = happened.last if end is None else end
        of = (end, starts.tobytes())
        last, found = happened.counted.get(host, (None, None))
        if found is None or last != of:
            found = cls.counted(happened.names, *_placed(happened, starts, end, host=host), len(starts))
            if len(found.times) <= _MOST_KEPT:
                happened.counted[host] = of, found
        return found

    @classmethod
    def counted(cls, names: NameKinds, place: IntArray, code: IntArray, size: int) -> RepeatCounts:
        """What happened in the repeat `place` of so many, by the code of its name."""
        often = np.bincount(code, minlength=len(names))
        codes = np.argsort(-often, kind="stable")[: min(np.count_nonzero(often), MOST_TOKENS)]
        row = np.full(len(often), -1, np.int16)
        row[codes] = np.arange(len(codes))
        cell, times = _counted(row.take(code), place, max(size, 1))
        name, repeat = np.divmod(cell, max(size, 1))
        first = np.searchsorted(name, np.arange(len(codes) + 1))
        spans = pairwise(first.tolist())
        usual = [_usual(times[low:high][repeat[low:high] < size - 1], size - 1) for low, high in spans]
        columns = (first, repeat.astype(np.int32), times.astype(np.int32), np.array(usual, np.int32))
        return cls(names.take(codes), size, *columns)

    @cached_property
    def name(self) -> IntArray:
        """The place of the name of each row."""
        return np.repeat(np.arange(len(self.usual), dtype=np.int32), np.diff(self.first))

    @cached_property
    def whole(self) -> BoolArray:
        """The rows of all repeats but the last, which may be cut."""
        return self.repeat < self.size - 1

    @cached_property
    def held(self) -> IntArray:
        """How many repeats, without the last, have each name."""
        return self.repeats_with(self.whole)

    @cached_property
    def least(self) -> IntArray:
        """How often each name happens in a repeat at least, without the last."""
        least = np.full(len(self.usual), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(least, self.name[self.whole], self.times[self.whole])
        return np.where(self.held == self.size - 1, least, 0)

    @cached_property
    def most(self) -> IntArray:
        """How often each name happens in a repeat at most, without the last."""
        most = np.zeros(len(self.usual), np.int32)
        np.maximum.at(most, self.name[self.whole], self.times[self.whole])
        return most

    @cached_property
    def operations(self) -> IntArray:
        """How many operations each repeat has."""
        return self.total(~self.names.host)

    @cached_property
    def as_usual(self) -> IntArray:
        """How many operations each repeat has, without those of a name that are more than usual."""
        return self.total(~self.names.host, np.minimum(self.times, self.usual[self.name]))

    @cached_property
    def share(self) -> FloatArray:
        """The share of the repeats that have each name."""
        return np.diff(self.first) / self.size

    @cached_property
    def lacks(self) -> BoolArray:
        """Which repeats lack a good part of the usual operations: there the first one of a repeat comes in what is
        between the inner loops."""
        return self.as_usual < LEAST_HELD * self.usually(~self.names.host)

    @cached_property
    def are_alike(self) -> bool:
        """Whether most repeats have the same operations, and hardly others."""
        held = self.usually(~self.names.host)
        return float(self.alike().mean()) >= ALIKE and held >= ALIKE * float(np.median(self.operations))

    def repeats_with(self, rows: BoolArray) -> IntArray:
        """How many repeats have each name, by some of the rows."""
        return np.bincount(self.name[rows], minlength=len(self.usual))

    def names_in(self, names: BoolArray) -> IntArray:
        """How many of some names each repeat has."""
        return np.bincount(self.repeat[names[self.name]], minlength=self.size)

    def total(self, names: BoolArray, times: IntArray | None = None) -> IntArray:
        """How often some names happen in each repeat, or what other `times` of the rows add up to."""
        rows = np.flatnonzero(names[self.name])
        return sum_of_each(self.repeat[rows], (self.times if times is None else times)[rows], self.size)

    def usually(self, names: BoolArray) -> int:
        """How often some of the names usually happen in a repeat."""
        return int(self.usual[names].sum())

    def counts(self, names: IntArray) -> IntArray:
        """How often each of some names, a row each, happens in each repeat. They should be few, or in most repeats."""
        place = np.full(len(self.usual), -1, np.int64)
        place[names] = np.arange(len(names))
        mine = np.flatnonzero((place >= 0)[self.name])
        found = np.zeros((len(names), self.size), np.int64)
        found[place[self.name[mine]], self.repeat[mine]] = self.times[mine]
        return found

    def with_usual(self, most: int) -> IntArray:
        """How many of the first so many repeats have each name as often as is usual."""
        inside = self.repeat < most
        equal = self.repeats_with(inside & (self.times == self.usual[self.name]))
        return np.where(self.usual == 0, most - self.repeats_with(inside), equal)

    def alike(self) -> BoolArray:
        """Which repeats, without the last, have exactly as many of the usual operations, whatever else they have."""
        names = ~self.names.host & (self.usual > 0)
        equal = names[self.name] & (self.times == self.usual[self.name])
        return np.bincount(self.repeat[equal], minlength=self.size)[:-1] == np.count_nonzero(names)

    def medians(self, at: IntArray) -> IntArray:
        """How often each name usually happens in the repeats `at`: the median, as a whole number."""
        inside, found = np.zeros(self.size, np.bool_), np.zeros(len(self.usual), np.int64)
        inside[at] = True
        mine = inside[self.repeat]
        held, times = self.repeats_with(mine), self.times[mine]
        behind = np.cumsum(held)
        for name in np.flatnonzero(2 * held >= len(at)).tolist():  # of others the median is 0
            own = times[behind[name] - held[name] : behind[name]]
            found[name] = int(np.median(np.append(own, np.zeros(len(at) - len(own), np.int32)))) if len(at) else 0
        return found


def _counted(row: IntArray, place: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The pairs of a row of names and a place below `size` that occur, as one ascending number each, and how often they
    do; rows below 0 are none. Sorted by rows alone, which takes linear time of 16 bits: the places mostly ascend."""
    order = np.argsort(row, kind="stable")
    order = order[np.searchsorted(row, 0, sorter=order) :]
    cell = sorted_times(joint(row[order], place[order], size))
    first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1])[: len(cell)])
    return cell[first], np.diff(first, append=len(cell))


def _placed(happened: Happened, starts: IntArray, end: int, *, host: bool) -> tuple[IntArray, IntArray]:
    """The repeat of what happened inside one, and the code of its name."""
    time, code = happened.start, happened.code
    begins = searched(time, starts, "left")
    place = np.repeat(np.arange(-1, len(starts), dtype=np.int32), np.diff(begins, prepend=0, append=len(time)))
    issued = happened.issued_at(np.minimum(begins, len(time) - 1)) if host else begins[:0]
    if len(issued) and not (issued < 0).any():
        issued, early = np.maximum.accumulate(issued), happened.issued_early
        place[early] = nearest_before(issued, happened.issued_at(early))
        called = nearest_before(issued, happened.host_time)
        called[happened.host_time >= end] = -1
        place, code = np.append(place, called.astype(np.int32)), np.append(code, happened.host_code)
    place[np.searchsorted(time, end) : len(time)] = -1
    inside = picked(place >= 0)
    return place[inside], code[inside]


def _usual(times: IntArray, repeats: int) -> int:
    """How often something usually happens: of so many `repeats` those that have it do so many times."""
    often = np.bincount(times, minlength=1)
    often[0] = repeats - len(times)
    usual = np.flatnonzero(often >= USUAL * repeats)
    return int(usual[0] if len(usual) else np.argmax(often))
