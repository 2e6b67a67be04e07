"""Result files: all or nothing, and nobody else's."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nsysdiag.formats import FORMATS, RenderOptions, check, write
from nsysdiag.messages import OutputError
from tests.output.samples import SAMPLES

DATA = b"nsysdiag new\n"


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_new_file(tmp_path: Path) -> None:
    write(tmp_path / "x.txt", DATA, force=False)
    assert (tmp_path / "x.txt").read_bytes() == DATA
    assert entries(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("name", FORMATS)
def test_our_own_file_is_replaced(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{FORMATS[name].suffix}"
    path.write_bytes(FORMATS[name].render(SAMPLES["one_device"](), RenderOptions()))
    write(path, DATA, force=False)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("suffix", [".html", ".json", ".md", ".txt", ".csv", ".out"])
@pytest.mark.parametrize("content", [b"", b"mine", b'{"tool": {"name": "other"}}'])
def test_a_foreign_file_is_kept_unless_forced(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(OutputError, match="was not written by nsysdiag") as raised:
        write(path, DATA, force=False)
    assert "--force" in str(raised.value.hint)
    assert path.read_bytes() == content
    write(path, DATA, force=True)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_is_never_followed(dangling: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    if not dangling:
        target.write_bytes(b"nsysdiag old\n")
    link.symlink_to(target)
    with pytest.raises(OutputError, match="symbolic link"):
        write(link, DATA, force=False)
    write(link, DATA, force=True)
    assert link.read_bytes() == DATA
    assert not link.is_symlink()
    assert target.exists() == (not dangling)
    assert dangling or target.read_bytes() == b"nsysdiag old\n"


def test_a_hard_link_keeps_its_other_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"nsysdiag old\n")
    (tmp_path / "b.txt").hardlink_to(tmp_path / "a.txt")
    write(tmp_path / "b.txt", DATA, force=False)
    assert (tmp_path / "a.txt").read_bytes() == b"nsysdiag old\n"


@pytest.mark.parametrize("force", [True, False])
def test_what_is_no_file(force: bool, tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(OutputError, match="it is a folder"):
        check(tmp_path / "folder.txt", force=force)
    with pytest.raises(OutputError, match="not a plain file"):
        check(tmp_path / "pipe.txt", force=force)
    with pytest.raises(OutputError, match="does not exist"):
        check(tmp_path / "none" / "x.txt", force=force)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="is not a folder"):
        check(tmp_path / "file" / "x.txt", force=force)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="name is too long"):
        write(tmp_path / ("x" * 300 + ".txt"), DATA, force=True)
    assert entries(tmp_path) == []


def test_the_longest_name(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 251 + ".txt"), DATA, force=False)


@pytest.mark.parametrize(("number", "reason"), [(errno.ENOSPC, "disk is full"), (errno.EIO, "put")])
def test_nothing_is_left_of_a_failure(
    number: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.txt").write_bytes(b"nsysdiag old\n")

    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=reason):
        write(tmp_path / "x.txt", DATA, force=False)
    assert entries(tmp_path) == ["x.txt"]
    assert (tmp_path / "x.txt").read_bytes() == b"nsysdiag old\n"


def test_nothing_is_left_of_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x.txt", DATA, force=False)
    assert entries(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission denied"):
        write(tmp_path / "x.txt", DATA, force=False)
    tmp_path.chmod(0o700)


def test_messages_are_inert() -> None:
    with pytest.raises(OutputError) as raised:
        check(Path("/none\x1b[31m/x.txt"), force=False)
    assert raised.value.message.isprintable()
