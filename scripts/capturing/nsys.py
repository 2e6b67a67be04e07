"""The real nsys: profile a program, make a report of what came, export that."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from programs import ALL_CALLS, Program

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
PROFILE_S, EXPORT_S = 120, 300
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Threads of libraries would compute beside the ones that a program is about."""
COMMON = ("--sample=process-tree", "--cpuctxsw=process-tree", ALL_CALLS)


class NsysError(Exception):
    """nsys or the program under it failed, or nothing came of it."""


class Nsys:
    """One nsys, and the Python that runs the programs. A capture NAME is three files of a folder: NAME.nsys-rep or
    NAME.qdstrm, NAME.log of the program's own, NAME.facts.json with the options and versions."""

    def __init__(self, program: str, python: str) -> None:
        self.program, self._python = program, python

    def profile(self, program: Program, folder: Path, *, gpu: bool) -> None:
        """Run a program under nsys."""
        trace = ["-t", "cuda,osrt,nvtx", "--cuda-graph-trace=node"] if gpu else ["-t", "osrt,nvtx"]
        options = [*trace, *COMMON, *program.options]
        log = self.log(folder, program.name)
        # What an earlier run left must not be taken for what this one makes.
        for stale in (log, *(self._captured(folder, program.name, suffix) for suffix in ("nsys-rep", "qdstrm"))):
            stale.unlink(missing_ok=True)
        command = [str(WORKLOADS / f"{program.name}.py"), str(log)]
        output = ["--force-overwrite=true", "-o", str(folder / program.name)]
        self._run(["profile", *options, *output, self._python, *command], PROFILE_S)
        if not any(self._captured(folder, program.name, suffix).exists() for suffix in ("nsys-rep", "qdstrm")):
            raise NsysError("neither a report nor a stream came")
        facts = {"program": program.name, "options": " ".join(options), "python": platform.python_version()}
        self._facts(folder, program.name).write_text(json.dumps(facts))

    def require_gpu(self) -> None:
        """Without one the programs would reckon with a device of their own. Raises NsysError where there is none."""
        check = "import torch; torch.cuda.init()"
        try:
            self._execute([self._python, "-c", check], PROFILE_S)
        except NsysError as error:
            raise NsysError(f"{self._python} has no PyTorch that finds a GPU: {error}") from error

    def export(self, folder: Path, name: str) -> Path:
        """The SQLite export of a capture, made from its stream where there is no report."""
        report = self._captured(folder, name, "nsys-rep")
        if not report.exists():
            stream = self._captured(folder, name, "qdstrm")
            self._execute([str(self.importer()), "-i", str(stream), "-o", str(report)], EXPORT_S)
        target = self._captured(folder, name, "sqlite")
        target.unlink(missing_ok=True)
        self._run(["export", "--type", "sqlite", "--output", str(target), str(report)], EXPORT_S)
        return target

    def log(self, folder: Path, name: str) -> Path:
        """What the program itself wrote."""
        return self._captured(folder, name, "log")

    def facts(self, folder: Path, name: str) -> dict[str, Any]:
        """The program's name, the options of nsys and the version of Python."""
        found: dict[str, Any] = json.loads(self._facts(folder, name).read_text())
        return found

    def _facts(self, folder: Path, name: str) -> Path:
        return self._captured(folder, name, "facts.json")

    @staticmethod
    def _captured(folder: Path, name: str, suffix: str) -> Path:
        return folder / f"{name}.{suffix}"

    def importer(self) -> Path:
        """The program beside nsys that makes a report of a stream; nsys may be a link or a script that starts it."""
        place = Path(self.program).resolve()
        named = (
            re.findall(r'"([^"$]*/nsys)"', place.read_text(errors="ignore")) if place.stat().st_size < 10_000 else []
        )
        for start in [place, *map(Path, named)]:
            for folder in start.parents[:3]:
                if (found := folder / "host-linux-x64" / "QdstrmImporter").exists():
                    return found
        raise NsysError(f"no QdstrmImporter beside {place}")

    def _run(self, arguments: list[str], limit: int) -> None:
        self._execute([self.program, *arguments], limit)

    @staticmethod
    def _execute(command: list[str], limit: int) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, env=os.environ | ENVIRONMENT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NsysError(str(error)) from error
        if done.returncode:
            raise NsysError((done.stderr or done.stdout).strip()[-2_000:] or f"exit code {done.returncode}")
