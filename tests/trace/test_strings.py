"""Names by id: only those asked for, in any number, and what an unknown id reads as."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.trace import reader as string_rows
from nsysdiag.trace.trace import open_trace
from tests.trace.files import KERNEL, STRINGS, execute, insert, small_trace

if TYPE_CHECKING:
    from pathlib import Path


def test_known_and_unknown_ids(tmp_path: Path) -> None:
    with open_trace(small_trace(tmp_path / "t.sqlite")) as trace:
        assert trace.strings.text(2) == "saxpy"
        assert trace.strings.text(17) == "<string 17>"
        assert trace.strings.texts(np.array([17, 2, 1, 2])) == ["<string 17>", "saxpy", "void saxpy(float*)", "saxpy"]
        assert trace.strings.texts([]) == []
        assert trace.strings.known(1)
        assert not trace.strings.known(-1)


def test_ids_where(tmp_path: Path) -> None:
    with open_trace(small_trace(tmp_path / "t.sqlite")) as trace:
        found = trace.strings.ids_where(lambda text: "saxpy" in text, np.array([2, 1, 2, 99]))
        assert found.tolist() == [1, 2]
        assert found.dtype == np.int64
        assert trace.strings.ids_where(lambda _: True, np.array([99, -1])).tolist() == []
        assert trace.strings.ids_where(lambda _: True, np.array([], np.int64)).tolist() == []


def test_without_the_table(tmp_path: Path) -> None:
    with open_trace(execute(tmp_path / "t.sqlite", KERNEL)) as trace:
        assert trace.strings.text(17) == "<string 17>"
        assert trace.strings.ids_where(lambda _: True, np.array([17])).tolist() == []


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
@pytest.mark.parametrize(("asked", "per_query", "full_from"), [(30, 7, 1000), (30, 7, 10), (5, 7, 1000)])
def test_any_number_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, asked: int, per_query: int, full_from: int
) -> None:
    monkeypatch.setattr(string_rows, "IDS_PER_QUERY", per_query)
    monkeypatch.setattr(string_rows, "FULL_READ_FROM", full_from)
    path = execute(tmp_path / "t.sqlite", STRINGS.replace("PRIMARY KEY", key))
    insert(path, "StringIds", [(row, f"name {row}") for row in range(100)])
    with open_trace(path) as trace:
        assert trace.strings.texts(range(asked)) == [f"name {row}" for row in range(asked)]
        assert trace.strings.text(99) == "name 99"


def test_only_what_is_asked_for_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_rows, "FULL_READ_FROM", 2)
    path = small_trace(tmp_path / "t.sqlite")
    insert(path, "StringIds", [(3, "SECRET=1")])
    with open_trace(path) as trace:
        trace.strings.texts([1, 2])
        assert "SECRET=1" not in repr(vars(trace.strings))


def test_broken_text_survives(tmp_path: Path) -> None:
    path = small_trace(tmp_path / "t.sqlite")
    execute(path, "INSERT INTO StringIds VALUES (5, CAST(X'ff' AS TEXT))", "INSERT INTO StringIds VALUES (6, '')")
    with open_trace(path) as trace:
        assert trace.strings.texts([5, 6]) == ["\\xff", ""]
