"""Canaries in what is written: in the bytes themselves, and in all that is packed or encoded in them."""

from __future__ import annotations

import base64
import gzip
import html
import io
import re
import urllib.parse
import zipfile
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CANARY = re.compile(rb"zq[a-z]{4}vk", re.IGNORECASE)
_PACKED = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_DEEPEST = 3


def found(data: bytes) -> set[bytes]:
    """The canaries in data, in small letters, however they are packed."""
    return {name.lower() for part in _unpacked(data, 0) for name in CANARY.findall(part)}


def around(data: bytes) -> list[str]:
    """What stands around the first ones, for whoever reads that the test failed."""
    pattern = re.compile(rb".{0,60}" + CANARY.pattern + rb".{0,60}", re.IGNORECASE | re.DOTALL)
    hits = (match[0].decode(errors="replace") for part in _unpacked(data, 0) for match in pattern.finditer(part))
    return [hit for hit, _ in zip(hits, range(12), strict=False)]


def _unpacked(data: bytes, depth: int) -> Iterator[bytes]:
    yield data
    yield from _decoded(data)
    if depth == _DEEPEST:
        return
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from _unpacked(archive.read(name), depth + 1)
    for packed in set(_PACKED.findall(data)):
        for raw in _from_base64(packed):
            yield from _unpacked(raw, _DEEPEST)
            for unpack in (zlib.decompress, gzip.decompress):
                with suppress(zlib.error, OSError, EOFError):
                    yield from _unpacked(unpack(raw), depth + 1)


def _from_base64(packed: bytes) -> Iterator[bytes]:
    with suppress(ValueError):
        yield base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
    if b"-" in packed or b"_" in packed:
        with suppress(ValueError):
            yield base64.urlsafe_b64decode(packed + b"=" * (-len(packed) % 4))


def _decoded(data: bytes) -> Iterator[bytes]:
    """The same text without the escapes of JSON, HTML, URLs, UTF-16 and hex."""
    if b"\\u" in data:
        yield _ESCAPE.sub(lambda code: chr(int(code[1], 16)).encode("utf-8", "replace"), data)
    if b"&#" in data:
        yield html.unescape(data.decode(errors="replace")).encode("utf-8", "replace")
    if b"%" in data:
        yield urllib.parse.unquote_to_bytes(data)
    if b"\0" in data:
        yield data.replace(b"\0", b"")
    for text in set(_HEX.findall(data)):
        yield bytes.fromhex(text.decode())
