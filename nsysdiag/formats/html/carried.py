"""Bytes as text that a page carries: five letters for four bytes, a sixteenth less than base64.

The letters are those of base85 in RFC 1924, but for three that mean something in HTML and for which others stand. So
the text may be in a script element, in JSON or in an attribute as it is.
"""

from __future__ import annotations

import base64

_LETTERS = bytes.maketrans(b"<>&", b",./")
_BACK = bytes.maketrans(b",./", b"<>&")


def to_carried(data: bytes) -> str:
    """The bytes as text."""
    return base64.b85encode(data).translate(_LETTERS).decode("ascii")


def from_carried(text: str) -> bytes:
    """The bytes back. Raises ValueError for any other text."""
    return base64.b85decode(text.encode("ascii").translate(_BACK))
