"""What an input is known by when a batch is resumed: all of it, and what SQLite keeps beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.batch.task import _content
from tests.trace.test_source import with_journal

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def test_a_change_in_the_middle_of_a_large_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(bytes(4 * MIB))
    before = _content(path)
    path.write_bytes(bytes(2 * MIB) + b"\x01" + bytes(2 * MIB - 1))
    assert _content(path) != before


def test_a_journal_beside_it_counts(tmp_path: Path) -> None:
    path = with_journal(tmp_path, "WAL")
    log = path.with_name("trace.sqlite-wal")
    with_all = _content(path)
    log.unlink()
    without = _content(path)
    assert without != with_all
    log.write_bytes(b"nothing that SQLite would apply")
    assert _content(path) == without
