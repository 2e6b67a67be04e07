"""Columns of Parquet files of types that no export has: converted as SQLite does, or refused by name."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsysdiag.limits import TEXT_BYTES
from nsysdiag.trace.trace import open_trace
from tests.hostile.parquet import (
    CONVERTED,
    EVENTS,
    KERNELS,
    META,
    STRINGS,
    column,
    events,
    read,
    refused,
    table_of,
    told_of,
)
from tests.trace.files import KERNEL, NVTX, execute, insert
from tests.trace.parquet_folders import to_folder, with_column
from tests.trace.test_parquet import assert_same, both

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]


FOREIGN = {
    "list": pa.array([[1], None], pa.list_(pa.int64())),
    "structure": pa.array([{"start": 1}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "timestamp": pa.array([1, None], pa.timestamp("ns")),
    "zone": pa.array([1, None], pa.timestamp("us", "UTC")),
    "date": pa.array([1, None], pa.date32()),
    "time": pa.array([1, None], pa.time64("ns")),
    "duration": pa.array([1, None], pa.duration("ns")),
}

NUMBERS: dict[str, tuple[pa.Array, list[int], int]] = {
    "text": (pa.array(["12", "x"]), [12, -1], 2),
    "large text": (pa.array([" 12 ", None], pa.large_string()), [12, -1], 1),
    "text view": (pa.array(["12", None], pa.string_view()), [12, -1], 1),
    "broken text": (pa.array([b"\xff", b"7"]).view(pa.string()), [-1, 7], 2),
    "dictionary": (pa.array(["12", "x"]).dictionary_encode(), [12, -1], 2),
    "binary": (pa.array([b"12", b"\xff"]), [12, -1], 2),
    "fixed binary": (pa.array([b"12", b"\xff\xff"], pa.binary(2)), [12, -1], 2),
    "float": (pa.array([2.9, -1e300]), [2, -1], 2),
    "small float": (pa.array([2.5, None], pa.float16()), [2, -1], 1),
    "not a number": (pa.array([float("nan"), float("inf")]), [-1, -1], 2),
    "decimal": (pa.array([Decimal("12.75"), None]), [12, -1], 1),
    "large decimal": (pa.array([Decimal(2**63 + 5), Decimal(10**30)], pa.decimal128(38)), [5 - 2**63, -1], 2),
    "beyond 63 bits": (pa.array([2**64 - 1, 2**63], pa.uint64()), [-1, -(2**63)], 0),
    "small": (pa.array([255, None], pa.uint8()), [255, -1], 0),
    "truth": (pa.array([True, None]), [1, -1], 0),
    "nothing": (pa.array([None, None], pa.int64()), [-1, -1], 0),
    "no type": (pa.nulls(2), [-1, -1], 0),
}
"""Columns, what is read of them as whole numbers, and how many cells are not integers; -1 is unknown."""
TEXTS: tuple[tuple[pa.Array, list[str | None]], ...] = (
    (pa.array([1, None]), ["1", None]),
    (pa.array([True, None]), ["1", None]),
    (pa.array([0.5, None]), ["0.5", None]),
    (pa.array(["a", "a"], pa.large_string()), ["a", "a"]),
    (pa.array(["a", None], pa.string_view()), ["a", None]),
    (pa.array([b"a\xff", b""]), ["a\\xff", ""]),
    (pa.array([b"ab", None], pa.binary(2)), ["ab", None]),
    (pa.array([b"a\xff", b""]).view(pa.string()).dictionary_encode(), ["a\\xff", ""]),
    (pa.nulls(2), [None, None]),
)
REALS: tuple[tuple[pa.Array, list[float | None]], ...] = (
    (pa.array([b"0.5", b"\xff"]).view(pa.string()), [0.5, None]),
    (pa.array([Decimal("0.5"), None]), [0.5, None]),
    (pa.array([float("inf"), float("nan")]), [float("inf"), None]),
    (pa.array([True, None]), [1, None]),
    (pa.array([-5, None], pa.int8()), [-5, None]),
    (pa.nulls(2), [None, None]),
)


class TestTypes:
    """Columns of types that no export has."""

    @pytest.mark.sampled(quick=11, normal=6)
    @pytest.mark.parametrize("kind", NUMBERS)
    def test_numbers_are_converted(self, kind: str, folder: Path) -> None:
        """Where they are read, where rows are chosen by them, and in the SQLite copy that bundles are made of."""
        values, expected, odd = NUMBERS[kind]
        with_column(folder, KERNELS, "contextId", values)
        assert (CONVERTED.format("contextId", KERNELS, odd) in told_of(folder)) == (odd > 0)
        copy = folder / "copy.sqlite"
        with open_trace(folder) as trace:
            assert trace.read(KERNELS, "contextId")["contextId"].tolist() == expected
            for each in set(expected) - {-1}:
                assert len(trace.read_chosen(KERNELS, "contextId", [each], "start")) == 1
            with closing(sqlite3.connect(trace.uri, uri=True)) as connection:
                connection.execute("VACUUM INTO ?", (str(copy),))
        if kind != "large decimal":  # SQLite has none
            assert column(copy, KERNELS, "contextId").tolist() == expected

    def test_one_warning_for_all_parts(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nsysdiag.trace.parquet.folder.GROUP_ROWS", 1)
        with_column(folder, KERNELS, "contextId", pa.array([1.5, 2.5]))
        assert [each for each in told_of(folder) if "converted" in each] == [CONVERTED.format("contextId", KERNELS, 2)]

    @pytest.mark.sampled(quick=5, normal=4)
    @pytest.mark.parametrize("kind", FOREIGN)
    @pytest.mark.parametrize(("table", "name"), [(KERNELS, "start"), (META, "value"), (STRINGS, "value")])
    def test_others_are_refused(self, kind: str, table: str, name: str, folder: Path) -> None:
        rows = pq.read_metadata(table_of(folder, table)).num_rows
        values = pa.concat_arrays([FOREIGN[kind].slice(0, 1)] * rows)
        with_column(folder, table, name, values)
        refused(folder, f"table {table}: column '{name}' holds values of type ", "which no export has")

    @pytest.mark.sampled(quick=5, normal=3)
    @pytest.mark.parametrize(("values", "expected"), TEXTS, ids=range(len(TEXTS)))
    def test_texts(self, values: pa.Array, expected: list[str | None], tmp_path: Path) -> None:
        folder = events(tmp_path, [("a", None, None), ("b", None, None)])
        with_column(folder, EVENTS, "text", values)
        assert column(folder, EVENTS, "text").texts() == expected
        told_of(folder)

    @pytest.mark.parametrize(("values", "expected"), REALS, ids=range(len(REALS)))
    def test_reals(self, values: pa.Array, expected: list[float | None], tmp_path: Path) -> None:
        folder = events(tmp_path, [("a", None, None), ("b", None, None)])
        with_column(folder, EVENTS, "doubleValue", values)
        found = column(folder, EVENTS, "doubleValue").tolist()
        assert [None if math.isnan(each) else each for each in found] == expected

    def test_cells_that_sqlite_holds_too(self, tmp_path: Path) -> None:
        path = execute(tmp_path / "t.sqlite", KERNEL, NVTX, "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        insert(path, META, [("a", "b")])
        insert(path, KERNELS, [(1, 2, 0, 1.5, "12", -(2**63), 2**63 - 1, b"3", "x", None)])
        rows = [("a\x1b[31m", 2**40, 0.25), ("k" * (TEXT_BYTES + 9), None, None), ("", -1, -1e300)]
        insert(path, EVENTS, [(at, None, 59, *row) for at, row in enumerate(rows)])
        execute(path, "INSERT INTO NVTX_EVENTS VALUES (9, 9, 59, CAST(X'61ff' AS TEXT), NULL, 1)")
        paths = path, to_folder(path, tmp_path / "t_pqtdir")
        found = []
        for table in (KERNELS, EVENTS):
            names = pq.read_schema(table_of(paths[1], table)).names
            one, other = both(paths, partial(read, table=table, names=names))
            assert_same(one[0], other[0])
            assert one[1] == other[1]
            found += one[1]
        assert len(found) == 4
