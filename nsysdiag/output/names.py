"""Text from a trace made safe to look at: names are data and may hold anything that a program can put in a string."""

from __future__ import annotations

NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def visible(text: str) -> str:
    """`text` with every character that does not print as itself written out: `\\x1b`, `\\u202e`, `\\n`.

    Terminal escapes, bidirectional controls, zero-width characters, line ends and lone surrogates cannot act any more.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    code = ord(character)
    if character in NAMED_ESCAPES:
        return NAMED_ESCAPES[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clip(text: str, limit: int) -> str:
    """`text` made visible and, where longer than `limit` characters, cut in the middle: both ends of a name tell."""
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    tail = (limit - 1) // 3
    return f"{shown[: limit - 1 - tail]}…{shown[len(shown) - tail :]}"
