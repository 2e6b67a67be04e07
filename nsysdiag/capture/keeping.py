"""Where the report of a recording is kept: under a name that nothing else has."""

from __future__ import annotations

import itertools
import os
import secrets
from contextlib import suppress
from pathlib import Path

from nsysdiag.errors import OutputError, printable

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
