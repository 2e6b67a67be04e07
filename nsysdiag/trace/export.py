"""Exporting an nsys report to SQLite with the nsys program, where there is one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from nsysdiag.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def export_report(report: Path, folder: Path, timeout_s: float) -> Path:
    """Export a .nsys-rep into `folder`, which is the caller's to remove. Raises InputError with the command to run."""
    program = shutil.which("nsys")
    if program is None:
        raise InputError(
            f"'{report}' is an Nsight Systems report, and there is no `nsys` on the PATH to export it",
            hint=_command(report),
        )
    target = folder / "trace.sqlite"
    # A private copy of the name keeps nsys from taking a leading dash for an option.
    command = [program, "export", "--type", "sqlite", "--output", str(target), str(report.absolute())]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        message = f"exporting '{report}' took longer than {timeout_s:g} s and was stopped"
        raise InputError(message, hint=_command(report)) from error
    except OSError as error:
        raise InputError(f"'{program}' cannot be run: {error.strerror}", hint=_command(report)) from error
    if done.returncode != 0 or not target.is_file():
        message = f"`nsys export` could not export '{report}' (exit code {done.returncode})"
        raise InputError(message, hint=_command(report))
    return target


def _command(report: Path) -> str:
    output = report.with_suffix(".sqlite")
    return f"nsys export --type sqlite --output {shlex.quote(str(output))} {shlex.quote(str(report))}"
