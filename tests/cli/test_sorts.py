"""Which of NumPy's sorts are used is up to the processor, and to the user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsysdiag import entry

ZEN_4 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"


def put(said: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is put into the environment of a process on a system that says this of its processors."""
    file, found = folder / "cpuinfo", list[tuple[str, str]]()
    if said is not None:
        file.write_text(said, encoding="ascii")
    monkeypatch.setattr(entry, "PROCESSOR", str(file))
    monkeypatch.setattr(os, "putenv", lambda *pair: found.append(pair))
    entry._with_fast_sorts()
    return found


def test_registers_of_512_bits_are_not_used_where_they_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(entry.SORTS, raising=False)
    assert put(ZEN_4, tmp_path, monkeypatch) == [(entry.SORTS, "X86_V4")]


@pytest.mark.parametrize(
    "said", [ZEN_4.replace("25", "26"), ZEN_4.replace("25", "251"), ZEN_4.replace("AMD", "Intel"), "", None]
)
def test_other_processors_stay_as_they_are(said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(entry.SORTS, raising=False)
    assert put(said, tmp_path, monkeypatch) == []


def test_what_the_user_chose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(entry.SORTS, "")
    assert put(ZEN_4, tmp_path, monkeypatch) == []
