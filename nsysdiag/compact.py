"""Bytes as short text, as records hold them: compressed by zlib, in base64."""

from __future__ import annotations

import base64
import zlib


def to_text(data: bytes, effort: int) -> str:
    """`effort` is that of zlib, from 1 for fast to 9 for small."""
    return base64.b64encode(zlib.compress(data, effort)).decode("ascii")


def from_text(text: str, most: int = 0) -> bytes:
    """The bytes back. Raises ValueError where they are damaged, or more than `most` (0: any number)."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), most)
    except zlib.error as error:
        raise ValueError("not compressed by zlib") from error
    if not reader.eof:
        raise ValueError("cut short, or too much")
    return data
