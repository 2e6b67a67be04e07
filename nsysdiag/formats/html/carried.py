"""Bytes as text embedded in a page: five letters for four bytes, a sixteenth less than base64.

Columns of bytes are one block, so that one pass unpacks them all. The letters are those of base85 in RFC 1924, with
three replaced that are special in HTML. So the text needs no escapes in a script element, in JSON or in an attribute.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np

from nsysdiag.arrays.codes import from_text
from nsysdiag.errors import InputError

_LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%/()*+-;,=.?@^_`{|}~"
_PLACES = 85 ** np.arange(4, -1, -1, dtype=np.uint32)
_BACK = bytes.maketrans(b",./", b"<>&")
_SMALLEST = 9
Place = tuple[int, int]
"""Where a column is in the block: offset and length in bytes."""


def to_carried(data: bytes) -> str:
    """The bytes as text. Python's own encoder takes a loop over the words, a fortieth of the whole command."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), dtype=">u4").astype(np.uint32)
    letters = np.frombuffer(_LETTERS, dtype=np.uint8)[words[:, np.newaxis] // _PLACES % 85]
    return str(letters.tobytes()[: letters.size - missing], "ascii")


def from_carried(text: str) -> bytes:
    """The bytes back. Raises ValueError for any other text."""
    return base64.b85decode(text.encode("ascii").translate(_BACK))


def compressed(data: bytes) -> str:
    """The bytes as text, compressed first."""
    return to_carried(zlib.compress(data, _SMALLEST))


class Blob:
    """A block that grows by columns."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> Place:
        """Append a column; returns its position."""
        place = (self._size, len(data))
        self._parts.append(data)
        self._size += len(data)
        return place

    def add_packed(self, text: str, most: int) -> Place:
        """Append a column that the report holds packed, of at most so many bytes. Raises InputError where it cannot be
        unpacked."""
        return self.add(unpacked(text, most))

    def text(self) -> str:
        """The whole block: compressed, as text."""
        return compressed(b"".join(self._parts))


def unpacked(text: str, most: int) -> bytes:
    """The bytes of a packed column; of none, none. Raises InputError where the report is damaged, or they are more than
    `most`."""
    if not text:
        return b""
    try:
        return from_text(text, most)
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error
