"""How much of a journal counts: what SQLite would apply, found by its headers alone."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.messages import InputError, OutputError
from nsysdiag.trace import source as trace_source
from nsysdiag.trace.source import JOURNAL, LOG, Journal, copied, journals_of
from nsysdiag.trace.trace import open_trace
from tests.trace.test_source import small_trace, with_journal

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 1 << 30
MODES = {LOG: ("WAL", 5001), JOURNAL: ("DELETE", 1)}


def rows(path: Path) -> int:
    with open_trace(path) as trace:
        return len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start"))


def enlarge(path: Path, size: int = 3 * GIB) -> None:
    """A hole at the end, which takes no room on the disk."""
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.fixture(params=[LOG, JOURNAL])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(f"{with_journal(tmp_path, MODES[request.param][0])}{request.param}")


def database_of(journal: Path) -> tuple[Path, int]:
    """The database beside a journal, and its number of kernels once that is applied."""
    suffix = LOG if journal.name.endswith(LOG) else JOURNAL
    return Path(str(journal).removesuffix(suffix)), MODES[suffix][1]


def test_all_of_a_real_one_counts(journal: Path) -> None:
    path, kernels = database_of(journal)
    (found,) = journals_of(path)
    assert found.path == journal
    assert journal.stat().st_size / 2 < found.used_bytes <= journal.stat().st_size
    assert rows(path) == kernels


def test_a_hole_behind_it_counts_for_nothing(journal: Path) -> None:
    path, kernels = database_of(journal)
    before = journals_of(path)
    enlarge(journal)
    assert journals_of(path) == before
    assert rows(path) == kernels


@pytest.mark.slow
def test_a_hole_is_neither_read_nor_written(journal: Path) -> None:
    """A process that may write no file over 64 MB, nor use 2 GB, reads a trace beside 3 GB of nothing."""
    path, kernels = database_of(journal)
    enlarge(journal)
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({64 << 20}, {64 << 20}))
resource.setrlimit(resource.RLIMIT_AS, ({2 * GIB}, {2 * GIB}))
from nsysdiag.trace.trace import open_trace
with open_trace({str(path)!r}) as trace:
    print(len(trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")))
"""
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, str(kernels)), run.stderr


@pytest.mark.parametrize("suffix", [LOG, JOURNAL])
@pytest.mark.parametrize("begin", [b"", bytes(4096), b"garbage" * 1000])
def test_one_without_a_valid_header_holds_nothing(tmp_path: Path, suffix: str, begin: bytes) -> None:
    """As SQLite has it: PRAGMA journal_mode=PERSIST leaves such files on purpose."""
    path = small_trace(tmp_path / "trace.sqlite")
    other = Path(f"{path}{suffix}")
    other.write_bytes(begin)
    enlarge(other)
    assert journals_of(path) == []
    assert rows(path) == 1


def test_frames_behind_the_last_commit_do_not_count(tmp_path: Path) -> None:
    path = with_journal(tmp_path, "WAL")
    log = Path(f"{path}{LOG}")
    (before,) = journals_of(path)
    with log.open("r+b") as file:
        frame = file.read()[32 : 32 + 24 + 4096]
        file.seek(0, os.SEEK_END)
        file.write(frame[:4] + bytes(4) + frame[8:])
    assert journals_of(path) == [before]


HEAD = bytes.fromhex("d9d505f920a163d7")
SECTOR = PAGE = 512
RECORD = 4 + PAGE + 4


