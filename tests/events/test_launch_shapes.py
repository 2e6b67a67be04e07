"""Launch shapes: a table of those that occur, and a place in it for each kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.operations import SHAPE_COLUMNS, launch_shapes
from nsysdiag.trace.columns import Columns
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

Shape = tuple[int, int, int, int]


def columns_of(rows: list[Shape]) -> Columns:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    values = {name: table[:, at].copy() for at, name in enumerate(SHAPE_COLUMNS)}
    return Columns(values, SHAPE_COLUMNS, len(rows))


def shapes_of(rows: list[Shape]) -> list[Shape | None]:
    """The shape that each row leads to."""
    shapes, place = launch_shapes(columns_of(rows))
    table = list(
        zip(
            *(getattr(shapes, name).tolist() for name in ("blocks", "threads", "registers", "shared_memory")),
            strict=True,
        )
    )
    assert len(set(table)) == len(table)
    return [None if at < 0 else table[at] for at in place.tolist()]


def test_each_kernel_leads_to_its_own_shape() -> None:
    rows = [(108, 256, 32, 0), (1, 1024, 255, 4096), (108, 256, 32, 0), (108, 256, 33, 0), (2**62, 1, 0, 232_448)]
    assert shapes_of(rows) == rows


def test_what_is_unknown_or_cannot_be_has_no_shape() -> None:
    good = (1, 32, 16, 0)
    odd = [(0, 32, 16, 0), (-1, 32, 16, 0), (1, 0, 16, 0), (1, 4096, 16, 0), (1, 32, 256, 0), (1, 32, 16, 1 << 18)]
    odd += [(1, 32, -1, 0), (1, 32, 16, -5)]
    assert shapes_of([good, *odd, good]) == [good, *[None] * len(odd), good]
    assert shapes_of(odd) == [None] * len(odd)
    assert shapes_of([]) == []


@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-1, 5), st.integers(2**26 - 2, 2**40)),
            st.integers(-1, 2049),
            st.integers(-1, 257),
            st.integers(-1, 300_000),
        ),
        max_size=40,
    )
)
def test_any_rows(rows: list[Shape]) -> None:
    def known(row: Shape) -> bool:
        blocks, threads, registers, shared = row
        return blocks > 0 and 1 <= threads < 2048 and 0 <= registers < 256 and 0 <= shared < 1 << 18

    assert shapes_of(rows) == [row if known(row) else None for row in rows]


def test_rare_shapes_among_very_many_kernels() -> None:
    rows = [(108, 256, 32, 0)] * 20_000
    rows[13], rows[19_999] = (7, 64, 40, 128), (9, 64, 40, 128)
    assert shapes_of(rows) == rows


def test_from_a_trace(tmp_path: Path) -> None:
    """gridX * gridY * gridZ blocks of blockX * blockY * blockZ threads; static and dynamic shared memory together."""
    grid = {"gridX": 4, "gridY": 3, "gridZ": 2, "blockX": 16, "blockY": 8, "blockZ": 2, "registersPerThread": 40}
    trace = TraceBuilder().kernel(100, 200, shape={**grid, "staticSharedMemory": 1000, "dynamicSharedMemory": 24})
    with open_trace(trace.write(tmp_path / "t.sqlite")) as opened:
        shapes, place = launch_shapes(opened.read("CUPTI_ACTIVITY_KIND_KERNEL", *SHAPE_COLUMNS))
    assert place.tolist() == [0]
    found = (shapes.blocks[0], shapes.threads[0], shapes.registers[0], shapes.shared_memory[0])
    assert found == (24, 256, 40, 1024)
