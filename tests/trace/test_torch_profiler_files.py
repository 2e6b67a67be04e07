"""Which files are traces of the PyTorch profiler, and what is said of others that are JSON."""

from __future__ import annotations

import gzip
import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze
from nsysdiag.messages import InputError
from nsysdiag.saved import is_saved_report
from nsysdiag.trace.formats import KINETO_HEAD_BYTES, SEARCHED_BYTES, format_of, is_kineto_trace
from nsysdiag.trace.kineto.events import read_trace

if TYPE_CHECKING:
    from pathlib import Path

KERNEL: dict[str, Any] = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {}}
FILLER = random.Random(1).randbytes(KINETO_HEAD_BYTES).hex()
NOTE = {"tool": 'said "traceEvents": [ and {', "nested": {"traceEvents": [1]}}


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


@pytest.mark.parametrize(
    "content",
    [
        {"metadata": NOTE, "traceEvents": [KERNEL]},
        {"a": [{**NOTE, "b": FILLER[at::99]} for at in range(99)], "traceEvents": [KERNEL]},
        {"otherData": {}, "b": "\\", "traceEvents": [KERNEL], "after": NOTE},
        {"traceEvents": [KERNEL]},
        {"schemaVersion": 1, "filler": FILLER, "traceEvents": [KERNEL]},
        [KERNEL, {**KERNEL, "ts": 9}],
        [{"args": {"ph": 1}, **KERNEL}],
    ],
)
def test_events_may_be_anywhere(content: Any, tmp_path: Path) -> None:
    plain, small = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_text(json.dumps(content))
    small.write_bytes(packed(json.dumps(content)))
    for path in (plain, small):
        assert is_kineto_trace(path)
        assert not is_saved_report(path)
        assert read_trace(path).events[0].name == "k"


@pytest.mark.parametrize("end", ["", ",", ",\n", "]", "\n]\n"])
def test_the_end_of_an_array_may_be_missing(end: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"[{json.dumps(KERNEL)},\n{json.dumps(KERNEL)}{end}")
    assert len(read_trace(path).events) == 2


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(NOTE),
        json.dumps([NOTE, NOTE]),
        json.dumps([[KERNEL]]),
        json.dumps({"data": [KERNEL]}),
        json.dumps({"name": "traceEvents"}),
        json.dumps({"filler": "x" * SEARCHED_BYTES, "traceEvents": []}),
        "[]",
        "{}",
    ],
)
def test_other_json_is_none(text: str, tmp_path: Path) -> None:
    plain, small = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_text(text)
    small.write_bytes(packed(text))
    for path in (plain, small):
        assert not is_kineto_trace(path)
        with pytest.raises(InputError, match="JSON, but no trace of the PyTorch profiler"):
            format_of(path)


def test_an_archive_of_something_else_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(packed("SQLite format 3"))
    with pytest.raises(InputError, match="is a gzip archive"):
        format_of(tmp_path / "a.gz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    assert not is_kineto_trace(tmp_path / "a.json")


@pytest.mark.slow
def test_only_so_much_of_a_file_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": "' + b"x" * 4 * SEARCHED_BYTES))
    seen: list[int] = []
    monkeypatch.setattr("nsysdiag.trace.formats._has_events", lambda data: bool(seen.append(len(data))))
    assert not is_kineto_trace(tmp_path / "a.json.gz")
    assert seen == [KINETO_HEAD_BYTES, SEARCHED_BYTES]


def test_timelines_of_other_programs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    other = {"ph": "X", "name": "fusion.3", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    path.write_text(json.dumps({"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [other]}))
    with pytest.raises(InputError, match="for a trace viewer, but none as the PyTorch profiler writes them"):
        analyze(path)
    path.write_text(json.dumps({"otherData": {"generator": "nsysdiag"}, "traceEvents": [other]}))
    with pytest.raises(InputError, match="a timeline that nsysdiag wrote"):
        analyze(path)
