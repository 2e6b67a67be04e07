"""The English of the project: what its programs say, its docstrings, templates and pages, as sentences."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "nsysdiag"
TEMPLATES = ROOT / "templates"
GENERATED = {PACKAGE / "formats" / "html" / "compiled.py"}

_CODE = re.compile(r"```.*?```|<!--.*?-->|^=+ =+.*^=+ [= ]+$|^ {4}.*?$", re.DOTALL | re.MULTILINE)
"""Blocks of code and drawings, fenced or indented, and tables."""
_QUOTED = re.compile(r"``[^`]+``|`[^`\n]+(?:\n[^`\n]*)?`")
_BLANK = re.compile(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) ")
_END = re.compile(r"(?<=[.!?])[\"'”)*]*\s+(?=\S)")
_WORD = re.compile(r"\S*[A-Za-z0-9{]\S*")
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_SQL = re.compile(r"\s*\(?(SELECT|CREATE|INSERT|DELETE|WITH|PRAGMA|CASE|OR|AND|ORDER|ATTACH|DROP) ")
_ELEMENT = re.compile(r"<(script|style|code|pre|svg)\b.*?</\1>", re.DOTALL)
_JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}", re.DOTALL)
_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class Prose(NamedTuple):
    """A piece of English: where it is, and its text; a value that is put in is `{}`."""

    path: str
    line: int
    text: str


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules() -> list[Path]:
    """Every module of the package that somebody wrote."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path not in GENERATED)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, without drawings and blocks of code; a list has at least one for each item."""
    for paragraph in _BLANK.split(_CODE.sub("\n\n", text)):
        yield from filter(None, _END.split(" ".join(paragraph.split())))


def words(sentence: str) -> int:
    """How many words a sentence has; what is in backticks is one."""
    return len(_WORD.findall(_QUOTED.sub("x", sentence)))


def plain(text: str) -> str:
    """The text without names of code: no backticks with what they hold, no blocks."""
    return _QUOTED.sub("x", _CODE.sub(" ", text))


class Strings(ast.NodeVisitor):
    """Strings of a module: docstrings (those of constants too), and all others, joined as Python joins them."""

    def __init__(self) -> None:
        self.docstrings: list[tuple[int, str]] = []
        self.others: list[tuple[int, str]] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.docstrings.append((node.lineno, node.value.value))
        else:
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add) and (text := _joined(node)) is not None:
            self.others.append((node.lineno, text))
        else:
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.others.append((node.lineno, node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.others.append((node.lineno, _joined(node) or ""))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)


def _joined(node: ast.expr) -> str | None:
    """A text whose parts are strings and values; None where no part is a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_joined(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_joined(node.left), _joined(node.right)]
        return None if sides == [None, None] else "".join(side if side is not None else "{}" for side in sides)
    return None


def docstrings(path: Path) -> Iterator[Prose]:
    """Docstrings of a module, its classes, functions and constants."""
    yield from (Prose(_named(path), line, cleandoc(text)) for line, text in _strings(path).docstrings)


def said(path: Path) -> Iterator[Prose]:
    """The strings of a module that are English: four words or more, and no SQL or pattern."""
    for line, text in _strings(path).others:
        if _is_english(text) and not _SQL.match(text) and not re.search(r"\\[bdswS]|\(\?|\|.*\|.*\|", text):
            yield Prose(_named(path), line, text)


def _is_english(text: str) -> bool:
    return " " in text and len(_LETTERS.findall(text)) >= 4


@cache
def _strings(path: Path) -> Strings:
    found = Strings()
    found.visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def rules() -> Iterator[Prose]:
    """What is said of causes and rules of findings."""
    for path in sorted((PACKAGE / "data" / "rules").glob("*.toml")):
        said = filter(_is_english, _texts(tomllib.loads(path.read_text(encoding="utf-8"))))
        yield from (Prose(_named(path), 0, text) for text in said)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def templates() -> Iterator[Prose]:
    """The text of the templates of the page, and what is read aloud of it."""
    for path in sorted(TEMPLATES.rglob("*.html")):
        source = _VALUE.sub("{}", _JINJA.sub(" ", path.read_text(encoding="utf-8")))
        labels = re.findall(r'(?:title|aria-label)="([^"]*)"', source)
        yield from (Prose(_named(path), 0, text) for text in [*_TAG.split(_ELEMENT.sub(" ", source)), *labels])


def scripts() -> Iterator[Prose]:
    """The strings in the scripts of the page that are English."""
    for path in sorted((TEMPLATES / "assets").rglob("*.js")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for found in re.findall(r'"([^"\\]*)"|`([^`\\]*)`', line):
                text = re.sub(r"\$\{[^}]*\}", "{}", "".join(found))
                if _is_english(text):
                    yield Prose(_named(path), number, text)


def pages() -> list[Path]:
    """The documentation, pages of the repository among it."""
    own = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    return [path for path in (*(ROOT / name for name in own), *sorted((ROOT / "docs").glob("*.md"))) if path.exists()]


def page(path: Path) -> Prose:
    """A page without its headings, tables, pictures, generated sections and blocks of code."""
    text = re.sub(r"<!-- [\w -]+: made by .*?<!-- end -->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    kept = [line if not line.lstrip().startswith(("#", "|", "<", ":", "!")) else "" for line in text.splitlines()]
    return Prose(_named(path), 0, "\n".join(kept))
