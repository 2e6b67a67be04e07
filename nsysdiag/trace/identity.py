"""What tells one file from another without reading all of it: its size, its time of change and its ends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash
    from pathlib import Path

_MIB = 1 << 20


def add_ends(digest: _Hash, path: Path, size: int) -> None:
    """Add the first and the last MiB of the first `size` bytes of a file. Raises OSError."""
    with path.open("rb") as stream:
        digest.update(stream.read(_MIB))
        stream.seek(max(size - _MIB, 0))
        digest.update(stream.read(_MIB))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a whole file, as hex digits. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def has_changed(path: Path, size: int, modified_ns: int) -> bool:
    """Whether a file has another size or time of change than it had, or is gone."""
    try:
        now = path.stat()
    except OSError:
        return True
    return (now.st_size, now.st_mtime_ns) != (size, modified_ns)
