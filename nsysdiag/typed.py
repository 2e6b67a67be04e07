"""Sentences whose names know what they are names of, until the report is assembled.

```
text = say("waits in {}", api(call))   a Phrase, itself text: "waits in cudaMalloc"
text.parts                             ("waits in ", (API, "cudaMalloc")): what redaction goes by
plain(text)                            "waits in cudaMalloc" alone
```

`say`, `joined`, `+`, `cut` and `capitalized` keep the names. f-strings and the methods of `str` would lose them: mypy
refuses them for sentences by `scripts/_sentences.py`, and formatting raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from string import Formatter
from typing import NamedTuple, TypeAlias


class TextKind(StrEnum):
    """The kind of a text, which decides how redaction treats it. For a dictionary it describes the keys."""

    OWN = "our own words and numbers: stays"
    API = "a call of CUDA, the OS or MPI: stays if it is a public one"
    KERNEL = "a kernel, or the class of another operation, which stays"
    RANGE = "an NVTX range"
    SYMBOL = "a function of the program"
    MODULE = "a library, program or source file"
    THREAD = "a thread"
    PROCESS = "a process"
    FILE = "a file"
    RANK = "a rank: a file's stem, or the key of a device, which stays"
    CALL = "an API or OS call or a function of the program"
    SENTENCE = "words of ours around names"
    LABELS = "sentences by the cause that they are about"
    WARNING = "words of ours around names, and what nsys reported"
    MESSAGE = "what nsys reported, in its own words: goes"
    METRIC = "a GPU metric: stays if it is a known one"
    TABLE = "a table of the export: stays if it is declared"
    GPU = "the model of a GPU: stays if it is one"
    VERSION = "a version of nsys or of the export"
    CURRENCY = "a currency: stays if it is a code or a sign"
    HASH = "a hash that identifies the file"
    ID = "an id made of a hash of names"
    ROW = "what a row of the trace is about, by its table"
    ITERATION = "an NVTX range or an operation, by the source"
    SETTINGS = "settings by name"
    PACKED = "the packed names of a timeline"
    PHRASES = "the names in sentences, by their kind"
    TRANSFORM = "what a change of a prediction is about, by its option"


class NameMark(NamedTuple):
    """A whole name, what it is the name of, and how many characters of it are read: None for all."""

    kind: TextKind
    text: str
    shown: int | None = None


Part = str | NameMark
"""Words of ours, or a name."""


class Phrase(str):
    """What people read, and its parts: words of ours and names in turn. Two are equal if their parts are; one without
    names equals the same words."""

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Phrase:
        made = super().__new__(
            cls, "".join([each if isinstance(each, str) else each.text[: each.shown] for each in parts])
        )
        made.parts = tuple(_merged(parts))
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.parts == parts(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __add__(self, other: Sentence) -> Phrase:
        return Phrase(*self.parts, *parts(other))

    def __radd__(self, other: str) -> Phrase:
        return Phrase(*parts(other), *self.parts)

    def __str__(self) -> str:
        if has_names(self):
            raise TypeError("this would forget what the names in a sentence are: use say, joined, cut or plain")
        return str.__str__(self)

    def __format__(self, spec: str) -> str:
        return self.__str__().__format__(spec)

    def __reduce__(self) -> tuple[type[Phrase], tuple[Part, ...]]:
        return Phrase, self.parts


Sentence: TypeAlias = str | Phrase


def _merged(parts: Iterable[Part]) -> list[Part]:
    """The same where words that follow each other are one part, and none is empty."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part:
            merged.append(part)
    return merged


def say(template: str, *values: object, **named: object) -> Phrase:
    """The template of `str.format` filled with names, words and numbers: `say("{} in {}", format_ns(ns), api(call))`.

    TypeError if it takes another number of values.
    """
    found: list[Part] = []
    given = iter(values)
    for words, field, spec in _pieces(template):
        found.append(words)
        if field is not None:
            value = named[field] if field else next(given, None)
            found += parts(value) if isinstance(value, str) else [format(value, spec)]
    if sum(field == "" for _, field, _ in _pieces(template)) != len(values):
        raise TypeError(f"not as many values as the sentence has places: {template}")
    return Phrase(*found)


@lru_cache(4096)
def _pieces(template: str) -> list[tuple[str, str | None, str]]:
    return [(words, field, spec or "") for words, field, spec, _ in Formatter().parse(template)]


