"""Exporting an nsys report to SQLite with the nsys program, where there is one."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from nsysdiag.errors import InputError
from nsysdiag.printable import printable


def export_report(report: Path, folder: Path, timeout_s: float) -> Path:
    """Export a .nsys-rep into `folder`, which is the caller's to remove.

    Raises InputError, whose hint is the command to run, where there is no nsys, or it fails, or takes too
    long.
    """
    program = _found()
    shown = f"'{printable(report)}'"
    if program is None:
        message = f"{shown} is an Nsight Systems report, and there is no `nsys` on the PATH to export it"
        raise InputError(message, hint=_command(report))
    target = folder / "trace.sqlite"
    command = [program, "export", "--type", "sqlite", "--output", str(target), str(report.absolute())]
    try:
        status = _run(command, folder, timeout_s)
    except subprocess.TimeoutExpired as error:
        message = f"exporting {shown} took longer than {timeout_s:g} s and was stopped"
        raise InputError(message, hint=_command(report)) from error
    except OSError as error:
        raise InputError(f"'{printable(program)}' cannot be run: {error}", hint=_command(report)) from error
    if status != 0 or not target.is_file():
        message = f"`nsys export` could not export {shown} (exit code {status})"
        raise InputError(message, hint=_command(report))
    return target


def _found() -> str | None:
    """The program nsys, never of the current folder: an empty or relative entry of the PATH means that one, and Windows
    looks there first."""
    folders = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).is_absolute()]
    program = shutil.which("nsys", path=os.pathsep.join(folders))
    return program if program and Path(program).is_absolute() else None


def _run(command: list[str], folder: Path, timeout_s: float) -> int:
    """The exit code. Whatever ends the wait early ends the program's helpers too: they share its session."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1"},  # a Python in it imports nothing from its current folder
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=timeout_s)
    except BaseException:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        raise


def _command(report: Path) -> str:
    output, name = (shlex.quote(printable(path)) for path in (report.with_suffix(".sqlite"), report))
    return f"nsys export --type sqlite --output {output} {name}"
