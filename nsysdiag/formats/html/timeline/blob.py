"""Columns of bytes gathered into one block that a page carries as text, so that one pass unpacks them all."""

from __future__ import annotations

import zlib

from nsysdiag.arrays.codes import from_text
from nsysdiag.errors import InputError
from nsysdiag.formats.html.carried import to_carried

Place = tuple[int, int]
"""Where a column is in the block: offset and length in bytes."""
_SMALLEST = 9


class Blob:
    """A block that grows by columns."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> Place:
        """Append a column; where it lies."""
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
        return to_carried(zlib.compress(b"".join(self._parts), _SMALLEST))


def unpacked(text: str, most: int) -> bytes:
    """The bytes of a packed column; of none, none. Raises InputError where the report is damaged, or they are more than
    `most`."""
    if not text:
        return b""
    try:
        return from_text(text, most)
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error
