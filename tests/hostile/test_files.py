"""Files that are no good trace: exit code 3, what it is and what to do, and nothing written."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.messages import InputError
from nsysdiag.report import Report
from tests.hostile.checks import QUICK, outcome
from tests.hostile.damage import change
from tests.hostile.edits import columns_of, edited, patched
from tests.hostile.every_table import write_every_table
from tests.levels import THOROUGH, examples, some
from tests.trace.files import KERNEL, KERNEL_ROW, STRINGS, execute, insert, listing, small_trace
from tests.trace.test_source import with_journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

pytestmark = pytest.mark.slow

NOISE = random.Random(1).randbytes(20_000)
LENGTHS = [0, 1, 15, 16, 50, 99, 100, 101, 511, 1024, 4095, 4096, 4097, 8192]


def refused(told: Told) -> None:
    """One sentence and a hint, and no more."""
    assert told.code == 3, told
    assert told.stdout == ""
    sentence, hint = told.stderr.splitlines()
    assert sentence.startswith("nsysdiag: '")
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize("length", LENGTHS)
def test_cut_short(length: int, command: Command, tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    assert length < path.stat().st_size
    os.truncate(path, length)
    before = listing(tmp_path)
    refused(command("analyze", "--no-config", path))
    assert listing(tmp_path) == before


@pytest.mark.thorough
def test_every_header_byte(tmp_path: Path) -> None:
    whole, path = small_trace(tmp_path / "small.sqlite").read_bytes(), tmp_path / "patched.sqlite"
    for at in range(100):
        for value in some((0, 0x7F, 0xFF), 3, at) if THOROUGH or at % 3 == 0 else ():
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            outcome(path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(4), 4))
def test_bytes_changed_anywhere(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    whole, path = small_trace(tmp_path / "small.sqlite").read_bytes(), tmp_path / "patched.sqlite"
    for _ in range(examples(60)):
        path.write_bytes(patched(whole, chance.randbytes(5 * chance.randint(1, 12))))
        outcome(path)


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("seed", range(2))
def test_edits_of_any_kind(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    whole, path = write_every_table(tmp_path / "every.sqlite"), tmp_path / "edited.sqlite"
    content, columns = whole.read_bytes(), columns_of(whole)
    for _ in range(examples(20)):
        done = edited(content, chance.randbytes(chance.randint(8, 90)), columns, path)
        try:
            outcome(path)
        except Exception as error:
            raise AssertionError(done) from error


class TestJournals:
    """What lies beside a trace may be anybody's."""

    @pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
    @pytest.mark.parametrize("content", [NOISE, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + NOISE, b"\0" * 4096])
    def test_of_noise(self, suffix: str, content: bytes, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "trace.sqlite")
        Path(f"{path}{suffix}").write_bytes(content)
        before = listing(tmp_path)
        outcome(path)
        assert listing(tmp_path) == before

    @pytest.mark.parametrize("content", ["precious", "", "another-journal\0"])
    def test_one_that_names_a_file_deletes_nothing(self, content: str, tmp_path: Path) -> None:
        """SQLite removes the file that a journal names as the one over it, when it has rolled the journal back."""
        path, victim = with_journal(tmp_path, "DELETE"), tmp_path / "victim.txt"
        victim.write_text(content)
        name = str(victim).encode()
        page = struct.pack(">I", 0x40000000 // 4096 + 1)
        tail = struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
        with Path(f"{path}-journal").open("ab") as journal:
            journal.write(page + name + tail)
        before = listing(tmp_path)
        error = outcome(path)
        assert isinstance(error, InputError)
        assert "names another file" in error.message
        assert listing(tmp_path) == before

    def test_one_that_names_a_file_before_its_end_deletes_nothing(self, tmp_path: Path) -> None:
        """The records end with what looks like the end of such a journal, once what follows them is left out."""
        path, victim = small_trace(tmp_path / "trace.sqlite"), tmp_path / "victim.txt"
        victim.write_text("precious")
        magic, pages = bytes.fromhex("d9d505f920a163d7"), path.stat().st_size // 4096
        name = str(victim).encode()
        page = bytearray(path.read_bytes()[-4096:])
        page[-12 - len(name) :] = name + struct.pack(">II", len(name), sum(name)) + magic[:4]
        checksum = int.from_bytes(magic[4:], "big")
        nonce = (checksum - sum(page[at] for at in range(4096 - 200, 0, -200))) % (1 << 32)
        header = magic + struct.pack(">IIIII", 1, nonce, pages, 512, 4096)
        record = struct.pack(">I", pages) + page + struct.pack(">I", checksum)
        Path(f"{path}-journal").write_bytes(header.ljust(512, b"\0") + record + bytes(8192))
        before = listing(tmp_path)
        error = outcome(path)
        assert listing(tmp_path) == before
        assert isinstance(error, InputError)
        assert "names another file" in error.message

    def test_a_journal_that_is_a_folder_or_a_pipe(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "trace.sqlite")
        Path(f"{path}-wal").mkdir()
        assert isinstance(outcome(path), Report | InputError)

    @pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders there")
    def test_a_pipe_beside_it_is_not_waited_for(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "trace.sqlite")
        os.mkfifo(f"{path}-wal")
        assert isinstance(outcome(path), Report)


SLOW_SQL = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
"""Never ends where anything runs it."""


@pytest.mark.parametrize("reader", ["adbc", "sqlite3"])
class TestForeignSchema:
    """Objects of the schema that run SQL when they are looked at."""

    def opened(self, path: Path, reader: str, before: dict[str, tuple[int, int]]) -> Report:
        from nsysdiag import Settings

        report = outcome(path, QUICK, Settings(reader=reader))
        assert isinstance(report, Report)
        assert listing(path.parent) == before
        return report

    def test_views_in_place_of_tables(self, reader: str, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "META_DATA_EXPORT", "DIAGNOSTIC_EVENT"):
            execute(path, f"CREATE VIEW {table} AS {SLOW_SQL}")
        report = self.opened(path, reader, listing(tmp_path))
        assert set(report.trace.tables) == {"CUPTI_ACTIVITY_KIND_KERNEL", "StringIds"}

    def test_columns_made_by_sql(self, reader: str, tmp_path: Path) -> None:
        """Generated columns count as absent: nothing in the file is evaluated."""
        made = KERNEL.replace("deviceId INTEGER NOT NULL", "deviceId INTEGER AS (start + 7) VIRTUAL")
        path = execute(tmp_path / "t.sqlite", made, STRINGS)
        columns = ", ".join(name for name in columns_of(path)["CUPTI_ACTIVITY_KIND_KERNEL"])
        change(path, f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL ({columns}) VALUES (1, 2, 1, 7, 1, 1, 1, 1, 1)")
        report = self.opened(path, reader, listing(tmp_path))
        assert report.devices == []
        assert any("lacks the required column 'deviceId'" in each for each in report.trace.warnings)

    def test_indexes(self, reader: str, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        execute(
            path,
            "CREATE INDEX a ON CUPTI_ACTIVITY_KIND_KERNEL (start DESC)",
            'CREATE INDEX b ON CUPTI_ACTIVITY_KIND_KERNEL (abs("end")) WHERE start > 0',
            "CREATE UNIQUE INDEX c ON StringIds (value COLLATE NOCASE)",
        )
        assert self.opened(path, reader, listing(tmp_path)).devices[0].ops.kernel == 1

    def test_an_index_in_an_order_that_nobody_knows(self, reader: str, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.create_collation("far", lambda one, other: (one > other) - (one < other))
            connection.execute("CREATE INDEX d ON CUPTI_ACTIVITY_KIND_KERNEL (start COLLATE far)")
            connection.execute("CREATE INDEX e ON StringIds (value COLLATE far, id)")
        before = listing(tmp_path)
        assert self.opened(path, reader, before).devices[0].ops.kernel == 1

    def test_triggers_and_checks(self, reader: str, tmp_path: Path) -> None:
        checked = KERNEL.replace("start INTEGER NOT NULL", "start INTEGER NOT NULL CHECK (start < random())")
        path = execute(tmp_path / "t.sqlite", checked, STRINGS, "PRAGMA ignore_check_constraints = 1")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = 1")
            places = ", ".join("?" * len(KERNEL_ROW))
            connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({places})", KERNEL_ROW)
            for event in ("INSERT", "UPDATE", "DELETE"):
                connection.execute(f"CREATE TRIGGER t{event} BEFORE {event} ON StringIds BEGIN {SLOW_SQL}; END")
        assert self.opened(path, reader, listing(tmp_path)).devices[0].ops.kernel == 1

    @pytest.mark.parametrize("table", ["a\"b'c", "new\nline", "\x1b[31m", "%s", "select", "ENUM_\u202ex", "<b>"])
    def test_names_of_tables_and_columns(self, reader: str, table: str, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        quoted = table.replace('"', '""')
        execute(path, f'CREATE TABLE "{quoted}" ("{quoted}" INTEGER)', f'INSERT INTO "{quoted}" VALUES (1)')
        execute(path, f'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN "{quoted}" TEXT')
        assert table in self.opened(path, reader, listing(tmp_path)).trace.tables


def test_a_schema_of_broken_text(tmp_path: Path) -> None:
    """SQLite's own message quotes the broken bytes, which the standard library cannot decode."""
    path = small_trace(tmp_path / "t.sqlite")
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE StringIds (id", b"CREATE TABLE StringIds \xff id"))
    error = outcome(path)
    assert isinstance(error, InputError)
    assert "may be corrupt" in error.message


def test_names_of_broken_text_are_shown_escaped(tmp_path: Path) -> None:
    path = insert(small_trace(tmp_path / "t.sqlite"), "StringIds", [])
    change(path, "UPDATE StringIds SET value = CAST(x'ff00c328' AS TEXT)")
    report = outcome(path)
    assert isinstance(report, Report)
    assert report.devices[0].kernels[0].name == "\\xff\x00\\xc3("


def test_a_link_that_leads_in_a_circle(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").symlink_to(tmp_path / "b.sqlite")
    (tmp_path / "b.sqlite").symlink_to(tmp_path / "a.sqlite")
    refused(command("analyze", "--no-config", tmp_path / "a.sqlite"))


class TestSavedReports:
    """JSON from elsewhere is no better than a database."""

    @pytest.mark.parametrize(
        "content",
        [
            b"{",
            b'{"tool": {"name": "nsysdiag"}, "schema_version": "1"}',
            b'{"tool": {"name": "\xff"}}',
            b'{"kind": "\xff\xfe"}',
            b'{"devices": ' + b"[" * 100_000,
            b'{"a":' * 50_000,
            b"{}" + bytes(100),
        ],
        ids=["cut", "head", "not utf-8", "kind not utf-8", "nested lists", "nested tables", "zeros"],
    )
    def test_damaged(self, content: bytes, command: Command, tmp_path: Path) -> None:
        path = tmp_path / "report.json"
        path.write_bytes(content)
        told = command("render", path, "-o", "x.md")
        assert told.code == 3, told
        assert len(told.stderr.splitlines()) == 2
        for words in (("analyze", "--no-config", path, "-o", "x.md"), ("compare", "--no-config", path, path)):
            assert command(*words).code == 3

    def test_text_inside_that_is_no_utf8(self, command: Command, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "t.sqlite")
        assert command("analyze", "--no-config", path, "-o", tmp_path / "r.json").code == 0
        saved = (tmp_path / "r.json").read_bytes()
        (tmp_path / "r.json").write_bytes(saved.replace(b"saxpy", b"sa\xffpy"))
        told = command("render", tmp_path / "r.json", "-o", "x.md")
        assert told.code == 3, told
        assert "damaged nsysdiag report" in told.stderr

    @pytest.mark.parametrize("name", ["x.json", "x.sarif", "x.perfetto.json", "x.md", "x.html"])
    @pytest.mark.parametrize("content", [b'{"tool":{"name":"\xff"}}', b"[" * 200_000, b'[{"check_name":"\xff"}]'])
    def test_in_the_place_of_an_output(self, content: bytes, name: str, command: Command, tmp_path: Path) -> None:
        """Whether it is ours must be told without falling over it."""
        (tmp_path / name).write_bytes(content)
        told = command("analyze", "--no-config", small_trace(tmp_path / "t.sqlite"), "-o", tmp_path / name)
        assert told.code == 2, told
        assert (tmp_path / name).read_bytes() == content

    def test_one_that_would_unpack_without_end(self) -> None:
        import base64
        import zlib

        from nsysdiag.arrays.groups import from_text

        packed = base64.b64encode(zlib.compress(bytes(5_000_000), 9)).decode()
        assert len(packed) < 10_000
        with pytest.raises(ValueError, match="too much"):
            from_text(packed, 1_000_000)
