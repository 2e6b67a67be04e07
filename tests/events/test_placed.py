"""Ranges on an axis of threads: the path of the innermost one is that of all levels."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.events.nvtx import NvtxRanges, PlacedRanges, PythonMarks, RangeRows
from nsysdiag.events.rows import ThreadAxis

NAMES = ["step", "forward", "layer"]
cells = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(0, 1), st.integers(0, 2)), max_size=14)
"""Cells of a grid that is halved again and again, so that they nest: size, place, thread and name."""


def placed(rows: list[tuple[int, int, int, int]]) -> PlacedRanges:
    size, place, thread, name = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    length = 8 >> size
    start = place % (1 << size) * length
    no = np.zeros(len(rows), dtype=np.bool_)
    none = np.zeros(len(rows), dtype=np.int64)
    table = RangeRows(start, start + length, 100 + thread, name, no, no, no, none, none)
    return PlacedRanges.of(NvtxRanges(table, NAMES, PythonMarks.empty()), ThreadAxis(np.array([100, 101]), 0, 8))


@given(cells)
def test_the_path_of_the_innermost_range_is_that_of_all_levels(rows: list[tuple[int, int, int, int]]) -> None:
    its = placed(rows)
    assert its.paths is not None
    rank, time = (each.ravel() for each in np.meshgrid([-1, 0, 1], np.arange(8)))
    code, paths = its.path_codes(rank, time)
    other_code, other_paths = replace(its, paths=None).path_codes(rank, time)
    assert (code.tolist(), paths) == (other_code.tolist(), other_paths)


def test_a_path_has_the_names_of_all_that_is_open() -> None:
    code, paths = placed([(0, 0, 0, 0), (1, 1, 0, 1), (0, 0, 1, 2)]).path_codes(
        np.array([0, 0, 1, -1]), np.array([1, 5, 5, 5])
    )
    assert [paths[each] for each in code.tolist()] == [["step"], ["step", "forward"], ["layer"], []]
