"""Text from a trace made safe to look at: a name is data and may hold anything that fits into a string."""

from __future__ import annotations

from nsysdiag.printable import printable

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
    """`text` made visible, cut where it is longer than `limit` characters, and escaped."""
    return clip(text, limit).translate(_ESCAPES)
