"""No command asks the network for anything: neither its own process nor any that it starts makes a socket but those of
this machine, nor looks up a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsysdiag import analyze
from nsysdiag.record import to_json
from tests.simulator.scenarios import SCENARIOS, scenario

ROOT = Path(__file__).parent.parent.parent
GUARD = """
import os, socket, sys

NAMES = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")

def refuse(event, arguments):
    if event in NAMES or (event == "socket.__new__" and arguments[1] not in (-1, socket.AF_UNIX)):
        with open(os.environ["ASKED"], "a") as told:
            print(event, *arguments[1:], file=told)
        raise OSError(f"no network here: {event}")

sys.addaudithook(refuse)
"""
"""Python runs it at its start, and with PYTHONPATH so do the processes that it starts. A refusal may be swallowed, so
it is written down too."""


def ran(folder: Path, *command: str) -> tuple[int, str]:
    """The exit code of a Python in `folder`, and what it asked the network for."""
    (folder / "guard").mkdir(exist_ok=True)
    (folder / "guard" / "sitecustomize.py").write_text(GUARD)
    asked = folder / "asked"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(folder / "guard"), str(ROOT))), "ASKED": str(asked)}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode, asked.read_text() if asked.exists() else ""


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("import socket; socket.socket()", "socket.__new__"),
        ("import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", "socket.__new__"),
        ("import urllib.request as r; r.urlopen('http://127.0.0.1:9')", "socket.getaddrinfo"),
        (
            "import subprocess as s, sys; s.run([sys.executable, '-c', 'import socket; socket.socket()'])",
            "socket.__new__",
        ),
    ],
)
def test_the_guard_notices(code: str, asked: str, tmp_path: Path) -> None:
    assert asked in ran(tmp_path, "-c", code)[1]


def test_the_guard_lets_processes_talk(tmp_path: Path) -> None:
    code = "import socket; a, b = socket.socketpair(); a.send(b'x'); socket.socket(socket.AF_UNIX); assert b.recv(1)"
    assert ran(tmp_path, "-c", code) == (0, "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two traces, and a saved report."""
    folder = tmp_path_factory.mktemp("offline")
    for name in ("counted_training", "starved_data_parallel"):
        scenario(name).write(folder / f"{name}.sqlite", SCENARIOS[name].capture)
    (folder / "saved.json").write_bytes(to_json(analyze(folder / "starved_data_parallel.sqlite")))
    return folder


ONE, OTHER = "counted_training.sqlite", "starved_data_parallel.sqlite"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", ONE, "-o", "a.html", "-o", "a.json", "-o", "a.md", "-o", "a.txt", "-o", "a.csv", "-o", "a.prom"],
        ["batch", ".", "-o", "out", "--jobs", "2", "--history", "h.jsonl"],
        *(
            pytest.param(arguments, marks=pytest.mark.thorough)
            for arguments in (
                ["analyze", ONE, "--redact", "-o", "r.html"],
                ["render", "saved.json", "-o", "b.html", "-o", "b.sarif"],
                ["compare", OTHER, "saved.json", "-o", "c.html"],
                ["ranks", ONE, OTHER, "-o", "d.html"],
                ["bundle", OTHER, "-o", "e.zip"],
                ["info", ONE],
                ["rules"],
                ["demo", "-o", "f.html"],
            )
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_command_asks_the_network(arguments: list[str], folder: Path) -> None:
    assert ran(folder, "-P", "-m", "nsysdiag", *arguments) == (0, "")