def segment(count: int, records: int) -> bytes:
    """A header that promises so many records, as many as there are, and what fills the last sector."""
    head = (HEAD + struct.pack(">IIIII", count, 1, 1, SECTOR, PAGE)).ljust(SECTOR, b"\0")
    made = head + (struct.pack(">I", 1) + bytes(PAGE + 4)) * records
    return made.ljust(-(-len(made) // SECTOR) * SECTOR, b"\0")


@pytest.mark.parametrize(
    ("segments", "used"),
    [
        ([(1, 1)], SECTOR + RECORD),
        ([(3, 1)], SECTOR + RECORD),
        ([(1, 1), (2, 2)], 3 * SECTOR + SECTOR + 2 * RECORD),
        ([(1, 1), (2, 1)], 3 * SECTOR + SECTOR + RECORD),
        ([(3, 1), (1, 1)], SECTOR + RECORD),
        ([(0, 0), (1, 1)], 2 * SECTOR + RECORD),
    ],
)
def test_records_of_several_headers(tmp_path: Path, segments: list[tuple[int, int]], used: int) -> None:
    """SQLite begins another header, on a sector of its own, each time the journal was synchronized. A header with fewer
    records than it promises is the last one."""
    path = small_trace(tmp_path / "trace.sqlite")
    Path(f"{path}{JOURNAL}").write_bytes(b"".join(segment(*each) for each in segments))
    (found,) = journals_of(path)
    assert found.used_bytes == used


@pytest.mark.parametrize("size", [1, 8, 27])
def test_a_part_of_a_header_holds_nothing(tmp_path: Path, size: int) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    Path(f"{path}{JOURNAL}").write_bytes(segment(1, 1)[:size])
    Path(f"{path}{LOG}").write_bytes(bytes.fromhex("377f0682002de218")[:size])
    assert journals_of(path) == []


def test_all_headers_together_hold_no_more_pages_than_the_file(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "trace.sqlite")
    pages = path.stat().st_size // PAGE
    Path(f"{path}{JOURNAL}").write_bytes(segment(pages, pages) * 4)
    with pytest.raises(InputError, match="cannot belong to the file"):
        journals_of(path)


class TestForeign:
    def test_more_pages_than_the_file_has(self, tmp_path: Path) -> None:
        path = small_trace(tmp_path / "trace.sqlite")
        page = 512
        head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0xFFFFFFFF, 1, 1, 512, page)
        record = struct.pack(">I", 1) + bytes(page + 4)
        Path(f"{path}{JOURNAL}").write_bytes(head.ljust(512, b"\0") + record * 5000)
        with pytest.raises(InputError, match="cannot belong to the file") as caught:
            open_trace(path)
        assert "delete the journal" in (caught.value.hint or "")

    def test_one_that_names_another_file_is_refused_however_long(self, tmp_path: Path) -> None:
        path = with_journal(tmp_path, "DELETE")
        journal = Path(f"{path}{JOURNAL}")
        enlarge(journal)
        with journal.open("ab") as file:
            file.write(b"victim" + struct.pack(">II", 6, 0) + bytes.fromhex("d9d505f920a163d7"))
        with pytest.raises(InputError, match="names another file"):
            open_trace(path)


class TestCopy:
    def test_keeps_holes(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.write_bytes(b"begin")
        enlarge(source, GIB)
        with source.open("ab") as file:
            file.write(b"end")
        copied(source, [], tmp_path / "copy")
        status = (tmp_path / "copy").stat()
        assert status.st_size == GIB + 3
        assert status.st_blocks * 512 < 1 << 20
        with (tmp_path / "copy").open("rb") as file:
            assert file.read(6) == b"begin\0"
            file.seek(GIB)
            assert file.read() == b"end"

    def test_a_hole_at_the_end(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        source.write_bytes(b"begin")
        enlarge(source, GIB)
        copied(source, [], tmp_path / "copy")
        assert (tmp_path / "copy").stat().st_size == GIB
        with (tmp_path / "copy").open("rb") as file:
            assert file.read(6) == b"begin\0"

    def test_what_lies_behind_what_counts_stays_away(self, tmp_path: Path) -> None:
        """
        journal   [begin|.....hole......|end]
        counts    [---------)
        """
        source, journal = tmp_path / "source", tmp_path / "source-wal"
        source.write_bytes(b"database")
        journal.write_bytes(b"begin")
        enlarge(journal, GIB)
        with journal.open("ab") as file:
            file.write(b"end")
        copied(source, [Journal(journal, LOG, 1 << 20)], tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"database"
        assert (tmp_path / "copy-wal").read_bytes() == b"begin".ljust(1 << 20, b"\0")

    def test_says_where_there_is_no_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = with_journal(tmp_path, "WAL")
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(trace_source.shutil, "disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(OutputError, match="no room for a private copy") as caught:
            open_trace(path)
        assert "TMPDIR" in (caught.value.hint or "")

    def test_works_where_holes_are_not_known(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "SEEK_DATA")
        assert rows(with_journal(tmp_path, "WAL")) == 5001


@pytest.mark.parametrize("change", [lambda log: log.write_bytes(b""), lambda log: log.unlink()])
def test_a_batch_looks_at_the_journal_that_is_read(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """That of the file itself, where the input is a link."""
    from nsysdiag.batch.task import content_of

    path = with_journal(tmp_path, "WAL")
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    before = content_of(link)
    assert before == content_of(path)
    change(Path(f"{path}{LOG}"))
    assert content_of(link) == content_of(path) != before
