"""The zip itself: the same bytes for the same contents, and a mark by which a later run recognizes its own file."""

from __future__ import annotations

import io
import shutil
import stat
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from nsysdiag.epoch import source_date_epoch

MARKER = b"nsysdiag bundle"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""
_READABLE = stat.S_IFREG | 0o644
_UNIX = 3


def packed(contents: Mapping[str, bytes | Path]) -> bytes:
    """A zip of named contents, or files, in the order of their names, all with the time SOURCE_DATE_EPOCH, or
    1980-01-01 if that is not set."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = MARKER
        for name in sorted(contents):
            _add(archive, name, contents[name])
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> None:
    known = time.gmtime(source_date_epoch() or 0)
    # A zip counts in steps of two seconds, up to 2107.
    date = (*known[:5], known.tm_sec // 2 * 2) if EARLIEST[0] <= known.tm_year <= 2107 else EARLIEST
    info = zipfile.ZipInfo(name, date)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _READABLE << 16
    if isinstance(content, bytes):
        archive.writestr(info, content)
        return
    info.file_size = content.stat().st_size  # so that a very large one gets the longer header
    with content.open("rb") as source, archive.open(info, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def is_ours(data: bytes) -> bool:
    """Does the zip carry our mark?"""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.comment == MARKER
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return False
