"""Typed names inside sentences: each keeps its kind until the report is assembled.

```
f"waits in {typed.api(call)}"        "waits in ⟦api cudaMalloc⟧"        while facts are gathered
plain(text)                          "waits in cudaMalloc"              what people read
parts(text)                          "waits in ", (API, "cudaMalloc")   what redaction goes by
```

Readers may see only the beginning of a long name; the whole name is stored invisibly for redaction.

A name is enclosed in private-use characters of Unicode, which are replaced in texts of a trace. So sentences can be
joined, formatted and used as keys like any other text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nsysdiag.fields import TextKind

_OPEN, _CLOSE, _UNSEEN, _REPLACED = "\ufdd0", "\ufdd1", "\ufdd2", "\ufffd"
_FIRST_KIND = 0xE100
_KINDS = tuple(TextKind)
_TEXT = f"[^{_OPEN}{_CLOSE}{_UNSEEN}]*"
_NAME = re.compile(f"{_OPEN}(.)({_TEXT})(?:{_UNSEEN}({_TEXT}))?{_CLOSE}", re.DOTALL)
_FOREIGN = str.maketrans(dict.fromkeys((_OPEN, _CLOSE, _UNSEEN), _REPLACED))


class NameMark(NamedTuple):
    """A whole name, what it is the name of, and how many characters of it are read: None for all."""

    kind: TextKind
    text: str
    shown: int | None = None


Part = str | NameMark
"""Words of ours, or a name."""


def name(kind: TextKind, text: str, shown: int | None = None) -> str:
    """The name, to be put into a sentence; of a longer one readers see `shown` characters. An empty one is no name."""
    if not text or shown == 0:
        return ""
    text = text.translate(_FOREIGN)
    if shown is not None and len(text) > shown:
        text = f"{text[:shown]}{_UNSEEN}{text[shown:]}"
    return f"{_OPEN}{chr(_FIRST_KIND + _KINDS.index(kind))}{text}{_CLOSE}"


def api(text: str) -> str:
    """A call of CUDA, the OS or MPI in a sentence."""
    return name(TextKind.API, text)


def kernel(text: str, shown: int | None = None) -> str:
    """A kernel, or the class of another operation, in a sentence. A name longer than `shown` is shown without its
    template arguments, or else cut, with a mark."""
    if shown is None or len(text) <= shown:
        return name(TextKind.KERNEL, text)
    function = text.find("<", 1, shown)
    return name(TextKind.KERNEL, text, function) if function > 0 else f"{name(TextKind.KERNEL, text, shown)}…"


def nvtx(text: str, shown: int | None = None) -> str:
    """An NVTX range in a sentence, with at most `shown` characters."""
    return name(TextKind.RANGE, text, shown)


def symbol(text: str) -> str:
    """A function of the program in a sentence."""
    return name(TextKind.SYMBOL, text)


def file(text: str) -> str:
    """A file in a sentence."""
    return name(TextKind.FILE, text)


def thread(text: str | None) -> str:
    """A thread in a sentence."""
    return name(TextKind.THREAD, text or "")


def process(text: str | None) -> str:
    """A process in a sentence."""
    return name(TextKind.PROCESS, text or "")


def rank(text: str | None) -> str:
    """A rank in a sentence."""
    return name(TextKind.RANK, text or "")


def called(text: str) -> str:
    """The first call that a text names; empty without one."""
    names = (part for part in parts(text) if isinstance(part, NameMark))
    return next((each.text for each in names if each.kind is TextKind.API), "")


def has_names(text: str) -> bool:
    """Whether any part of a text is a name."""
    return _OPEN in text


def plain(text: str) -> str:
    """The text as readers see it."""
    return _NAME.sub(r"\2", text) if _OPEN in text else text


def parts(text: str) -> list[Part]:
    """Words and names in turn; what is shown of them together is the plain text."""
    found: list[Part] = []
    done = 0
    for each in _NAME.finditer(text):
        found += [text[done : each.start()]] if each.start() > done else []
        unseen = each[3]
        whole, shown = (each[2], None) if unseen is None else (each[2] + unseen, len(each[2]))
        found.append(NameMark(_KINDS[ord(each[1]) - _FIRST_KIND], whole, shown))
        done = each.end()
    return [*found, text[done:]] if done < len(text) else found


def cut(text: str, length: int) -> str:
    """The beginning of the text, with at most `length` visible characters; its names stay whole, invisibly."""
    kept = ""
    for part in parts(text):
        if isinstance(part, str):
            kept += part[:length]
            length -= min(len(part), length)
        else:
            shown = min(len(part.text) if part.shown is None else part.shown, length)
            kept += name(part.kind, part.text, shown)
            length -= shown
    return kept
