"""What the command line of a program says about it: a name for its reports, and what it is written in."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.errors import UsageError
from nsysdiag.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PYTHON = re.compile(r"python[\d.]*")
_UNFIT = re.compile(r"[^\w.+-]+")
MPI_LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun")
MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")
"""What Open MPI, MPICH and their kin set for each rank that they start."""


def require_program(words: Sequence[str]) -> None:
    """Raise UsageError if the first word is not an executable program."""
    program = words[0]
    if shutil.which(program):
        return
    shown = printable(program)
    if not Path(program).is_file():
        raise UsageError(f"there is no program '{shown}'", hint="name one of the PATH, or the path of a file")
    better = f"python {shown}" if program.endswith(".py") else f"chmod +x {shown}"
    hint = f"nsysdiag record -- {better}" if program.endswith(".py") else better
    raise UsageError(f"'{shown}' is a file that cannot be executed", hint=hint)


def name_of(words: Sequence[str]) -> str:
    """A name for what is recorded: `train` for `python train.py` and `python -m train`, else that of the program."""
    name = next((Path(word).stem for word in words if word.endswith(".py")), "")
    if not name and _is_interpreter(words[0]) and "-m" in words[1:-1]:
        name = words[words.index("-m") + 1]
    return _UNFIT.sub("-", name or Path(words[0]).name).strip(".-") or "program"


def is_python(words: Sequence[str]) -> bool:
    """Whether Python runs it: by a word of the command line, or by the first line of a script such as torchrun."""
    return any(_is_interpreter(word) or word.endswith(".py") for word in words) or _has_python_line(words[0])


def _is_interpreter(word: str) -> bool:
    return _PYTHON.fullmatch(Path(word).name) is not None


def _has_python_line(program: str) -> bool:
    try:
        with open(shutil.which(program) or program, "rb") as file:  # noqa: PTH123
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def uses_mpi(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> bool:
    """Whether it is a rank of MPI, or starts ranks."""
    return Path(words[0]).name in MPI_LAUNCHERS or any(name in environment for name in MPI_VARIABLES)
