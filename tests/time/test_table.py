"""Sums of the rows of a table of time, against a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.time import table
from nsysdiag.time.table import sums

KINDS, END = 3, 60
Row = tuple[int, int, int]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows [start, end) of a kind, disjoint and in order; some touch."""
    found, at = [], 0
    parts = st.tuples(st.integers(0, 4), st.integers(1, 8), st.integers(0, KINDS - 1))
    for gap, length, kind in draw(st.lists(parts, max_size=12)):
        found.append((at + gap, at + gap + length, kind))
        at += gap + length
    return found


spans = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=5)


@pytest.mark.parametrize("many", [0, 2, 1 << 20])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@given(rows=rows(), spans=spans)
def test_each_nanosecond_is_in_the_sum_of_its_kind(
    block: int, many: int, rows: list[Row], spans: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsysdiag.arrays.intervals.AT_ONCE", block)
        patch.setattr(table, "_MANY", many)
        code = np.array([kind for _, _, kind in rows], dtype=np.int8)
        found = sums(Intervals.of([row[:2] for row in rows]), code, KINDS, Intervals.of(spans))
    for kind in range(KINDS):
        mine = {at for start, end, each in rows if each == kind for at in range(start, end)}
        assert found[kind].tolist() == [len(mine & set(range(start, end))) for start, end in spans]
