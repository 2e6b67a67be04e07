"""Which files open, how odd ones are told apart, and that nothing is ever written beside them."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nsysdiag.messages import InputError, UsageError
from nsysdiag.trace import source as source_module
from nsysdiag.trace.catalog import Connections, immutable_uri
from nsysdiag.trace.trace import open_trace
from tests.trace.files import KERNEL, KERNEL_ROW, execute, insert, listing, small_trace
from tests.trace.parquet_folders import to_folder

ODD_NAMES = [
    "plain.sqlite",
    "100%.sqlite",
    "a%20b.sqlite",
    "what?mode=rwc.sqlite",
    "part#1.sqlite",
    "two words.sqlite",
    'it\'s "quoted".sqlite',
    "new\nline.sqlite",
    "träce-日本.sqlite",
    "-dash.sqlite",
    "file:x.sqlite",
]


@pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_open_and_leave_nothing(tmp_path: Path, name: str, reader: str) -> None:
    path = small_trace(tmp_path / name)
    before = listing(tmp_path)
    with open_trace(path, reader=reader) as trace:
        assert trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")["start"].tolist() == [100]
        assert trace.strings.text(2) == "saxpy"
        assert trace.warnings == []
    assert listing(tmp_path) == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse names that are not UTF-8")
def test_name_that_is_not_utf8_opens_and_is_shown_escaped(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/bad-\xff.sqlite"
    small_trace(Path(os.fsdecode(path)))
    with open_trace(path) as trace:
        assert trace.file == "bad-\\udcff.sqlite"
        assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == 1


def test_relative_path_and_link_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_trace(tmp_path / "real.sqlite")
    (tmp_path / "link.sqlite").symlink_to("real.sqlite")
    monkeypatch.chdir(tmp_path)
    with open_trace("link.sqlite") as trace:
        assert trace.file == "link.sqlite"
        assert trace.has("CUPTI_ACTIVITY_KIND_KERNEL")


def test_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    path = small_trace(folder / "trace.sqlite")
    execute(path, "PRAGMA journal_mode=WAL")
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        before = listing(folder)
        with open_trace(path) as trace:
            assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == 1
        assert listing(folder) == before
    finally:
        folder.chmod(0o755)


def with_journal(folder: Path, mode: str) -> Path:
    """A copy of a database whose second kernel is committed, or being written, in a journal of its own."""
    work = folder / "work"
    work.mkdir()
    path = small_trace(work / "trace.sqlite")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("PRAGMA cache_size=1")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("BEGIN")
    for _ in range(5000):
        connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM ({_select_row()})")
    if mode == "WAL":
        connection.execute("COMMIT")
    kept = folder / "kept"
    shutil.copytree(work, kept, ignore=shutil.ignore_patterns("*-shm"))
    connection.close()
    return kept / "trace.sqlite"


def _select_row() -> str:
    return "SELECT " + ", ".join("NULL" if value is None else str(value) for value in KERNEL_ROW)


@pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
@pytest.mark.parametrize(("mode", "rows", "suffix"), [("WAL", 5001, "-wal"), ("DELETE", 1, "-journal")])
def test_journal_is_applied_to_a_private_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, mode: str, rows: int, suffix: str
) -> None:
    path = with_journal(tmp_path, mode)
    assert Path(f"{path}{suffix}").stat().st_size > 0
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    before = listing(path.parent)
    with open_trace(path, reader=reader) as trace:
        assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == rows
        assert len(trace.warnings) == 1
        assert f"trace.sqlite{suffix}" in trace.warnings[0]
        assert "private copy" in trace.warnings[0]
        assert listing(private)
    assert listing(path.parent) == before
    assert listing(private) == {}


def test_journal_that_cannot_be_copied_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_journal(tmp_path, "WAL")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(source_module, "copied", full)
    with pytest.raises(InputError, match="No space left on device") as caught:
        open_trace(path)
    assert caught.value.hint


def test_empty_journal_beside_the_file_changes_nothing(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    Path(f"{path}-wal").touch()
    with open_trace(path) as trace:
        assert trace.warnings == []
        assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == 1


def test_change_while_reading_is_said_once(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        assert trace.check_unchanged()
        insert(path, "StringIds", [(3, "later")])
        os.utime(path, ns=(1, 1))
        assert not trace.check_unchanged()
    assert [warning for warning in trace.warnings if "changed while" in warning] == trace.warnings
    assert len(trace.warnings) == 1


def test_file_removed_while_reading_is_said(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    with open_trace(path) as trace, suppress(InputError):  # another connection may be needed for it
        path.unlink()
        trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")
    assert "changed while" in trace.warnings[0]


GARBAGE = {
    "empty.sqlite": (b"", "is empty"),
    "text.sqlite": (b"hello, this is no database\n" * 50, "not an SQLite file"),
    "report.json": (b'\n{"schema_version": "1"}', "is JSON"),
    "list.sqlite": (b"[1, 2]", "is JSON"),
    "packed.sqlite.gz": (gzip.compress(b"x"), "gzip"),
    "packed.sqlite": (b"PK\x03\x04rest", "zip"),
    "table.parquet": (b"PAR1....", "Parquet"),
    "trace.h5": (b"\x89HDF\r\n", "HDF5"),
    "stream.qdstrm": (b"\x01\x02\x03\x04", ".qdstrm"),
    "kernel.ncu-rep": (b"NVR\x00", "Nsight Compute"),
    "broken.sqlite": (b"SQLite format 4\x00" + bytes(100), "damaged header"),
    "short.sqlite": (b"SQLite format 3\x00" + bytes(20), "truncated"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_told_apart(tmp_path: Path, name: str) -> None:
    content, said = GARBAGE[name]
    (tmp_path / name).write_bytes(content)
    before = listing(tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        open_trace(tmp_path / name)
    assert caught.value.hint
    assert name in caught.value.message
    assert caught.value.exit_code == 3
    assert listing(tmp_path) == before


def test_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_trace(tmp_path / "none.sqlite")
    assert listing(tmp_path) == {}


def test_folder_pipe_and_impossible_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        open_trace(tmp_path)
    os.mkfifo(tmp_path / "pipe.sqlite")
    with pytest.raises(InputError, match="not an ordinary file"):
        open_trace(tmp_path / "pipe.sqlite")
    with pytest.raises(InputError, match="cannot be read"):
        open_trace("a\0b.sqlite")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small_trace(tmp_path / "trace.sqlite")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="Permission denied") as caught:
        open_trace(path)
    assert caught.value.hint is not None
    assert "read permission" in caught.value.hint


def test_a_journal_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in it may belong to the trace: without it nothing is read."""
    path = with_journal(tmp_path, "WAL")
    opened = Path.open

    def refuse(self: Path, *given: Any, **named: Any) -> Any:
        if self.name.endswith("-wal"):
            raise PermissionError(13, "Permission denied")
        return opened(self, *given, **named)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        open_trace(path)


