"""The only place that writes result files: all of a file or none of it, and never over a file of others."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nsysdiag.document.names import visible
from nsysdiag.formats.format import FORMATS, format_for
from nsysdiag.messages import OutputError, UsageError

IsOurs = Callable[[bytes], bool]
"""Whether the content of a file carries our marker."""
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EFBIG: "the file is too large for the file system",
}


def check(path: Path, *, force: bool, is_ours: IsOurs | None = None) -> None:
    """Raise OutputError if `write` would refuse: no such folder, not a plain file, or not written by nsysdiag.
    `is_ours` judges the content of files other than reports."""
    if _kind(path.parent, follow=True) != stat.S_IFDIR:
        what = "is not a folder" if _kind(path.parent, follow=True) else "does not exist"
        raise OutputError(f"cannot write {_shown(path)}: the folder {_shown(path.parent)} {what}")
    kind = _kind(path, follow=False)
    if kind is None:
        return
    if kind == stat.S_IFDIR:
        raise OutputError(f"cannot write {_shown(path)}: it is a folder", hint="name a file in it")
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise OutputError(f"cannot write {_shown(path)}: it is not a plain file", hint="use '-o -' for stdout")
    if not force:
        _check_replaceable(path, kind, is_ours or partial(_is_ours, path))


def _kind(path: Path, *, follow: bool) -> int | None:
    """The file type bits of what is at `path`, None where nothing is."""
    try:
        return stat.S_IFMT(path.stat(follow_symlinks=follow).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _failure(path, error) from error


def _check_replaceable(path: Path, kind: int, is_ours: IsOurs) -> None:
    if kind == stat.S_IFLNK:
        raise OutputError(
            f"{_shown(path)} is a symbolic link, which is never followed",
            hint="--force replaces the link itself by a file; what it points to stays as it is",
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _failure(path, error) from error
    if not is_ours(data):
        raise OutputError(
            f"{_shown(path)} exists and was not written by nsysdiag",
            hint="choose another name, or overwrite it with --force",
        )


def _is_ours(path: Path, data: bytes) -> bool:
    try:
        return FORMATS[format_for(str(path))].is_ours(data)
    except UsageError:
        return any(known.is_ours(data) for known in FORMATS.values())


def write(path: Path, data: bytes, *, force: bool, is_ours: IsOurs | None = None) -> None:
    """Put `data` at `path` in one step: readers see the old file or the new one, never a part.

    A symbolic link is never followed; with `force` the link itself is replaced. Raises OutputError, with nothing
    left behind, where the target may not be overwritten or cannot be written.
    """
    check(path, force=force, is_ours=is_ours)
    temporary = path.with_name(f".nsysdiag-{secrets.token_hex(8)}.tmp")
    try:
        _write_new(temporary, data)
        temporary.replace(path)
    except OSError as error:
        raise _failure(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(path.parent)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:  # x is O_EXCL: whatever is there already, a link too, is left alone
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new name durable where the system can; the file is complete either way."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _failure(path: Path, error: Exception) -> OutputError:
    number = error.errno if isinstance(error, OSError) else None
    reason = _REASONS.get(number or 0) or (os.strerror(number) if number else str(error))
    return OutputError(f"cannot write {_shown(path)}: {reason}")


def _shown(path: Path) -> str:
    return visible(str(path))
