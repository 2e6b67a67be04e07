"""Whether a file is a trace of the PyTorch profiler, by how it begins."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 1 << 20
MARK = "NSYSDIAG_PROFILER"
"""The row of META_DATA_EXPORT by which tables say that they were made of such a trace."""
_KEY = re.compile(
    rb'\s*\{\s*"(traceEvents|schemaVersion|deviceProperties|distributedInfo|traceName|displayTimeUnit|baseTimeNano'
    rb'seconds|cupti_version|with_flops|with_stack|with_modules|record_shapes|profile_memory|trace_id)"'
)
"""The keys that such a file may begin with; a saved report of ours has none of them."""


def is_profiler_trace(path: Path) -> bool:
    """Whether the file is JSON of the profiler, packed by gzip or not. A pipe is none: to read it could wait for ever.
    Raises OSError."""
    if not path.is_file():
        return False
    head = _head(path)
    return bool(_KEY.match(head)) and (b'"traceEvents"' in head or b'"schemaVersion"' in head)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""
