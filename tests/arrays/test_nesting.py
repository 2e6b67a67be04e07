"""Nesting: small literal cases, a stack as oracle, and inputs that must not take forever."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.nesting import Nesting, enclosing, levels, outermost
from tests.arrays.oracle import HI, LO, Pairs, forward_pairs, stack_depths, times

FAR = 2**62

grouped_pairs = st.lists(
    st.tuples(st.integers(-2, 2), times, times).map(lambda row: (row[0], min(row[1:]), max(row[1:]))),
    max_size=12,
)


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def is_outermost(rows: list[tuple[int, int, int]], index: int) -> bool:
    """By looking at all others: no interval of the same group holds it; of the same ones the first wins."""
    group, start, end = rows[index]
    return not any(
        other[0] == group and other[1] <= start and other[2] >= end and (other != rows[index] or at < index)
        for at, other in enumerate(rows)
        if at != index
    )


OUTERMOST: list[tuple[str, Pairs, list[bool]]] = [
    # [--------)
    #   [--)
    ("inside", [(0, 9), (2, 5)], [True, False]),
    #   [--)
    # [--------)    the inner one comes first in the input
    ("inside, listed first", [(2, 5), (0, 9)], [False, True]),
    # [----)
    #    [----)
    ("overlapping", [(0, 5), (3, 8)], [True, True]),
    # [--)
    #    [--)
    ("touching", [(0, 3), (3, 6)], [True, True]),
    # [----)
    # [--)          same start
    ("same start", [(0, 3), (0, 5)], [False, True]),
    # [--)   [--)
    #        [-----)   same start, behind another
    ("same start, later on", [(0, 1), (2, 3), (2, 5)], [True, False, True]),
    # [----)
    #   [--)        same end
    ("same end", [(0, 5), (2, 5)], [True, False]),
    # [--)
    # [--)
    # [--)          the same three times
    ("identical", [(0, 3), (0, 3), (0, 3)], [True, False, False]),
    # [----)
    # |  |          zero length at the start and inside
    ("zero length inside", [(0, 0), (3, 3), (0, 5)], [False, False, True]),
    #   |  |        zero length by itself
    ("zero length alone", [(2, 2), (5, 5)], [True, True]),
    # [---------)
    #   [-----)
    #     [-)
    ("three deep", [(4, 6), (2, 8), (0, 10)], [False, False, True]),
    ("far away", [(-FAR, FAR), (-FAR, FAR - 1)], [True, False]),
    ("nothing", [], []),
]


class TestOutermost:
    @pytest.mark.parametrize(
        ("given_pairs", "expected"), [case[1:] for case in OUTERMOST], ids=[case[0] for case in OUTERMOST]
    )
    def test_literal(self, given_pairs: Pairs, expected: list[bool]) -> None:
        intervals = Intervals.of(given_pairs)
        assert outermost(intervals).tolist() == expected
        assert outermost(intervals).dtype == np.bool_
        assert outermost(intervals, np.zeros(len(intervals), np.int64)).tolist() == expected

    def test_groups_do_not_see_each_other(self) -> None:
        # group 7   [--------)
        # group 3     [--)
        # group 7     [--)
        intervals = Intervals.of([(0, 9), (2, 5), (2, 5)])
        assert outermost(intervals, int64([7, 3, 7])).tolist() == [True, True, False]

    def test_far_away_groups_and_times_do_not_overflow(self) -> None:
        intervals = Intervals.of([(-FAR, FAR), (0, FAR), (-FAR, FAR), (-FAR, -FAR + 1)])
        assert outermost(intervals, int64([FAR, FAR, -FAR, -FAR])).tolist() == [True, False, True, False]

    @given(forward_pairs)
    def test_is_what_looking_at_all_says(self, rows: Pairs) -> None:
        expected = [is_outermost([(0, *row) for row in rows], index) for index in range(len(rows))]
        assert outermost(Intervals.of(rows)).tolist() == expected

    @given(grouped_pairs)
    def test_is_what_looking_at_all_of_a_group_says(self, rows: list[tuple[int, int, int]]) -> None:
        intervals = Intervals.of([row[1:] for row in rows])
        expected = [is_outermost(rows, index) for index in range(len(rows))]
        assert outermost(intervals, int64([row[0] for row in rows])).tolist() == expected


class TestLevels:
    def test_nested(self) -> None:
        # [-----------)   0
        #   [---)         1
        #    [-)          2
        #        [--)     1
        #              [) 0
        intervals = Intervals.of([(0, 12), (2, 6), (3, 5), (7, 10), (13, 14)])
        assert levels(intervals).tolist() == [0, 1, 2, 1, 0]

    def test_in_any_order(self) -> None:
        assert levels(Intervals.of([(3, 5), (0, 12), (2, 6)])).tolist() == [2, 0, 1]

    def test_overlap_without_nesting_counts_as_nested(self) -> None:
        # [----)       0
        #    [----)    1: [----) is open at its start
        #       [---)  2: the second is still open, so it is the second's child
        assert levels(Intervals.of([(0, 5), (3, 8), (6, 10)])).tolist() == [0, 1, 2]

    def test_touching_is_no_nesting(self) -> None:
        assert levels(Intervals.of([(0, 3), (3, 6), (6, 6)])).tolist() == [0, 0, 0]

    def test_identical_ones_nest_in_input_order(self) -> None:
        assert levels(Intervals.of([(0, 3), (0, 3)])).tolist() == [0, 1]

    def test_of_nothing(self) -> None:
        assert levels(Intervals.empty()).tolist() == []

    def test_what_is_deeper_than_the_limit_gets_the_last_level(self) -> None:
        assert levels(Intervals.of([(0, 9), (1, 8), (2, 7), (3, 6)]), limit=2).tolist() == [0, 1, 1, 1]

    @given(forward_pairs)
    def test_is_what_a_stack_says(self, rows: Pairs) -> None:
        assert levels(Intervals.of(rows)).tolist() == stack_depths(rows)

    @given(forward_pairs)
    def test_intervals_of_one_level_never_overlap(self, rows: Pairs) -> None:
        depth = levels(Intervals.of(rows))
        for level in set(depth.tolist()):
            members = sorted(row for row, its in zip(rows, depth.tolist(), strict=True) if its == level)
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(members))


class TestEnclosing:
    def test_literal(self) -> None:
        # 0  [-----------)
        # 1     [---)
        # 2                [--)
        # times  |  |   |  |  |
        intervals = Intervals.of([(0, 12), (3, 7), (14, 17)])
        outer, inner = enclosing(intervals, int64([4, 7, 11, 14, 17, -1]))
        assert outer.tolist() == [0, 0, 0, 2, -1, -1]
        assert inner.tolist() == [1, -1, -1, -1, -1, -1]

    def test_only_the_outer_levels(self) -> None:
        deep = Intervals.of([(at, 200 - at) for at in range(70)])
        assert [level.tolist() for level in enclosing(deep, int64([100]))] == [[at] for at in range(64)]

    def test_of_nothing(self) -> None:
        assert list(enclosing(Intervals.empty(), int64([3]))) == []
        assert [level.tolist() for level in enclosing(Intervals.of([(0, 1)]), int64([]))] == [[]]

    def test_beyond_the_limit_time_belongs_to_the_last_level(self) -> None:
        # 0  [--------)
        # 1   [------)     the last level
        # 2    [----)      deeper: its time counts for 1
        found = list(enclosing(Intervals.of([(0, 9), (1, 8), (2, 7)]), int64([4]), limit=2))
        assert [level.tolist() for level in found] == [[0], [1]]

    @given(forward_pairs, st.lists(times))
    def test_is_what_looking_at_all_of_a_level_says(self, rows: Pairs, asked: list[int]) -> None:
        depth = stack_depths(rows)
        expected = [
            [
                next((i for i, row in enumerate(rows) if depth[i] == level and row[0] <= ask < row[1]), -1)
                for ask in asked
            ]
            for level in range(max(depth, default=-1) + 1)
        ]
        assert [level.tolist() for level in enclosing(Intervals.of(rows), int64(asked))] == expected

    def test_every_time_inside_anything_has_an_enclosing_interval(self) -> None:
        rows = [(LO, 0), (-8, 12), (4, HI)]
        found = list(enclosing(Intervals.of(rows), np.arange(LO, HI)))
        assert (np.max(np.stack(found), axis=0) >= 0).all()


nested_pairs = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 15)).map(
        lambda cell: (cell[1] % 2 ** cell[0] << 4 - cell[0], cell[1] % 2 ** cell[0] + 1 << 4 - cell[0])
    ),
    max_size=12,
)
"""Cells of a grid that is halved again and again: each is in another one, or has no time in common with it."""


class TestNesting:
    @pytest.mark.parametrize("pairs", [forward_pairs, nested_pairs])
    @given(data=st.data(), limit=st.sampled_from([2, 64]))
    def test_the_innermost_is_that_of_the_deepest_level(
        self, pairs: st.SearchStrategy[Pairs], data: st.DataObject, limit: int
    ) -> None:
        intervals, asked = Intervals.of(data.draw(pairs)), int64(data.draw(st.lists(times)))
        nesting = Nesting.of(intervals, limit)
        found = [level.tolist() for level in nesting.open_at(asked)]
        assert found == [level.tolist() for level in enclosing(intervals, asked, limit)]
        deepest = [
            max((at for at in column if at >= 0), key=column.index, default=-1) for column in zip(*found, strict=True)
        ]
        assert nesting.innermost(asked).tolist() == (deepest if found else [-1] * len(asked))

    @pytest.mark.parametrize("pairs", [forward_pairs, nested_pairs])
    @given(data=st.data())
    def test_a_parent_is_open_at_the_start_on_an_outer_level(
        self, pairs: st.SearchStrategy[Pairs], data: st.DataObject
    ) -> None:
        rows = data.draw(pairs)
        nesting, depth = Nesting.of(Intervals.of(rows)), stack_depths(rows)
        for at, parent in enumerate(nesting.parents().tolist()):
            begin, end = rows[at]
            outer = [i for i, row in enumerate(rows) if depth[i] < depth[at] and row[0] <= begin < row[1]]
            assert begin == end or parent == max(outer, key=lambda each: depth[each], default=-1)

    def test_ranges_that_nest_are_known_as_such(self) -> None:
        above = Nesting.of(Intervals.of([(4, 6), (0, 9), (4, 5)])).above
        assert above is not None
        assert above.tolist() == [1, -1, 0]
        assert Nesting.of(Intervals.of([(0, 5), (3, 8)])).above is None
        assert Nesting.of(Intervals.of([(0, 9), (1, 8), (2, 7)]), limit=2).above is None


class TestManyLevels:
    """A million ranges that were pushed and never popped: the work is bounded by the limit, not by them."""

    COUNT = 1_000_000

    def nested(self) -> Intervals:
        inward = np.arange(self.COUNT, dtype=np.int64)
        return Intervals(inward, 3 * self.COUNT - inward)

    @pytest.mark.slow
    def test_levels_stop_at_the_limit(self) -> None:
        depth = levels(self.nested())
        assert depth[:64].tolist() == list(range(64))
        assert (depth[64:] == 63).all()

    @pytest.mark.slow
    def test_enclosing_stops_at_the_limit(self) -> None:
        found = enclosing(self.nested(), int64([self.COUNT]), limit=8)
        assert [level.tolist() for level in found] == [[level] for level in range(8)]

    def test_only_one_is_outermost(self) -> None:
        assert np.flatnonzero(outermost(self.nested())).tolist() == [0]
