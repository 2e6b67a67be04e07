"""Every command of the program, on small inputs, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from nsysdiag import analyze
from nsysdiag.record import to_json
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROOT = os.path.realpath(f"{__file__}/../../..")
ONE, OTHER = "counted_training.sqlite", "starved_data_parallel.sqlite"
SAVED = "saved.json"
COMMANDS: dict[str, Sequence[str]] = {
    "--version": ["--version"],
    "--help": ["--help"],
    "rules": ["rules"],
    "info": ["info", ONE],
    "analyze": ["analyze", ONE, "-o", "a.html", "-o", "a.json", "-o", "a.md", "-o", "a.csv", "-o", "a.perfetto.json"],
    "redacted": ["analyze", ONE, "--redact", "-o", "r.html"],
    "render": ["render", SAVED, "-o", "b.html", "-o", "b.sarif", "-o", "b.junit.xml", "-o", "b.prom"],
    "compare": ["compare", OTHER, SAVED, "-o", "c.html"],
    "ranks": ["ranks", ONE, OTHER, "-o", "d.html"],
    "bundle": ["bundle", OTHER, "-o", "e.zip"],
    "batch": ["batch", ONE, SAVED, "-o", "out", "--jobs", "2"],
    "demo": ["demo", "-o", "f.html"],
    "completion": ["completion", "bash"],
    "sql": ["sql", ONE, "SELECT count(*) FROM time"],
    "manual": ["manual"],
}


def write_inputs(folder: Path) -> None:
    """Two traces, and the saved report of the second."""
    for path in (folder / ONE, folder / OTHER):
        scenario(path.stem).write(path, SCENARIOS[path.stem].capture)
    (folder / SAVED).write_bytes(to_json(analyze(folder / OTHER)))


def console_script(folder: Path) -> Path:
    """What `pip install` makes of the entry point. Not `-m`, with which Python looks into the current folder."""
    folder.mkdir(exist_ok=True)
    script = folder / "nsysdiag"
    script.write_text("from nsysdiag.entry import main\nmain()\n")
    return script


def ran(script: Path, cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """One command, with the code that is tested."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ROOT, **environment},
        capture_output=True,
        check=False,
    )
