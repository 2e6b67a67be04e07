"""Foreign text made fit to be shown: no control characters, no paths, no settings."""

from __future__ import annotations

import re

from nsysdiag.printable import printable

_PATH = re.compile(r"(?<![\w.)])(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}/)[^\s'\"<>|:;,]*")
_SETTING = re.compile(r"\b([A-Z_][A-Z0-9_]{2,})=\S+")


def without_private_parts(text: str) -> str:
    """One line without paths and without the values of environment variables."""
    text = _PATH.sub("<path>", " ".join(text.split()))
    return printable(_SETTING.sub(r"\1=<value>", text))
