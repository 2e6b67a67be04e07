"""Texts of many megabytes: read up to a cap, said, and never multiplied in outputs."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze, compare
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.limits import BLOB_BYTES, CELL_BYTES, NAME_CHARACTERS, TEXT_BYTES, mark_of, short_name
from nsysdiag.messages import InputError
from nsysdiag.record import to_json
from nsysdiag.trace import reader as string_rows
from nsysdiag.trace.tables import TABLES, TEXTS
from nsysdiag.trace.trace import open_trace
from tests.hostile.every_table import write_every_table
from tests.hostile.sizes import write_nested, write_streams
from tests.trace.files import NVTX, execute, insert, small_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.report import Report
    from tests.hostile.conftest import Told

pytestmark = pytest.mark.slow

MB = 1_000_000
ADDRESSES = 1536 << 20
"""Bytes of address space for a whole run, which maps about 1 GiB of libraries."""
ROOM = 1 * MB
"""What a few long names may add to an output."""
_LIMITED = "import resource, sys, runpy; resource.setrlimit(resource.RLIMIT_AS, ({0}, {0}));"
_RUN = _LIMITED + "sys.argv = ['nsysdiag', *sys.argv[1:]]; runpy.run_module('nsysdiag', run_name='__main__')"


def lengthened(path: Path, table: str, column: str, size: int, where: str) -> Path:
    """Put `size` letters behind the text of some rows, without ever holding them here."""
    big = f"replace(hex(zeroblob({size // 2})), '0', 'k')"
    return execute(path, f'UPDATE "{table}" SET "{column}" = coalesce("{column}", \'\') || {big} WHERE {where}')


def long_kernel(path: Path, size: int) -> Path:
    """500 steps of one kernel, whose name is long."""
    return lengthened(write_streams(path, 500), "StringIds", "value", size, "value = 'gemm'")


def drawn(report: Report) -> dict[str, int]:
    """The bytes of a report in each format."""
    return {name: len(known.render(report, RenderOptions())) for name, known in FORMATS.items()}


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is Linux's")
@pytest.mark.parametrize("size", [5 * MB, pytest.param(400 * MB, marks=pytest.mark.thorough)])
def test_a_long_kernel_name_within_little_memory(size: int, tmp_path: Path) -> None:
    trace = long_kernel(tmp_path / "trace.sqlite", size)
    outputs = [tmp_path / "report.json", tmp_path / "report.html"]
    line = [sys.executable, "-c", _RUN.format(ADDRESSES), "analyze", str(trace), "-q"]
    done = subprocess.run(
        [*line, *(part for path in outputs for part in ("-o", str(path)))], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    short = analyze(write_streams(tmp_path / "short.sqlite", 500))
    sizes = drawn(short)
    assert outputs[0].stat().st_size < sizes["json"] + ROOM
    assert outputs[1].stat().st_size < sizes["html"] + ROOM
    report = json.loads(outputs[0].read_bytes())
    (warning,) = report["trace"]["warnings"]
    assert warning == f"1 text longer than 32,768 bytes was cut; the longest has {size / MB:,.1f} MB"
    (kernel,) = report["devices"][0]["kernels"]
    assert kernel["name"].startswith("gemmkkk")
    assert len(kernel["name"]) == TEXT_BYTES + len(mark_of(kernel["name"]))
    assert kernel["short_name"] == report["devices"][0]["gaps"][0]["next_op"]["name"] == short_name(kernel["name"])
    assert report["devices"][0]["iterations"] is None or len(report["devices"][0]["iterations"]["name"]) < 300


def test_names_that_differ_in_the_last_character_only(tmp_path: Path) -> None:
    path = write_streams(tmp_path / "trace.sqlite", 40)
    lengthened(path, "StringIds", "value", 5 * MB, "value IN ('gemm', 'name 0')")
    execute(
        path,
        "UPDATE StringIds SET value = replace(value, 'name 0', 'gemm') || 'x' WHERE value LIKE 'name 0k%'",
        "UPDATE StringIds SET value = value || 'y' WHERE value LIKE 'gemm%k'",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = (SELECT id FROM StringIds WHERE value LIKE 'gemm%x')"
        " WHERE rowid % 2",
    )
    report = analyze(path)
    (device,) = report.devices
    assert [kernel.count for kernel in device.kernels] == [20, 20]
    assert len({kernel.name for kernel in device.kernels}) == 2
    assert len({kernel.name[:TEXT_BYTES] for kernel in device.kernels}) == 1
    assert "2 texts longer than 32,768 bytes were cut" in report.trace.warnings[0]


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("table", ["StringIds", "texts"])
def test_every_text_at_once(table: str, tmp_path: Path) -> None:
    """Names of kernels, ranges, threads, processes, files, calls, functions, metrics, versions: a text of each."""
    path = write_every_table(tmp_path / "trace.sqlite")
    before, size = drawn(analyze(path)), CELL_BYTES + 5
    if table == "StringIds":
        lengthened(path, table, "value", size, "id > 0")
    else:
        for spec in TABLES.values():
            for column in spec.columns:
                if column.type in TEXTS and spec.name != "StringIds":
                    any_row = f'(SELECT max(rowid) FROM "{spec.name}" WHERE "{column.name}" IS NOT NULL)'
                    lengthened(path, spec.name, column.name, size, f"rowid = {any_row}")
    report = analyze(path)
    assert [device.ops.kernel for device in report.devices] == [24, 24]
    assert any("longer than 32,768 bytes were cut; the longest has 1.0 MB" in each for each in report.trace.warnings)
    for name, bytes_ in drawn(report).items():
        assert bytes_ < before[name] + ROOM, name


@pytest.mark.thorough
def test_long_names_of_nested_ranges_are_not_multiplied(tmp_path: Path) -> None:
    """A path of 64 names stands in each of 200 gaps."""
    path = write_nested(tmp_path / "trace.sqlite", 100)
    before = drawn(analyze(path))
    lengthened(path, "StringIds", "value", NAME_CHARACTERS - 100, "id > 0")
    assert all(bytes_ < before[name] + 10 * ROOM for name, bytes_ in drawn(analyze(path)).items())


def test_a_label_of_an_enumeration_is_never_read(tmp_path: Path) -> None:
    path = write_every_table(tmp_path / "trace.sqlite")
    execute(path, "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT)")
    execute(path, f"INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'a', hex(zeroblob({CELL_BYTES})))")
    assert not any("longer than" in warning for warning in analyze(path).trace.warnings)


@pytest.mark.parametrize("arguments", [["-o", "made.zip"], ["-o", "made.zip", "--redact"]])
def test_a_bundle_of_it(arguments: list[str], command: Callable[..., Told], tmp_path: Path) -> None:
    path = long_kernel(tmp_path / "trace.sqlite", 3 * MB)
    told = command("bundle", path, *arguments)
    assert told.code == 0, told.stderr
    assert len(told.everything) < 100_000
    with zipfile.ZipFile("made.zip") as made:
        assert sum(each.file_size for each in made.infolist()) < 3 * MB


@pytest.mark.thorough
def test_every_command_takes_it(command: Callable[..., Told], tmp_path: Path) -> None:
    one, other = (long_kernel(tmp_path / f"{name}.sqlite", 3 * MB) for name in "ab")
    ranks = [long_kernel(tmp_path / f"rank{number}.sqlite", 3 * MB) for number in (0, 1)]
    for path in ranks:
        execute(path, "UPDATE StringIds SET value = 'ncclDevKernel_AllReduce_' || value WHERE value LIKE 'gemmk%'")
    lines = {
        "compare": [one, other, "-o", "compare.json", "-o", "compare.html"],
        "ranks": [*ranks, "-o", "ranks.json"],
        "batch": [one, other, "-o", "made", "--jobs", "1"],
        "info": [one],
        "analyze": [one, "--redact", "-o", "redacted.json", "-o", "redacted.html"],
    }
    for name, arguments in lines.items():
        told = command(name, *arguments)
        assert told.code == 0, (name, told.stderr)
        assert len(told.everything) < 100_000, name
    for made in Path.cwd().rglob("*.*"):
        assert made.stat().st_size < 3 * MB, made


def test_short_and_long_names_are_matched_alike(tmp_path: Path) -> None:
    """A capture against itself: the signatures and kernels of a long name are as equal as those of a short one."""
    path = long_kernel(tmp_path / "trace.sqlite", 2 * MB)
    found = compare(analyze(path), analyze(path))
    assert all(each.status == "both" for device in found.devices for each in device.kernels)
    assert all(each.status == "both" for device in found.devices for each in device.signatures)


class TestReading:
    @pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
    @pytest.mark.parametrize("size", [TEXT_BYTES + 1, CELL_BYTES + 1])
    def test_a_string(self, reader: str, size: int, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        insert(path, "StringIds", [(7, "k" * size), (8, "é" * size), (9, "after"), (10, "k" * TEXT_BYTES)])
        with open_trace(path, reader=reader) as trace:
            names = trace.strings.whole([2, 7, 8, 9, 10])
            assert [names[0], names[3], names[4]] == ["saxpy", "after", "k" * TEXT_BYTES]
            assert names[1].removesuffix(mark_of(names[1])) == "k" * TEXT_BYTES
            assert names[2].removesuffix(mark_of(names[2])) == "é" * (TEXT_BYTES // 2)
            assert trace.strings.texts([7]) == [trace.strings.text(7)] == [short_name(names[1])]
            assert trace.warnings[-1].startswith("2 texts longer than")

    def test_the_cut_is_the_same_in_pieces_and_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        insert(path, "StringIds", [(7, "kö" * 200_000)])
        with open_trace(path) as trace:
            whole = trace.strings.whole([7])
        monkeypatch.setattr("nsysdiag.trace.catalog.CELL_BYTES", 65_536)
        with open_trace(path) as trace:
            assert trace.strings.whole([7]) == whole

    def test_all_strings_at_once_in_a_table_without_key(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(string_rows, "FULL_READ_FROM", 2)
        path = execute(tmp_path / "t.sqlite", "CREATE TABLE StringIds (id, value)")
        insert(path, "StringIds", [(3, "three"), (1, "k" * (CELL_BYTES + 1)), (2, None), (9, "nine")])
        with open_trace(path) as trace:
            assert trace.strings.texts([9, 2, 3]) == ["nine", "<string 2>", "three"]
            assert mark_of(trace.strings.text(1))

    def test_a_table_without_rowids_is_refused(self, tmp_path: Path) -> None:
        path = execute(tmp_path / "t.sqlite", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value) WITHOUT ROWID")
        insert(path, "StringIds", [(1, "k" * (CELL_BYTES + 1))])
        with open_trace(path) as trace, pytest.raises(InputError, match="more than 1,048,576 bytes"):
            trace.strings.text(1)

    @pytest.mark.parametrize("size", [NAME_CHARACTERS + 1, CELL_BYTES + 1])
    def test_a_text_column(self, size: int, tmp_path: Path) -> None:
        path = execute(tmp_path / "t.sqlite", NVTX)
        texts = ["one", "k" * size, None, "one", "k" * size + "x", ""]
        insert(path, "NVTX_EVENTS", [(1, 2, 59, text, 1, 0.5) for text in texts])
        with open_trace(path) as trace:
            read = trace.read("NVTX_EVENTS", "start", "text").text("text")
            assert read.codes.tolist() == [0, 1, -1, 0, 2, 3]
            assert [len(text) for text in read.values] == [3, 214, 214, 0]
            chosen = trace.read_chosen("NVTX_EVENTS", "start", [1], "text").text("text")
            assert chosen.texts() == read.texts()

    def test_a_text_column_of_a_table_without_rowids_is_refused(self, tmp_path: Path) -> None:
        sql = "CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, eventType, text) WITHOUT ROWID"
        path = insert(execute(tmp_path / "t.sqlite", sql), "NVTX_EVENTS", [(1, 59, "k" * (CELL_BYTES + 1))])
        with open_trace(path) as trace, pytest.raises(InputError, match="more than 1,048,576 bytes"):
            trace.read("NVTX_EVENTS", "start", "text")

    def test_a_blob(self, tmp_path: Path) -> None:
        path = execute(tmp_path / "t.sqlite", "CREATE TABLE NVTX_EVENTS (start, eventType, binaryData)")
        sizes = [2, BLOB_BYTES, BLOB_BYTES + 1, CELL_BYTES + 1]
        for wanted in ([*sizes], sizes[:3]):
            execute(path, "DELETE FROM NVTX_EVENTS")
            insert(path, "NVTX_EVENTS", [(1, 59, bytes(size)) for size in wanted])
            with open_trace(path) as trace:
                read = trace.read("NVTX_EVENTS", "binaryData").text("binaryData")
                assert [len(text) if text else None for text in read.texts()][:3] == [4, 2 * BLOB_BYTES, None]
                assert "not read" in trace.warnings[-1]

    def test_text_of_two_bytes_a_character(self, tmp_path: Path) -> None:
        path = execute(tmp_path / "t.sqlite", "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE StringIds (id, value)")
        insert(path, "StringIds", [(1, "kernel " * CELL_BYTES), (2, "short")])
        with open_trace(path) as trace:
            first, second = trace.strings.texts([1, 2])
            assert first.startswith("kernel kernel kernel")
            assert second == "short"

    def test_a_text_for_a_number(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        execute(path, f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = 'k' || hex(zeroblob({CELL_BYTES}))")
        with pytest.raises(InputError, match="more than 1,048,576 bytes"):
            analyze(path)


class TestSchema:
    def test_many_tables(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nsysdiag.limits.TABLES", 60)
        path = write_every_table(tmp_path / "trace.sqlite")
        plain = analyze(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            for number in range(200):
                connection.execute(f'CREATE TABLE "AAA {number}" (a)')
        report = analyze(path)
        assert len(report.trace.tables) == 60
        assert f"of {len(TABLES) + 200:,} tables {len(TABLES) + 140:,} were not looked at" in report.trace.warnings
        assert [device.ledger for device in report.devices] == [device.ledger for device in plain.devices]

    def test_many_columns(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nsysdiag.limits.COLUMNS", 800)
        path = write_every_table(tmp_path / "trace.sqlite")
        columns = ", ".join(f"c{number}" for number in range(500))
        for number in range(4):
            execute(path, f'CREATE TABLE "AAA {number}" ({columns})')
        tables = analyze(path).trace.tables
        assert set(TABLES) < set(tables)
        assert len(tables) < len(TABLES) + 4

    def test_many_versions_of_a_table(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        for number in range(2, 40):
            execute(
                path,
                f"CREATE TABLE StringIds_V{number} (id, value)",
                f"INSERT INTO StringIds_V{number} VALUES (1, 'a')",
            )
        execute(path, f"CREATE TABLE StringIds_V{'9' * 5_000} (id, value)")
        with open_trace(path) as trace:
            (warning,) = trace.warnings
            assert "StringIds and StringIds_V39, StringIds_V38, StringIds_V37, 35 more all hold rows" in warning

    def test_a_long_name_of_a_table(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        for last in "ab":
            execute(path, f'CREATE TABLE "{"t" * 100_000}{last}" (a)')
        report = analyze(path)
        assert len(report.trace.tables) == 4
        assert len(to_json(report)) < 100_000

    @pytest.mark.parametrize("statement", ["CREATE TABLE x (a /* {} */)", 'CREATE TABLE "{}" (a)'])
    def test_a_statement_of_more_than_a_mebibyte(
        self, statement: str, command: Callable[..., Told], tmp_path: Path
    ) -> None:
        path = execute(small_trace(tmp_path / "t.sqlite"), statement.format("k" * CELL_BYTES))
        told = command("analyze", path)
        assert told.code == 3
        assert "more than 1,048,576 bytes" in told.stderr
