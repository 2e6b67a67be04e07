"""Private folders: gone with the process that made them, at the next start where it was killed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from nsysdiag import private
from nsysdiag.private import private_folder
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs flock")

ROOT = Path(__file__).parent.parent
NAME = "nsysdiag-0123abc_"
HOLD = """
import os, signal, sys, time
from nsysdiag.trace.trace import open_trace
with open_trace(sys.argv[1]) as trace:
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A trace with a write-ahead log beside it, which is read from a private copy."""
    made = TraceBuilder().kernel(100, 200, launch=(50, 60)).write(tmp_path / "made.sqlite")
    path = tmp_path / "trace.sqlite"
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE more (x)")
        for suffix in ("", "-wal"):
            Path(f"{path}{suffix}").write_bytes(Path(f"{made}{suffix}").read_bytes())
    return path


def holding(trace: Path, temporary: Path) -> subprocess.Popen[bytes]:
    """A process that has the trace open."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(trace)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def stale(folder: Path) -> Path:
    """A folder that looks like one of a killed process."""
    folder.mkdir()
    for name in (".lock", "trace.sqlite"):
        (folder / name).touch()
    return folder


@pytest.mark.slow
def test_what_a_killed_process_left_goes_and_what_a_live_one_uses_stays(temporary: Path, unfinished: Path) -> None:
    with holding(unfinished, temporary) as live, holding(unfinished, temporary) as killed:
        assert len(list(temporary.iterdir())) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with open_trace(unfinished) as trace:
            assert trace.warnings
            assert len(list(temporary.iterdir())) == 2  # that of the live process, and the one of this trace
        (kept,) = temporary.iterdir()
        assert (kept / "trace.sqlite").is_file()
        live.communicate(b"")
    assert list(temporary.iterdir()) == []


def test_a_folder_is_private_and_goes(temporary: Path) -> None:
    with private_folder() as folder, private_folder() as other:
        assert folder != other
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [each.name for each in folder.iterdir()] == [".lock"]
        assert private._NAME.fullmatch(folder.name)
        (folder / "deep" / "deeper").mkdir(parents=True)
        (folder / "link").symlink_to(other)
    assert list(temporary.iterdir()) == []


def test_one_that_was_removed_meanwhile(temporary: Path) -> None:
    """As systems do with old temporary files."""
    with private_folder() as folder:
        shutil.rmtree(folder)
    assert list(temporary.iterdir()) == []


class TestSweep:
    def swept(self, temporary: Path) -> set[str]:
        with private_folder() as folder:
            return {each.name for each in temporary.iterdir()} - {folder.name}

    def test_a_stale_one_goes_with_all_in_it(self, temporary: Path, tmp_path: Path) -> None:
        folder = stale(temporary / NAME)
        stale(folder / NAME)
        (tmp_path / "mine").touch()
        (folder / "link").symlink_to(tmp_path)
        assert self.swept(temporary) == set()
        assert (tmp_path / "mine").exists()

    @pytest.mark.parametrize("name", ["nsysdiag-", "nsysdiag-mine", "nsysdiag-0123abc_9", "nsysdiag-0123ABCD", "x"])
    def test_another_name_stays(self, temporary: Path, name: str) -> None:
        stale(temporary / name)
        assert self.swept(temporary) == {name}

    def test_one_without_a_lock_stays(self, temporary: Path) -> None:
        (stale(temporary / NAME) / ".lock").unlink()
        assert self.swept(temporary) == {NAME}

    def test_one_whose_lock_is_a_link_or_a_pipe_stays(self, temporary: Path, tmp_path: Path) -> None:
        for name, put in (("nsysdiag-00000000", "link"), ("nsysdiag-11111111", "folder")):
            lock = stale(temporary / name) / ".lock"
            lock.unlink()
            if put == "link":
                lock.symlink_to(tmp_path / "elsewhere")
                (tmp_path / "elsewhere").touch()
            else:
                lock.mkdir()
        assert self.swept(temporary) == {"nsysdiag-00000000", "nsysdiag-11111111"}

    def test_that_of_another_user_stays(self, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stale(temporary / NAME)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert self.swept(temporary) == {NAME}

    def test_a_link_stays_and_so_does_what_it_leads_to(self, temporary: Path, tmp_path: Path) -> None:
        target = stale(tmp_path / NAME)
        (temporary / NAME).symlink_to(target)
        assert self.swept(temporary) == {NAME}
        assert {each.name for each in target.iterdir()} == {".lock", "trace.sqlite"}

    def test_an_interrupted_sweep_is_finished_by_the_next(
        self, temporary: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = stale(temporary / NAME)
        with monkeypatch.context() as patch:
            patch.setattr(private.shutil, "rmtree", interrupted)
            with pytest.raises(KeyboardInterrupt):
                self.swept(temporary)
        assert [each.name for each in folder.iterdir()] == [".lock"]
        assert self.swept(temporary) == set()

    def test_where_it_cannot_be_removed_safely_nothing_is(
        self, temporary: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stale(temporary / NAME)
        monkeypatch.setattr(private.shutil.rmtree, "avoids_symlink_attacks", False)
        assert self.swept(temporary) == {NAME}

    def test_where_there_are_no_locks_a_folder_is_never_stale(
        self, temporary: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(_descriptor: int, _how: int) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(private.fcntl, "flock", refused)
        with private_folder() as folder:
            assert not (folder / ".lock").exists()
            assert self.swept(temporary) == {folder.name}
        assert list(temporary.iterdir()) == []


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


interrupted.avoids_symlink_attacks = True  # type: ignore[attr-defined]


def test_nothing_but_this_makes_a_temporary_folder() -> None:
    """Else it would stay after a kill. `paged.py` uses files without a name, which the system removes."""
    homes = [path for path in (ROOT / "nsysdiag").rglob("*.py") if "TemporaryDirectory(" in path.read_text("utf-8")]
    assert homes == [ROOT / "nsysdiag" / "private.py"]
