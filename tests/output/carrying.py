"""The bytes that a page carries as text, unpacked as its script does."""

from __future__ import annotations

import base64

_BACK = bytes.maketrans(b",./", b"<>&")


def from_carried(text: str) -> bytes:
    """The bytes back. Raises ValueError for any other text."""
    return base64.b85decode(text.encode("ascii").translate(_BACK))