def test_connections_in_use_close_when_they_are_returned(tmp_path: Path) -> None:
    connections = Connections(immutable_uri(small_trace(tmp_path / "trace.sqlite")))
    with connections.stdlib() as idle:
        pass
    with connections.stdlib() as used:
        assert used is idle
        with connections.stdlib() as other:
            assert other is not used
        connections.close()
        assert used.execute("SELECT count(*) FROM StringIds").fetchone() == (2,)
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            other.execute("SELECT 1")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        used.execute("SELECT 1")


def test_truncated_database(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 4096)
    with pytest.raises(InputError, match=rf"truncated.*{size - 4096:,} of {size:,} bytes"):
        open_trace(path)


@pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
def test_corrupt_page_is_an_input_error(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "trace.sqlite"
    execute(path, KERNEL)
    insert(path, "CUPTI_ACTIVITY_KIND_KERNEL", [KERNEL_ROW] * 3000)
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xee" * 4096)

    def read_all() -> None:
        with open_trace(path, reader=reader) as trace:
            trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start", "correlationId")

    with pytest.raises(InputError, match="corrupt") as caught:
        read_all()
    assert caught.value.hint


def test_corrupt_schema_is_an_input_error(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xee" * 3996)
    with pytest.raises(InputError, match="corrupt"):
        open_trace(path)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("CREATE TABLE t (a)", "DROP TABLE t"), "without any table"),
        (("CREATE TABLE users (id INTEGER, name TEXT)",), "without Nsight Systems tables"),
        (("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start",), "without any table"),
    ],
)
def test_database_of_something_else(tmp_path: Path, statements: tuple[str, ...], said: str) -> None:
    path = execute(tmp_path / "other.sqlite", *statements)
    with pytest.raises(InputError, match=said) as caught:
        open_trace(path)
    assert "nsys export" in (caught.value.hint or "")


