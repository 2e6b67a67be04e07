"""The locale changes no byte of stdout, stderr or a file, whatever encoding it has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nsysdiag import analyze
from nsysdiag.record import to_json
from tests.builder import TraceBuilder
from tests.cli.every_command import ROOT, console_script

TRACE = "größe-测试.sqlite"
SAVED = "gespeichert-é.json"
UTF8 = {"LC_ALL": "C.UTF-8"}
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
COMMANDS = {
    "analyze": ["analyze", TRACE, "-o", "ü.html", "-o", "ü.json", "-o", "ü.md", "-o", "ü.csv", "-o", "ü.sarif"],
    "range": ["analyze", TRACE, "--nvtx", "schritt-größe", "-o", "-", "--format", "json"],
    "no range": ["analyze", TRACE, "--nvtx", "keine-größe"],
    "no device": ["analyze", TRACE, "--device", "größe"],
    "redacted": ["analyze", TRACE, "--redact", "-o", "r.json"],
    "bundle": ["bundle", TRACE, "-o", "é.zip"],
    "batch": ["batch", TRACE, SAVED, "-o", "aüs", "--jobs", "2", "--history", "ü.jsonl", "--run", "läuft"],
    "compare": ["compare", TRACE, SAVED, "-o", "c.html"],
    "render": ["render", SAVED, "-o", "ü.md", "-o", "ü.txt"],
    "info": ["info", TRACE],
    "no file": ["info", "größe.sqlite"],
    "no option": ["info", TRACE, "--größe"],
    "journal": ["analyze", "mit-journal-é.sqlite"],
    "no ranks": ["ranks", TRACE, "-o", "r.html"],
    "rules": ["rules"],
    "--help": ["--help"],
    "demo": ["demo", "-o", "größe.html"],
}
OFTEN = ("analyze", "no file")


def write_inputs(folder: Path) -> None:
    builder = TraceBuilder().thread_name("fädchen")
    builder.nvtx("schritt-größe", 0, 3000)
    builder.kernel(100, 200, name="größe_测试_kernel", launch=(50, 60))
    builder.kernel(900, 1000, name="größe_测试_kernel", launch=(70, 80)).write(folder / TRACE)
    (folder / SAVED).write_bytes(to_json(analyze(folder / TRACE)))
    (folder / "mit-journal-é.sqlite").write_bytes((folder / TRACE).read_bytes())
    (folder / "mit-journal-é.sqlite-wal").write_bytes(b"none")


def ran(tmp_path: Path, command: str, locale: dict[str, str]) -> tuple[int, bytes, bytes, dict[str, bytes]]:
    """Exit code, stdout, stderr, and the files of the folder after a command."""
    folder = tmp_path / locale["LC_ALL"]
    folder.mkdir()
    write_inputs(folder)
    unset = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONIOENCODING")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, str(console_script(tmp_path / "bin")), *COMMANDS[command]],
        cwd=folder,
        env={**environment, **locale, "PYTHONPATH": ROOT, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        check=False,
    )
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return done.returncode, done.stdout, done.stderr, {name: path.read_bytes() for name, path in files.items()}


@pytest.mark.sampled(normal=2)
@pytest.mark.skipif(sys.platform == "win32", reason="has no such locales")
@pytest.mark.parametrize(
    "command", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.thorough) for name in COMMANDS]
)
def test_same_bytes(tmp_path: Path, command: str) -> None:
    one, other = (ran(tmp_path, command, locale) for locale in (UTF8, ASCII))
    assert one[0] == (0 if not command.startswith("no ") else one[0])
    assert one[0] != 70
    assert one[:3] == other[:3]
    assert one[3].keys() == other[3].keys()
    assert [name for name, data in one[3].items() if data != other[3][name]] == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locales")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_the_two_starts_is_answered(tmp_path: Path, number: signal.Signals) -> None:
    """UTF-8 mode is set at a second start of the interpreter."""
    code = f"""
import os, signal
signal.signal({int(number)}, signal.SIG_DFL)  # a shell that starts it in the background has it ignored
original = os.execv
def execv(*command):
    os.kill(os.getpid(), {int(number)})
    original(*command)
os.execv = execv
from nsysdiag.entry import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "--version"],
        env={**os.environ, **ASCII, "PYTHONPATH": ROOT},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (128 + number, b"", 1)
