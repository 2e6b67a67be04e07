"""Durations by group: counts and totals, and percentiles in one sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray

Name = TypeVar("Name", bound=Hashable)


class Groups(Struct, frozen=True):
    """One row for each group that occurs, largest total first; `code` is the group. Times in ns. The median of an even
    number of values is the lower middle one; `p95` is the smallest value that 95% do not exceed."""

    code: IntArray
    count: IntArray
    total: IntArray
    median: IntArray
    shortest: IntArray
    longest: IntArray
    p95: IntArray

    @property
    def mean(self) -> IntArray:
        """Rounded down."""
        return self.total // np.maximum(self.count, 1)


class GroupTotals(Struct, frozen=True):
    """One row for each group that occurs, largest total first."""

    code: IntArray
    count: IntArray
    total: IntArray


def group_totals(code: IntArray, duration: IntArray) -> GroupTotals:
    """Counts and totals of `duration` by `code`, which is not negative: no sort, as there are no percentiles."""
    size = int(code.max(initial=-1)) + 1
    if size and int(code.min()) == size - 1:
        return GroupTotals(np.array([size - 1]), np.array([len(code)]), np.array([int(duration.sum())]))
    total, count = np.zeros(size, dtype=np.int64), np.bincount(code, minlength=size)
    np.add.at(total, code, duration)
    present = np.flatnonzero(count)
    ranked = present[np.lexsort((present, -total[present]))]
    return GroupTotals(ranked, count[ranked], total[ranked])


def least_of_each(code: IntArray, values: IntArray, count: int) -> IntArray:
    """The smallest of the values of each code, 0 to `count` - 1; the largest number there is for a code without any."""
    found = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(found, code, values)
    return found


def group_durations(code: IntArray, duration: IntArray) -> Groups:
    """Group `duration` by `code`, which is not negative."""
    if len(code) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Groups(nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    ordered_code, ordered = sorted_pairs(code, duration)
    begin = np.flatnonzero(np.append(True, ordered_code[1:] != ordered_code[:-1]))
    count = np.diff(np.append(begin, len(code)))
    total = np.add.reduceat(ordered, begin, dtype=np.int64)
    rank = np.lexsort((ordered_code[begin], -total))
    return Groups(
        code=ordered_code[begin][rank].astype(np.int64),
        count=count[rank],
        total=total[rank],
        median=ordered[begin + (count - 1) // 2][rank].astype(np.int64),
        shortest=ordered[begin][rank].astype(np.int64),
        longest=ordered[begin + count - 1][rank].astype(np.int64),
        p95=ordered[begin + (95 * count + 99) // 100 - 1][rank].astype(np.int64),
    )


def medians(code: IntArray, duration: IntArray, count: int) -> IntArray:
    """The median duration of each of the groups 0 to `count` - 1, the lower of two; 0 where a group has none."""
    # Half as wide a number sorts twice as fast. What does not fit counts as the longest that does, which moves no
    # median but one that is as long itself.
    bits = max(32 - count.bit_length(), 1)
    cap = (1 << bits) - 1
    wide = np.dtype(np.uint32 if count.bit_length() < 32 else np.int64)
    packed = np.sort((code.astype(wide) << bits) | np.minimum(duration, cap).astype(wide))
    size = np.bincount(code, minlength=count)
    middle = np.cumsum(size) - size + (np.maximum(size, 1) - 1) // 2
    result = np.zeros(count, dtype=np.int64)
    result[size > 0] = packed[middle[size > 0]] & cap
    if np.any(result == cap):
        exact = group_durations(code, duration)
        result[exact.code] = exact.median
    return result


def longest(ns: IntArray, start: IntArray, most: int) -> IntArray:
    """The places of the `most` largest `ns`, largest first; of equal ones that with the earlier `start`."""
    if len(ns) > 2 * most:
        least = np.partition(ns, len(ns) - most)[len(ns) - most]
        kept, tied = np.flatnonzero(ns > least), np.flatnonzero(ns == least)
        among = most - len(kept)
        until = np.partition(start[tied], among - 1)[among - 1]
        rows = np.concatenate((kept, tied[start[tied] <= until]))
        return rows[np.lexsort((rows, start[rows], -ns[rows]))[:most]]
    return np.lexsort((start, -ns))[:most]


def evenly(code: IntArray, most: int) -> BoolArray:
    """True for `most` rows of each code at most, spread evenly over its rows in their order.

    ```
    code   0 0 0 0 0 0 1 1      most 2
    kept   x     x     x x
    ```
    """
    if len(code) == 0:
        return np.empty(0, dtype=np.bool_)
    order = np.argsort(code, kind="stable")
    begin = np.flatnonzero(np.append(True, code[order][1:] != code[order][:-1]))
    count = np.diff(np.append(begin, len(code)))
    rank, rows = np.arange(len(code)) - np.repeat(begin, count), np.repeat(count, count)
    kept = np.empty(len(code), dtype=np.bool_)
    kept[order] = (rows <= most) | (rank * most // rows != (rank - 1) * most // rows)
    return kept


def sorted_pairs(code: IntArray, duration: IntArray) -> tuple[IntArray, IntArray]:
    """Both sorted by code, then duration, at least one of each; as one number where they fit into one, which sorts much
    faster."""
    bits = int(duration.max()).bit_length()
    together = bits + int(code.max()).bit_length()
    if int(duration.min()) >= 0 and together < 63:
        number = np.dtype(np.int32 if together < 32 else np.int64)
        packed = code.astype(number)
        packed <<= bits
        packed |= duration.astype(number, copy=False)
        packed.sort()
        return packed >> bits, packed & ((1 << bits) - 1)
    order = np.lexsort((duration, code))
    return code[order], duration[order]


def summed(parts: Iterable[Mapping[Name, int]]) -> dict[Name, int]:
    """Time by name, added up name by name."""
    total: Counter[Name] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)
