"""Durations by group: counts, totals and percentiles in one sort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.identity import IntArray


@dataclass(frozen=True, slots=True)
class Groups:
    """One row a group that occurs, by total, largest first; `code` says which group. Times in ns; the median is the
    lower of the two middle values where their number is even, `p95` the smallest that 95 % do not exceed."""

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


def group_durations(code: IntArray, duration: IntArray) -> Groups:
    """Group `duration` by `code`, which is not negative."""
    if len(code) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Groups(nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    ordered_code, ordered = _sorted_pairs(code, duration)
    begin = np.flatnonzero(np.append(True, ordered_code[1:] != ordered_code[:-1]))
    count = np.diff(np.append(begin, len(code)))
    total = np.add.reduceat(ordered, begin)
    rank = np.lexsort((ordered_code[begin], -total))
    return Groups(
        code=ordered_code[begin][rank],
        count=count[rank],
        total=total[rank],
        median=ordered[begin + (count - 1) // 2][rank],
        shortest=ordered[begin][rank],
        longest=ordered[begin + count - 1][rank],
        p95=ordered[begin + (95 * count + 99) // 100 - 1][rank],
    )


def _sorted_pairs(code: IntArray, duration: IntArray) -> tuple[IntArray, IntArray]:
    """Both sorted by code, then duration; as one number where they fit into 63 bits, which sorts much faster."""
    bits = int(duration.max()).bit_length()
    if int(duration.min()) >= 0 and bits + int(code.max()).bit_length() < 63:
        packed = np.sort((code << bits) | duration)
        return packed >> bits, packed & ((1 << bits) - 1)
    order = np.lexsort((duration, code))
    return code[order], duration[order]