def test_unknown_reader(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'pandas' is not a reader"):
        open_trace(small_trace(tmp_path / "trace.sqlite"), reader="pandas")


class TestFingerprint:
    """The identity of a file."""

    def test_is_the_same_for_the_same_bytes_under_any_name(self, tmp_path: Path) -> None:
        one = small_trace(tmp_path / "one.sqlite")
        two = shutil.copyfile(one, tmp_path / "two.sqlite")
        with open_trace(one) as first, open_trace(two, full_hash=True) as second:
            assert first.fingerprint == second.fingerprint
            assert len(first.fingerprint) == 32
            assert first.sha256 is None
            assert second.sha256 == hashlib.sha256(one.read_bytes()).hexdigest()

    def test_a_file_that_can_be_read_no_longer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = source_module.TraceSource(small_trace(tmp_path / "one.sqlite"), export_timeout_s=1)

        def refuse(*_: object, **__: object) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(Path, "open", refuse)
        for read in (source.sha256, lambda: source.fingerprint("")):
            with pytest.raises(InputError, match=r"one\.sqlite' cannot be read: Input/output error"):
                read()

    def test_differs_for_other_rows_or_another_schema(self, tmp_path: Path) -> None:
        paths = [small_trace(tmp_path / f"{name}.sqlite") for name in ("a", "b", "c")]
        insert(paths[1], "StringIds", [(3, "more")])
        execute(paths[2], "CREATE TABLE extra (x)")
        found = set()
        for path in paths:
            with open_trace(path) as trace:
                found.add(trace.fingerprint)
        assert len(found) == 3


class TestReports:
    """.nsys-rep files, exported by a stand-in for nsys."""

    REPORT = b"NVIDIA Tegra Profiler Report 2023" + bytes(64)

    def stand_in(self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        folder.mkdir()
        program = folder / "nsys"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def report(self, folder: Path, name: str = "my run.nsys-rep") -> Path:
        folder.mkdir()
        path = folder / name
        path.write_bytes(self.REPORT)
        return path

    def test_without_nsys_the_hint_is_the_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        path = self.report(tmp_path / "in")
        with pytest.raises(InputError, match="no `nsys` on the PATH") as caught:
            open_trace(path)
        output = path.with_suffix(".sqlite")
        assert caught.value.hint == f"nsys export --type sqlite --output '{output}' '{path}'"

    def test_is_exported_into_a_private_folder_that_goes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        template = small_trace(tmp_path / "template.sqlite")
        self.stand_in(
            tmp_path / "bin",
            monkeypatch,
            f'test "$1 $2 $3 $4" = "export --type sqlite --output" && test -f "$6" && cp "{template}" "$5"',
        )
        private = tmp_path / "private"
        private.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(private))
        path = self.report(tmp_path / "in", "-odd name?.qdrep")
        before = listing(path.parent)
        with open_trace(path) as trace:
            assert len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")) == 1
            assert trace.file == "-odd name?.qdrep"
            assert trace.size_bytes == len(self.REPORT)
        assert listing(path.parent) == before
        assert listing(private) == {}

    COLUMNAR = """echo "$3" >> "{told}"
        case "$3" in parquetdir) {columnar};; *) cp "{template}" "$5";; esac"""

    @pytest.mark.parametrize(
        ("columnar", "installed", "asked"),
        [
            ('cp -r "{folder}" "$5"', True, ["parquetdir"]),
            ("exit 3", True, ["parquetdir", "sqlite"]),
            ('mkdir "$5"', True, ["parquetdir", "sqlite"]),
            ('cp -r "{folder}" "$5"', False, ["sqlite"]),
        ],
    )
    def test_is_exported_to_columns_where_they_can_be_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columnar: str, installed: bool, asked: list[str]
    ) -> None:
        """Else, and where nsys cannot or does not write them, to SQLite."""
        template, told = small_trace(tmp_path / "template.sqlite"), tmp_path / "told"
        folder = to_folder(template, tmp_path / "template")
        script = self.COLUMNAR.format(told=told, template=template, columnar=columnar.format(folder=folder))
        self.stand_in(tmp_path / "bin", monkeypatch, script)
        monkeypatch.setattr("nsysdiag.trace.export.find_spec", lambda _: object() if installed else None)
        private = tmp_path / "private"
        private.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(private))
        path = self.report(tmp_path / "in")
        with open_trace(path) as trace:
            assert trace.strings.texts([1, 2]) == ["void saxpy(float*)", "saxpy"]
            assert (trace.file, trace.size_bytes) == (path.name, len(self.REPORT))
            assert trace.check_unchanged()
        assert told.read_text().split() == asked
        assert listing(private) == {}

    @pytest.mark.parametrize(("told", "asked"), [("--include-blobs=", "--include-blobs=true"), ("nothing", "--output")])
    def test_blobs_are_asked_for_where_they_are_known(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, asked: str
    ) -> None:
        self.stand_in(
            tmp_path / "bin",
            monkeypatch,
            f"""test "$2" = --help && exec echo '{told}'; echo "$4" > "{tmp_path}/asked"; exit 7""",
        )
        with pytest.raises(InputError, match="exit code 7"):
            open_trace(self.report(tmp_path / "in"))
        assert (tmp_path / "asked").read_text() == f"{asked}\n"

    def test_a_python_in_it_imports_nothing_from_its_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
        self.stand_in(tmp_path / "bin", monkeypatch, f'echo "$PYTHONSAFEPATH" > "{tmp_path}/told"; exit 7')
        with pytest.raises(InputError, match="exit code 7"):
            open_trace(self.report(tmp_path / "in"))
        assert (tmp_path / "told").read_text() == "1\n"

    @pytest.mark.parametrize("entry", ["", ".", "bin"])
    def test_it_is_never_a_program_of_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
    ) -> None:
        self.stand_in(tmp_path / "bin", monkeypatch, f'touch "{tmp_path}/ran"')
        shutil.copy(tmp_path / "bin" / "nsys", tmp_path / "nsys")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f"{entry}{os.pathsep}{tmp_path / 'nothing'}")
        with pytest.raises(InputError, match="no `nsys` on the PATH"):
            open_trace(self.report(tmp_path / "in"))
        assert not (tmp_path / "ran").exists()

    def test_failing_export(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand_in(tmp_path / "bin", monkeypatch, "exit 7")
        path = self.report(tmp_path / "in")
        with pytest.raises(InputError, match="exit code 7"):
            open_trace(path)

    def test_a_program_that_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand_in(tmp_path / "bin", monkeypatch, "")
        (tmp_path / "bin" / "nsys").write_bytes(b"\x7fELF, or what is left of it")
        with pytest.raises(InputError, match=r"nsys' cannot be run: .*Exec format error") as caught:
            open_trace(self.report(tmp_path / "in"))
        assert (caught.value.hint or "").startswith("nsys export --type sqlite")

    @pytest.mark.slow
    def test_slow_export_is_stopped_with_its_helpers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        marker = tmp_path / "alive"
        self.stand_in(tmp_path / "bin", monkeypatch, f'(sleep 1; touch "{marker}") & wait')
        path = self.report(tmp_path / "in")
        with pytest.raises(InputError, match=r"took longer than 0\.2 s"):
            open_trace(path, export_timeout_s=0.2)
        time.sleep(1.5)
        assert not marker.exists()

    @pytest.mark.nsys
    def test_with_the_real_program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = Path(os.environ["NSYSDIAG_NSYS"])
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        profile = "nsys profile --trace=osrt --sample=none --cpuctxsw=none --output"
        folder = tmp_path / "in"
        folder.mkdir()
        assert os.system(f"cd '{folder}' && {profile} run /bin/true >/dev/null 2>&1") == 0
        before = listing(folder)
        with open_trace(folder / "run.nsys-rep") as trace:
            assert trace.nsys_version
            assert not trace.has("CUPTI_ACTIVITY_KIND_KERNEL")
        assert listing(folder) == before
