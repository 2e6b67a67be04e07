"""Bytes as short text, as records hold them: compressed by zlib, in base64."""

from __future__ import annotations

import base64
import json
import zlib

MOST_EXPANSION = 1032 * 3 // 4 + 1
"""Bytes that one character of text can stand for: zlib expands by 1032 at most (its technical details say so), and
base64 spends four characters on three bytes."""


def to_text(data: bytes, effort: int) -> str:
    """`effort` is that of zlib, from 1 for fast to 9 for small."""
    return base64.b64encode(zlib.compress(data, effort)).decode("ascii")


def from_text(text: str, most: int) -> bytes:
    """The bytes back. Never unpacks more than `most` + 1 bytes, which the caller knows from the count beside the text.

    Raises ValueError where the text is damaged or holds more than `most` bytes."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), max(most, 0) + 1)
    except zlib.error as error:
        if "Error -4" in str(error):  # Z_MEM_ERROR
            raise MemoryError from error
        raise ValueError("not compressed by zlib") from error
    if not reader.eof or len(data) > most:
        raise ValueError("cut short, or too much")
    return data


def names_from(text: str, most: int) -> list[str]:
    """A packed JSON list of texts of at most `most` bytes; of none, none. Raises ValueError where it is anything
    else."""
    try:
        names = json.loads(from_text(text, most)) if text else []
    except RecursionError as error:
        raise ValueError("nested without end") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of texts")
    return names
