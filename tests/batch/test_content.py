"""What an input is known by when a batch is resumed: all of it, and what SQLite keeps beside it."""

from __future__ import annotations

from pathlib import Path

from nsysdiag.batch.task import content_of
from tests.trace.test_source import with_journal

MIB = 1 << 20


def test_a_change_in_the_middle_of_a_large_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(bytes(4 * MIB))
    before = content_of(path)
    path.write_bytes(bytes(2 * MIB) + b"\x01" + bytes(2 * MIB - 1))
    assert content_of(path) != before


def test_a_journal_beside_it_counts(tmp_path: Path) -> None:
    path = with_journal(tmp_path, "WAL")
    log = Path(f"{path}-wal")
    before = content_of(path)
    log.write_bytes(log.read_bytes()[:-1])  # the last commit is cut short
    assert content_of(path) != before


def test_one_that_holds_nothing_to_apply_does_not(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(b"trace")
    before = content_of(path)
    (tmp_path / "trace.sqlite-wal").write_bytes(b"more")
    assert content_of(path) == before
