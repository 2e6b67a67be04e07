"""A report gets a name that nothing else has, and is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.capture.plan import beside, free_stem, keep
from nsysdiag.messages import OutputError


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What nsys has just written, in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = beside(Path("train.nsys-rep"))
    path.write_text("new")
    return path


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_a_number_where_any_file_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert free_stem("train", (".nsys-rep", ".html")) == "train"
    Path("train.nsys-rep").touch()
    Path("train-2.html").symlink_to("nowhere")
    assert free_stem("train", (".nsys-rep", ".html")) == "train-3"


@pytest.mark.parametrize("force", [False, True])
def test_it_gets_its_name(written: Path, force: bool) -> None:
    assert keep(written, Path("train.nsys-rep"), force=force) == Path("train.nsys-rep")
    assert names() == {"train.nsys-rep"}


def test_another_process_was_quicker(written: Path) -> None:
    Path("train.nsys-rep").write_text("theirs")
    assert keep(written, Path("train.nsys-rep"), force=False) == Path("train-2.nsys-rep")
    assert Path("train.nsys-rep").read_text() == "theirs"
    assert Path("train-2.nsys-rep").read_text() == "new"


def test_with_force_it_takes_the_place_of_a_file(written: Path) -> None:
    Path("train.nsys-rep").write_text("theirs")
    keep(written, Path("train.nsys-rep"), force=True)
    assert Path("train.nsys-rep").read_text() == "new"


def test_file_systems_without_links(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", none)
    Path("train.nsys-rep").write_text("theirs")
    assert keep(written, Path("train.nsys-rep"), force=False) == Path("train-2.nsys-rep")
    assert names() == {"train.nsys-rep", "train-2.nsys-rep"}


def test_where_it_cannot_be_named_it_stays(written: Path) -> None:
    with pytest.raises(OutputError, match="cannot write") as caught:
        keep(written, Path("gone/train.nsys-rep"), force=False)
    assert str(written) in (caught.value.hint or "")
    assert written.read_text() == "new"
