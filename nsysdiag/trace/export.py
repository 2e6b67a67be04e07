"""Exports an nsys report with the nsys program, where there is one: to Parquet files, or to SQLite."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nsysdiag.messages import InputError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.trace.format import Conversion


def exported(report: Path, how: Conversion, is_whole: Callable[[Path], bool]) -> Path:
    """The export of a .nsys-rep: an SQLite file, or with PyArrow and an nsys that knows them a folder of Parquet files.
    A report of 50 MB took 4.1 s, and 1.4 s more to read its four largest tables from SQLite; from Parquet files 2.7 s
    and 0.6 s.

    `is_whole` says whether a folder is an export. Raises InputError, with the command as a hint, if nsys is missing,
    fails, or takes too long.
    """
    program, folder, timeout_s = how.nsys or nsys_on_path(), how.folder, how.timeout_s
    shown = f"'{printable(report)}'"
    if program is None:
        message = f"{shown} is an Nsight Systems report, and there is no `nsys` on the PATH to export it"
        raise InputError(message, hint=_command(report))
    target, tables = folder / "trace.sqlite", folder / "trace_pqtdir"

    def export(kind: str, target: Path) -> int:
        command = [program, "export", "--type", kind, *blobs, "--output", str(target), str(report.absolute())]
        return _run(command, folder, timeout_s)

    try:
        # Stacks of Python and what NCCL says of its calls are blobs.
        blobs = ["--include-blobs=true"] if _exports_blobs(program, folder, timeout_s) else []
        # An nsys that does not know this type fails, and is asked for the other.
        if find_spec("pyarrow") and export("parquetdir", tables) == 0 and is_whole(tables):
            return tables
        status = export("sqlite", target)
    except subprocess.TimeoutExpired as error:
        message = f"exporting {shown} took longer than {timeout_s:g} s and was stopped"
        raise InputError(message, hint=_command(report)) from error
    except OSError as error:
        raise InputError(f"'{printable(program)}' cannot be run: {error}", hint=_command(report)) from error
    if status != 0 or not target.is_file():
        message = f"`nsys export` could not export {shown} (exit code {status})"
        raise InputError(message, hint=_command(report))
    return target


def nsys_on_path() -> str | None:
    """The program nsys, never of the current folder: an empty or relative entry of the PATH means that one, and Windows
    looks there first."""
    folders = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).is_absolute()]
    program = shutil.which("nsys", path=os.pathsep.join(folders))
    return program if program and Path(program).is_absolute() else None


def _exports_blobs(program: str, folder: Path, timeout_s: float) -> bool:
    """Whether this version can, by its help."""
    said = folder / "help.txt"
    with said.open("wb") as file:
        _run([program, "export", "--help"], folder, timeout_s, file)
    return b"--include-blobs" in said.read_bytes()


def _run(command: list[str], folder: Path, timeout_s: float, output: BinaryIO | int = subprocess.DEVNULL) -> int:
    """The exit code. Whatever ends the wait early ends the program's helpers too: they share its session."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1"},  # a Python in it imports nothing from its current folder
        stdin=subprocess.DEVNULL,
        stdout=output,
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
