"""Which of many texts a pattern matches: it is run only on those that hold a text that every match holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeVar

import numpy as np

from nsysdiag.arrays.intervals import BoolArray

T = TypeVar("T")

FEW = 500
"""So many texts are matched one by one, about as fast: each takes about 1 µs for each pattern, and what every match
holds takes about 0.2 ms to find out."""


def matching(pattern: re.Pattern[str], texts: Sequence[str]) -> BoolArray:
    """Which of the texts the pattern matches, anywhere in them."""
    return np.array([found is not None for found in of_matches(pattern.search, [pattern], texts)], dtype=np.bool_)


def of_matches(
    tell: Callable[[str], T | None], patterns: Iterable[re.Pattern[str]], texts: Sequence[str]
) -> list[T | None]:
    """What `tell` makes of each text, None for those that match none of the patterns: about most of these it is not
    asked."""
    asked = candidates(patterns, texts).tolist()
    return [tell(text) if asks else None for text, asks in zip(texts, asked, strict=True)]


def candidates(patterns: Iterable[re.Pattern[str]], texts: Sequence[str]) -> BoolArray:
    """Which of the texts may hold a match of one of the patterns: all that do, and few others."""
    words = _words(patterns) if len(texts) > FEW else frozenset()
    joined = "\n".join(texts) if words else ""
    if not words or not joined.isascii():  # of other letters, small and capital ones may have different lengths
        return np.ones(len(texts), dtype=np.bool_)
    found = np.zeros(len(texts), dtype=np.bool_)
    places = np.array(_places(words, joined.lower()), dtype=np.int64)
    if len(places):
        ends = np.cumsum([1 + len(text) for text in texts])
        found[np.searchsorted(ends, places, side="right")] = True
    return found


def _words(patterns: Iterable[re.Pattern[str]]) -> frozenset[str]:
    """The words of which each match of one of the patterns holds one; none if a match may hold none."""
    every = [held(each.pattern, each.flags) for each in patterns]
    words = frozenset().union(*every) if all(every) else frozenset()
    return frozenset(word for word in words if not any(other in word for other in words - {word}))


def _places(words: Iterable[str], joined: str) -> list[int]:
    """Where in a text one of the words begins."""
    places = []
    for word in words:
        at = joined.find(word)
        while at >= 0:
            places.append(at)
            at = joined.find(word, at + 1)
    return places


@cache
def held(pattern: str, flags: int) -> frozenset[str]:
    """Words in small letters: each match of the pattern holds one of them. None if it may hold none."""
    return _held(_parser.parse(pattern, flags))


def _held(parts: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    """Of all that a sequence holds, the words that are longest, as these are rarest."""
    options, run = [], ""
    for kind, what in [*parts, (None, None)]:
        if kind is op.LITERAL and chr(what).isascii() and what != ord("\n"):
            run += chr(what).lower()
            continue
        options += [frozenset({run})] if run else []
        run = ""
        options.append(_of_part(kind, what))
    return max((each for each in options if each), key=lambda each: min(map(len, each)), default=frozenset())


def _of_part(kind: Any, what: Any) -> frozenset[str]:
    if kind is op.SUBPATTERN:
        return _held(what[-1])
    if kind is op.BRANCH:
        branches = [_held(each) for each in what[1]]
        return frozenset().union(*branches) if all(branches) else frozenset()
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT) and what[0]:
        return _held(what[2])
    return frozenset()
