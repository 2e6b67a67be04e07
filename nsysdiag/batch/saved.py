"""Knows a saved report of one trace among the JSON files of a folder, some of which are large and none of ours."""

from __future__ import annotations

import errno
import mmap
from pathlib import Path

import msgspec

from nsysdiag.limits import SAVED_BYTES
from nsysdiag.record import UNREADABLE

MARK = b'"nsysdiag"'
START_BYTES = 64


class _Tool(msgspec.Struct):
    name: str


class _Head(msgspec.Struct):
    """What tells a report of one trace from those of ranks, comparisons and batches, which have a kind."""

    schema_version: str
    tool: _Tool
    trace: dict[str, msgspec.Raw]
    kind: str | None = None


def is_report_of_a_trace(path: Path) -> bool:
    """Whether the file is a report of ours of one trace, of whatever version. Raises OSError where it cannot be read;
    a pipe is not opened, for that could block."""
    if not path.is_file() or not starts_like_json(path):
        return False
    if path.stat().st_size > SAVED_BYTES:
        raise OSError(errno.EFBIG, "it is larger than any saved report")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(MARK) < 0:
            return False
    return _is_ours(path.read_bytes())


def starts_like_json(path: Path) -> bool:
    """Whether an ordinary file begins with an object. Raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return file.read(START_BYTES).lstrip().startswith(b"{")


def _is_ours(data: bytes) -> bool:
    try:
        head = msgspec.json.decode(data, type=_Head)
    except UNREADABLE:
        return False
    return head.tool.name == "nsysdiag" and head.kind is None
