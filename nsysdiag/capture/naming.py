"""What the report of a recording is called, and how it gets a name that nothing else has."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nsysdiag.capture.plan import is_interpreter
from nsysdiag.messages import OutputError, UsageError, printable

_UNFIT = re.compile(r"[^\w.+-]+")


def name_of(words: Sequence[str]) -> str:
    """A name for what is recorded: `train` for `python train.py` and `python -m train`, else that of the program."""
    name = next((Path(word).stem for word in words if word.endswith(".py")), "")
    if not name and is_interpreter(words[0]) and "-m" in words[1:-1]:
        name = words[words.index("-m") + 1]
    return _UNFIT.sub("-", name or Path(words[0]).name).strip(".-") or "program"


# Ranks of one job record side by side, in one folder.

RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Where launchers say the rank of a process and how many there are, the innermost launcher first: torchrun, Open MPI,
MPICH and its kin, srun."""


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank of this process, if it is one of several."""
    for rank, size in RANKS:
        number, count = environment.get(rank, ""), environment.get(size, "")
        if number.isdecimal() and count.isdecimal() and int(count) > 1:
            return int(number)
    return None


def with_rank(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The name, as `train.rank3` for a rank."""
    rank = rank_of(environment)
    return name if rank is None else f"{name}.rank{rank}"


_PATTERN = re.compile(r"%(?:q\{(\w+)\}|([hp%]))")


def filled_in(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """A name with the patterns of nsys filled in: `%q{NAME}` a variable of the environment, `%h` the host, `%p` this
    process and `%%` a percent sign. Raises UsageError if a variable is not set."""

    def value(found: re.Match[str]) -> str:
        variable, letter = found.groups()
        if letter is not None:
            return {"h": socket.gethostname(), "p": str(os.getpid()), "%": "%"}[letter]
        if variable not in environment:
            raise UsageError(f"'{printable(name)}': the environment has no {variable}")
        return environment[variable]

    return _PATTERN.sub(value, name)


SUFFIX, STREAM = ".nsys-rep", ".qdstrm"
"""A report, and what nsys leaves where it has no importer that makes one."""


def free_stem(name: str, suffixes: tuple[str, ...]) -> str:
    """The name, or with the first number behind it, as `train-2`, that no file here has with any of the suffixes."""
    stems = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(stem for stem in stems if not any(os.path.lexists(stem + suffix) for suffix in suffixes))


def beside(path: Path) -> Path:
    """Where nsys writes first: in the same folder, under a name unique to this process."""
    return path.absolute().with_name(f".nsysdiag-{secrets.token_hex(8)}{SUFFIX}")


def keep(written: Path, path: Path, *, force: bool) -> Path:
    """Rename a file atomically, and return its name: without `force` the next free one, if another process has taken it
    since. On failure raises OutputError, which names the file's current path."""
    suffix = path.suffix
    try:
        while not force:
            with suppress(FileExistsError):
                _link(written, path)
                return path
            path = Path(free_stem(str(path).removesuffix(suffix), (suffix,)) + suffix)
        return written.replace(path)
    except OSError as error:
        message = f"cannot write {printable(path)}: {error.strerror}"
        raise OutputError(message, hint=f"the report is in {printable(written)}") from error


def _link(written: Path, path: Path) -> None:
    """A hard link fails if the name is taken; on a file system without links, the name is only checked."""
    try:
        path.hardlink_to(written)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        written.rename(path)
    else:
        written.unlink()
