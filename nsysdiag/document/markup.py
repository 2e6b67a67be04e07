"""Markdown made of foreign text: nothing in it can act as markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag.document.names import clip, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKER = "<!-- nsysdiag report -->"
NAME_LIMIT = 90

_INLINE = re.compile(r"([\\`*\[\]<>|~]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_]))")
_BLOCK_START = re.compile(r"^()([-+#=])|^(\d+)([.)])(?=\s|$)")
# An empty comment between the sign and the word stops mentions, references and links to addresses.
_REFERENCE = re.compile(r"([@#!$%])(?=[\w\\])|(GH)(?=-\d)|(:)(?=//)|(www)(?=\.)", re.IGNORECASE)


def text(value: str) -> str:
    """A sentence as plain Markdown text: no markup, no mention, no reference, no link, on one line."""
    escaped = _INLINE.sub(r"\\\1", visible(value).strip())
    escaped = _BLOCK_START.sub(r"\1\3\\\2\4", escaped)
    return _REFERENCE.sub(lambda match: f"{match.group()}<!-- -->", escaped)


def code(value: str, *, in_table: bool = False, limit: int = NAME_LIMIT) -> str:
    """A name as a code span, fenced with more backticks than it holds; in a table its pipes are escaped."""
    shown = clip(value, limit)
    if not shown.strip():
        return "–"
    if in_table:
        shown = re.sub(r"(\\*)\|", _escape_pipe, shown)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    ends = shown[0] + shown[-1]
    pad = " " if "`" in ends or ends == "  " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escape_pipe(match: re.Match[str]) -> str:
    # A pipe needs an odd number of backslashes before it, or it ends the cell.
    slashes = match.group(1)
    return slashes + ("\\|" if len(slashes) % 2 == 0 else "\\\\|")


def table(header: Sequence[str], aligns: str, rows: Sequence[Sequence[str]]) -> str:
    """A pipe table; `aligns` has `l` or `r` for each column. The cells must be escaped already."""
    rules = ["---:" if align == "r" else "---" for align in aligns]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rules, *rows])


def fenced(value: str, language: str) -> str:
    """A code block with a fence longer than any run of backticks inside."""
    shown = visible(value)
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"
