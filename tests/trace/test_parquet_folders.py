"""Parquet folders made for tests are like those of the real nsys: files, columns, types, values."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builder import MAIN, TraceBuilder, Value, global_tid
from tests.trace.files import execute, insert
from tests.trace.parquet_folders import to_folder, with_column

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
CAPTURE = "gpubootcamp_mpi-report2_v100"
"""A capture that is there as a SQLite file and as a folder of Parquet files."""
ODD = "OddTable"


def table_of(folder: Path, name: str) -> pa.Table:
    return pq.read_table(folder / f"{name}.parquet")


def values_of(folder: Path, table: str, column: str) -> list[Any]:
    values: list[Any] = table_of(folder, table)[column].to_pylist()
    return values


def names_of(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.iterdir())


def layout(folder: Path, table: str) -> tuple[list[int], str]:
    """The rows of each group in the file of a table, and how it is compressed."""
    metadata = pq.read_metadata(folder / f"{table}.parquet")
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return [group.num_rows for group in groups], groups[0].column(0).compression


def signed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of uint64 as SQLite holds it; any other as it is."""
    if column.type != pa.uint64():
        return column
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())


def existing(name: str) -> Path:
    """A file or folder among the real traces; without it the test is skipped."""
    if not (FOLDER / name).exists():
        pytest.skip(f"no {name} in {FOLDER.name}")
    return FOLDER / name


@pytest.fixture(scope="module")
def sqlite() -> Path:
    return existing(f"{CAPTURE}.sqlite")


@pytest.fixture(scope="module")
def real() -> Path:
    return existing(f"{CAPTURE}_pqtdir")


