"""Durations by group: counts and totals, and percentiles in one sort."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import is_constant, taken
from nsysdiag.arrays.intervals import AT_ONCE, BoolArray, IntArray, ascending, rows_from, stretches

Name = TypeVar("Name", bound=Hashable)
SOME, FEW_VALUES = 1_000, 16
"""Of so many of the values at most, spread evenly, as many differ if sorting all takes less than partitioning."""


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

    @property
    def columns(self) -> dict[str, IntArray]:
        """Count and durations of each group by the fields that records have for them."""
        return {
            "count": self.count,
            "total_ns": self.total,
            "mean_ns": self.mean,
            "median_ns": self.median,
            "min_ns": self.shortest,
            "max_ns": self.longest,
        }


class GroupTotals(Struct, frozen=True):
    """One row for each group that occurs, largest total first."""

    code: IntArray
    count: IntArray
    total: IntArray


def number_of_each(code: IntArray) -> IntArray:
    """How many before each have the same code."""
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    number = np.empty(len(code), np.int64)
    number[order] = np.arange(len(code)) - np.searchsorted(ordered, ordered)
    return number


def group_totals(code: IntArray, duration: IntArray) -> GroupTotals:
    """Counts and totals of `duration` by `code`, which is not negative: no sort, as there are no percentiles."""
    size = int(code.max(initial=-1)) + 1
    if size and int(code.min()) == size - 1:
        return GroupTotals(np.array([size - 1]), np.array([len(code)]), np.array([int(duration.sum())]))
    total, count = sum_of_each(code, duration, size), count_of_each(code, size)
    present = np.flatnonzero(count)
    ranked = present[np.lexsort((present, -total[present]))]
    return GroupTotals(ranked, count[ranked], total[ranked])


def count_of_each(code: IntArray, count: int) -> IntArray:
    """How often each code, 0 to `count` - 1, occurs. np.bincount makes a copy of narrow codes: of a stretch at once."""
    if count > AT_ONCE:
        return np.bincount(code, minlength=count)
    found = np.zeros(count, dtype=np.int64)
    for part in stretches(len(code)):
        found += np.bincount(code[part], minlength=count)
    return found


def sum_of_each(code: IntArray, values: IntArray, count: int) -> IntArray:
    """The sum of the values of each code, 0 to `count` - 1, exact."""
    total = np.zeros(count, dtype=np.int64)
    if is_constant(code):
        total[code[0]] = values.sum(dtype=np.int64)
        return total
    for codes, part in _by_64_bits(code, values):
        np.add.at(total, codes, part)
    return total


def least_of_each(code: IntArray, values: IntArray, count: int) -> IntArray:
    """The smallest of the values of each code, 0 to `count` - 1; the largest number there is for a code without any."""
    found = np.full(count, np.iinfo(np.int64).max)
    if is_constant(code):
        found[code[0]] = values.min()
        return found
    for codes, part in _by_64_bits(code, values):
        np.minimum.at(found, codes, part)
    return found


def _by_64_bits(code: IntArray, values: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Stretches of both as NumPy adds them up fastest: narrower values take thirty times as long, and narrower codes a
    third longer."""
    step = len(code) if code.dtype == values.dtype == np.int64 else AT_ONCE
    for at in range(0, len(code), max(step, 1)):
        part = slice(at, at + step)
        yield code[part].astype(np.int64, copy=False), values[part].astype(np.int64, copy=False)


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
    """The median duration of each of the groups 0 to `count` - 1, the lower of two; 0 if a group has none."""
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


def longest(ns: IntArray, start: IntArray, most: int, rows: IntArray | None = None) -> IntArray:
    """The places of the `most` largest `ns`, largest first; of equal ones that with the earlier `start`: that of each,
    or of each at `rows`."""

    def begins(at: IntArray) -> IntArray:
        return taken(start, at if rows is None else taken(rows, at))

    if most == 0:
        return np.empty(0, dtype=np.int64)
    if len(ns) <= 2 * most:
        return np.lexsort((begins(np.arange(len(ns))), -ns))[:most]
    least = nth_largest(ns, most)
    kept = np.flatnonzero(ns > least)
    first = _first(np.flatnonzero(ns == least), begins, most - len(kept))
    kept = np.concatenate((kept, first))
    return kept[np.lexsort((kept, begins(kept), -ns[kept]))[:most]]


def _first(places: IntArray, begins: Callable[[IntArray], IntArray], count: int) -> IntArray:
    """The `count` of the places that begin first, and others that begin with the last of them."""
    moments = begins(places)
    if ascending(moments):
        return places[:count]
    return places[moments <= nth_smallest(moments, count - 1)]


def nth_largest(values: IntArray, most: int) -> int:
    """The value that `most` of at least as many reach or exceed. It is at least that of every 16th value alone: if
    there are many, only those beyond that are ordered."""
    if len(values) > 64 * most:
        least = nth_largest(values[::16], most)
        values = values[values > least]
        if len(values) < most:
            return least
    return nth_smallest(values, len(values) - most)


