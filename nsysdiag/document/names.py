"""Text from a trace made safe to look at: a name is data and may hold anything that fits into a string."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from nsysdiag.messages import printable
from nsysdiag.units import format_count, format_share

if TYPE_CHECKING:
    from nsysdiag.report import CallSite, CodeFrame, CodeShare


ANONYMOUS = "(anonymous namespace)"


def visible(text: str) -> str:
    """`text` with every character that does not print as itself written out: `\\x1b`, `\\u202e`, `\\n`.

    Terminal escapes, bidirectional controls, zero-width characters, line ends and lone surrogates cannot act then.
    """
    return printable(text.replace("\0", "\\0"))


def clip(text: str, limit: int) -> str:
    """`text` made visible and, where longer than `limit` characters, cut in the middle: both ends tell."""
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    tail = (limit - 1) // 3
    return f"{shown[: limit - 1 - tail]}…{shown[len(shown) - tail :]}"


def brief(name: str) -> str:
    """A demangled C++ name without its return type, template arguments and parameters; any other name unchanged.

    `void at::native::fill<4, float>(float*, int)` becomes `at::native::fill`.
    """
    if not name.endswith((")", ">")):
        return name
    kept = _outside_brackets(name.removeprefix("void ").replace(ANONYMOUS, "{anonymous}")).strip()
    return kept.replace("{anonymous}", ANONYMOUS) or name


def _outside_brackets(text: str) -> str:
    depth, kept = 0, []
    for character in text:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


MAX_NAME = 60
# Plotly takes `<` for markup and `&` for a character by its name, and what is between dollars for a formula.
_ESCAPES = {ord(sign): escape for sign, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;"))}


def plain(text: str, limit: int = MAX_NAME) -> str:
    """`text` made visible, cut if it is longer than `limit` characters, and escaped."""
    return clip(text, limit).translate(_ESCAPES)


# Markdown made of foreign text: nothing in it can act as markup.

MARKER = "<!-- nsysdiag report -->"
MARKUP_LIMIT = 90

_INLINE = re.compile(r"([\\`*\[\]<>|~]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_]))")
_BLOCK_START = re.compile(r"^()([-+#=])|^(\d+)([.)])(?=\s|$)")
# An empty comment between the sign and the word stops mentions, references and links to addresses.
_REFERENCE = re.compile(r"([@#!$%])(?=[\w\\])|(GH)(?=-\d)|(:)(?=//)|(www)(?=\.)", re.IGNORECASE)


def text(value: str) -> str:
    """A sentence as plain Markdown text: no markup, no mention, no reference, no link, on one line."""
    escaped = _INLINE.sub(r"\\\1", visible(value).strip())
    escaped = _BLOCK_START.sub(r"\1\3\\\2\4", escaped)
    return _REFERENCE.sub(lambda match: f"{match.group()}<!-- -->", escaped)


def code(value: str, *, in_table: bool = False, limit: int = MARKUP_LIMIT) -> str:
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


# Places in the program's code in words: functions with their callers, and what samples were in.

NAME_LIMIT = 60
COUNTED = {"cuda": "calls", "osrt": "calls", "sampling": "samples", "python": "back traces"}
Show = Callable[[str], str]


def short(name: str) -> str:
    """A function or file as shown: without parameters, cut if long, without control characters."""
    return clip(brief(name.partition(" [clone ")[0].removesuffix(" const")), NAME_LIMIT)


def whole(name: str) -> str:
    """A function or file as it is in the trace, for a table of raw values."""
    return name


def call_site_label(site: CallSite | None, show: Show = short) -> str:
    """A place with its callers, innermost first, and how many of the call chains lead there; empty if there is none.

    `pack ← exchange ← main [solver], 12 of 20 samples`, `load (data.py:17) ← train (train.py:80)`.
    """
    if site is None or not site.frames:
        return ""
    parts = []
    # Native functions of one module bear its name once, behind the last of them.
    for module, group in groupby(site.frames, key=lambda frame: "" if frame.python else frame.module):
        names = " ← ".join(_function(frame, show) for frame in group)
        shown = show(module)
        parts.append(names + (f" {shown if shown.startswith('[') else f'[{shown}]'}" if module else ""))
    what = "" if site.own else "library code: "
    when = "the launch, in " if site.launch else ""
    share = f", {format_count(site.chains)} of {format_count(site.of)} {COUNTED.get(site.source, 'call chains')}"
    return when + what + " ← ".join(parts) + (share if site.of > 1 else "")


def _function(frame: CodeFrame, show: Show) -> str:
    name = show(frame.symbol) or "no symbol"
    if not frame.python or not frame.module:
        return name
    line = f":{frame.line}" if frame.line else ""
    return f"{name} ({show(frame.module)}{line})"


def host_code_label(code: list[CodeShare], show: Show = short) -> str:
    """What samples were in: `_PyEval_EvalFrameDefault (interpreter) 62.0%, memcpy (native library) 21.0%`."""
    return ", ".join(f"{show(each.symbol)} ({show(each.kind)}) {format_share(each.share, 1)}" for each in code)
