"""Histories only grow, by whole lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsysdiag.batch.results import append, name_of_run, read_history
from nsysdiag.ci.facts import HistoryLine
from nsysdiag.messages import OutputError
from nsysdiag.process import now


def line(run: str) -> HistoryLine:
    return HistoryLine(
        at=1,
        run=run,
        input="a.sqlite",
        device="gpu0",
        window_ns=10,
        busy_ns=4,
        idle_ns=6,
        compute_ns=4,
        exposed_comm_ns=0,
        exposed_copy_ns=0,
        iteration_ns=None,
        causes={"sleep": 6},
        broken=0,
    )


def test_lines_are_added_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    assert read_history(path, path.parent).lines == []
    append(path, [line("1"), line("2")])
    append(path, [line("3")])
    assert read_history(path, path.parent).lines == [line("1"), line("2"), line("3")]
    assert path.read_bytes().count(b"\n") == 3


def test_nothing_to_add_makes_no_file(tmp_path: Path) -> None:
    append(tmp_path / "h.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_a_last_line_without_an_end_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append(path, [line("1"), line("2")])
    path.write_bytes(path.read_bytes()[:-20])
    before = path.read_bytes()
    found = read_history(path, path.parent)
    assert found.lines == [line("1")]
    assert found.notes == [f"line 2 of {path} was not written to its end; it is left as it is"]
    append(path, [line("3")])
    assert path.read_bytes().startswith(before + b"\n")
    again = read_history(path, path.parent)
    assert again.lines == [line("1"), line("3")]
    assert again.notes == [f"line 2 of {path} is damaged; it is left as it is"]


@pytest.mark.parametrize("content", [b"mine\n", b'{"at": 1}\n', b"\0\1\2"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(OutputError, match="is not a history of nsysdiag"):
        read_history(tmp_path / "x", tmp_path)


def test_places_that_cannot_hold_one(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot read the history"):
        read_history(tmp_path, tmp_path)
    with pytest.raises(OutputError, match="there is no folder"):
        read_history(tmp_path / "nowhere" / "h.jsonl", tmp_path)


def test_one_in_the_folder_of_the_reports_waits_for_it(tmp_path: Path) -> None:
    assert read_history(tmp_path / "out" / "h.jsonl", tmp_path / "out").lines == []


@pytest.mark.parametrize("exists", [True, False])
def test_what_cannot_be_written_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    path = tmp_path / "h.jsonl"
    append(path, [line("1")] if exists else [])
    place = path if exists else tmp_path
    monkeypatch.setattr(os, "access", lambda asked, _mode: asked != place)
    with pytest.raises(OutputError, match="cannot write the history"):
        read_history(path, tmp_path)


def test_a_full_disk_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.jsonl"
    append(path, [line("1")])
    before = path.read_bytes()
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: original(descriptor, data[:10]))
    with pytest.raises(OutputError, match="no space left"):
        append(path, [line("2")])
    assert path.read_bytes() == before


def test_names_of_runs() -> None:
    assert name_of_run(0, {"GITHUB_SHA": "abc", "CI_COMMIT_SHA": "def"}) == "abc"
    assert name_of_run(0, {"GITHUB_SHA": "", "CI_COMMIT_SHA": "def"}) == "def"
    assert name_of_run(86_400, {}) == "1970-01-02T00:00:00Z"
    assert now({"SOURCE_DATE_EPOCH": "12"}) == 12
    assert now({"SOURCE_DATE_EPOCH": "soon"}) > 1_600_000_000
