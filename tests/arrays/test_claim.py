"""Claiming time: tiny cases, and the painter as oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.buckets import coarser
from nsysdiag.arrays.claim import Owned, claim, within
from nsysdiag.arrays.intervals import Intervals, coverage_between, equal_edges, union

SPAN = 64
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def owned(spans: Intervals) -> Owned:
    return Owned.of(spans, np.arange(len(spans), dtype=np.int64) + 10)


def painted(pieces: Owned) -> list[int]:
    """The owner of every ns, 0 where there is none; a ns painted twice is an error."""
    canvas = [0] * SPAN
    for start, end, owner in zip(pieces.spans.start, pieces.spans.end, pieces.owner, strict=True):
        for ns in range(start, end):
            assert canvas[ns] == 0
            canvas[ns] = int(owner)
    return canvas


def test_evidence_takes_its_part_and_leaves_the_rest() -> None:
    # left       10:[--------)   11:[----)
    # evidence        [--)    [-------)
    left = Owned.of(Intervals.of([(0, 10), (12, 18)]), np.array([10, 11]))
    claimed, rest, source = claim(left, Intervals.of([(2, 5), (9, 15)]))
    assert list(zip(claimed.spans.start, claimed.spans.end, claimed.owner, source, strict=True)) == [
        (2, 5, 10, 0),
        (9, 10, 10, 1),
        (12, 15, 11, 1),
    ]
    assert list(zip(rest.spans.start, rest.spans.end, rest.owner, strict=True)) == [
        (0, 2, 10),
        (5, 9, 10),
        (15, 18, 11),
    ]


def test_evidence_that_only_touches_claims_nothing() -> None:
    # left          10:[----)      11:[----)
    # evidence     [--)    [------)        [--)
    left = Owned.of(Intervals.of([(3, 8), (15, 20)]), np.array([10, 11]))
    claimed, rest, source = claim(left, Intervals.of([(0, 3), (8, 15), (20, 23)]))
    assert len(claimed) == len(source) == 0
    assert rest is left


def test_several_pieces_out_of_each() -> None:
    # left       10:[--------)  11:[------)  12:[-)
    # evidence       [)  [)         [)  [-)
    left = Owned.of(Intervals.of([(0, 10), (12, 20), (22, 24)]), np.array([10, 11, 12]))
    claimed, rest, source = claim(left, Intervals.of([(1, 3), (5, 7), (13, 14), (16, 18)]))
    assert (claimed.owner.tolist(), source.tolist()) == ([10, 10, 11, 11], [0, 1, 2, 3])
    assert list(zip(rest.spans.start, rest.spans.end, rest.owner, strict=True)) == [
        (0, 1, 10),
        (3, 5, 10),
        (7, 10, 10),
        (12, 13, 11),
        (14, 16, 11),
        (18, 20, 11),
        (22, 24, 12),
    ]


def test_is_sorted_whatever_the_first_one_is() -> None:
    found = Owned.of(Intervals.of([(0, 2), (9, 11), (5, 5), (5, 7)]), np.array([1, 2, 3, 4]))
    assert list(zip(found.spans.start, found.spans.end, found.owner, strict=True)) == [(0, 2, 1), (5, 7, 4), (9, 11, 2)]


def test_no_evidence_claims_nothing() -> None:
    left = Owned.of(Intervals.of([(0, 10)]), np.array([3]))
    claimed, rest, source = claim(left, Intervals.empty())
    assert len(claimed) == len(source) == 0
    assert rest is left


def test_inside_one_interval_nothing_is_cut() -> None:
    # left             10:[--)   11:[---)
    # evidence    [--) [---------------)
    left = Owned.of(Intervals.of([(6, 8), (11, 15)]), np.array([10, 11]))
    inside, source = within(left, Intervals.of([(0, 3), (5, 15)]))
    assert inside is left
    assert source.tolist() == [1, 1]


@given(pairs, pairs)
def test_within_is_what_is_claimed(gaps: list[tuple[int, int]], evidence: list[tuple[int, int]]) -> None:
    left, speaks = owned(union(Intervals.of(gaps))), union(Intervals.of(evidence))
    claimed, _, source = claim(left, speaks)
    inside, of = within(left, speaks)
    assert painted(inside) == painted(claimed)
    assert of.tolist() == source.tolist()


@given(pairs, pairs)
def test_every_ns_is_either_claimed_or_left(gaps: list[tuple[int, int]], evidence: list[tuple[int, int]]) -> None:
    left, speaks = owned(union(Intervals.of(gaps))), union(Intervals.of(evidence))
    claimed, rest, source = claim(left, speaks)
    before, taken, kept = painted(left), painted(claimed), painted(rest)
    covered = [any(start <= ns < end for start, end in evidence if start < end) for ns in range(SPAN)]
    assert taken == [owner if inside else 0 for owner, inside in zip(before, covered, strict=True)]
    assert kept == [0 if inside else owner for owner, inside in zip(before, covered, strict=True)]
    assert np.all(rest.spans.start[1:] >= rest.spans.end[:-1])
    assert np.all(speaks.start[source] <= claimed.spans.start)
    assert np.all(claimed.spans.end <= speaks.end[source])


@given(pairs, st.integers(1, 1 << 40), st.integers(0, 5))
def test_the_levels_of_a_pyramid_hold_the_same_time(covered: list[tuple[int, int]], span: int, finest: int) -> None:
    edges = equal_edges(0, span, 1 << finest)
    assert (edges[0], edges[-1], len(edges)) == (0, span, (1 << finest) + 1)
    assert np.all(np.diff(edges) >= 0)
    s = union(Intervals.of(covered))
    levels = coarser(coverage_between(s, edges), 0)
    inside = sum(max(min(int(end), span) - int(start), 0) for start, end in zip(s.start, s.end, strict=True))
    assert [len(level) for level in levels] == [1 << depth for depth in range(finest, -1, -1)]
    assert {int(level.sum()) for level in levels} == {inside}


def test_nobody_owns_no_time() -> None:
    nothing = Owned.empty()
    assert (len(nothing), len(nothing.spans), len(nothing.owner)) == (0, 0, 0)
    assert (nothing.spans.start.dtype, nothing.owner.dtype) == (np.int64, np.int64)
