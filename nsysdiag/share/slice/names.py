"""Names fit to be handed on: of a path its last part, and the folder that says whose code it is."""

from __future__ import annotations

import re

from nsysdiag.share.slice.uses import Use
from nsysdiag.trace.diagnostics import without_private_parts

_PATH = re.compile(r"/|[A-Za-z]:[\\/]|\\\\|~[\\/]|\.{1,2}[\\/]")
_SEPARATOR = re.compile(r"[\\/]")
_TELLING = (
    (re.compile(r".*[\\/]((?:site|dist)-packages|lib-dynload)[\\/]"), r"/\1/"),
    (re.compile(r".*[\\/]lib(?:64)?[\\/](python\d[\d.]*)[\\/]"), r"/lib/\1/"),
    (re.compile(r"(?:/usr)?/lib(?:32|64)?/"), "/lib/"),
)
"""Folders by which code of libraries is told from the program's own, and what of them is kept."""


def without_folders(use: Use, text: str) -> str:
    """A name as it is written where names stay."""
    if use is Use.STRING:
        return short_path(text)
    if use in (Use.PROCESS, Use.FILE):
        return base_name(text)
    return without_private_parts(text) if use is Use.MESSAGE else text


def short_path(text: str) -> str:
    """A path as its last part, `/home/ann/run/train.py` as `train.py`; below a folder of installed libraries with that
    folder, `/usr/lib/x86_64-linux-gnu/libz.so` as `/lib/libz.so`. Anything that is no path stays as it is."""
    if not _PATH.match(text):
        return text
    last = _SEPARATOR.split(text)[-1]
    for folder, kept in _TELLING:
        if match := folder.match(text):
            return match.expand(kept) + last
    return last


def base_name(text: str) -> str:
    """The last part of a path of any system."""
    return _SEPARATOR.split(text)[-1]