@pytest.fixture(scope="module")
def made(sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return to_folder(sqlite, tmp_path_factory.mktemp("made") / "pqtdir")


@pytest.mark.real
class TestRealPair:
    def test_same_tables_columns_and_types(self, real: Path, made: Path) -> None:
        assert names_of(made) == names_of(real)
        for name in names_of(real):
            expected, schema = (pq.read_schema(folder / f"{name}.parquet") for folder in (real, made))
            assert [str(field) for field in schema] == [str(field) for field in expected], name
            assert [field.nullable for field in schema] == [field.nullable for field in expected], name

    def test_same_values_row_for_row(self, real: Path, made: Path) -> None:
        for name in names_of(real):
            expected, table = table_of(real, name), table_of(made, name)
            assert table.num_rows == expected.num_rows, name
            differ = [
                column for column in expected.column_names if not signed(table[column]).equals(signed(expected[column]))
            ]
            assert differ == [], name

    @pytest.mark.thorough
    def test_real_values_are_those_of_sqlite(self, sqlite: Path, real: Path) -> None:
        with closing(sqlite3.connect(f"{sqlite.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for name in names_of(real):
                columns = [signed(column).to_pylist() for column in table_of(real, name).columns]
                rows = connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid').fetchall()
                assert list(zip(*columns, strict=True)) == rows, name


class TestMade:
    def test_values_survive(self, tmp_path: Path) -> None:
        high = -(1 << 62)
        row: dict[str, Value] = {
            "start": 5,
            "eventType": 59,
            "globalTid": high,
            "text": "größe",
            "endGlobalTid": -1,
            "floatValue": 0.5,
        }
        trace = TraceBuilder().kernel(100, 200).nvtx("step", 90, None).row("NVTX_EVENTS", row).sched(0, True)
        folder = to_folder(trace.write(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir")
        events = table_of(folder, "NVTX_EVENTS")
        assert events["text"].to_pylist() == ["step", "größe"]
        assert events["end"].to_pylist() == [None, None]
        assert events["globalTid"].to_pylist() == [global_tid(MAIN), high + 2**64]
        assert events["endGlobalTid"].to_pylist() == [None, 2**64 - 1]
        assert events["floatValue"].to_pylist() == [None, 0.5]
        assert [str(events.schema.field(name).type) for name in ("end", "globalTid", "jsonText", "floatValue")] == [
            "int64",
            "uint64",
            "string",
            "float",
        ]
        assert [events.schema.field(name).nullable for name in ("start", "end")] == [False, True]
        assert values_of(folder, "SCHED_EVENTS", "isSchedIn") == [True]
        assert values_of(folder, "CUPTI_ACTIVITY_KIND_KERNEL", "gridX") == [108]

    def test_empty_tables_are_left_out(self, tmp_path: Path) -> None:
        trace = TraceBuilder(lazy=False).kernel(100, 200).write(tmp_path / "t.sqlite")
        execute(
            trace, "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO numbered VALUES (1)"
        )
        names = names_of(to_folder(trace, tmp_path / "t_pqtdir"))
        assert {"CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "META_DATA_EXPORT", "numbered"} <= set(names)
        assert "CUPTI_ACTIVITY_KIND_MEMCPY" not in names
        assert not [name for name in names if name.startswith("sqlite_")]

    @pytest.mark.parametrize(
        ("column", "values", "kind", "expected"),
        [
            ("some", [1, None, -1], "int64", [1, None, -1]),
            ("some", [1, 2.5, None], "double", [1.0, 2.5, None]),
            ("some", [1, "a", 2.5], "string", ["1", "a", "2.5"]),
            ("some", [2.5, 2**60 + 1], "string", ["2.5", str(2**60 + 1)]),
            ("some", [b"\xff", None], "binary", [b"\xff", None]),
            ("some", [b"raw", "a", None], "string", ["raw", "a", None]),
            ("some", [None, None], "int64", [None, None]),
            ("text", [None, None], "string", [None, None]),
            ("gridX", [1, 2**40], "int64", [1, 2**40]),
            ("isSchedIn", [0, 2], "int64", [0, 2]),
            ("floatValue", [0.1, None], "double", [0.1, None]),
            ("globalTid", [1, 2.5], "double", [1.0, 2.5]),
            ("text", ["a", 7], "string", ["a", "7"]),
        ],
    )
    def test_types_follow_the_values(
        self, column: str, values: list[Any], kind: str, expected: list[Any], tmp_path: Path
    ) -> None:
        trace = execute(tmp_path / "t.sqlite", f"CREATE TABLE {ODD} ({column})")
        insert(trace, ODD, [(value,) for value in values])
        found = table_of(to_folder(trace, tmp_path / "t_pqtdir"), ODD)[column]
        assert (str(found.type), found.to_pylist()) == (kind, expected)

    def test_broken_utf8_is_kept(self, tmp_path: Path) -> None:
        statement = f"INSERT INTO {ODD} VALUES (CAST(X'6162ff63' AS TEXT)), (NULL)"
        trace = execute(tmp_path / "t.sqlite", f"CREATE TABLE {ODD} (text TEXT)", statement)
        found = table_of(to_folder(trace, tmp_path / "t_pqtdir"), ODD)["text"]
        assert found.type == pa.string()
        assert found.cast(pa.binary()).to_pylist() == [b"ab\xffc", None]

    def test_groups_and_compression(self, tmp_path: Path) -> None:
        trace = execute(tmp_path / "t.sqlite", f"CREATE TABLE {ODD} (start INTEGER NOT NULL)")
        insert(trace, ODD, [(start,) for start in range(10)])
        folder = to_folder(trace, tmp_path / "t_pqtdir", row_group=4, compression="snappy")
        written = layout(folder, ODD)
        assert written == ([4, 4, 2], "SNAPPY")
        with_column(folder, ODD, "start", pa.array([str(number) for number in range(10)]))
        assert layout(folder, ODD) == written


class TestWithColumn:
    def test_one_column_is_replaced(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(100, 200).kernel(300, 400).write(tmp_path / "t.sqlite")
        folder = to_folder(trace, tmp_path / "t_pqtdir", row_group=1, compression="snappy")
        before = table_of(folder, "CUPTI_ACTIVITY_KIND_KERNEL")
        assert with_column(folder, "CUPTI_ACTIVITY_KIND_KERNEL", "end", pa.array(["a", None])) == folder
        after = table_of(folder, "CUPTI_ACTIVITY_KIND_KERNEL")
        assert after.column_names == before.column_names
        assert after["end"].type == pa.string()
        assert after["end"].to_pylist() == ["a", None]
        assert after.drop_columns("end").equals(before.drop_columns("end"))

    def test_what_does_not_fit_is_refused(self, tmp_path: Path) -> None:
        folder = to_folder(TraceBuilder().kernel(100, 200).write(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir")
        with pytest.raises(ValueError, match="nothing"):
            with_column(folder, "StringIds", "nothing", pa.array([1]))
        with pytest.raises(pa.ArrowInvalid):
            with_column(folder, "CUPTI_ACTIVITY_KIND_KERNEL", "end", pa.array([1, 2]))
