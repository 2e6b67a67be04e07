"""Names inside sentences that still know what they are names of, until the report is assembled.

```
f"waits in {typed.api(call)}"        "waits in ⟦api cudaMalloc⟧"        while facts are gathered
plain(text)                          "waits in cudaMalloc"              what people read
parts(text)                          "waits in ", (API, "cudaMalloc")   what redaction goes by
```

A name is enclosed in characters that Unicode keeps for such use: they are in no text, and a trace that has them anyway
gets them replaced. So sentences may be joined, formatted and used as keys as any other text.
"""

from __future__ import annotations

import re

from nsysdiag.fields import Text

_OPEN, _CLOSE, _REPLACED = "\ufdd0", "\ufdd1", "\ufffd"
_FIRST_KIND = 0xE100
_KINDS = tuple(Text)
_NAME = re.compile(f"{_OPEN}(.)([^{_OPEN}{_CLOSE}]*){_CLOSE}", re.DOTALL)
_FOREIGN = str.maketrans(dict.fromkeys((_OPEN, _CLOSE), _REPLACED))
Part = str | tuple[Text, str]
"""Words of ours, or what a name is the name of, and the name."""


def name(kind: Text, text: str) -> str:
    """The name, to be put into a sentence. An empty one is no name."""
    return f"{_OPEN}{chr(_FIRST_KIND + _KINDS.index(kind))}{text.translate(_FOREIGN)}{_CLOSE}" if text else ""


def api(text: str) -> str:
    """A call of CUDA, the OS or MPI in a sentence."""
    return name(Text.API, text)


def kernel(text: str) -> str:
    """A kernel, or the class of another operation, in a sentence."""
    return name(Text.KERNEL, text)


def nvtx(text: str) -> str:
    """An NVTX range in a sentence."""
    return name(Text.RANGE, text)


def symbol(text: str) -> str:
    """A function of the program in a sentence."""
    return name(Text.SYMBOL, text)


def file(text: str) -> str:
    """A file in a sentence."""
    return name(Text.FILE, text)


def thread(text: str | None) -> str:
    """A thread in a sentence."""
    return name(Text.THREAD, text or "")


def process(text: str | None) -> str:
    """A process in a sentence."""
    return name(Text.PROCESS, text or "")


def rank(text: str | None) -> str:
    """A rank in a sentence."""
    return name(Text.RANK, text or "")


def has_names(text: str) -> bool:
    """Whether any part of a text is a name."""
    return _OPEN in text


def plain(text: str) -> str:
    """The text as people read it."""
    return _NAME.sub(r"\2", text) if _OPEN in text else text


def parts(text: str) -> list[Part]:
    """Words and names in turn; together they are the plain text."""
    found: list[Part] = []
    done = 0
    for each in _NAME.finditer(text):
        found += [text[done : each.start()]] if each.start() > done else []
        found.append((_KINDS[ord(each[1]) - _FIRST_KIND], each[2]))
        done = each.end()
    return [*found, text[done:]] if done < len(text) else found


def cut(text: str, length: int) -> str:
    """The beginning of the text, with at most `length` characters that people read."""
    kept = ""
    for part in parts(text):
        words, kind = (part, None) if isinstance(part, str) else (part[1], part[0])
        kept += words[:length] if kind is None else name(kind, words[:length])
        length -= min(len(words), length)
    return kept
