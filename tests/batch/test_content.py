"""What an input is known by when a batch is resumed: all of it, and what SQLite keeps beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.batch.task import _content

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
    path = tmp_path / "trace.sqlite"
    path.write_bytes(b"trace")
    before = _content(path)
    (tmp_path / "trace.sqlite-wal").write_bytes(b"more")
    assert _content(path) != before
    (tmp_path / "trace.sqlite-wal").unlink()
    assert _content(path) == before
