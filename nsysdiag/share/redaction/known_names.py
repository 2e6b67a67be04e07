"""The names that a report holds in fields of their own, and where they occur in its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nsysdiag.share.redaction.forms import written
from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.public import is_public_function
from nsysdiag.share.redaction.vocabulary import is_own

_HEAD = re.compile(r"\w+|[^\w\s]")
_LETTERS = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(r"[_:<>(){}\[\]/\\.]|[a-z][A-Z]")
_BEFORE = re.compile(r"(^|['“]|NVTX |› | in |before |thread |process |Threads of |\bby )$")
_LONGEST_BEFORE = 16
_PREFIX = 32
"""Characters by which names are looked up: no more than a few names of a trace begin with the same ones."""
_BEHIND = re.compile(r"\.?$|['”;:]| ›|, | \(| × | in | of | and its like| \d")


class KnownNames:
    """Pseudonyms by name, in all the ways in which the name is written."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._tokens: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._heads: set[str] = set()
        self._by_prefix: dict[str, list[str]] = {}
        self._lengths: list[int] = []
        self._always: set[str] = set()

    def learn(self, kind: str, text: str) -> None:
        """A name of a kind; what is learnt first counts."""
        for form in written(kind, text):
            if form and form not in self._tokens and not is_public_function(form):
                self._kinds[form] = kind
                self._add(form, self._names.of(kind, form))

    def learn_always(self, text: str, token: str) -> None:
        """A name with its pseudonym, which counts wherever it is found, whatever words it is made of."""
        self._always.add(text)
        self._add(text, token)

    def _add(self, form: str, token: str) -> None:
        self._tokens[form] = token
        self._heads.add(_head(form))
        self._by_prefix.setdefault(form[:_PREFIX], []).append(form)
        self._lengths = []

    def token(self, text: str) -> str | None:
        """The pseudonym of a whole name; None for one that was not learnt."""
        return self._tokens.get(text)

    def kind(self, text: str) -> str | None:
        """What a whole name is the name of; None for one that was not learnt."""
        return self._kinds.get(text)

    def found_in(self, text: str) -> Iterator[tuple[int, str]]:
        """Where names begin, in order and without overlaps: of several the longest that ends at a word's end."""
        self._sort()
        done = 0
        for head in _HEAD.finditer(text):
            at = head.start()
            if at < done or head[0] not in self._heads:
                continue
            name = next((each for each in self._candidates(text, at) if self._stands(each, text, at)), None)
            if name is not None:
                yield at, name
                done = at + len(name)

    def _candidates(self, text: str, at: int) -> Iterator[str]:
        """Names that begin as the text does, the longest first."""
        for length in self._lengths:
            yield from self._by_prefix.get(text[at : at + length], ())

    def _sort(self) -> None:
        if not self._lengths:
            for forms in self._by_prefix.values():
                forms.sort(key=len, reverse=True)
            self._lengths = sorted(set(map(len, self._by_prefix)), reverse=True)

    def _stands(self, name: str, text: str, at: int) -> bool:
        if not text.startswith(name, at):
            return False
        end = at + len(name)
        if end < len(text) and _is_wordy(text[end]) and _is_wordy(name[-1]):
            return False
        if name in self._always or not is_prose(name):
            return True
        return bool(_BEFORE.search(text, max(0, at - _LONGEST_BEFORE), at) and _BEHIND.match(text, end))


def is_prose(name: str) -> bool:
    """Whether a name reads like a part of our sentences: words of ours, and no identifier."""
    return not _IDENTIFIER.search(name) and all(map(is_own, _LETTERS.findall(name)))


def _head(text: str) -> str:
    found = _HEAD.search(text)
    return found[0] if found else ""


def _is_wordy(character: str) -> bool:
    return character.isalnum() or character == "_"
