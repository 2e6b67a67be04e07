"""Bytes as short text, as records hold them: compressed by zlib, in base64."""

from __future__ import annotations

import base64
import zlib

MOST_BYTES = 1 << 30
"""What a text may hold once unpacked: a damaged or hostile one could ask for a thousand times its length."""


def to_text(data: bytes, effort: int) -> str:
    """`effort` is that of zlib, from 1 for fast to 9 for small."""
    return base64.b64encode(zlib.compress(data, effort)).decode("ascii")


def from_text(text: str, most: int = MOST_BYTES) -> bytes:
    """The bytes back. Raises ValueError where they are damaged, or more than `most`."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), most)
    except zlib.error as error:
        raise ValueError("not compressed by zlib") from error
    if not reader.eof:
        raise ValueError("cut short, or too much")
    return data
