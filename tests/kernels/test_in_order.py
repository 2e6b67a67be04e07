"""How much time the kernels of each lane take together, against a union of each lane alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals, intersect, union
from nsysdiag.kernels.limits import _ns_of_lanes

kernels = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=20)


@given(kernels)
def test_time_of_lanes_is_that_of_the_union_of_each(rows: list[tuple[int, int, int]]) -> None:
    start, length, lane = np.array(sorted(rows), dtype=np.int64).T.copy()
    spans, parts = Intervals(start, start + length), Intervals.of([(3, 20), (25, 44)])
    expected = [intersect(union(spans[lane == each]), parts).total() for each in range(3)]
    assert _ns_of_lanes(spans, lane, 3, parts).tolist() == expected
