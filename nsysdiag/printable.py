"""Text from outside made fit to be shown: what does not print as itself is written out, so that it cannot act."""

from __future__ import annotations


def printable(value: object) -> str:
    """The text of `value`; controls, line ends, bidirectional marks and lone surrogates as backslash escapes."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
