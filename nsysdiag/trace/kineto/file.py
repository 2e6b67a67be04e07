"""Whether a file is a trace of the PyTorch profiler: JSON with `traceEvents`, wherever they are, or bare events."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 1 << 20
SEARCHED_BYTES = 1 << 24
"""What may come before the events, such as what another program wrote about the run."""
MARK = "NSYSDIAG_PROFILER"
"""The row of META_DATA_EXPORT by which tables say that they were made of such a trace; its value is OF_ROCM if with
ROCm."""
OF_ROCM = "2"
RECORDER = "NSYSDIAG_RECORDER"
"""The row that says who wrote the trace."""
_FIRST = re.compile(rb'\s*\{\s*"schemaVersion"')
"""How the profiler itself begins."""
_KEY, _PHASE = re.compile(rb'"traceEvents"\s*:'), re.compile(rb'"ph"\s*:\s*"')
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def is_kineto_trace(path: Path) -> bool:
    """Whether the file is JSON of the profiler, packed by gzip or not. A pipe is none: to read it could wait for ever.
    Raises OSError."""
    if not path.is_file():
        return False
    head = json_of(path, HEAD_BYTES)
    if not head or _FIRST.match(head) or _has_events(head):
        return bool(head)
    return len(head) == HEAD_BYTES and _has_events(json_of(path, SEARCHED_BYTES))


def json_of(path: Path, most: int) -> bytes:
    """The first `most` bytes of JSON, packed by gzip or not; none of another file. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(most)
    if data.startswith(GZIP_MAGIC):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, most)
        except zlib.error:
            return b""
    return data if data[:HEAD_BYTES].lstrip()[:1] in (b"{", b"[") else b""


def _has_events(data: bytes) -> bool:
    """Whether a key of the whole object is `traceEvents`, or elements of an array of objects have a phase."""
    key, wanted = (_KEY, 1) if data.lstrip()[:1] == b"{" else (_PHASE, 2)
    at = level = 0
    for found in key.finditer(data):
        level += _opened(data[at : found.start()])
        if level == wanted:
            return True
        at = found.start()
    return False


def _opened(data: bytes) -> int:
    """How many more brackets are open at the end than at the beginning."""
    left = _STRING.sub(b"", data)
    return sum(left.count(each) for each in (b"{", b"[")) - sum(left.count(each) for each in (b"}", b"]"))
