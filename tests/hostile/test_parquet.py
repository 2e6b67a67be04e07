"""Folders of Parquet files that are damaged or odd: an exact report, or exit code 3 and what to do."""

from __future__ import annotations

import base64
import os
import random
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from nsysdiag.limits import BLOB_BYTES, TEXT_BYTES
from nsysdiag.messages import InputError, MemoryShortError
from nsysdiag.report import Report
from nsysdiag.trace.parquet import folder as parquet_folder
from nsysdiag.trace.trace import open_trace
from tests.hostile.checks import CONTROL, outcome
from tests.hostile.parquet import (
    EVENTS,
    KERNELS,
    MAGIC,
    META,
    RUNTIME,
    STRINGS,
    events,
    refused,
    table_of,
    told,
    told_of,
)
from tests.levels import examples, quick, some
from tests.trace.files import listing, small_trace
from tests.trace.parquet_folders import to_folder, with_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]


def footer_of(content: bytes) -> bytes:
    (size,) = struct.unpack("<I", content[-8:-4])
    return content[-8 - size : -8]


def with_footer(content: bytes, footer: bytes) -> bytes:
    return content[: -8 - len(footer_of(content))] + footer + struct.pack("<I", len(footer)) + MAGIC


def zigzag(number: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    left, found = (number << 1) ^ (number >> 63), []
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


class TestDamage:
    """Bytes that are missing or others."""

    @pytest.mark.parametrize("table", quick([KERNELS, RUNTIME, STRINGS], 3))
    def test_cut_short(self, table: str, folder: Path) -> None:
        path = table_of(folder, table)
        content = path.read_bytes()
        for length in (0, 3, 4, 8, 11, 12, 100, len(content) // 2, len(content) - 8, len(content) - 1):
            path.write_bytes(content[:length])
            refused(folder, f"{table}.parquet' is ")
            path.write_bytes(content[:length] + MAGIC)
            refused(folder, f"{table}.parquet'")

    @pytest.mark.slow
    def test_every_file_cut_short(self, whole: Path) -> None:
        for path in some(sorted(whole.iterdir()), 4):
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2])
            refused(whole, path.name)
            path.write_bytes(content)

    @pytest.mark.sampled(quick=6, normal=3)
    @pytest.mark.parametrize("where", ["footer", "pages"])
    @pytest.mark.parametrize("table", [KERNELS, RUNTIME, STRINGS])
    def test_bytes_changed_anywhere(self, table: str, where: str, folder: Path) -> None:
        self.changed(folder, table, where, 60)

    @pytest.mark.thorough
    @pytest.mark.parametrize("table", [KERNELS, RUNTIME, STRINGS, "SAMPLING_CALLCHAINS", EVENTS, META])
    def test_bytes_changed_in_a_large_trace(self, table: str, whole: Path) -> None:
        self.changed(whole, table, "footer", 30)

    def changed(self, folder: Path, table: str, where: str, tries: int) -> None:
        path, chance = table_of(folder, table), random.Random(f"{table} {where}")
        content = path.read_bytes()
        border = len(content) - len(footer_of(content)) - 8
        for _ in range(examples(tries)):
            changed = bytearray(content)
            for _ in range(chance.choice((1, 1, 2, 4))):
                at = chance.randrange(border, len(content)) if where == "footer" else chance.randrange(border)
                changed[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            path.write_bytes(changed)
            outcome(folder)
        path.write_bytes(content)

    @pytest.mark.sampled(quick=5)
    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"", "is not a Parquet file"),
            (b"id,value\n1,saxpy\n" * 20, "is not a Parquet file"),
            (b"SQLite format 3\0" + bytes(4096), "is not a Parquet file"),
            (MAGIC, "is a truncated Parquet file (4 bytes)"),
            (MAGIC + MAGIC, "is a truncated Parquet file (8 bytes)"),
            (MAGIC + bytes(4) + MAGIC, "cannot be read, it may be corrupt"),
            (MAGIC + b"\xff\xff\xff\xff" + MAGIC, "its footer is longer than the file"),
            (b"PARE" + bytes(40) + b"PARE", "is an encrypted Parquet file"),
            (MAGIC + bytes(40) + b"PARE", "is an encrypted Parquet file"),
        ],
        ids=range(9),
    )
    def test_no_table(self, content: bytes, what: str, folder: Path, command: Command) -> None:
        table_of(folder, RUNTIME).write_bytes(content)
        before = listing(folder)
        sentence = told(command, folder)
        assert f"{RUNTIME}.parquet' " in sentence
        assert what in sentence
        assert listing(folder) == before

    def test_a_footer_that_is_too_long(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet_folder, "FOOTER_BYTES", 100)
        refused(folder, "its list of row groups takes ", "more than 100")

    def test_footers_that_are_too_long_together(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        every = [pq.read_metadata(path).serialized_size for path in folder.glob("*.parquet")]
        assert len(every) > 1
        monkeypatch.setattr(parquet_folder, "FOOTER_BYTES", sum(every))
        with open_trace(folder):
            pass
        monkeypatch.setattr(parquet_folder, "FOOTER_BYTES", sum(every) - 1)
        refused(folder, "its list of row groups takes ")


class TestFooters:
    """Limits of columns for which pyarrow would end the process, encrypted columns, and row counts that are wrong."""

    NUMBER = 0x0102030405060708

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("kind", ["short", "long", "type"])
    def test_limits_of_another_size(self, kind: str, folder: Path) -> None:
        path, number = table_of(folder, KERNELS), struct.pack("<q", self.NUMBER)
        with_column(folder, KERNELS, "correlationId", pa.array([self.NUMBER] * 2))
        content = path.read_bytes()
        footer = footer_of(content)
        assert b"\x08" + number in footer
        if kind == "type":  # the second field of a column is its type, INT64; the next a list of encodings
            changed = footer.replace(b"\x15\x04\x19", b"\x15\x06\x19")
        else:
            other = b"\x07" + number[:7] if kind == "short" else b"\x09" + number + b"x"
            changed = footer.replace(b"\x08" + number, other)
        assert changed != footer
        path.write_bytes(with_footer(content, changed))
        outcome(folder)
        with open_trace(folder) as trace:
            trace.only_between(0, 10_000)
            with suppress(InputError):
                trace.read_chosen(KERNELS, "correlationId", [1], "start")

    def test_an_encrypted_column(self, folder: Path) -> None:
        class Keys(pe.KmsClient):  # type: ignore[misc]
            def wrap_key(self, key: bytes, _: str) -> bytes:
                return base64.b64encode(key)

        table = pq.read_table(table_of(folder, KERNELS))
        wanted = pe.EncryptionConfiguration(footer_key="k", column_keys={"c": ["start"]}, plaintext_footer=True)
        secret = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(pe.KmsConnectionConfig(), wanted)
        pq.write_table(table, table_of(folder, KERNELS), encryption_properties=secret)
        refused(folder, f"{KERNELS}.parquet' cannot be read")
        with open_trace(folder) as trace:
            trace.only_between(0, 10_000)
            with pytest.raises(InputError, match="cannot be read"):
                trace.read(KERNELS, "start")

    @pytest.mark.parametrize("rows", [-1, 3, 10**12])
    def test_rows_that_are_not_there(self, rows: int, folder: Path) -> None:
        """The file tells of as many as its one row group."""
        path = table_of(folder, RUNTIME)
        pq.write_table(pq.read_table(path), path, row_group_size=2)
        content = path.read_bytes()
        footer = footer_of(content)
        changed = footer.replace(b"\x16\x04", b"\x16" + zigzag(rows))
        assert changed != footer
        path.write_bytes(with_footer(content, changed))
        try:
            refused(folder, f"{RUNTIME}.parquet'", "cannot be read, it may be corrupt")
        except MemoryShortError:
            assert rows > 10**9


class TestTables:
    """What lies in a folder, and which columns are in it."""

    @pytest.mark.parametrize("names", [("start", "start"), ("start", "Start"), ("ſtart", "start")])
    def test_two_columns_of_one_name(self, names: tuple[str, str], folder: Path) -> None:
        table = pa.table([pa.array([1]), pa.array([2])], names=names)
        pq.write_table(table, table_of(folder, KERNELS))
        refused(folder, f"{KERNELS}.parquet' has two columns of one name")

    def test_a_required_column_is_missing(self, folder: Path) -> None:
        path = table_of(folder, KERNELS)
        pq.write_table(pq.read_table(path).drop_columns("end"), path)
        assert f"table {KERNELS} lacks the required column 'end'" in told_of(folder)
        for empty in (pa.table({}), pq.read_table(path).slice(0, 0)):
            pq.write_table(empty, path)
            told_of(folder)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("gone", [{STRINGS}, {META}, {STRINGS, META}], ids=[STRINGS, META, "both"])
    def test_what_makes_a_folder_a_trace(self, gone: set[str], folder: Path) -> None:
        for table in gone & {path.stem for path in folder.iterdir()}:
            table_of(folder, table).unlink()
        if len(gone) == 2:
            refused(folder, f"'{folder}' is a folder")
        else:
            told_of(folder)

    def test_no_table_of_nsys(self, folder: Path) -> None:
        for path in folder.iterdir():
            path.rename(folder / ("StringIds.parquet" if path.stem == STRINGS else "x" + path.stem + ".parquet"))
        table_of(folder, STRINGS).rename(table_of(folder, KERNELS))
        refused(folder, "is a folder")

    @pytest.mark.sampled(normal=7)
    @pytest.mark.parametrize("name", ["unknown", "sqlite_stat1", "a\x1b[31m\nb", "", "STRINGIDS", "ä\u202eb", "\udcff"])
    def test_a_table_unknown_to_us(self, name: str, folder: Path, command: Command) -> None:
        odd = {"a": pa.array([[1], None]), "": pa.array([1, 2]), "b.c": pa.array([Decimal(1), None]), 'q"': pa.nulls(2)}
        try:
            pq.write_table(pa.table(odd), folder / "odd")
            (folder / "odd").rename(table_of(folder, name))
        except (OSError, UnicodeError):
            pytest.skip("the system has no such names")
        told_of(folder)
        for words in (("analyze", "--no-config"), ("info",), ("bundle", "-o", "b.zip"), ("analyze", "-o", "x.json")):
            done = command(*words, folder)
            assert done.code == 0 or (name == "STRINGIDS" and words[0] == "bundle" and done.code == 3), done
            assert not CONTROL.search(done.everything)

    def test_too_many_tables(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet_folder, "TABLES", 2)
        refused(folder, "tables, more than 2")

    @pytest.mark.thorough
    def test_as_many_row_groups_as_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder, rows = to_folder(small_trace(tmp_path / "t.sqlite"), tmp_path / "t_pqtdir"), 100_000
        table = pa.table({"start": range(0, 10 * rows, 10), "end": range(5, 10 * rows, 10), "deviceId": [0] * rows})
        pq.write_table(table, table_of(folder, KERNELS), row_group_size=1)
        with open_trace(folder) as trace:
            found = trace.read(KERNELS, "start")["start"]
            assert len(found) == rows
            trace.only_between(100, 200)
            assert trace.read(KERNELS, "start")["start"].tolist() == list(range(100, 200, 10))
        monkeypatch.setattr(parquet_folder, "FOOTER_BYTES", 1 << 20)
        refused(folder, "its list of row groups takes ")

    @pytest.mark.slow
    def test_a_table_of_many_columns(self, folder: Path, command: Command) -> None:
        """More than SQLite has, which a bundle is."""
        pq.write_table(pa.table({f"c{at}": [at] for at in range(3_000)}), table_of(folder, "odd"))
        told_of(folder)
        done = command("bundle", folder)
        assert done.code == 3
        assert "could not be copied to a private SQLite file: too many columns" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
class TestLinks:
    """What is in the place of a file or of the folder."""

    @pytest.mark.slow
    def test_links(self, folder: Path) -> None:
        link, linked = folder.with_name("link"), folder.with_name("linked")
        link.symlink_to(folder)
        linked.mkdir()
        for path in folder.iterdir():
            (linked / path.name).symlink_to(path)
        found = [outcome(each) for each in (folder, link, linked)]
        assert all(isinstance(each, Report) for each in found)
        assert len({each.trace.fingerprint for each in found if isinstance(each, Report)}) == 1

    @pytest.mark.thorough
    @pytest.mark.parametrize("kind", ["dangling", "loop", "pipe", "folder"])
    @pytest.mark.parametrize("table", [RUNTIME, STRINGS])
    def test_no_ordinary_file(self, table: str, kind: str, folder: Path, command: Command) -> None:
        """The other of the tables that mark a folder is there."""
        path = table_of(folder, table)
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path if kind == "loop" else folder / "nothing")
        sentence = told(command, folder)
        assert f"{table}.parquet' " in sentence
        assert command("analyze", "--no-config", path).code == 3
        batch = command("batch", "--no-config", "-o", "out", folder)
        assert (batch.code, "Traceback" in batch.everything) == (4, False)

    @pytest.mark.thorough
    def test_a_pipe_does_not_block(self, folder: Path) -> None:
        os.mkfifo(folder / "X.parquet")
        line = [sys.executable, "-m", "nsysdiag", "analyze", "--no-config", str(folder)]
        done = subprocess.run(line, check=False, capture_output=True, timeout=60)
        assert done.returncode == 3, done.stderr
        assert b"X.parquet' is not an ordinary file" in done.stderr

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_no_permission(self, what: str, folder: Path) -> None:
        path = folder if what == "folder" else table_of(folder, RUNTIME)
        path.chmod(0)
        try:
            assert isinstance(outcome(folder), InputError)
        finally:
            path.chmod(0o700)