def nth_smallest(values: IntArray, place: int) -> int:
    """The value at this place of the sorted values. To partition a million of two values that take turns took 30 times
    as long as to sort them."""
    some = np.sort(values[:: max(len(values) // SOME, 1)])
    if len(some) == len(values):
        return int(some[place])
    few = np.count_nonzero(some[1:] != some[:-1]) < FEW_VALUES
    return int((np.sort(values) if few else np.partition(values, place))[place])


def median_of(values: IntArray) -> int:
    """The lower median: if every second iteration is slow, the length of the others."""
    return nth_smallest(values, (len(values) - 1) // 2)


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
    few = np.minimum(count, most)
    group, rank = np.repeat(np.arange(len(few)), few), rows_from(np.zeros_like(few), few)
    kept = np.zeros(len(code), dtype=np.bool_)
    kept[order[begin[group] + _spread(rank, count[group], few[group])]] = True
    return kept


def some_of(count: int, most: int) -> IntArray:
    """The places of `most` of so many rows at most, spread as `evenly` does."""
    few = min(count, most)
    return _spread(np.arange(few), count, max(few, 1))


def _spread(rank: IntArray, count: IntArray | int, few: IntArray | int) -> IntArray:
    """The places of the first, second and further of `few` rows among `count`: rounded up."""
    return -(-rank * count // few)


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


# Arrays and bytes as short text: planes of bytes, which compress well, deflated, in base64.

WIDEST = 8
"""Bytes of a number at most."""
_FARTHEST = 2.0**62
"""The time between two points this side of it fits into 64 bits."""


def portions(ns: IntArray, part: int) -> IntArray:
    """`part` of the sum of `ns`, above 0, divided among them in proportion; exact, and none is above its own."""
    reached, total = np.cumsum(ns), int(ns.sum())
    about = (reached * (part / total)).astype(np.int64)
    # Both products may pass 64 bits, and wrap around; what they differ by is small, and exact.
    about += (reached * np.int64(part) - about * np.int64(total)) // total
    return np.diff(about, prepend=0)


def to_planes(values: IntArray) -> bytes:
    """The lowest byte of every value, then the next one of each, as many as the largest needs; values from 0 up.

    ```
    1, 2, 258   ->   01 02 02   00 00 01
    ```
    Raises ValueError for a value below 0.
    """
    if len(values) == 0:
        return b""
    if int(values.min()) < 0:
        raise ValueError("planes hold no number below 0")
    width = max((int(values.max()).bit_length() + 7) // 8, 1)
    return values.astype("<u8").view(np.uint8).reshape(-1, WIDEST)[:, :width].T.tobytes()


def from_planes(data: bytes, count: int) -> IntArray:
    """The `count` values back. Raises ValueError if the planes are not all of that length, or a value is beyond 63
    bits."""
    if count == 0 and not data:
        return np.empty(0, dtype=np.int64)
    if count <= 0 or not data or len(data) % count or len(data) > count * WIDEST:
        raise ValueError(f"{len(data)} bytes are not planes of {count} numbers")
    whole = np.zeros((count, WIDEST), dtype=np.uint8)
    planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, count)
    whole[:, : len(planes)] = planes.T
    values = whole.reshape(-1).view("<u8").astype(np.int64)
    if int(values.min()) < 0:
        raise ValueError("a number of more than 63 bits")
    return values


def running_sums(steps: IntArray, base: int = 0) -> IntArray:
    """`base` and the sum of the steps up to each, as points in time. Raises ValueError if one is too large for
    that: sums would wrap around."""
    sums = np.cumsum(steps, dtype=np.float64) + base
    if len(sums) and float(np.abs(sums).max()) >= _FARTHEST:
        raise ValueError("times beyond 62 bits")
    return base + np.cumsum(steps, dtype=np.int64)


MOST_EXPANSION = 1032 * 3 // 4 + 1
"""Bytes that one character of text can stand for. By its documentation zlib expands by at most 1032; base64 takes four
characters for three bytes."""


def to_text(data: bytes, effort: int) -> str:
    """`effort` is that of zlib, from 1 for fast to 9 for small."""
    return base64.b64encode(zlib.compress(data, effort)).decode("ascii")


def from_text(text: str, most: int) -> bytes:
    """The unpacked bytes. Never unpacks more than `most` + 1 bytes, which the caller knows from the stored count.

    Raises ValueError if the text is damaged or holds more than `most` bytes."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(binascii.a2b_base64(text, strict_mode=True), max(most, 0) + 1)
    except zlib.error as error:
        if "Error -4" in str(error):  # Z_MEM_ERROR
            raise MemoryError from error
        raise ValueError("not compressed by zlib") from error
    if not reader.eof or len(data) > most:
        raise ValueError("cut short, or too much")
    return data


def numbers_from(text: str, kind: str, count: int) -> IntArray:
    """At most `count` numbers, each stored as `kind`. Raises ValueError if the text is damaged or holds more."""
    return np.frombuffer(from_text(text, count * np.dtype(kind).itemsize), dtype=kind).astype(np.int64)


def column_from(text: str, count: int) -> IntArray:
    """The `count` values of a column packed by planes. Raises ValueError if the text is damaged or holds others."""
    return from_planes(from_text(text, WIDEST * count), count)


def names_from(text: str, most: int) -> list[str]:
    """A packed JSON list of texts of at most `most` bytes; of none, none. Raises ValueError if it is anything
    else."""
    try:
        names = json.loads(from_text(text, most)) if text else []
    except RecursionError as error:
        raise ValueError("nested without end") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of texts")
    return names
