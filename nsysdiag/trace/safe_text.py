"""Foreign text made fit to be shown: no control characters, no paths, no settings."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w.)])(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}/)[^\s'\"<>|:;,]*")
_SETTING = re.compile(r"\b([A-Z_][A-Z0-9_]{2,})=\S+")


def printable(text: object) -> str:
    """The text with everything that does not print (newlines, escapes, lone surrogates) as backslash
    escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in str(text)
    )


def without_private_parts(text: str) -> str:
    """One line without paths and without the values of environment variables."""
    text = _PATH.sub("<path>", " ".join(text.split()))
    return printable(_SETTING.sub(r"\1=<value>", text))
