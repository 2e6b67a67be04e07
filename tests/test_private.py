"""Private folders: empty, of this user alone, and gone at the end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from nsysdiag.process import private_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_private_and_goes(temporary: Path) -> None:
    with private_folder() as folder, private_folder() as other:
        assert folder != other
        assert folder.parent == temporary
        assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])
        (folder / "copy.sqlite").write_text("rows")
    assert list(temporary.iterdir()) == []


def test_one_that_was_removed_meanwhile(temporary: Path) -> None:
    """Systems clean up temporary files."""
    with private_folder() as folder:
        shutil.rmtree(folder)
    assert list(temporary.iterdir()) == []


def test_an_interrupt_removes_it(temporary: Path) -> None:
    with pytest.raises(KeyboardInterrupt), private_folder():
        raise KeyboardInterrupt
    assert list(temporary.iterdir()) == []
