"""Finds and loads the page templates and the files embedded in a page: styles and scripts."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import from_text
from nsysdiag.messages import InputError, NsysdiagError

# Bytes as text embedded in a page: five letters for four bytes, a sixteenth less than base64.
#
# Columns of bytes are one block, so that one pass unpacks them all. The letters are those of base85 in RFC 1924, with
# three replaced that are special in HTML. So the text needs no escapes in a script element, in JSON or in an attribute.

_LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%/()*+-;,=.?@^_`{|}~"
_PLACES = 85 ** np.arange(4, -1, -1, dtype=np.uint32)
_SMALLEST = 9
Place = tuple[int, int]
"""Where a column is in the block: offset and length in bytes."""


def to_carried(data: bytes) -> str:
    """The bytes as text. Python's own encoder takes a loop over the words, a fortieth of the whole command."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), dtype=">u4").astype(np.uint32)
    letters = np.frombuffer(_LETTERS, dtype=np.uint8)[words[:, np.newaxis] // _PLACES % 85]
    return str(letters.tobytes()[: letters.size - missing], "ascii")


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
        """Append a column that the report holds packed, of at most so many bytes. Raises InputError if it cannot be
        unpacked."""
        return self.add(unpacked(text, most))

    def text(self) -> str:
        """The whole block: compressed, as text."""
        return compressed(b"".join(self._parts))


def unpacked(text: str, most: int) -> bytes:
    """The bytes of a packed column; of none, none. Raises InputError if the report is damaged, or they are more than
    `most`."""
    if not text:
        return b""
    try:
        return from_text(text, most)
    except ValueError as error:
        raise InputError("the timeline of this report cannot be read: the file is damaged") from error


PAGE_STYLES = ("app", "tables", "print")
PAGE_SCRIPTS = ("address", "clipboard", "unpack", "app")
"""The scripts of every page, each after those that it uses; what they name, all later scripts may use."""
TABLE_SCRIPTS = ("cells", "order", "choose", "export", "rows", "tools", "sheet", "findings", "scroll", "main")
"""The scripts of the tables, in the same way."""
TIMELINE_SCRIPTS = (
    *("decode", "rows", "device", "scale", "layout", "selection"),
    *("theme", "brush", "gaps", "lanes", "overlay", "arrows", "minimap", "canvas", "stage"),
    *("pick", "facts", "sums", "gapwords", "slicewords", "card", "tip"),
    *("words", "search", "link", "pointer", "input", "actions", "main"),
)
"""The scripts of the timeline, each after those that it uses."""
STEPS_SCRIPTS = (
    *(f"timeline/{name}" for name in ("decode", "rows", "scale", "theme", "brush", "overlay", "canvas", "tip")),
    *("timeline/pointer", "timeline/input"),
    *(f"steps/{name}" for name in ("read", "lanes", "words", "main")),
)
"""Those of the steps of a comparison, which use some of the timeline's."""
PACKAGE = Path(__file__).resolve().parents[2]
_COMMENTS = re.compile(r"^[ \t]*(?://[^\n]*|/\*.*?\*/[ \t]*)$", re.MULTILINE | re.DOTALL)
BLANKS = re.compile(r"\n\s+")
_STYLE_COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)
_AROUND = re.compile(r"\s*([{};,>])\s*")
"""What blanks in a style sheet mean nothing next to; no text in quotes holds it."""


class PackedScript(Struct, frozen=True):
    """A script as it runs, and the same compressed, as text."""

    source: str
    packed: str


@cache
def templates_folder() -> Path:
    """The checkout's `templates` next to the package if there is one, else the copy inside the package.

    The checkout has priority, as an editable install leaves an outdated copy in the package.
    """
    checkout = PACKAGE.parent / "templates"
    if checkout.is_dir() and _is_our_project(PACKAGE.parent / "pyproject.toml"):
        return checkout
    inside = PACKAGE / "templates"
    if inside.is_dir():
        return inside
    raise NsysdiagError("the page templates are missing", hint="install nsysdiag again")


def _is_our_project(file: Path) -> bool:
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(project.get("project", {}).get("name") == "nsysdiag")


def asset(name: str) -> str:
    """The text of a file of templates/assets, fit to stand inside a style or script element."""
    text = (templates_folder() / "assets" / name).read_text(encoding="utf-8")
    if "</" in text or "<!--" in text:
        raise NsysdiagError(f"the asset {name} would end the element that holds it")
    return text


def assembled(folder: str, names: tuple[str, ...]) -> str:
    """Scripts of one folder of templates/assets as one, in this order, in a scope of their own."""
    scripts = "\n".join(asset(f"{folder}/{name}.js") for name in names)
    return f'(function () {{\n"use strict";\n{scripts}}})();\n'


def lean(script: str) -> str:
    """A script without indentation, empty lines, and lines that are comment alone. No text of it goes over lines."""
    return BLANKS.sub("\n", _COMMENTS.sub("", script)).lstrip()


@cache
def timeline_script() -> PackedScript:
    """The script of the timeline, which needs what unpacks it anyway."""
    source = lean(assembled("timeline", TIMELINE_SCRIPTS))
    return PackedScript(source, compressed(source.encode()))


@cache
def steps_script() -> PackedScript:
    """The script that draws the steps of a comparison."""
    source = lean(assembled(".", STEPS_SCRIPTS))
    return PackedScript(source, compressed(source.encode()))


@cache
def page_style(*more: str) -> str:
    """The style of every page, and `more` sheets after it, without the blanks and comments that mean nothing."""
    sheets = "".join(asset(f"{name}.css") for name in (*PAGE_STYLES, *more))
    return _AROUND.sub(r"\1", BLANKS.sub("\n", _STYLE_COMMENTS.sub("", sheets))).replace(": ", ":")


@cache
def page_script() -> str:
    """The script of every page, which runs once its elements are there."""
    return lean("\n".join(asset(f"{name}.js") for name in PAGE_SCRIPTS) + assembled("tables", TABLE_SCRIPTS))


@cache
def content_hash(text: str) -> str:
    """The hash by which a content security policy allows an inline style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
