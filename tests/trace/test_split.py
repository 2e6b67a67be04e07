"""Rows sorted by pairs of ids while they are read: the same as reading all and choosing, by both readers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.trace.reader import BATCH_ROWS
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.trace.columns import Columns, Pair

KEYS = ("typeId", "metricId")
both = pytest.mark.parametrize("reader", ["adbc", "sqlite3"])


def written(folder: Path, rows: list[tuple[int, int, int, object]]) -> Path:
    path = TraceBuilder().gpu_metric("SM Active", []).row("GPU_METRICS", {}).write(folder / "trace.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM GPU_METRICS")
        connection.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?)", rows)
    return path


def split(path: Path, reader: str, pairs: list[Pair]) -> dict[Pair, Columns]:
    with open_trace(path, reader=reader) as trace:
        return trace.read_split("GPU_METRICS", KEYS, pairs, "timestamp", "value")


@both
def test_each_pair_has_its_rows_in_the_order_of_the_file(reader: str, tmp_path: Path) -> None:
    """Of (7, 1), (7, 2) and (8, 1) two are wanted, and (8, 2), which has no rows."""
    path = written(tmp_path, [(3, 7, 1, 30), (1, 7, 2, 5), (2, 8, 1, 9), (1, 7, 1, None), (2, 7, 1, 1.5)])
    found = split(path, reader, [(7, 1), (8, 1), (8, 2)])
    assert set(found) == {(7, 1), (8, 1)}
    assert found[7, 1]["timestamp"].tolist() == [3, 1, 2]
    assert np.array_equal(found[7, 1].reals("value"), [30, np.nan, 1.5], equal_nan=True)
    assert found[8, 1]["timestamp"].tolist() == [2]


@pytest.mark.slow
@both
def test_more_rows_than_a_batch_holds(reader: str, tmp_path: Path) -> None:
    count = BATCH_ROWS + 100
    path = written(tmp_path, [(at, at % 3, at % 2, at % 101) for at in range(count)])
    found = split(path, reader, [(kind, metric) for kind in range(2) for metric in range(2)])
    for (kind, metric), columns in found.items():
        times = [at for at in range(count) if at % 3 == kind and at % 2 == metric]
        assert columns["timestamp"].tolist() == times
        assert columns.reals("value").tolist() == [at % 101 for at in times]


@pytest.mark.slow
@both
def test_cells_of_odd_types_are_read_one_by_one(reader: str, tmp_path: Path) -> None:
    """SQLite stores what it is given: text in an integer column stops the fast way half-way through."""
    rows: list[tuple[int, int, int, object]] = [(at, 7, 1, at) for at in range(BATCH_ROWS + 10)]
    path = written(tmp_path, [*rows, ("later", 7, 1, 4)])  # type: ignore[list-item]
    found = split(path, reader, [(7, 1)])[7, 1]
    assert found["timestamp"].tolist() == [*range(BATCH_ROWS + 10), -1]


@both
def test_no_table_no_rows_no_pairs(reader: str, tmp_path: Path) -> None:
    without = TraceBuilder().kernel(1, 2).write(tmp_path / "without.sqlite")
    assert split(without, reader, [(7, 1)]) == {}
    path = written(tmp_path, [(1, 7, 1, 1)])
    assert split(path, reader, []) == {}
    assert list(split(path, reader, [(7, 1)])) == [(7, 1)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM GPU_METRICS")
    assert split(path, reader, [(7, 1)]) == {}
