"""Folders for files of this process alone, and the removal of those that a killed process left behind.

```
TMPDIR/nsysdiag-k3x_91ab/         mode 0700
TMPDIR/nsysdiag-k3x_91ab/.lock    locked by flock for as long as the process uses the folder
```

The system releases the lock when the process ends, however it ends, so a folder whose lock is free is stale. Numbers of
processes play no part: they are given out again.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from nsysdiag.signals import undisturbed

if sys.platform != "win32":
    import fcntl

PREFIX, LOCK = "nsysdiag-", ".lock"
_NAME = re.compile(r"nsysdiag-[a-z0-9_]{8}")
"""The pattern of names that `tempfile` makes with the prefix."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder in the temporary folder, empty but for its lock, for as long as the context lasts. Stale folders of this
    kind are removed first. Raises OSError where it cannot be made."""
    _sweep(_temporary_folder())
    with ExitStack() as kept:
        yield _made(kept)


@undisturbed
def _temporary_folder() -> Path:
    """Python writes a file into it to try it out, which an exception at that moment would leave there."""
    return Path(tempfile.gettempdir())


@undisturbed
def _made(kept: ExitStack) -> Path:
    made = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    folder = Path(made.name)
    kept.callback(_remove, made, _locked(folder))
    return folder


@undisturbed
def _remove(made: tempfile.TemporaryDirectory[str], lock: int | None) -> None:
    with suppress(OSError):  # the folder may be gone: systems clean up temporary files
        _empty(Path(made.name))
    made.cleanup()
    if lock is not None:
        os.close(lock)


def _empty(folder: Path) -> None:
    """Remove all but the lock, which goes last: what a process leaves that is killed meanwhile can still be swept."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        elif each.name != LOCK:
            with suppress(OSError):
                each.unlink()


def _locked(folder: Path) -> int | None:
    """The descriptor that holds the lock; None on a file system or a platform without flock, where the folder has no
    lock file and is never swept. The file gets its name once it is locked: another process never sees a free one."""
    if sys.platform == "win32":
        return None
    new = folder / f"{LOCK}.new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(folder / LOCK)
    except OSError:
        os.close(lock)
        return None
    return lock


def _sweep(parent: Path) -> None:
    """Remove the stale folders. What cannot be looked at or removed stays."""
    if sys.platform == "win32" or not shutil.rmtree.avoids_symlink_attacks:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for name in [entry.name for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_stale(parent / name)


def _remove_stale(folder: Path) -> None:
    """Remove the folder if it is one of ours, is not a link, and its lock is free. Raises OSError if it is not."""
    status = folder.lstat()
    if sys.platform == "win32" or not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), (folder / LOCK).lstat()):  # else another process removed it meanwhile
            _empty(folder)
            shutil.rmtree(folder)
    finally:
        os.close(lock)
