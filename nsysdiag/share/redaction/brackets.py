"""Where a name in a sentence ends: at the first space or comma that is inside none of its brackets.

```
waited in Layer<Patient 7, acme::Foo>::forward(const acme::Bar&) const, then slept
          ------------------------------------------------------------
```

All in one pass over a text: what opens is matched with what closes beforehand.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PAIRS = {")": "(", "]": "[", ">": "<", "}": "{"}
_OPENING = frozenset(_PAIRS.values())
_ENDS = frozenset(" \t\n\r\f\v,;'\"“”›→×+=|")
"""What no name goes on behind, outside of brackets; a colon does not either, unless it is one of two."""
_BRACKET = re.compile(r"[()\[\]<>{}]")
_BEHIND = re.compile(r"(?: ?(?:const|volatile|noexcept|&&?)(?!\w))*(?: \[clone [^\]\[]{1,80}\])*")
"""What follows the parameters of a C++ function."""


@lru_cache(maxsize=64)
def matches(text: str) -> dict[int, int]:
    """The position behind the closing bracket for each opening one that has one; an arrow's head (`->`) closes
    nothing."""
    found: dict[int, int] = {}
    stack: list[int] = []
    waiting = dict.fromkeys(_OPENING, 0)
    for bracket in _BRACKET.finditer(text):
        at, sign = bracket.start(), bracket[0]
        if sign in _OPENING:
            stack.append(at)
            waiting[sign] += 1
        elif waiting[_PAIRS[sign]] and not (sign == ">" and text[at - 1 : at] in ("-", "=")):
            while stack:
                opened = stack.pop()
                waiting[text[opened]] -= 1
                if text[opened] == _PAIRS[sign]:
                    found[opened] = at + 1
                    break
    return found


def end_of_name(text: str, begin: int) -> int:
    """The end of a name that begins at `begin`, with all that is attached to it."""
    closed = matches(text)
    at = begin
    while at < len(text):
        sign = text[at]
        if at in closed:
            at = closed[at]
            if sign == "(" and (behind := _BEHIND.match(text, at)):
                at = behind.end()
        elif sign in _ENDS or sign in "()" or sign.isspace():
            break
        elif sign == ":":
            if text[at : at + 2] != "::":
                break
            at += 2
        else:
            at += 1
    return at


def listed(text: str) -> list[str]:
    """The parts between commas with a space behind that are inside no bracket."""
    closed = matches(text)
    parts: list[str] = []
    begin = at = 0
    while (found := _COMMA_OR_OPEN.search(text, at)) is not None:
        if found[0] == ", ":
            parts.append(text[begin : found.start()])
            begin = found.end()
        at = closed.get(found.start(), found.end())
    return [*parts, text[begin:]]


_COMMA_OR_OPEN = re.compile(r", |[(\[<{]")
