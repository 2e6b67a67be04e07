"""Gaps that look alike, added up: same previous and next operation, same NVTX path, same dominant cause."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.groups import Groups, group_durations
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, union
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.keys import GapKeys, signature_id
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.packing import KindsOfGaps
from nsysdiag.report import SignatureRow
from nsysdiag.stacks.call_sites import Place, places_of

MOST = 50


def signature_rows(context: GapContext, keys: GapKeys, steady: Intervals | None) -> list[SignatureRow]:
    """The signatures with most idle time, at most fifty, each with its longest gap as representative.

    `steady` are the steady iterations of the device, which do not overlap (None: it has none). What a signature costs
    an iteration is its idle time inside them by their number:

    ```
    iterations  [steady 0   )[steady 1   )[left out   )
    gaps          [10)         [14)         [90)            12 ns an iteration
    ```
    """
    gaps = context.frame.gaps
    if len(gaps) == 0:
        return []
    length = gaps.end - gaps.start
    groups = group_durations(keys.code, length)
    first = _longest(keys.code, length, len(groups.code))
    inside = np.zeros(len(groups.code), dtype=np.int64)
    if steady is not None:
        np.add.at(inside, keys.code, coverage(union(steady), Intervals(gaps.start, gaps.end)))
    shown = groups.code[:MOST]
    number = np.full(len(groups.code), -1, dtype=np.int64)
    number[shown] = np.arange(len(shown))
    places = places_of(context.host_side, number[keys.code], len(shown))
    cost = [None if steady is None else int(inside[group]) // len(steady) for group in shown.tolist()]
    return [
        _row(keys, gaps, groups, at, int(first[group]), cost[at], places[at]) for at, group in enumerate(shown.tolist())
    ]


def kinds_of_gaps(gaps: Gaps, keys: GapKeys, rows: list[SignatureRow]) -> KindsOfGaps:
    """Which of the rows each gap is counted in."""
    place = np.full(int(keys.code.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[keys.code[[row.representative_index for row in rows]]] = np.arange(len(rows))
    return KindsOfGaps(Intervals(gaps.start, gaps.end), place[keys.code], len(rows))


def _longest(code: IntArray, length: IntArray, count: int) -> IntArray:
    """Of each group the longest gap, of equal ones the first; gaps are in order of time."""
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, code, length)
    candidates = np.flatnonzero(length == most[code])[::-1]
    first = np.zeros(count, dtype=np.int64)
    # Written last to first, so that the first one stays.
    first[code[candidates]] = candidates
    return first


def _row(
    keys: GapKeys, gaps: Gaps, groups: Groups, at: int, longest: int, per_iteration_ns: int | None, place: Place
) -> SignatureRow:
    """The group at place `at`, with its longest gap for words."""
    previous, following, path, cause = keys.words(longest)
    total = int(groups.total[at])
    return SignatureRow(
        id=signature_id(previous, following, path, cause),
        previous_op=previous,
        next_op=following,
        nvtx=path,
        cause=cause,
        count=int(groups.count[at]),
        total_ns=total,
        median_ns=int(groups.median[at]),
        max_ns=int(groups.longest[at]),
        representative_start_ns=int(gaps.start[longest]),
        representative_index=longest,
        p95_ns=int(groups.p95[at]),
        per_iteration_ns=per_iteration_ns,
        share_of_idle=round(total / int(groups.total.sum()), 6),
        call_site=place.site,
        host_code=place.code,
    )
