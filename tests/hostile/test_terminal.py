"""What reaches a terminal or a log never holds control characters, whatever files, ranges and options are called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.hostile.checks import CONTROL
from tests.levels import crossed
from tests.trace.files import small_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names"),
]

NAMES = {
    "escape": "a\x1b[31m\x1b]0;title\x07b",
    "line end": "a\nnsysdiag: all is well\nb",
    "carriage return": "a\rb",
    "bidi": "a\u202eb\u2066c",
    "c1": "a\x9b31mb",
    "percent": "100%s %(x)s %n",
    "markup": "[bold]<b>[\\x] &amp;",
    "quotes": 'it\'s "quoted" `x` $(x) ; x',
    "not utf-8": "a\udcffb",
    "dash": "-rf",
    "uri": "file:x?mode=rwc&cache=shared#y",
}
named = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)

COMMANDS = {
    "analyze": ("analyze", "--no-config", "{}"),
    "debug": ("analyze", "--no-config", "--debug", "{}"),
    "info": ("info", "{}"),
    "compare": ("compare", "--no-config", "{}", "{}"),
    "ranks": ("ranks", "{}", "{}"),
    "bundle": ("bundle", "{}"),
    "render": ("render", "{}", "-o", "x.md"),
    "batch": ("batch", "--no-config", "{}", "-o", "out"),
    "config": ("analyze", "{trace}", "--config", "{}"),
    "output": ("analyze", "--no-config", "{trace}", "-o", "{}/x.md"),
    "suffix": ("analyze", "--no-config", "{trace}", "-o", "{}.odd"),
    "format": ("analyze", "--no-config", "{trace}", "--format", "{}"),
    "device": ("analyze", "--no-config", "{trace}", "--device", "{}"),
    "range": ("analyze", "--no-config", "{trace}", "--nvtx", "{}"),
    "cause": ("analyze", "--no-config", "{trace}", "--disable", "{}"),
    "time": ("analyze", "--no-config", "{trace}", "--from", "{}"),
    "iterations": ("analyze", "--no-config", "{trace}", "--iterations", "{}"),
    "budget": ("analyze", "--no-config", "{trace}", "--fail-on", "{}"),
    "rule": ("rules", "{}"),
    "command": ("{}",),
    "option": ("analyze", "--{}"),
}


def plain(told: Told) -> None:
    """No character of what was sent acts on a terminal, and nobody's text begins a line but ours."""
    assert not CONTROL.search(told.everything), told.everything
    assert "\nnsysdiag: all is well" not in told.everything


@pytest.mark.parametrize(("which", "kind"), crossed(list(COMMANDS), list(NAMES), 10))
def test_what_does_not_exist(which: str, kind: str, command: Command, tmp_path: Path) -> None:
    trace, words = small_trace(tmp_path / "trace.sqlite"), COMMANDS[which]
    told = command(*(word.replace("{trace}", str(trace)).replace("{}", NAMES[kind]) for word in words))
    plain(told)
    assert told.code in (2, 3, 4)
    assert ("Traceback" in told.stderr) == (words[0] == "analyze" and "--debug" in words)


@pytest.mark.parametrize(("what", "kind"), crossed(["folder", "garbage", "empty", "trace"], list(NAMES), 8))
def test_a_file_of_that_name(what: str, kind: str, command: Command, tmp_path: Path) -> None:
    name = NAMES[kind]
    path = tmp_path / f"{name}.sqlite"
    if what == "folder":
        path.mkdir()
    elif what == "trace":
        small_trace(path)
    else:
        path.write_bytes(b"garbage" if what == "garbage" else b"")
    told = command("analyze", "--no-config", path, "-o", tmp_path / f"{name}.md", "-o", tmp_path / f"{name}.html")
    plain(told)
    assert told.code == (0 if what == "trace" else 3)
    plain(command("info", path))
    for words in (("compare", "--no-config", path, path), ("ranks", path, path), ("bundle", path, "-o", "x.zip")):
        plain(command(*words))
    if what == "trace":  # a batch starts processes
        plain(command("batch", "--no-config", "-o", "out", tmp_path))


@named
def test_a_bug_that_quotes_it(name: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(name) from ValueError(f"line one\n{name}")

    monkeypatch.setattr("nsysdiag.pipeline.analyze", broken)
    told = command("analyze", "--no-config", small_trace(tmp_path / "trace.sqlite"), "--debug")
    assert told.code == 70
    plain(told)


@named
def test_our_own_report_is_not_overwritten_by_that_name(name: str, command: Command, tmp_path: Path) -> None:
    """What stands in the way is told under its name, and stays."""
    there = tmp_path / f"{name}.md"
    there.write_text("somebody's")
    told = command("analyze", "--no-config", small_trace(tmp_path / "trace.sqlite"), "-o", there)
    plain(told)
    assert told.code == 2
    assert there.read_text() == "somebody's"
