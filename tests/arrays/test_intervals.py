"""Interval algebra: small literal cases, the painter as oracle, and laws that hold for all sets."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import (
    Intervals,
    clip,
    common_ns,
    complement,
    contains,
    coverage,
    equal_edges,
    intersect,
    nearest_after,
    nearest_before,
    pieces,
    rows_from,
    shared,
    shared_ns,
    subtract,
    union,
)
from tests.arrays.oracle import HI, LO, Pairs, any_intervals, paint, pairs, runs, sets, times

FAR = 2**62
NONE = Intervals.empty()


def int64(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


class TestIntervals:
    def test_holds_pairs_and_their_total(self) -> None:
        intervals = Intervals.of([(0, 4), (2, 5)])
        assert len(intervals) == 2
        assert intervals.total() == 7
        assert intervals.start.dtype == intervals.end.dtype == np.int64

    def test_empty(self) -> None:
        assert len(Intervals.empty()) == len(Intervals.of([])) == 0
        assert Intervals.empty().total() == 0

    def test_picks_by_slice_mask_and_positions(self) -> None:
        intervals = Intervals.of([(0, 1), (2, 3), (4, 5)])
        assert pairs(intervals[1:]) == [(2, 3), (4, 5)]
        assert pairs(intervals[np.array([True, False, True])]) == [(0, 1), (4, 5)]
        assert pairs(intervals[[2, 0]]) == [(4, 5), (0, 1)]

    def test_starts_and_ends_must_pair_up(self) -> None:
        with pytest.raises(ValueError, match="do not pair up"):
            Intervals(int64(1, 2), int64(3))
        with pytest.raises(ValueError, match="do not pair up"):
            Intervals(np.zeros((2, 2), np.int64), np.zeros((2, 2), np.int64))

    @pytest.mark.parametrize(("start", "end"), [(float, float), (float, np.int64), (np.int64, float)])
    def test_floats_would_lose_nanoseconds(self, start: type, end: type) -> None:
        with pytest.raises(TypeError, match="int64"):
            Intervals(np.zeros(1, start), np.ones(1, end))


UNIONS: list[tuple[str, Pairs, Pairs]] = [
    # [---)
    #   [---)       overlapping
    ("overlapping", [(0, 4), (2, 6)], [(0, 6)]),
    # [--)
    #    [--)       touching
    ("touching", [(0, 3), (3, 6)], [(0, 6)]),
    # [-) [-)       apart
    ("apart", [(0, 2), (4, 6)], [(0, 2), (4, 6)]),
    # [--------)
    #   [-) [-)     the long one reaches over the later ones
    ("contained", [(0, 9), (2, 4), (5, 7)], [(0, 9)]),
    # [-)
    # [-)           twice the same
    ("duplicates", [(1, 3), (1, 3)], [(1, 3)]),
    #     [-)
    # [-)           out of order
    ("unsorted", [(4, 6), (0, 2)], [(0, 2), (4, 6)]),
    # )[   |        reversed, empty
    ("reversed and empty", [(3, 1), (5, 5)], []),
    # [-)|[-)       an empty one between joins nothing
    ("empty between", [(0, 2), (3, 3), (4, 6)], [(0, 2), (4, 6)]),
    # [-) 0 [-)     before zero
    ("negative", [(-9, -5), (2, 4)], [(-9, -5), (2, 4)]),
    ("far away", [(FAR - 2, FAR), (-FAR, 2 - FAR)], [(-FAR, 2 - FAR), (FAR - 2, FAR)]),
    ("nothing", [], []),
]


class TestUnion:
    @pytest.mark.parametrize(("given_pairs", "expected"), [case[1:] for case in UNIONS], ids=[c[0] for c in UNIONS])
    def test_literal(self, given_pairs: Pairs, expected: Pairs) -> None:
        assert pairs(union(Intervals.of(given_pairs))) == expected

    def test_of_no_parts_is_empty(self) -> None:
        assert pairs(union()) == []

    def test_joins_parts(self) -> None:
        assert pairs(union(Intervals.of([(5, 7)]), NONE, Intervals.of([(0, 2), (6, 9)]))) == [(0, 2), (5, 9)]

    def test_leaves_its_input_alone(self) -> None:
        intervals = Intervals.of([(4, 6), (0, 5)])
        union(intervals)
        assert pairs(intervals) == [(4, 6), (0, 5)]

    @given(st.lists(any_intervals, max_size=3))
    def test_is_what_the_painter_sees(self, parts: list[Intervals]) -> None:
        assert pairs(union(*parts)) == runs(paint(pair for part in parts for pair in pairs(part)))

    @given(any_intervals)
    def test_of_a_set_is_the_set(self, intervals: Intervals) -> None:
        once = union(intervals)
        assert pairs(union(once)) == pairs(once)


class TestComplement:
    def test_literal(self) -> None:
        # s          [---)   [--)   [---)
        # window       |             |
        # free           [---)  [---)
        s = Intervals.of([(0, 4), (8, 11), (15, 19)])
        assert pairs(complement(s, 2, 17)) == [(4, 8), (11, 15)]

    def test_of_nothing_is_the_window(self) -> None:
        assert pairs(complement(NONE, 3, 9)) == [(3, 9)]

    def test_of_a_full_window_is_nothing(self) -> None:
        assert pairs(complement(Intervals.of([(0, 9)]), 0, 9)) == []

    @pytest.mark.parametrize(("lo", "hi"), [(5, 5), (7, 2)])
    def test_in_an_empty_or_reversed_window_is_nothing(self, lo: int, hi: int) -> None:
        assert pairs(complement(Intervals.of([(0, 3)]), lo, hi)) == []

    def test_far_away(self) -> None:
        assert pairs(complement(Intervals.of([(0, 5)]), -FAR, FAR)) == [(-FAR, 0), (5, FAR)]

    @given(sets, times, times)
    def test_is_what_the_painter_leaves_blank(self, s: Intervals, lo: int, hi: int) -> None:
        assert pairs(complement(s, lo, hi)) == runs(~paint(pairs(s)) & paint([(lo, hi)]))

    @given(sets)
    def test_twice_is_the_same(self, s: Intervals) -> None:
        assert pairs(complement(complement(s, LO, HI), LO, HI)) == pairs(s)


class TestIntersectAndSubtract:
    # a            [-----)   [----)
    # b               [--------)    [-)
    A, B = Intervals.of([(0, 6), (10, 15)]), Intervals.of([(3, 12), (17, 19)])

    def test_intersect_literal(self) -> None:
        assert pairs(intersect(self.A, self.B)) == [(3, 6), (10, 12)]

    def test_subtract_literal(self) -> None:
        assert pairs(subtract(self.A, self.B)) == [(0, 3), (12, 15)]
        assert pairs(subtract(self.B, self.A)) == [(6, 10), (17, 19)]

    def test_common_ns_is_the_total_of_what_both_cover(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert common_ns(self.A, self.B) == intersect(self.A, self.B).total() == 5
        assert common_ns(self.A, Intervals.empty()) == 0
        monkeypatch.setattr("nsysdiag.arrays.intervals.AT_ONCE", 1)
        assert common_ns(self.A, self.B) == 5
        assert pairs(intersect(self.A, self.B)) == [(3, 6), (10, 12)]

    def test_touching_sets_share_nothing(self) -> None:
        # a  [--)
        # b     [--)
        a, b = Intervals.of([(0, 3)]), Intervals.of([(3, 6)])
        assert pairs(intersect(a, b)) == []
        assert pairs(subtract(a, b)) == [(0, 3)]

    def test_with_nothing(self) -> None:
        assert pairs(intersect(self.A, NONE)) == pairs(intersect(NONE, self.A)) == []
        assert pairs(subtract(self.A, NONE)) == pairs(self.A)
        assert pairs(subtract(NONE, self.A)) == []

    def test_far_away(self) -> None:
        whole, hole = Intervals.of([(-FAR, FAR)]), Intervals.of([(0, 5)])
        assert pairs(intersect(whole, hole)) == [(0, 5)]
        assert pairs(subtract(whole, hole)) == [(-FAR, 0), (5, FAR)]

    @given(sets, sets)
    def test_are_what_the_painter_sees(self, a: Intervals, b: Intervals) -> None:
        cells_a, cells_b = paint(pairs(a)), paint(pairs(b))
        assert pairs(intersect(a, b)) == pairs(intersect(b, a)) == runs(cells_a & cells_b)
        assert pairs(subtract(a, b)) == runs(cells_a & ~cells_b)

    @given(sets, sets)
    def test_add_up_to_the_whole(self, a: Intervals, b: Intervals) -> None:
        shared, own = intersect(a, b), subtract(a, b)
        assert shared.total() + own.total() == a.total()
        assert pairs(union(shared, own)) == pairs(a)


class TestClip:
    def test_literal(self) -> None:
        # intervals  2:       [---)   0: [---)   1: [-)   3: )(
        # window       |        |
        intervals = Intervals.of([(0, 4), (9, 12), (6, 10), (5, 3)])
        assert pairs(clip(intervals, 2, 8)) == [(2, 4), (6, 8)]
        assert pairs(clip(intervals, 8, 2)) == []

    @given(any_intervals, times, times)
    def test_cuts_each_by_itself(self, intervals: Intervals, lo: int, hi: int) -> None:
        cut = [(max(start, lo), min(end, hi)) for start, end in pairs(intervals)]
        assert pairs(clip(intervals, lo, hi)) == [(start, end) for start, end in cut if start < end]


class TestCoverage:
    def test_literal(self) -> None:
        # s          [---)   [---)
        # queries      [-------)        4 of 9
        #                 [-)           0
        #               |               0, empty
        #             )--(              0, reversed
        #        [------------------)   all 8
        s = Intervals.of([(0, 4), (8, 12)])
        queries = Intervals.of([(2, 10), (5, 7), (3, 3), (3, 1), (-5, 20)])
        assert coverage(s, queries).tolist() == [4, 0, 0, 0, 8]

    def test_with_nothing(self) -> None:
        assert coverage(NONE, Intervals.of([(0, 4)])).tolist() == [0]
        assert coverage(Intervals.of([(0, 4)]), NONE).tolist() == []

    def test_far_away(self) -> None:
        s = Intervals.of([(-FAR, -FAR + 3), (FAR - 5, FAR)])
        assert coverage(s, Intervals.of([(-FAR, FAR), (FAR - 1, FAR)])).tolist() == [8, 1]

    @given(sets, any_intervals)
    def test_is_what_the_painter_counts(self, s: Intervals, queries: Intervals) -> None:
        cells = paint(pairs(s))
        expected = [int((cells & paint([query])).sum()) for query in pairs(queries)]
        assert coverage(s, queries).tolist() == expected

    @given(sets, any_intervals, st.data())
    def test_of_some_queries_is_that_of_each(self, s: Intervals, queries: Intervals, data: st.DataObject) -> None:
        rows = int64(*data.draw(st.lists(st.sampled_from(range(len(queries)))))) if len(queries) else int64()
        assert coverage(s, queries, rows).tolist() == coverage(s, queries)[rows].tolist()

    @given(sets, any_intervals, st.sampled_from([1, 2, 100]))
    def test_time_of_several_is_counted_once(self, s: Intervals, spans: Intervals, at_once: int) -> None:
        rows = np.argsort(spans.start, kind="stable")
        with patch("nsysdiag.arrays.intervals.AT_ONCE", at_once):
            assert shared_ns(s, spans, rows) == intersect(s, union(spans)).total()

    @given(sets, sets)
    def test_over_disjoint_queries_adds_up(self, s: Intervals, parts: Intervals) -> None:
        assert coverage(s, parts).sum() == intersect(s, parts).total()
        rest = complement(parts, LO, HI)
        assert coverage(s, parts).sum() + coverage(s, rest).sum() == s.total()


class TestPieces:
    def test_literal(self) -> None:
        # s          [---)   [---)   [-)
        # query 0      [-------)
        # query 1            [----------)
        # query 2        [-)
        s = Intervals.of([(0, 4), (8, 12), (16, 18)])
        index, found = pieces(s, Intervals.of([(2, 10), (8, 30), (4, 6)]))
        assert index.tolist() == [0, 0, 1, 1]
        assert pairs(found) == [(2, 4), (8, 10), (8, 12), (16, 18)]

    def test_a_query_of_no_length_finds_nothing(self) -> None:
        index, found = pieces(Intervals.of([(0, 4)]), Intervals.of([(2, 2), (1, 3), (3, 2)]))
        assert (index.tolist(), pairs(found)) == ([1], [(1, 3)])

    def test_of_nothing(self) -> None:
        for s, queries in [(NONE, Intervals.of([(0, 4)])), (Intervals.of([(0, 4)]), NONE), (NONE, NONE)]:
            index, found = pieces(s, queries)
            assert index.dtype == np.int64
            assert len(index) == len(found) == 0

    @given(sets, any_intervals)
    def test_are_what_the_painter_sees_in_each_query(self, s: Intervals, queries: Intervals) -> None:
        cells = paint(pairs(s))
        expected = [(i, run) for i, query in enumerate(pairs(queries)) for run in runs(cells & paint([query]))]
        index, found = pieces(s, queries)
        assert list(zip(index.tolist(), pairs(found), strict=True)) == expected

    @given(sets, any_intervals)
    def test_add_up_to_the_coverage(self, s: Intervals, queries: Intervals) -> None:
        index, found = pieces(s, queries)
        by_query = np.zeros(len(queries), np.int64)
        np.add.at(by_query, index, found.end - found.start)
        assert by_query.tolist() == coverage(s, queries).tolist()

    @given(sets, any_intervals)
    def test_are_as_long_as_what_is_shared_with_one_interval(self, s: Intervals, queries: Intervals) -> None:
        index, found = pieces(s, queries)
        query, item, ns = shared(s, queries)
        assert (query.tolist(), ns.tolist()) == (index.tolist(), (found.end - found.start).tolist())
        assert contains(s, found.start).all()
        assert (s.start[item] <= found.start).all()
        assert (s.end[item] >= found.end).all()


class TestContains:
    def test_start_is_inside_and_end_is_not(self) -> None:
        s = Intervals.of([(0, 4), (8, 12)])
        assert contains(s, int64(-1, 0, 3, 4, 8, 12)).tolist() == [False, True, True, False, True, False]
        for covered in (s, NONE):
            assert contains(covered, int64(20)).tolist() == [False]
            assert contains(covered, int64(20)).dtype == np.bool_

    @given(sets)
    def test_is_what_the_painter_sees(self, s: Intervals) -> None:
        assert contains(s, np.arange(LO, HI)).tolist() == paint(pairs(s)).tolist()


class TestNearest:
    def test_literal(self) -> None:
        known, asked = int64(2, 5, 5, 9), int64(1, 2, 5, 6, 9, 10)
        assert nearest_before(known, asked).tolist() == [-1, 0, 2, 2, 3, 3]
        assert nearest_after(known, asked).tolist() == [0, 0, 1, 3, 3, 4]

    def test_among_nothing(self) -> None:
        assert nearest_before(int64(), int64(3)).tolist() == [-1]
        assert nearest_after(int64(), int64(3)).tolist() == [0]

    @given(st.lists(times).map(sorted), st.lists(times))
    def test_by_looking_at_all(self, known: list[int], asked: list[int]) -> None:
        before = [max((i for i, time in enumerate(known) if time <= ask), default=-1) for ask in asked]
        after = [min((i for i, time in enumerate(known) if time >= ask), default=len(known)) for ask in asked]
        assert nearest_before(int64(*known), int64(*asked)).tolist() == before
        assert nearest_after(int64(*known), int64(*asked)).tolist() == after


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=12))
def test_rows_from_are_ranges_one_after_another(ranges: list[tuple[int, int]]) -> None:
    first, count = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    assert rows_from(first, count).tolist() == [row for low, many in ranges for row in range(low, low + many)]


@given(st.integers(-(1 << 62), (1 << 62) - 1), st.integers(1, 1 << 62), st.integers(1, 300))
def test_equal_edges_are_exact(low: int, length: int, count: int) -> None:
    edges = equal_edges(low, low + length, count).tolist()
    assert (edges[0], edges[-1], len(edges)) == (low, low + length, count + 1)
    assert all(0 <= (low * count + length * at) - count * edge < count for at, edge in enumerate(edges))
