"""Columns of made-up tables: the same through both readers, whatever the cells hold."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.trace import reader as arrow
from nsysdiag.trace import reader as buffers
from nsysdiag.trace import reader as reader_module
from nsysdiag.trace import reader as rows
from nsysdiag.trace.columns import Columns, TextColumn
from nsysdiag.trace.trace import Trace, open_trace
from tests.trace.files import KERNEL, KERNEL_ROW, NVTX, STRINGS, execute, insert, listing, small_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

both_readers = pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def read(path: Path, reader: str, table: str, *columns: str) -> tuple[Columns, list[str]]:
    """Some columns and the warnings that came with them."""
    with open_trace(path, reader=reader) as trace:
        return trace.read(table, *columns), trace.warnings


@pytest.mark.sampled(normal=3)
@both_readers
@pytest.mark.parametrize("largest", [2**30 - 1, 2**30, 2**40, -(2**30) - 1])
def test_codes_are_narrow_where_they_fit_and_right_where_they_do_not(tmp_path: Path, reader: str, largest: int) -> None:
    """However late in the table the first large one comes."""
    path = execute(tmp_path / "t.sqlite", KERNEL)
    rows = 70_000  # more than a batch of either reader
    insert(path, KERNELS, [(at + 1, at + 2, 0, 1, 7, at, 10, 5, 6, None) for at in range(rows)])
    insert(path, KERNELS, [(rows + 1, rows + 2, 0, 1, 7, largest, 10, 5, 6, None)])
    columns, _ = read(path, reader, KERNELS, "correlationId", "start", "globalPid")
    assert columns["correlationId"].tolist() == [*range(rows), largest]
    assert columns["correlationId"].dtype == (np.int32 if largest == 2**30 - 1 else np.int64)
    assert columns["start"].dtype == np.int64
    # One value for all rows takes the memory of one.
    assert columns["globalPid"].tolist() == [10] * (rows + 1)
    assert columns["globalPid"].strides == (0,)


@both_readers
def test_null_and_absent_columns_hold_the_declared_defaults(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", KERNEL)
    insert(path, KERNELS, [(1, 2, 0, 1, 7, None, None, 5, 6, None), (3, 4, 0, 1, 7, 9, 10, 5, 6, 11)])
    names = ("correlationId", "globalPid", "graphNodeId", "greenContextId", "gridX")
    columns, warnings = read(path, reader, KERNELS, *names)
    assert [columns[name].tolist() for name in names] == [[0, 9], [-1, 10], [-1, 11], [-1, -1], [0, 0]]
    assert [columns.present(name) for name in names] == [True, True, True, False, False]
    assert [columns[name].dtype for name in names] == [np.int32, np.int64, np.int32, np.int32, np.int64]
    assert columns.names() == list(names)
    assert "gridX" in columns
    assert "gridY" not in columns
    assert warnings == []


@both_readers
def test_null_times_fail_every_check_of_a_valid_interval(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", f'CREATE TABLE {KERNELS} (start INTEGER, "end" INTEGER, deviceId INTEGER)')
    insert(path, KERNELS, [(None, 5, 0), (5, None, 0), (5, 6, None)])
    columns, _ = read(path, reader, KERNELS, "start", "end", "deviceId")
    start, end = columns.integers("start"), columns.integers("end")
    assert ((start > 0) & (start <= end)).tolist() == [False, False, True]
    assert columns["deviceId"].tolist() == [0, 0, -1]


@both_readers
def test_only_absent_columns_still_have_one_row_each(tmp_path: Path, reader: str) -> None:
    columns, _ = read(small_trace(tmp_path / "t.sqlite"), reader, KERNELS, "gridX", "clusterX")
    assert columns["gridX"].tolist() == columns["clusterX"].tolist() == [0]
    assert len(read(tmp_path / "t.sqlite", reader, KERNELS)[0]) == 1


@both_readers
def test_real_columns(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", NVTX)
    insert(path, "NVTX_EVENTS", [(1, 2, 59, None, 1, None), (3, 4, 59, None, 1, 2), (5, 6, 59, None, 1, 0.5)])
    columns, _ = read(path, reader, "NVTX_EVENTS", "doubleValue", "floatValue", "start")
    np.testing.assert_array_equal(columns.reals("doubleValue"), [np.nan, 2.0, 0.5])
    np.testing.assert_array_equal(columns.reals("floatValue"), [np.nan] * 3)
    assert columns["doubleValue"].dtype == columns["floatValue"].dtype == np.float64
    assert columns["start"].dtype == np.int64


def test_clean_columns_never_need_the_slow_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("read row by row")

    monkeypatch.setattr(reader_module, "read_rows", refuse)
    path = insert(execute(tmp_path / "t.sqlite", NVTX), "NVTX_EVENTS", [(1, None, 59, None, None, None)] * 9)
    columns, _ = read(path, "adbc", "NVTX_EVENTS", "start", "end", "globalTid", "doubleValue", "text")
    assert columns["end"].tolist() == [-1] * 9


@both_readers
def test_real_column_of_nulls_alone(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", NVTX)
    insert(path, "NVTX_EVENTS", [(1, 2, 59, None, 1, None)] * 3)
    columns, _ = read(path, reader, "NVTX_EVENTS", "doubleValue")
    assert np.isnan(columns["doubleValue"]).all()


@both_readers
def test_text_with_a_long_run_of_nulls_first(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH_ROWS", 4)
    path = execute(tmp_path / "t.sqlite", NVTX)
    texts = [None] * 10 + ["step", "load", None, "step"]
    insert(path, "NVTX_EVENTS", [(row, None, 59, text, 1, None) for row, text in enumerate(texts)])
    columns, _ = read(path, reader, "NVTX_EVENTS", "start", "text")
    text = columns.text("text")
    assert text.texts() == texts
    assert text.values == ["step", "load"]
    assert text.codes.tolist() == [-1] * 10 + [0, 1, -1, 0]
    assert text.texts()[0] is None
    assert text.texts()[11] == "load"
    assert columns["start"].tolist() == list(range(14))


@both_readers
def test_broken_utf8_survives(tmp_path: Path, reader: str) -> None:
    path = execute(
        tmp_path / "t.sqlite",
        NVTX,
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, CAST(X'6162ff63' AS TEXT), 1, NULL)",
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, X'80', 1, NULL)",
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a' || char(0) || 'b', 1, NULL)",
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'größe 日本', 1, NULL)",
    )
    columns, _ = read(path, reader, "NVTX_EVENTS", "text")
    assert columns["text"].texts() == ["ab\\xffc", "\\x80", "a\0b", "größe 日本"]


@both_readers
def test_stray_cells_in_integer_columns_are_converted_and_counted(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", f'CREATE TABLE {KERNELS} (start, "end" TEXT, deviceId, globalPid)')
    insert(
        path,
        KERNELS,
        [
            (1, "200", 0, "18446744073709551615"),
            (2, "oops", b"3", 9.3e18),
            (3.5, None, 1, "-5"),
            (4, "1" * 5000, 1, float("inf")),
            (5, "36893488147419103232", 1, 7),
        ],
    )
    columns, warnings = read(path, reader, KERNELS, "start", "end", "deviceId", "globalPid", "streamId")
    assert columns["start"].tolist() == [1, 2, 3, 4, 5]
    assert columns["end"].tolist() == [200, -1, -1, -1, -1]
    assert columns["deviceId"].tolist() == [0, 3, 1, 1, 1]
    assert columns["globalPid"].tolist() == [-1, int(9.3e18) - 2**64, -5, -1, 7]
    assert columns["streamId"].tolist() == [-1] * 5
    assert f"column 'end' of {KERNELS}: 4 values are not integers and were converted" in warnings
    assert len(warnings) == 4


@both_readers
def test_stray_cell_far_behind_the_first_batch(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", 16)
    path = execute(tmp_path / "t.sqlite", KERNEL)
    insert(path, KERNELS, [(row, row + 1, *KERNEL_ROW[2:]) for row in range(100)])
    insert(path, KERNELS, [("x", 101, *KERNEL_ROW[2:]), (1.5, 102, *KERNEL_ROW[2:])])
    columns, warnings = read(path, reader, KERNELS, "start", "end")
    assert columns["start"].tolist() == [*range(100), -1, 1]
    assert columns["end"].tolist() == list(range(1, 103))
    assert len(warnings) == 1


@both_readers
def test_ids_in_the_top_bits_and_the_extremes_of_int64(tmp_path: Path, reader: str) -> None:
    extremes = [-(2**63), 2**63 - 1, -(1 << 56), 0]
    path = execute(tmp_path / "t.sqlite", KERNEL)
    insert(path, KERNELS, [(*KERNEL_ROW[:6], value, 1, 2, None) for value in extremes])
    columns, warnings = read(path, reader, KERNELS, "globalPid")
    assert columns["globalPid"].tolist() == extremes
    assert warnings == []


@both_readers
def test_rows_keep_the_order_of_the_file_beside_an_index(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", NVTX, "CREATE INDEX early ON NVTX_EVENTS (start, text)")
    insert(path, "NVTX_EVENTS", [(9 - row, None, 59, str(row), 1, None) for row in range(9)])
    columns, _ = read(path, reader, "NVTX_EVENTS", "start", "text")
    assert columns["start"].tolist() == [9 - row for row in range(9)]
    assert columns["text"].texts() == [str(row) for row in range(9)]


@both_readers
def test_table_without_rowid_and_columns_named_like_it(tmp_path: Path, reader: str) -> None:
    path = execute(
        tmp_path / "t.sqlite",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE PROCESSES (globalPid INTEGER, rowid INTEGER, oid INTEGER, _rowid_ INTEGER, name TEXT)",
        "CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER, rowid INTEGER)",
    )
    insert(path, "StringIds", [(5, "five"), (1, "one")])
    insert(path, "PROCESSES", [(1, 2, 3, 4, "a")])
    insert(path, "ThreadNames", [(1, 2, 900), (3, 4, 800)])
    with open_trace(path, reader=reader) as trace:
        assert trace.read("StringIds", "id", "value")["value"].texts() == ["one", "five"]
        assert trace.read("PROCESSES", "globalPid", "name")["globalPid"].tolist() == [1]
        assert trace.read("ThreadNames", "nameId")["nameId"].tolist() == [1, 3]
        assert trace.strings.texts([1, 5]) == ["one", "five"]


@both_readers
def test_sparse_and_negative_rowids(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", NVTX)
    execute(
        path,
        *(
            f"INSERT INTO NVTX_EVENTS (rowid, start, eventType, text) VALUES ({rowid}, {rowid}, 59, 'x')"
            for rowid in (2**62, -7, -8, 3, -9)
        ),
    )
    columns, _ = read(path, reader, "NVTX_EVENTS", "start", "text")
    assert columns["start"].tolist() == [-9, -8, -7, 3, 2**62]
    execute(path, "DELETE FROM NVTX_EVENTS WHERE start > 0")
    assert read(path, reader, "NVTX_EVENTS", "start")[0]["start"].tolist() == [-9, -8, -7]


@both_readers
def test_odd_names_of_columns_beside_ours(tmp_path: Path, reader: str) -> None:
    path = execute(
        tmp_path / "t.sqlite",
        KERNEL,
        f'ALTER TABLE {KERNELS} ADD COLUMN "odd "" name % ? :x"',
        f"ALTER TABLE {KERNELS} ADD COLUMN name TEXT",
        f"ALTER TABLE {KERNELS} ADD COLUMN GRIDX INTEGER",
        'CREATE TABLE "table "" of % mine" (x)',
    )
    insert(path, KERNELS, [(*KERNEL_ROW, "v", "n", 64)])
    with open_trace(path, reader=reader) as trace:
        assert trace.read(KERNELS, "end", "gridX")["gridX"].tolist() == [64]
        assert trace.tables() == {KERNELS: 1, 'table " of % mine': 0}


@both_readers
@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_any_number_of_batches(tmp_path: Path, reader: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", 4)
    monkeypatch.setattr(rows, "BATCH_ROWS", 4)
    path = execute(tmp_path / "t.sqlite", KERNEL)
    insert(path, KERNELS, [(row, row + 1, *KERNEL_ROW[2:]) for row in range(count)])
    columns, _ = read(path, reader, KERNELS, "start", "end")
    assert columns["start"].tolist() == list(range(count))
    assert columns["end"].tolist() == list(range(1, count + 1))


def test_buffers_grow_beyond_a_wrong_guess() -> None:
    from nsysdiag.trace.tables import ColumnSpec

    filled = buffers.Buffers([ColumnSpec("a"), ColumnSpec("b")], 0)
    for start in range(0, 30, 3):
        part = np.arange(start, start + 3)
        filled.append([part, -part])
    first, second = filled.finish()
    assert first.tolist() == list(range(30))
    assert second.tolist() == [-value for value in range(30)]


@pytest.mark.parametrize("module", ["adbc_driver_manager", "nanoarrow"])
def test_without_the_driver_rows_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    columns, warnings = read(small_trace(tmp_path / "t.sqlite"), "adbc", KERNELS, "start", "end")
    assert (columns["start"].tolist(), columns["end"].tolist()) == ([100], [200])
    assert warnings == []


@both_readers
def test_absent_and_empty_tables_read_as_empty_typed_columns(tmp_path: Path, reader: str) -> None:
    path = execute(small_trace(tmp_path / "t.sqlite"), NVTX)
    with open_trace(path, reader=reader) as trace:
        for table, present in (("NVTX_EVENTS", True), ("PROCESSES", False)):
            assert not trace.has(table)
            column = "start" if present else "pid"
            columns = trace.read(table, column, *(["text", "doubleValue"] if present else ["name"]))
            assert len(columns) == 0
            assert columns[column].dtype == np.int64
            assert columns.present(column) is present
            assert len(columns["text" if present else "name"]) == 0
        assert columns.text("name").values == []


def test_undeclared_names_are_mistakes_in_the_code(tmp_path: Path) -> None:
    with open_trace(small_trace(tmp_path / "t.sqlite")) as trace:
        for table, column in (("NO_SUCH_TABLE", "start"), (KERNELS, "no_such_column"), ("NVTX_EVENTS", "x")):
            with pytest.raises(KeyError, match="is not declared"):
                trace.read(table, column)
        with pytest.raises(KeyError, match="is not declared"):
            trace.has("NO_SUCH_TABLE")


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 5),
    st.floats(allow_nan=False),
    st.sampled_from(["", "x", "12", " 7 ", "18446744073709551615", "1e3", "日"]),
    st.binary(max_size=4),
)


@pytest.mark.slow
@given(
    integers=st.lists(st.tuples(CELLS, st.integers(0, 9)), max_size=12),
    affinity=st.sampled_from(["", "INTEGER", "TEXT", "REAL", "BLOB"]),
)
def test_both_readers_agree_on_any_cells(
    tmp_path_factory: pytest.TempPathFactory, integers: list[tuple[object, int]], affinity: str
) -> None:
    path = tmp_path_factory.mktemp("cells") / "t.sqlite"
    execute(path, f'CREATE TABLE NVTX_EVENTS (start {affinity}, "end" INTEGER NOT NULL, eventType, text {affinity})')
    insert(path, "NVTX_EVENTS", [(cell, end, 59, cell) for cell, end in integers])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "BATCH_ROWS", 3)
        patch.setattr(rows, "BATCH_ROWS", 3)
        one, warned = read(path, "adbc", "NVTX_EVENTS", "start", "end", "text", "domainId")
        two, also_warned = read(path, "sqlite3", "NVTX_EVENTS", "start", "end", "text", "domainId")
    assert one["start"].tolist() == two["start"].tolist()
    assert one["end"].tolist() == two["end"].tolist() == [end for _, end in integers]
    assert one["text"].texts() == two["text"].texts()
    assert one["domainId"].tolist() == [-1] * len(integers)
    assert warned == also_warned


CALLCHAINS = """CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL,
    stackDepth INTEGER NOT NULL, PRIMARY KEY (id, stackDepth))"""


class TestChosen:
    """Rows of chosen ids."""

    def trace(self, folder: Path) -> Path:
        path = execute(folder / "t.sqlite", CALLCHAINS, NVTX)
        insert(path, "SAMPLING_CALLCHAINS", [(i, 100 * i + depth, depth) for i in range(50) for depth in (1, 0)])
        return insert(path, "NVTX_EVENTS", [(i, None, 59, f"t{i % 3}", i, None) for i in range(9)])

    @both_readers
    def test_by_id(self, tmp_path: Path, reader: str) -> None:
        with open_trace(self.trace(tmp_path), reader=reader) as trace:
            columns = trace.read_chosen("SAMPLING_CALLCHAINS", "id", [7, 3, 7, 999], "symbol", "stackDepth", "module")
            assert columns["symbol"].tolist() == [301, 300, 701, 700]
            assert columns["stackDepth"].tolist() == [1, 0, 1, 0]
            assert columns["module"].tolist() == [-1] * 4
            assert trace.tables()["SAMPLING_CALLCHAINS"] == "~100"

    @both_readers
    def test_in_many_blocks(self, tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nsysdiag.trace.trace.IDS_PER_QUERY", 2)
        with open_trace(self.trace(tmp_path), reader=reader) as trace:
            columns = trace.read_chosen("NVTX_EVENTS", "globalTid", np.array([8, 1, 2, 0, 5]), "start", "text")
            assert columns["start"].tolist() == [0, 1, 2, 5, 8]
            assert columns["text"].texts() == ["t0", "t1", "t2", "t2", "t2"]
            assert sorted(columns["text"].values) == ["t0", "t1", "t2"]

    def test_nothing_chosen_or_nothing_there(self, tmp_path: Path) -> None:
        with open_trace(self.trace(tmp_path)) as trace:
            assert len(trace.read_chosen("SAMPLING_CALLCHAINS", "id", [], "symbol")) == 0
            assert len(trace.read_chosen("SAMPLING_CALLCHAINS", "id", [999], "symbol")) == 0
            assert len(trace.read_chosen("OSRT_CALLCHAINS", "id", [1], "symbol")) == 0
            assert len(trace.read_chosen("NVTX_EVENTS", "domainId", [1], "text")) == 0


def test_text_and_columns_of_some_rows() -> None:
    text = TextColumn(np.array([0, -1, 1, 0]), ["a", "b"])
    columns = Columns({"text": text, "start": np.array([1, 2, 3, 4])}, ["start"], 4)
    some = columns.where(np.array([True, True, False, True]))
    assert len(some) == 3
    assert some["text"].texts() == ["a", None, "a"]
    assert some["start"].tolist() == [1, 2, 4]
    assert some.present("start")
    assert not some.present("text")
    assert len(text) == 4
    assert len(Columns({}, [], 4).where(np.array([True, False, True, False]))) == 2


@both_readers
def test_threads_read_at_the_same_time(tmp_path: Path, reader: str) -> None:
    path = execute(tmp_path / "t.sqlite", KERNEL, STRINGS)
    insert(path, KERNELS, [(row, row + 1, *KERNEL_ROW[2:]) for row in range(2000)])
    insert(path, "StringIds", [(row, f"name {row}") for row in range(2000)])

    def work(trace: Trace, part: int) -> tuple[int, Sequence[str]]:
        columns = trace.read(KERNELS, "start", "end", "streamId")
        return int(columns["start"].sum()), trace.strings.texts(range(part, 2000, 7))

    with open_trace(path, reader=reader) as trace, ThreadPoolExecutor(4) as pool:
        for part, (total, texts) in enumerate(pool.map(lambda part: work(trace, part), range(8))):
            assert total == sum(range(2000))
            assert texts == [f"name {row}" for row in range(part, 2000, 7)]


@both_readers
def test_views_virtual_tables_and_triggers_are_left_alone(tmp_path: Path, reader: str) -> None:
    path = small_trace(tmp_path / "t.sqlite")
    execute(
        path,
        "CREATE VIEW NVTX_EVENTS AS SELECT no_such_function(start) AS start, 59 AS eventType FROM nowhere",
        f"CREATE TRIGGER meddle AFTER INSERT ON {KERNELS} BEGIN DELETE FROM StringIds; END",
        "CREATE VIRTUAL TABLE OSRT_API USING fts5(start, nameId)",
        "INSERT INTO OSRT_API VALUES ('1', '2')",
        "PRAGMA writable_schema=1",
        "INSERT INTO sqlite_master VALUES ('table', 'SCHED_EVENTS', 'SCHED_EVENTS', 0, "
        "'CREATE VIRTUAL TABLE SCHED_EVENTS USING no_such_module(start)')",
    )
    before = listing(tmp_path)
    with open_trace(path, reader=reader) as trace:
        assert not any(map(trace.has, ("NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS")))
        assert trace.missing("NVTX_EVENTS") == "no table NVTX_EVENTS in this export"
        assert {"NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS"}.isdisjoint(trace.tables())
        assert len(trace.read(KERNELS, "start")) == 1
        assert trace.strings.text(1) == "void saxpy(float*)"
    assert listing(tmp_path) == before


@both_readers
def test_connections_cannot_write(tmp_path: Path, reader: str) -> None:
    from nsysdiag.trace.catalog import adbc_connection, immutable_uri, stdlib_connection

    uri = immutable_uri(small_trace(tmp_path / "t.sqlite"))
    if reader == "sqlite3":
        with stdlib_connection(uri) as connection, pytest.raises(sqlite3.OperationalError):
            connection.execute("DELETE FROM StringIds")
        return
    import adbc_driver_manager

    with adbc_connection(uri) as connection, adbc_driver_manager.AdbcStatement(connection) as statement:
        statement.set_sql_query("DELETE FROM StringIds")
        with pytest.raises(adbc_driver_manager.Error):
            statement.execute_update()


@pytest.mark.slow
def test_neither_pandas_nor_pyarrow_is_loaded_for_sqlite(tmp_path: Path) -> None:
    """They take memory and time, and the columnar driver would load them where they are installed."""
    path = small_trace(tmp_path / "t.sqlite")
    code = f"import sys, nsysdiag; nsysdiag.analyze({str(path)!r}); print({{'pandas', 'pyarrow'}} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def shaped_trace(path: Path, *rows: tuple[object, ...], columns: str = "gridX, gridY, gridZ, a, b") -> Path:
    """Kernels with some columns more; a and b stand for static and dynamic shared memory."""
    named = columns.replace("a,", "staticSharedMemory,").replace("b", "dynamicSharedMemory")
    execute(path, KERNEL, *(f"ALTER TABLE {KERNELS} ADD COLUMN {each}" for each in named.split(", ")))
    return insert(path, KERNELS, [(*KERNEL_ROW, *row) for row in rows])


@both_readers
def test_columns_made_of_others(tmp_path: Path, reader: str) -> None:
    """A product, and a sum; NULL where any part is, and then the default."""
    path = shaped_trace(tmp_path / "t.sqlite", (4, 3, 2, 100, 28), (4, None, 2, None, 28), (7, 1, 1, 0, 0))
    columns, warnings = read(path, reader, KERNELS, "start", "blocks", "sharedMemory", "gridX")
    assert columns["blocks"].tolist() == [24, 0, 7]
    assert columns["sharedMemory"].tolist() == [128, 0, 0]
    assert columns["gridX"].tolist() == [4, 4, 7]
    assert columns.present("blocks")
    assert warnings == []


@both_readers
def test_a_column_that_lacks_a_part_is_absent(tmp_path: Path, reader: str) -> None:
    path = shaped_trace(tmp_path / "t.sqlite", (4, 3), columns="gridX, gridY")
    columns, _ = read(path, reader, KERNELS, "blocks", "start", "sharedMemory")
    assert (columns["blocks"].tolist(), columns["sharedMemory"].tolist()) == ([0], [0])
    assert not columns.present("blocks")


@both_readers
def test_a_product_beyond_64_bits_is_cut_to_what_fits(tmp_path: Path, reader: str) -> None:
    path = shaped_trace(tmp_path / "t.sqlite", (2**62, 2**62, 4, 0, 0), ("5", 2, 1.0, 0, 0), (b"x", 2, 2, 0, 0))
    columns, _ = read(path, reader, KERNELS, "blocks")
    assert columns["blocks"].tolist() == [2**63 - 1, 10, 0]