class TestLimits:
    """More than there is room for, and what is missing here."""

    def test_no_memory(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet_folder, "has_room", lambda _: False)
        with pytest.raises(MemoryShortError, match="not enough memory to "):
            outcome(folder)

    @pytest.mark.parametrize("module", ["pyarrow", "pyarrow.parquet"])
    def test_no_pyarrow(self, module: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        done = command("analyze", "--no-config", folder)
        assert done.code == 3
        assert "pyarrow, which reads them, is not installed" in done.stderr
        assert "hint: pip install '.[parquet]'" in done.stderr

    def test_texts_and_payloads_that_are_too_long(self, tmp_path: Path) -> None:
        folder = events(tmp_path, [("k" * (TEXT_BYTES + 5), None, None)])
        assert "1 text longer than 32,768 bytes was cut; the longest has 0.0 MB" in told_of(folder)
        table = pq.read_table(table_of(folder, EVENTS))
        table = table.append_column("binaryData", pa.array([b"\xff" * (BLOB_BYTES + 1)]))
        pq.write_table(table, table_of(folder, EVENTS))
        with open_trace(folder) as trace:
            assert trace.read(EVENTS, "binaryData").text("binaryData").texts() == [None]
            assert any("1 payload longer than" in each for each in trace.warnings)

    @pytest.mark.thorough
    def test_nothing_is_changed_or_left(
        self, folder: Path, command: Command, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Names and texts act on no terminal, and broken ones go into a bundle too."""
        names = [b"\x1b[31mge\xffmm\x07\n::error::x", *[b"a\xff\x00b"] * 50]
        rows = pq.read_metadata(table_of(folder, STRINGS)).num_rows
        with_column(folder, STRINGS, "value", pa.array(names[:rows]).view(pa.string()))
        temporary = tmp_path_factory.mktemp("temporary")
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        before = listing(folder.parent)
        for words in (("analyze", "--no-config"), ("analyze", "--no-config", "--full-hash"), ("bundle",)):
            done = command(*words, folder)
            assert done.code == 0, done
            assert not CONTROL.search(done.everything)
            assert listing(folder.parent) == before
            assert listing(temporary) == {}
