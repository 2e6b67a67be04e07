"""Completion: the scripts of shells ask this program for words, and it answers without importing an analysis."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.cli.help import output_path
from nsysdiag.findings.rules import FINDING_RULES
from nsysdiag.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "nsysdiag" / "data" / "completion.json"
SEEN = """
import sys
from nsysdiag.cli.app import main
try:
    main([])
finally:
    print("loaded:", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def test_the_words_are_those_of_today() -> None:
    today = {
        "causes": list(CAUSES),
        "rules": list(dict.fromkeys([*CAUSES, *FINDING_RULES])),
        "suffixes": [known.suffix for known in FORMATS.values()],
    }
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        WORDS.write_text(json.dumps(today, indent=1) + "\n", encoding="utf-8")
    assert json.loads(WORDS.read_text(encoding="utf-8")) == today


def completed(line: str) -> list[str]:
    """What the program offers bash at the end of a command line, whose words have no blanks in them."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_NSYSDIAG_COMPLETE": "complete_bash"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **asked}
    done = subprocess.run([sys.executable, "-P", "-c", SEEN], env=environment, capture_output=True, check=True)
    loaded = done.stderr.decode().partition("loaded:")[2].split()
    assert "typer" in loaded
    assert {"numpy", "msgspec", "pandas", "sqlalchemy", "rich"} & set(loaded) == set()
    return done.stdout.decode().split()


@pytest.mark.sampled(quick=10, normal=5)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nsysdiag ana", ["analyze"]),
        ("nsysdiag analyze x.sqlite --disable launch_", ["launch_unknown", "launch_call", "launch_latency"]),
        ("nsysdiag whatif x.sqlite --without sl", ["sleep"]),
        ("nsysdiag analyze x.sqlite --reda", ["--redact"]),
        ("nsysdiag compare --format m", ["md"]),
        ("nsysdiag rules exposed_c", ["exposed_copy", "exposed_comm"]),
        ("nsysdiag analyze x.sqlite -o report.js", ["report.json"]),
        ("nsysdiag record --keep", ["--keep"]),
        ("nsysdiag completion z", ["zsh"]),
        ("nsysdiag analyze no-such-fi", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert completed(line) == words


@pytest.mark.slow
def test_after_a_trace_in_place_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.sqlite").touch()
    assert completed("nsysdiag x.sqlite --disable io") == ["io_wait"]


@pytest.mark.parametrize(
    ("incomplete", "some", "count"),
    [
        ("a", {"a.html", "a.perfetto.json"}, 11),
        ("run.1", {"run.1.html"}, 11),
        ("a.per", {"a.perfetto.json"}, 1),
        ("out/a.j", {"out/a.json", "out/a.junit.xml"}, 2),
        ("", set(), 0),
        ("out/", set(), 0),
    ],
)
def test_suffixes(incomplete: str, some: set[str], count: int) -> None:
    found = output_path(incomplete)
    assert (some <= set(found), len(found)) == (True, count)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_read_by_their_shells(cli: Callable[..., Result], tmp_path: Path, shell: str) -> None:
    result = cli("completion", shell)
    assert (result.code, result.stderr) == (0, "")
    assert b"_NSYSDIAG_COMPLETE=complete_" + shell.encode() in result.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_bytes(result.stdout)
    assert subprocess.run([shell, "-n", str(script)], check=False).returncode == 0


@pytest.mark.slow
def test_in_bash(cli: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(cli("completion", "bash").stdout)
    (tmp_path / "nsysdiag").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m nsysdiag "$@"\n')
    (tmp_path / "nsysdiag").chmod(0o755)
    asked = "COMP_WORDS=(nsysdiag wh); COMP_CWORD=1; _nsysdiag_completion nsysdiag"
    code = f'source ./script; {asked}; echo "${{COMPREPLY[@]}}"'
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout == b"whatif\n"


def test_another_shell(cli: Callable[..., Result]) -> None:
    result = cli("completion", "tcsh")
    assert (result.code, "SHELL" in result.stderr) == (2, True)