def joined(between: str, texts: Iterable[Sentence]) -> Phrase:
    """The texts as one, as `str.join` does it."""
    found: list[Part] = []
    for text in texts:
        found += [between, *parts(text)]
    return Phrase(*found[1:])


def listed(texts: Sequence[Sentence]) -> Phrase:
    """`read`, `read and poll`, `read, poll and futex`."""
    return joined(" and ", filter(None, (joined(", ", texts[:-1]), *texts[-1:])))


NO_WORDS = Phrase()


def name(kind: TextKind, text: str, shown: int | None = None) -> Phrase:
    """The name, to be put into a sentence; of a longer one readers see `shown` characters. An empty text is not one."""
    if not text or shown == 0:
        return NO_WORDS
    return Phrase(NameMark(kind, text, shown if shown is not None and len(text) > shown else None))


def api(text: str) -> Phrase:
    """A call of CUDA, the OS or MPI in a sentence."""
    return name(TextKind.API, text)


def kernel(text: str, shown: int | None = None) -> Phrase:
    """A kernel, or the class of another operation, in a sentence. A name longer than `shown` is shown without its
    template arguments, or else cut, with a mark."""
    if shown is None or len(text) <= shown:
        return name(TextKind.KERNEL, text)
    function = text.find("<", 1, shown)
    return name(TextKind.KERNEL, text, function) if function > 0 else name(TextKind.KERNEL, text, shown) + "…"


def nvtx(text: str, shown: int | None = None) -> Phrase:
    """An NVTX range in a sentence, with at most `shown` characters."""
    return name(TextKind.RANGE, text, shown)


def symbol(text: str) -> Phrase:
    """A function of the program in a sentence."""
    return name(TextKind.SYMBOL, text)


def file(text: str) -> Phrase:
    """A file in a sentence."""
    return name(TextKind.FILE, text)


def thread(text: str | None) -> Phrase:
    """A thread in a sentence."""
    return name(TextKind.THREAD, text or "")


def process(text: str | None) -> Phrase:
    """A process in a sentence."""
    return name(TextKind.PROCESS, text or "")


def rank(text: str | None) -> Phrase:
    """A rank in a sentence."""
    return name(TextKind.RANK, text or "")


def parts(text: Sentence) -> tuple[Part, ...]:
    """Words and names in turn; what is shown of them together is the plain text."""
    return text.parts if isinstance(text, Phrase) else (text,) if text else ()


def called(text: Sentence) -> str:
    """The first call that a text names; empty without one."""
    names = (part for part in parts(text) if isinstance(part, NameMark))
    return next((each.text for each in names if each.kind is TextKind.API), "")


def has_names(text: Sentence) -> bool:
    """Whether any part of a text is a name."""
    return isinstance(text, Phrase) and any(isinstance(part, NameMark) for part in text.parts)


def plain(text: Sentence) -> str:
    """The text as readers see it, and no more."""
    return str.__str__(text)


def capitalized(text: Sentence) -> Phrase:
    """The text with a capital letter if it begins with words of ours."""
    return _first_changed(text, str.upper)


def uncapitalized(text: Sentence) -> Phrase:
    """The text with a small letter if it begins with words of ours, and not with an abbreviation: `OS memory calls`."""
    return _first_changed(text, str.lower) if not plain(text)[1:2].isupper() else Phrase(*parts(text))


def _first_changed(text: Sentence, change: Callable[[str], str]) -> Phrase:
    first, *rest = parts(text) or ("",)
    return Phrase(change(first[:1]) + first[1:] if isinstance(first, str) else first, *rest)


def without(beginning: str, text: Sentence) -> Phrase:
    """What follows the beginning of a text, which is words of ours."""
    first, *rest = parts(text) or ("",)
    return Phrase(first.removeprefix(beginning) if isinstance(first, str) else first, *rest)


def cut(text: Sentence, length: int) -> Phrase:
    """The beginning of the text, with at most `length` visible characters; its names stay whole, invisibly."""
    kept: list[Part] = []
    for part in parts(text):
        if isinstance(part, str):
            kept.append(part[:length])
            length -= min(len(part), length)
        else:
            shown = min(len(part.text) if part.shown is None else part.shown, length)
            kept += name(part.kind, part.text, shown).parts
            length -= shown
    return Phrase(*kept)
