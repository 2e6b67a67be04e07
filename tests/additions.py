"""A copy of the package to which something is added as CONTRIBUTING.md says, and what its commands then print."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNNER = """
import contextlib, io, json, sys
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run

told = {}
for name, line in json.load(sys.stdin).items():
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(app, line)
        out.flush()
    told[name] = [code, out.buffer.getvalue().decode()]
json.dump(told, sys.stdout)
"""
"""Runs command lines one after the other, in one process."""


def not_yet_added(added: bool) -> pytest.MarkDecorator:
    """Skips tests that add what this checkout has already: those of a reader who follows CONTRIBUTING.md by hand."""
    return pytest.mark.skipif(added, reason="the example of CONTRIBUTING.md is in this checkout")


def copied_package(folder: Path) -> Path:
    """A copy of the package, in a folder of its own."""
    package = folder / "site" / "nsysdiag"
    shutil.copytree(ROOT / "nsysdiag", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates", package / "templates")
    return package


def edited(path: Path, old: str, new: str) -> None:
    """Replace a text that is in the file once."""
    before = path.read_text(encoding="utf-8")
    assert before.count(old) == 1, (path, old)
    path.write_text(before.replace(old, new), encoding="utf-8")


def printed(package: Path, folder: Path, lines: dict[str, list[str]]) -> dict[str, tuple[int, str]]:
    """The exit code and the output of each command line, run in `folder` with the package."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUNNER],
        input=json.dumps(lines),
        env={**os.environ, "PYTHONPATH": str(package.parent), "PYTHONUTF8": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return {name: (code, text) for name, (code, text) in json.loads(done.stdout).items()}
